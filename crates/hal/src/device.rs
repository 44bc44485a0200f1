//! The traits that drivers offer and clients use: [`Device`], [`PreparedModel`], [`Buffer`],
//! [`Burst`].
//!
//! They are the canonical form of the interfaces: one method for what the versions spell in
//! several, results instead of callbacks. A call that takes time blocks its caller; whoever needs
//! the asynchronous methods of the interface files wraps these.

use crate::cancellation::Cancellation;
use crate::capabilities::Capabilities;
use crate::client::Client;
use crate::codes::{DeviceStatus, DeviceType, ExecutionPreference, HalVersion, Priority};
use crate::error::{Error, ExecutionError, Result};
use crate::extension::{Extension, Hints};
use crate::fence::SyncFence;
use crate::memory::{Memory, WeightPool};
use crate::model::Model;
use crate::output_shape::OutputShape;
use crate::request::Request;
use crate::time::{Deadline, Timing};
use crate::{BYTE_SIZE_OF_CACHE_TOKEN, MAX_NUMBER_OF_CACHE_FILES};
use std::any::Any;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Names a compilation in the client's cache.
pub type CacheToken = [u8; BYTE_SIZE_OF_CACHE_TOKEN];

/// Whether a device can run an operation of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support {
    /// It can.
    Yes,
    /// It cannot, for this reason.
    No(String),
}

impl Support {
    /// Whether the device can run it.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Yes)
    }
}

/// How many cache files a device wants for a prepared model; 0 and 0: it does not cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheFilesNeeded {
    /// Files that may hold executable or otherwise trusted data.
    pub model: u32,
    /// Files that hold constants.
    pub data: u32,
}

impl CacheFilesNeeded {
    /// Whether both numbers are at most [`MAX_NUMBER_OF_CACHE_FILES`].
    pub fn is_valid(self) -> bool {
        self.model <= MAX_NUMBER_OF_CACHE_FILES && self.data <= MAX_NUMBER_OF_CACHE_FILES
    }
}

/// How to prepare a model.
#[derive(Debug)]
pub struct PrepareOptions {
    /// What the client would rather have. 1.0 implies [`ExecutionPreference::FastSingleAnswer`].
    pub preference: ExecutionPreference,
    /// Rank among the client's prepared models. Older calls imply [`Priority::Medium`].
    pub priority: Priority,
    /// When the result is no longer wanted.
    pub deadline: Option<Deadline>,
    /// Where to save the model cache; empty: nowhere.
    pub model_cache: Vec<OwnedFd>,
    /// Where to save the data cache; empty: nowhere.
    pub data_cache: Vec<OwnedFd>,
    /// Names the compilation in the client's cache.
    pub token: CacheToken,
    /// Gives the preparation up when it is thrown.
    pub cancellation: Option<Cancellation>,
    /// Whose prepared model it is to be; unless it is said, the process's.
    pub client: Client,
    /// Where packed weights are to be, for prepared models of this process that have some in common. Interfaces to
    /// other processes do not pass it on, and a device need not use it.
    pub weights: Option<WeightPool>,
    /// What the caller knows of the cache files that it gives for loading. Interfaces to other processes do not pass it on, and
    /// a device may read them as if nothing were known.
    pub cache_trust: CacheTrust,
    /// What extensions say of the compilation. Interfaces older than AIDL version 4 do not pass it on.
    pub hints: Hints,
}

/// What the caller of [`Device::prepare_model_from_cache`] knows of the files: whether they are as the device, or another one
/// with its key, wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheTrust {
    /// Anyone may have written anything, and may do so at any moment (contract: CACHE-9, CACHE-13, CACHE-16). The device
    /// reads each byte once, authenticates it, and uses what it has read.
    #[default]
    None,
    /// They are, unless the caller finds that they were changed while they were loaded, and lets go of what was
    /// loaded. The device does not authenticate them again.
    WhileLoading,
    /// They are, and stay so for as long as the prepared model is there. The device uses them where they are, in pages that
    /// all processes share.
    WhileInUse,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self {
            preference: ExecutionPreference::FastSingleAnswer,
            priority: Priority::Medium,
            deadline: None,
            model_cache: Vec::new(),
            data_cache: Vec::new(),
            token: [0; BYTE_SIZE_OF_CACHE_TOKEN],
            cancellation: None,
            client: Client::in_process(),
            weights: None,
            cache_trust: CacheTrust::None,
            hints: Hints::NONE,
        }
    }
}

/// How to run a request.
#[derive(Debug, Clone, Default)]
pub struct ExecutionOptions {
    /// Whether to measure [`Timing`].
    pub measure: bool,
    /// When the result is no longer wanted.
    pub deadline: Option<Deadline>,
    /// For how long each WHILE may run; `None`: 2 s.
    pub loop_timeout: Option<Duration>,
    /// Gives the execution up when it is thrown.
    pub cancellation: Option<Cancellation>,
    /// What extensions say of the execution. Interfaces older than AIDL version 4 do not pass it on.
    pub hints: Hints,
}

