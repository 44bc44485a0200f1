//! [`Device`]: a service as a [`nnhal_hal::Device`].

use super::buffer::Buffer;
use super::descriptors::with_few_pools;
use super::link::{Connect, Link};
use super::prepared::{Known, PreparedModel};
use crate::convert::clock;
use crate::convert::{
    all_signed, capabilities_from_wire, duplicate, extensions_from_wire, model_to_wire,
    prefixes_to_wire, roles_to_wire, to_parcel, tokens_to_wire, unsigned,
};
use crate::interface::nn;
use crate::references;
use crate::status::{RemoteFailure, is_gone};
use crate::version::Version;
use nn::BufferDesc::BufferDesc;
use nn::ErrorStatus::ErrorStatus as WireStatus;
use nn::ExecutionPreference::ExecutionPreference as WirePreference;
use nn::IPreparedModel::IPreparedModel;
use nn::IPreparedModelCallback::{BnPreparedModelCallback, IPreparedModelCallback};
use nn::IPreparedModelParcel::IPreparedModelParcel;
use nn::PrepareModelConfig::PrepareModelConfig;
use nn::Priority::Priority as WirePriority;
use nnhal_hal::{
    BufferDescription, CacheFilesNeeded, Capabilities, DeviceStatus, DeviceType, Error,
    ErrorStatus, Extension, HalVersion, Model, Operand, OperandType, PrepareOptions, Support,
};
use nnhal_hidl::checks;
use rsbinder::{BinderResult, Interface, ParcelFileDescriptor, Strong};
use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a service may take to notify, after `prepareModel` has returned, that it has prepared.
const LONGEST_PREPARATION: Duration = Duration::from_secs(3600);

/// A service as a device.
pub struct Device {
    name: String,
    connect: Box<dyn Connect>,
    link: Mutex<Arc<Link>>,
    description: Description,
}

/// What a service says of itself, asked once.
struct Description {
    version: HalVersion,
    version_string: String,
    device_type: DeviceType,
    capabilities: Capabilities,
    extensions: Vec<Extension>,
    cache_files_needed: CacheFilesNeeded,
}

impl Description {
    fn ask(link: &Link) -> nnhal_hal::Result<Self> {
        let device = link.device();
        let version = link.version().hal();
        // What is wrong here is the service's fault, not an argument's.
        let wrong = |error: crate::convert::ConversionError| Error::failure(error);
        let stated = link.call("getCapabilities", || device.getCapabilities())?;
        let stated = capabilities_from_wire(&stated).map_err(wrong)?;
        let version_string = link.call("getVersionString", || device.getVersionString())?;
        let code = link.call("getType", || device.getType())?.get();
        let extensions = link.call("getSupportedExtensions", || device.getSupportedExtensions())?;
        let method = "getNumberOfCacheFilesNeeded";
        let needed = link.call(method, || device.getNumberOfCacheFilesNeeded())?;
        let number = |number| unsigned("the number of cache files", number).map_err(wrong);
        Ok(Self {
            version,
            version_string: checks::version_string(version_string)?,
            device_type: DeviceType::from_code(code).map_err(Error::failure)?,
            capabilities: checks::capabilities(stated, version)?,
            extensions: checks::extensions(extensions_from_wire(&extensions).map_err(wrong)?)?,
            cache_files_needed: checks::cache_files_needed(CacheFilesNeeded {
                model: number(needed.numModelCache)?,
                data: number(needed.numDataCache)?,
            })?,
        })
    }
}

/// A status, and the model if there is one.
type Notification = (i32, Option<Strong<dyn IPreparedModel>>);

/// What becomes of a preparation, as the callback says it.
#[derive(Default)]
struct Notified {
    answer: Mutex<Option<Notification>>,
    changed: Condvar,
}

/// The callback of a preparation. The first notification counts.
struct Callback(Arc<Notified>);

impl Interface for Callback {}

