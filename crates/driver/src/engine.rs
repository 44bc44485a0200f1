//! [`Engine`] and [`Program`]: what a developer implements to get a driver.
//!
//! An engine that computes one RELU of float32 and nothing else, as a complete device:
//!
//! ```
//! use nnhal_driver::{
//!     Bindings, Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace, Program,
//!     RunContext,
//! };
//! use nnhal_hal::{Capabilities, DeviceType, OperandType, OperationType, PerformanceInfo, Support};
//! use nnhal_ops::ValidModel;
//!
//! struct Rectifier;
//! struct OneRelu;
//!
//! impl Engine for Rectifier {
//!     type Program = OneRelu;
//!     fn name(&self) -> &str {
//!         "example-rectifier"
//!     }
//!     fn version_string(&self) -> String {
//!         "1".to_owned()
//!     }
//!     fn device_type(&self) -> DeviceType {
//!         DeviceType::Other
//!     }
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::uniform(PerformanceInfo::AS_CPU)
//!     }
//!     fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
//!         let [operation] = &model.main().operations[..] else {
//!             return Support::No("only one operation".to_owned());
//!         };
//!         let input = model.operand(place.subgraph, operation.inputs[0]);
//!         match (operation.operation_type, input.operand_type) {
//!             (OperationType::Relu, OperandType::TensorFloat32) => Support::Yes,
//!             _ => Support::No("only RELU of float32".to_owned()),
//!         }
//!     }
//!     fn compile(
//!         &self,
//!         _model: &ValidModel,
//!         _options: &CompileOptions,
//!         _budget: &Budget,
//!     ) -> Result<OneRelu, EngineError> {
//!         Ok(OneRelu)
//!     }
//! }
//!
//! impl Program for OneRelu {
//!     fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
//!         let input = &bindings.inputs()[0];
//!         let mut bytes = match input.value() {
//!             Some(region) => region.read_to_vec()?,
//!             None => return Err(nnhal_hal::Error::failure("the input is left out").into()),
//!         };
//!         context.budget.check()?;
//!         for element in bytes.as_chunks_mut::<4>().0 {
//!             *element = f32::from_le_bytes(*element).max(0.0).to_le_bytes();
//!         }
//!         let dimensions = input.shape().to_known().unwrap_or_default();
//!         Ok(bindings.outputs()[0].deliver(&dimensions, &bytes)?)
//!     }
//! }
//!
//! use nnhal_hal::{ExecutionOptions, HalVersion, OperandSpec, PrepareOptions, RequestBuilder};
//! let device: Box<dyn nnhal_hal::Device> = Box::new(DriverDevice::new(Rectifier));
//! let mut graph = nnhal_hal::SubgraphBuilder::new();
//! let x = graph.input("x", OperandSpec::tensor_float32([0]));
//! let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([0]));
//! graph.output(y);
//! let model = graph.into_model()?;
//! let prepared = device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default())?;
//! let mut request = RequestBuilder::new();
//! request.input_shaped(&(-2.5_f32).to_le_bytes(), &[1]).output(4);
//! let execution = prepared.execute(&request.build()?, &ExecutionOptions::default())?;
//! assert_eq!(execution.dimensions(0), Some(&[1][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::bindings::Bindings;
use crate::budget::Budget;
use crate::error::{EngineError, OperationPlace};
use crate::observer::Observer;
use crate::planned_step::PlannedStep;
use bytes::Bytes;
use nnhal_hal::{
    Capabilities, DeviceType, ExecutionPreference, Extension, Hints, Priority, Support,
};
use nnhal_ops::ValidModel;

/// Turns valid models into programs.
///
/// All methods may be called from any thread at any time. An engine that panics fails the call it
/// was asked in, and only that.
pub trait Engine: Send + Sync + 'static {
    /// What it makes of a model.
    type Program: Program;

    /// The service instance name: vendor and device with one `-` between (DEV-INFO-3).
    fn name(&self) -> &str;

    /// Names the engine's version, and what of it was chosen when it was made. The driver adds what
    /// names the build (contract: DEV-INFO-1).
    fn version_string(&self) -> String;

    /// The kind of processor.
    fn device_type(&self) -> DeviceType;

    /// How fast and how frugal it is.
    fn capabilities(&self) -> Capabilities;

    /// The extensions it fully supports, always the same. The driver sees to it that operands of
    /// their types have the sizes that are said here (contract: EXT-5). See
    /// [`nnhal_hal::extension::check_offered`] for what names and numbers must be.
    fn extensions(&self) -> Vec<Extension> {
        Vec::new()
    }

    /// How many executions it computes at a time; more wait for a slot, see [`Scheduler`](crate::Scheduler). As many as
    /// there are processors, unless one execution keeps several of them busy.
    fn executions_at_once(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Whether it can run one operation of a model, in whichever subgraph. For IF and WHILE the
    /// question is about the operation itself: the driver asks about the subgraphs' operations
    /// one by one (contract: DEV-SUP-4). Operations and operand types of extensions that it does not
    /// have, or that do not fit their declared sizes, have been declined before it is asked.
    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support;

    /// Makes a program of a model whose operations it supports. The program keeps what it needs:
    /// the model is the client's. Long work asks the budget now and then, and charges the memory it
    /// keeps to [`Budget::memory`].
    ///
    /// The thread is one for preparing ([`Budget::is_preparing`]): threads that are started from it have
    /// its lower priority, so none of them is kept for executions.
    ///
    /// # Errors
    /// See [`EngineError`].
    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<Self::Program, EngineError>;

    /// Makes a program of what [`Program::save`] gave, quicker than out of the model. The driver
    /// has made sure that the bytes are those, and that driver, version and processor are the same.
    /// They begin on a page, and whoever keeps parts of them keeps all.
    ///
    /// # Errors
    /// See [`EngineError`]; always, unless the engine says otherwise.
    fn restore(
        &self,
        _saved: Bytes,
        _options: &CompileOptions,
        _budget: &Budget,
    ) -> Result<Self::Program, EngineError> {
        let name = self.name();
        Err(nnhal_hal::Error::failure(format!("{name} does not restore programs")).into())
    }
}

/// How to compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileOptions {
    /// What the client would rather have.
    pub preference: ExecutionPreference,
    /// Rank among the client's prepared models.
    pub priority: Priority,
    /// What extensions say; none where a program comes from the cache.
    pub hints: Hints,
}

/// A model that is ready to run, by any number of threads at once.
pub trait Program: Send + Sync + 'static {
    /// Computes the outputs of one request and delivers each of them, see
    /// [`BoundOutput`](crate::BoundOutput), also those whose buffer is too short. Asks the budget
    /// between operations and inside loops.
    ///
    /// # Errors
    /// See [`EngineError`]. Too short a buffer is none.
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError>;

    /// The program as bytes, for the cache; [`Engine::restore`] makes a program of them again, in
    /// another process perhaps. `None`: the driver keeps the model, and compiles it anew.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// The steps of an execution, as far as they are settled before there is a request.
    fn plan(&self) -> Vec<PlannedStep> {
        Vec::new()
    }
}

/// What an execution gets besides its arguments.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    /// Deadline, memory limit and cancellation of the execution.
    pub budget: &'a Budget,
    /// Receives each operation's results; `None` if no one asked for them.
    pub observer: Option<&'a dyn Observer>,
    /// What extensions say of the execution.
    pub hints: &'a Hints,
}

impl<'a> RunContext<'a> {
    /// No one watches.
    pub fn new(budget: &'a Budget) -> Self {
        static NO_HINTS: Hints = Hints::NONE;
        Self { budget, observer: None, hints: &NO_HINTS }
    }
}