/// What a successful execution says besides its outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// One per output, in request order.
    pub output_shapes: Vec<OutputShape>,
    /// Both `None` unless asked for.
    pub timing: Timing,
}

/// An execution behind sync fences that has been launched.
#[derive(Debug)]
pub struct FencedExecution {
    /// Signals when the execution has ended; `None`: it has ended already.
    pub sync_fence: Option<SyncFence>,
    /// What became of it.
    pub info: Box<dyn FencedExecutionInfo>,
}

/// What becomes of a fenced execution (`IFencedExecutionCallback`).
pub trait FencedExecutionInfo: fmt::Debug + Send + Sync {
    /// Timing from launch to end, and from the last fence to end; again and again the same.
    ///
    /// # Errors
    /// `GENERAL_FAILURE` before the fence has signalled; the execution's own error after.
    fn get(&self) -> Result<(Timing, Timing)>;
}

/// A use that a buffer is allocated for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferRole {
    /// Index into the prepared models of the same call.
    pub model_index: u32,
    /// Index of the input or output of that model's main subgraph.
    pub io_index: u32,
    /// How likely the buffer is used so: above 0, at most 1.
    pub frequency: f32,
}

/// What to allocate (contract: ALLOC).
#[derive(Clone, Default)]
pub struct BufferDescription {
    /// Dimensions known to the client; empty: none.
    pub dimensions: Vec<u32>,
    /// The models that `roles` refer to.
    pub prepared_models: Vec<Arc<dyn PreparedModel>>,
    /// Uses as input.
    pub input_roles: Vec<BufferRole>,
    /// Uses as output.
    pub output_roles: Vec<BufferRole>,
}

/// A device that runs models.
pub trait Device: Send + Sync {
    /// The service instance name: vendor and device with one `-` between (DEV-INFO-3).
    fn name(&self) -> &str;

    /// The newest interface that the device offers.
    fn version(&self) -> HalVersion {
        HalVersion::LATEST
    }

    /// Names this build of the driver; not empty (DEV-INFO-1).
    fn version_string(&self) -> String;

    /// The kind of processor.
    fn device_type(&self) -> DeviceType;

    /// What the device is doing.
    fn status(&self) -> DeviceStatus {
        DeviceStatus::Available
    }

    /// Demands that the device's process can be reached; for whoever asks why a device is offline.
    ///
    /// # Errors
    /// [`Error::gone`]
    fn expect_reachable(&self) -> Result<()> {
        Ok(())
    }

    /// How fast and how frugal it is.
    fn capabilities(&self) -> Capabilities;

    /// The extensions it fully supports.
    fn supported_extensions(&self) -> Vec<Extension> {
        Vec::new()
    }

    /// How many cache files it wants.
    fn cache_files_needed(&self) -> CacheFilesNeeded {
        CacheFilesNeeded::default()
    }

    /// For each operation of the main subgraph, in order, whether the device can run it. If it
    /// can run all of them, preparing the model succeeds (DEV-SUP-3).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the model is not valid for `version`.
    fn supported_operations(&self, model: &Model, version: HalVersion) -> Result<Vec<Support>>;

    /// Compiles a model.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the model is not valid for `version`, `MISSED_DEADLINE_*`, or what
    /// the device could not do.
    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>>;

    /// Checks what [`Device::prepare_model_from_cache`] is about to load without loading it, so that
    /// an asynchronous call can refuse it before it returns (contract: CACHE-5): the number of files,
    /// their access modes, their integrity. What passes may still fail to load: files change. Who
    /// cannot tell beforehand accepts.
    ///
    /// # Errors
    /// As [`Device::prepare_model_from_cache`], but for deadlines.
    fn check_cache(&self, _options: &PrepareOptions) -> Result<()> {
        Ok(())
    }

    /// Loads what an earlier preparation saved (contract: section 6). Preference and priority are
    /// those of that preparation, not those of the options (contract: CACHE-18).
    ///
    /// # Errors
    /// `GENERAL_FAILURE` if the device does not cache, or the files are not what it saved;
    /// `MISSED_DEADLINE_*`.
    fn prepare_model_from_cache(&self, _options: PrepareOptions) -> Result<Arc<dyn PreparedModel>> {
        Err(Error::failure(format!("{} does not cache compilations", self.name())))
    }

    /// Allocates a buffer that the driver manages (contract: section 13).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a wrong description, `GENERAL_FAILURE` for one not supported.
    fn allocate(&self, _description: &BufferDescription) -> Result<Arc<dyn Buffer>> {
        Err(Error::failure(format!("{} does not manage buffers", self.name())))
    }
}

/// A model that is ready to run. All methods may be called from any thread at any time.
pub trait PreparedModel: Send + Sync + Any {
    /// Runs a request and returns when it has ended.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a wrong request; `OUTPUT_INSUFFICIENT_SIZE`, with shapes, where a
    /// buffer is too short; `MISSED_DEADLINE_*`; otherwise what went wrong while computing.
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError>;