impl IPreparedModelCallback for Callback {
    fn notify(
        &self,
        status: WireStatus,
        model: Option<&Strong<dyn IPreparedModel>>,
    ) -> BinderResult<()> {
        if let Some(model) = model {
            references::count(&model.as_binder());
        }
        let mut answer = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.get_or_insert_with(|| (status.get(), model.cloned()));
        self.0.changed.notify_all();
        Ok(())
    }
}

impl Device {
    /// Uses the service that `connect` leads to under this name. It is asked to describe itself at once.
    ///
    /// # Errors
    /// `DEVICE_UNAVAILABLE` where it cannot be reached; `GENERAL_FAILURE` where what it says of itself is
    /// nothing that a client could work with.
    pub fn new(
        name: impl Into<String>,
        connect: impl Connect + 'static,
    ) -> nnhal_hal::Result<Self> {
        let link = connect.connect()?;
        let description = Description::ask(&link)?;
        let link = Mutex::new(Arc::new(link));
        Ok(Self { name: name.into(), connect: Box::new(connect), link, description })
    }

    /// The connection, a new one if the service was found to be gone.
    fn link(&self) -> nnhal_hal::Result<Arc<Link>> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if link.is_gone() {
            *link = Arc::new(self.connect.connect()?);
        }
        Ok(Arc::clone(&link))
    }

    /// Asks the service; once more if it was gone, since it may have returned meanwhile.
    fn ask<T>(&self, ask: impl Fn(&Arc<Link>) -> nnhal_hal::Result<T>) -> nnhal_hal::Result<T> {
        match ask(&self.link()?) {
            Err(error) if is_gone(&error) => ask(&self.link()?),
            answer => answer,
        }
    }

    /// Judges by the version that is asked for, for which the interface has no words: a service judges
    /// by its own, which may allow more. Whether the interface can express the model.
    fn judge(&self, model: &Model, version: HalVersion) -> nnhal_hal::Result<Expressible> {
        let oem = has_oem(model);
        if oem || version < self.description.version {
            nnhal_ops::validate::check(model, version).map_err(Error::invalid)?;
        }
        Ok(if oem { Expressible::No } else { Expressible::Yes })
    }

    /// Launches a preparation and waits for its end.
    fn prepare(
        &self,
        method: &'static str,
        known: Known<'_>,
        launch: impl Fn(&Link, &Strong<dyn IPreparedModelCallback>) -> BinderResult<()>,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::PreparedModel>> {
        self.ask(|link| {
            let notified = Arc::new(Notified::default());
            let callback = BnPreparedModelCallback::new_binder(Callback(Arc::clone(&notified)));
            link.call(method, || launch(link, &callback))?;
            let (code, prepared) = received(link, method, &notified)?;
            let status = ErrorStatus::from_code(code).map_err(Error::failure)?;
            match (status, prepared) {
                (ErrorStatus::None, Some(prepared)) => {
                    let prepared = PreparedModel::new(Arc::clone(link), prepared, known);
                    Ok(Arc::new(prepared) as _)
                }
                (ErrorStatus::None, None) => {
                    Err(RemoteFailure::misbehaved(method, "NONE, but no prepared model"))
                }
                (status, _) => {
                    let reason = "the callback gives no reason".to_owned();
                    Err(Error::new(status, RemoteFailure::Answered { method, reason }))
                }
            }
        })
    }
}

/// Whether a service can be asked about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expressible {
    Yes,
    /// OEM types and operations do not exist in the AIDL interface (contract: MODEL-28).
    No,
}

const NO_OEM: &str = "OEM types and operations do not exist in the AIDL interface";

fn has_oem(model: &Model) -> bool {
    let oem = |operand: &Operand| {
        matches!(operand.operand_type, OperandType::Oem | OperandType::TensorOemByte)
    };
    model.subgraphs().any(|(_, subgraph)| {
        subgraph.operands.iter().any(oem)
            || subgraph.operations.iter().any(|operation| operation.operation_type.is_oem())
    })
}