    /// Whose it is. All that comes of it is the client's: executions, bursts, buffers.
    fn client(&self) -> Client {
        Client::in_process()
    }

    /// Checks a request without running it, so that an asynchronous call can refuse it before it
    /// returns (contract: EXEC-1). A request that passes may still fail when it runs: memory and
    /// buffers change. Who cannot tell beforehand accepts.
    ///
    /// # Errors
    /// As [`PreparedModel::execute`] for the request's own faults.
    fn check_request(&self, _request: &Request) -> Result<()> {
        Ok(())
    }

    /// As [`PreparedModel::check_request`], of a request that is kept, to be executed later, once or often: what the driver's
    /// buffers hold by now does not count, since they may be written before.
    ///
    /// # Errors
    /// As [`PreparedModel::check_request`].
    fn check_kept_request(&self, request: &Request) -> Result<()> {
        self.check_request(request)
    }

    /// The driver's buffers that a request writes hold nothing of use any more, because an execution
    /// of it was launched and has failed: for whoever launches asynchronously, since
    /// [`PreparedModel::execute`] cannot tell a request that has turned wrong after
    /// [`PreparedModel::check_request`] from one that was wrong from the start (contract: BUF-1).
    fn discard_outputs(&self, _request: &Request) {}

    /// Accepts a request for an execution that begins later: checks it as [`PreparedModel::check_request`] does, and keeps the
    /// driver's buffers that it names, which their client may let go of meanwhile (contract: ALLOC-8, CONC-3). `None`: nothing is
    /// to be kept, and [`PreparedModel::execute`] runs it.
    ///
    /// # Errors
    /// As [`PreparedModel::check_request`].
    fn launch(&self, request: &Request) -> Result<Option<Box<dyn LaunchedRequest>>> {
        self.check_request(request).map(|()| None)
    }

    /// Launches a request that runs once all fences have signalled (contract: section 12).
    ///
    /// # Errors
    /// As the contract says; `GENERAL_FAILURE` where it is not supported.
    fn execute_fenced(
        &self,
        _request: &Request,
        _wait_for: &[SyncFence],
        _options: &ExecutionOptions,
        _timeout_after_fences: Option<Duration>,
    ) -> Result<FencedExecution> {
        Err(Error::failure("this prepared model does not run behind fences"))
    }

    /// Opens a channel for many executions in close succession (contract: section 11).
    ///
    /// # Errors
    /// `GENERAL_FAILURE` where it is not supported.
    fn configure_burst(&self) -> Result<Box<dyn Burst>> {
        Err(Error::failure("this prepared model has no bursts"))
    }
}

/// A buffer that the driver manages (`IBuffer`, 1.3).
pub trait Buffer: Send + Sync {
    /// Identifies the buffer in requests as long as it exists; never 0.
    fn token(&self) -> u32;

    /// Copies the buffer out.
    ///
    /// # Errors
    /// `GENERAL_FAILURE` if it holds nothing; `INVALID_ARGUMENT` if the size differs.
    fn copy_to(&self, destination: &Memory) -> Result<()>;

    /// Copies memory in, as a value of these dimensions (empty: the allocated ones).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if size or dimensions do not fit.
    fn copy_from(&self, source: &Memory, dimensions: &[u32]) -> Result<()>;

    /// Makes it uninitialized, as a [`Buffer::copy_from`] that fails does: for whoever was asked for
    /// a copy from something that is not even a [`Memory`] (contract: BUF-1).
    fn discard(&self);
}

/// A request that a prepared model has accepted, with what it names. What is kept is let go of when this is dropped.
pub trait LaunchedRequest: Send {
    /// Runs it and returns when it has ended.
    ///
    /// # Errors
    /// As [`PreparedModel::execute`].
    fn execute(&self, options: &ExecutionOptions) -> Result<Execution, ExecutionError>;

    /// As [`PreparedModel::discard_outputs`].
    fn discard_outputs(&self);
}

/// A channel for many executions in close succession.
pub trait Burst: Send + Sync {
    /// Runs a request and returns when it has ended; deadlines do not apply (BURST-14).
    ///
    /// # Errors
    /// As [`PreparedModel::execute`].
    fn execute(&self, request: &Request, measure: bool) -> Result<Execution, ExecutionError>;

    /// Lets go of what the channel keeps of this memory.
    fn free_memory(&self, memory: &Memory);
}

impl fmt::Debug for BufferDescription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BufferDescription")
            .field("dimensions", &self.dimensions)
            .field("prepared_models", &self.prepared_models.len())
            .field("input_roles", &self.input_roles)
            .field("output_roles", &self.output_roles)
            .finish()
    }
}

/// The shapes alone, for messages and tests.
impl Execution {
    /// The dimensions of one output.
    pub fn dimensions(&self, output: usize) -> Option<&[u32]> {
        self.output_shapes.get(output).map(|shape: &OutputShape| &*shape.dimensions)
    }
}