/// Waits until the callback is notified. Our services do it before they return.
fn received(
    link: &Link,
    method: &'static str,
    notified: &Notified,
) -> nnhal_hal::Result<Notification> {
    const LOOK: Duration = Duration::from_millis(200);
    let mut answer = notified.answer.lock().unwrap_or_else(PoisonError::into_inner);
    let mut left = LONGEST_PREPARATION;
    loop {
        if let Some(answer) = answer.take() {
            return Ok(answer);
        }
        if left.is_zero() {
            let what = format!("no notification for {} s", LONGEST_PREPARATION.as_secs());
            return Err(RemoteFailure::misbehaved(method, what));
        }
        let waited = notified.changed.wait_timeout(answer, LOOK);
        let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        answer = guard;
        if timeout.timed_out() && answer.is_none() {
            left = left.saturating_sub(LOOK);
            // A service that has died will not notify.
            link.call(method, || link.device().getType()).map(|_| ())?;
        }
    }
}

/// Descriptors of cache files.
fn files(files: &[OwnedFd]) -> nnhal_hal::Result<Vec<ParcelFileDescriptor>> {
    files.iter().map(|file| Ok(to_parcel(file)?)).collect()
}

/// How many files there are of each kind.
fn counts(options: &PrepareOptions) -> (usize, usize) {
    (options.model_cache.len(), options.data_cache.len())
}

fn expect_not_cancelled(options: &PrepareOptions) -> nnhal_hal::Result<()> {
    match options.cancellation.as_ref().is_some_and(nnhal_hal::Cancellation::is_cancelled) {
        true => Err(Error::failure("the preparation was cancelled")),
        false => Ok(()),
    }
}

impl nnhal_hal::Device for Device {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> HalVersion {
        self.description.version
    }

    fn version_string(&self) -> String {
        self.description.version_string.clone()
    }

    fn device_type(&self) -> DeviceType {
        self.description.device_type
    }

    /// [`DeviceStatus::Offline`] if the service cannot be reached.
    fn status(&self) -> DeviceStatus {
        match self.expect_reachable() {
            Ok(()) => DeviceStatus::Available,
            Err(_) => DeviceStatus::Offline,
        }
    }

    fn expect_reachable(&self) -> nnhal_hal::Result<()> {
        self.ask(|link| link.call("getType", || link.device().getType())).map(drop)
    }

    fn capabilities(&self) -> Capabilities {
        self.description.capabilities.clone()
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.description.extensions.clone()
    }

    fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.description.cache_files_needed
    }

    fn supported_operations(
        &self,
        model: &Model,
        version: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        let method = "getSupportedOperations";
        if self.judge(model, version)? == Expressible::No {
            // Not even which of the others it could run.
            let no = |_| Support::No(NO_OEM.to_owned());
            return Ok(model.main.operations.iter().map(no).collect());
        }
        let few = with_few_pools(model)?;
        let wire = model_to_wire(&few)?;
        let found =
            self.ask(|link| link.call(method, || link.device().getSupportedOperations(&wire)))?;
        let found = checks::supported(method, model.main.operations.len(), found)?;
        let support = |supported| match supported {
            true => Support::Yes,
            false => Support::No("the service gives no reason".to_owned()),
        };
        Ok(found.into_iter().map(support).collect())
    }

    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::PreparedModel>> {
        if self.judge(model, version)? == Expressible::No {
            return Err(Error::failure(NO_OEM));
        }
        expect_not_cancelled(&options)?;
        let few = with_few_pools(model)?;
        let wire = model_to_wire(&few)?;
        let needed = self.description.cache_files_needed;
        let useful = counts(&options) == (needed.model as usize, needed.data as usize);
        // Another number of files is of no use to anybody, and no error (contract: PREP-7).
        let useful = |given: &[OwnedFd]| files(if useful { given } else { &[] });
        let config = PrepareModelConfig {
            preference: WirePreference(options.preference.code()),
            priority: WirePriority(options.priority.code()),
            deadlineNs: clock::deadline_on_wire(options.deadline),
            modelCache: useful(&options.model_cache)?,
            dataCache: useful(&options.data_cache)?,
            cacheToken: options.token,
            compilationHints: tokens_to_wire(&options.hints),
            extensionNameToPrefix: prefixes_to_wire(&options.hints.extension_name_to_prefix),
        };
        let count = wire.pools.len() + config.modelCache.len() + config.dataCache.len();
        self.link()?.expect_descriptors(count)?;
        let known = Known { model: Some(model), version };
        self.prepare("prepareModel", known, |link, callback| match link.version() >= Version::V4 {
            true => link.device().prepareModelWithConfig(&wire, &config, callback),
            false => link.device().prepareModel(
                &wire,
                config.preference,
                config.priority,
                config.deadlineNs,
                &config.modelCache,
                &config.dataCache,
                &config.cacheToken,
                callback,
            ),
        })
    }

    /// The interface has no question for it, so the service loads, and lets go of what it has loaded.
    fn check_cache(&self, options: &PrepareOptions) -> nnhal_hal::Result<()> {
        let same = PrepareOptions {
            preference: options.preference,
            priority: options.priority,
            model_cache: options.model_cache.iter().map(duplicate).collect::<Result<_, _>>()?,
            data_cache: options.data_cache.iter().map(duplicate).collect::<Result<_, _>>()?,
            token: options.token,
            cancellation: options.cancellation.clone(),
            client: options.client.clone(),
            ..PrepareOptions::default()
        };
        self.prepare_model_from_cache(same).map(|_| ())
    }

    fn prepare_model_from_cache(
        &self,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::PreparedModel>> {
        expect_not_cancelled(&options)?;
        let needed = self.description.cache_files_needed;
        if needed == CacheFilesNeeded::default() {
            return Err(Error::failure(format!("{} does not cache compilations", self.name)));
        }
        let (found, expected) = (counts(&options), (needed.model as usize, needed.data as usize));
        if found != expected {
            let what = format!("{found:?} model and data cache files, expected {expected:?}");
            return Err(Error::invalid(what));
        }
        let deadline = clock::deadline_on_wire(options.deadline);
        let (model, data) = (files(&options.model_cache)?, files(&options.data_cache)?);
        let known = Known { model: None, version: self.description.version };
        self.prepare("prepareModelFromCache", known, |link, callback| {
            link.device().prepareModelFromCache(deadline, &model, &data, &options.token, callback)
        })
    }

    fn allocate(
        &self,
        description: &BufferDescription,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Buffer>> {
        let method = "allocate";
        let link = self.link()?;
        let models = description.prepared_models.iter().enumerate();
        let models = models
            .map(|(index, model)| {
                let any: &dyn Any = &**model;
                let own = any.downcast_ref::<PreparedModel>();
                let own = own.and_then(|model| model.interface_at(&link));
                let own = own.ok_or_else(|| {
                    Error::invalid(format!("prepared model {index} was not made by {}", self.name))
                })?;
                Ok(IPreparedModelParcel { preparedModel: Some(own) })
            })
            .collect::<nnhal_hal::Result<Vec<_>>>()?;
        let desc = BufferDesc { dimensions: all_signed("a dimension", &description.dimensions)? };
        let input_roles = roles_to_wire(&description.input_roles)?;
        let output_roles = roles_to_wire(&description.output_roles)?;
        let allocated = link
            .call(method, || link.device().allocate(&desc, &models, &input_roles, &output_roles))?;
        let token = u32::try_from(allocated.token).unwrap_or(0);
        match allocated.buffer {
            Some(buffer) if token != 0 => Ok(Arc::new(Buffer::new(link, buffer, token))),
            _ => Err(RemoteFailure::misbehaved(method, "no buffer, or no token")),
        }
    }
}
