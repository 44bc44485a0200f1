//! `IDevice`.

use super::buffer::Buffer;
use super::guest::Notified;
use super::model::Prepared;
use super::prepared::PreparedModel;
use super::{Guest, Origin, guarded, version_methods};
use crate::convert::clock;
use crate::convert::{
    capabilities_to_wire, duplicates, extensions_to_wire, hints_from_wire, model_from_wire,
    roles_from_wire, signed,
};
use crate::interface::nn;
use crate::references;
use crate::status::Answer;
use crate::version::Version;
use nn::BufferDesc::BufferDesc;
use nn::BufferRole::BufferRole;
use nn::Capabilities::Capabilities;
use nn::DeviceBuffer::DeviceBuffer;
use nn::DeviceType::DeviceType;
use nn::ErrorStatus::ErrorStatus as WireStatus;
use nn::ExecutionPreference::ExecutionPreference as WirePreference;
use nn::Extension::Extension;
use nn::ExtensionNameAndPrefix::ExtensionNameAndPrefix;
use nn::IBuffer::BnBuffer;
use nn::IDevice::IDevice;
use nn::IPreparedModel::{BnPreparedModel, IPreparedModel};
use nn::IPreparedModelCallback::IPreparedModelCallback;
use nn::IPreparedModelParcel::IPreparedModelParcel;
use nn::Model::Model as WireModel;
use nn::NumberOfCacheFiles::NumberOfCacheFiles;
use nn::PrepareModelConfig::PrepareModelConfig;
use nn::Priority::Priority as WirePriority;
use nn::TokenValuePair::TokenValuePair;
use nnhal_hal::background::NotRun;
use nnhal_hal::client::Holding;
use nnhal_hal::{
    BufferDescription, CacheFilesNeeded, CacheToken, CacheTrust, Deadline, Error,
    ExecutionPreference, Model, PrepareOptions, Priority, Support,
};
use nnhal_hidl::Handle;
use nnhal_hidl::checks::{self, Outputs};
use nnhal_hidl::serve::CacheFiles;
use nnhal_hidl::tasks::Kind;
use rsbinder::{BinderResult, Interface, ParcelFileDescriptor, Strong};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A device behind `IDevice`.
pub(super) struct Device(pub(super) Arc<Origin>);

type Callback = Strong<dyn IPreparedModelCallback>;

/// How to prepare, as all three methods say it.
struct Wishes<'a> {
    preference: WirePreference,
    priority: WirePriority,
    deadline: i64,
    model_cache: &'a [ParcelFileDescriptor],
    data_cache: &'a [ParcelFileDescriptor],
    token: &'a [u8],
    hints: &'a [TokenValuePair],
    prefixes: &'a [ExtensionNameAndPrefix],
}

/// Descriptors of cache files in the form in which they are checked.
fn handles(files: &[ParcelFileDescriptor]) -> nnhal_hal::Result<Vec<Handle>> {
    let files: Vec<OwnedFd> = duplicates(files)?;
    Ok(files.into_iter().map(Handle::of_fd).collect())
}

/// The token of a cache; where there is none to be saved, it may be empty.
fn token(bytes: &[u8]) -> nnhal_hal::Result<CacheToken> {
    let wrong = || Error::invalid(format!("the token has {} bytes, expected 32", bytes.len()));
    bytes.try_into().map_err(|_| wrong())
}

impl Device {
    fn cache_files_needed(&self) -> nnhal_hal::Result<CacheFilesNeeded> {
        Ok(checks::cache_files_needed(self.0.device.cache_files_needed())?)
    }

    /// Looks at the arguments of a preparation, prepares, and notifies: in the call, which then answers the same, or after
    /// it.
    fn prepare<W: FnOnce() -> nnhal_hal::Result<Arc<Prepared>> + Send + 'static>(
        &self,
        callback: &Callback,
        look: impl FnOnce(Arc<Guest>, Notified) -> nnhal_hal::Result<(Priority, Option<Deadline>, W)>,
    ) -> BinderResult<()> {
        let guests = &self.0.guests;
        let notified = guests.notified();
        let preparation = Preparation::new(Arc::clone(&self.0), callback.clone());
        let looked = guarded(|| {
            let guest = guests.find()?;
            guests.meet(&guest, &callback.as_binder());
            let (priority, deadline, work) = look(Arc::clone(&guest), notified)?;
            Ok((guest, priority, deadline, work))
        });
        let (guest, priority, deadline, work) = match looked {
            Ok(looked) => looked,
            Err(error) => return preparation.deliver(Err(error)),
        };
        match notified {
            Notified::InTheCall => preparation.deliver(guarded(work)),
            Notified::Later => {
                references::count(&callback.as_binder());
                let task = move |not_run: Option<NotRun>| {
                    let outcome = match not_run {
                        None => guarded(work),
                        Some(why) => Err(why.into()),
                    };
                    drop(preparation.deliver(outcome));
                };
                let spawned = guest.tasks().spawn_until(Kind::Preparing, priority, deadline, task);
                // The callback has got the same, from what was to be run.
                spawned.map_err(|error| Answer::Launch.refuse(&Error::failure(error)))
            }
        }
    }

    fn prepare_model(
        &self,
        model: &WireModel,
        wishes: &Wishes<'_>,
        callback: &Callback,
    ) -> BinderResult<()> {
        self.prepare(callback, |guest, notified| {
            let origin = Arc::clone(&self.0);
            let model = model_from_wire(model)?;
            let held = guest.client().hold(Holding::PreparedModels, 1)?;
            // A driver may read constants whenever an execution needs them.
            for pool in &model.pools {
                pool.kept_by(guest.client())?;
            }
            let files = CacheFiles::to_save(
                self.cache_files_needed()?,
                &handles(wishes.model_cache)?,
                &handles(wishes.data_cache)?,
            );
            // A token that is none matters only where something is to be saved.
            let token = match files.model.is_empty() && files.data.is_empty() {
                true => token(wishes.token).unwrap_or_default(),
                false => token(wishes.token)?,
            };
            let priority = Priority::from_code(wishes.priority.get()).map_err(Error::invalid)?;
            let options = PrepareOptions {
                preference: ExecutionPreference::from_code(wishes.preference.get())
                    .map_err(Error::invalid)?,
                priority,
                deadline: guest.client().preparation_deadline(clock::deadline(wishes.deadline)?),
                model_cache: files.model,
                data_cache: files.data,
                token,
                cancellation: None,
                client: guest.client().clone(),
                weights: None,
                cache_trust: CacheTrust::None,
                hints: hints_from_wire(wishes.hints, wishes.prefixes)?,
            };
            if notified == Notified::Later {
                // It says whether the model is valid, which the call answers. What cannot be run is for the callback.
                origin.device.supported_operations(&model, origin.hal())?;
            }
            let deadline = options.deadline;
            let work = move || {
                let prepared = origin.device.prepare_model(&model, origin.hal(), options)?;
                let outputs = Outputs::of(Some(&model));
                Ok(Prepared::new(origin, guest, prepared, outputs, held))
            };
            Ok((priority, deadline, work))
        })
    }
}

/// A preparation whose outcome the client is to be notified of, once.
struct Preparation {
    origin: Arc<Origin>,
    /// Until it is notified.
    callback: Option<Callback>,
}

impl Preparation {
    fn new(origin: Arc<Origin>, callback: Callback) -> Self {
        Self { origin, callback: Some(callback) }
    }

    /// Notifies, and answers the same.
    fn deliver(mut self, outcome: nnhal_hal::Result<Arc<Prepared>>) -> BinderResult<()> {
        match outcome {
            Ok(prepared) => {
                let model = PreparedModel(Arc::clone(&prepared));
                let binder = BnPreparedModel::new_binder(model);
                self.origin.give(&binder.as_binder(), &prepared);
                self.notify(WireStatus::NONE, Some(&binder));
                Ok(())
            }
            Err(error) => {
                let status = Answer::Launch.of(error.status()).code();
                self.notify(WireStatus(status), None);
                Err(Answer::Launch.refuse(&error))
            }
        }
    }

    fn notify(&mut self, status: WireStatus, model: Option<&Strong<dyn IPreparedModel>>) {
        let Some(callback) = self.callback.take() else { return };
        if let Err(error) = callback.notify(status, model) {
            tracing::debug!(%error, "a callback could not be notified");
        }
    }
}

/// What was given up before it was prepared has failed.
impl Drop for Preparation {
    fn drop(&mut self) {
        self.notify(WireStatus::GENERAL_FAILURE, None);
    }
}

impl Interface for Device {}

#[allow(non_snake_case)] // The methods' names are the files'.
impl IDevice for Device {
    version_methods!(0);

    fn allocate(
        &self,
        desc: &BufferDesc,
        models: &[IPreparedModelParcel],
        input_roles: &[BufferRole],
        output_roles: &[BufferRole],
    ) -> BinderResult<DeviceBuffer> {
        let allocated = guarded(|| {
            let guest = self.0.guests.find()?;
            let models = models.iter().enumerate();
            let own = |(index, parcel): (usize, &IPreparedModelParcel)| {
                let model = parcel.preparedModel.as_ref().and_then(|model| self.0.known(model));
                model.map(|model| Arc::clone(model.model())).ok_or_else(|| {
                    Error::invalid(format!("prepared model {index} is none of this device"))
                })
            };
            let description = BufferDescription {
                dimensions: crate::convert::all_unsigned("a dimension", &desc.dimensions)?,
                prepared_models: models.map(own).collect::<nnhal_hal::Result<_>>()?,
                input_roles: roles_from_wire(input_roles)?,
                output_roles: roles_from_wire(output_roles)?,
            };
            let buffer = self.0.device.allocate(&description)?;
            let token = signed("a token", buffer.token())?;
            let given = guest.tokens(self.0.id()).give(buffer.token());
            let buffer = Buffer::new(Arc::clone(&self.0), buffer, given);
            Ok(DeviceBuffer { buffer: Some(BnBuffer::new_binder(buffer)), token })
        });
        allocated.map_err(|error: Error| Answer::Launch.refuse(&error))
    }

    fn getCapabilities(&self) -> BinderResult<Capabilities> {
        let capabilities = guarded(|| {
            let stated = self.0.device.capabilities().in_version(self.0.hal());
            Ok(capabilities_to_wire(&checks::capabilities(stated, self.0.hal())?)?)
        });
        capabilities.map_err(|error: Error| Answer::Plain.refuse(&error))
    }

    fn getNumberOfCacheFilesNeeded(&self) -> BinderResult<NumberOfCacheFiles> {
        let needed = guarded(|| {
            let needed = self.cache_files_needed()?;
            Ok(NumberOfCacheFiles {
                numModelCache: signed("the number of cache files", needed.model)?,
                numDataCache: signed("the number of cache files", needed.data)?,
            })
        });
        needed.map_err(|error: Error| Answer::Plain.refuse(&error))
    }

    fn getSupportedExtensions(&self) -> BinderResult<Vec<Extension>> {
        let extensions = guarded(|| {
            Ok(extensions_to_wire(&checks::extensions(self.0.device.supported_extensions())?)?)
        });
        extensions.map_err(|error: Error| Answer::Plain.refuse(&error))
    }

    fn getSupportedOperations(&self, model: &WireModel) -> BinderResult<Vec<bool>> {
        let supported = guarded(|| {
            let model = model_from_wire(model)?;
            let supported = self.0.device.supported_operations(&model, self.0.hal())?;
            let count = model.main.operations.len();
            let supported = checks::supported("getSupportedOperations", count, supported)?;
            Ok(supported.iter().map(Support::is_yes).collect())
        });
        supported.map_err(|error: Error| Answer::Plain.refuse(&error))
    }

    fn getType(&self) -> BinderResult<DeviceType> {
        let code = guarded(|| Ok::<_, Error>(self.0.device.device_type().code()));
        code.map(DeviceType).map_err(|error| Answer::Plain.refuse(&error))
    }

    fn getVersionString(&self) -> BinderResult<String> {
        let version = guarded(|| Ok(checks::version_string(self.0.device.version_string())?));
        version.map_err(|error: Error| Answer::Plain.refuse(&error))
    }

    fn prepareModel(
        &self,
        model: &WireModel,
        preference: WirePreference,
        priority: WirePriority,
        deadline: i64,
        model_cache: &[ParcelFileDescriptor],
        data_cache: &[ParcelFileDescriptor],
        token: &[u8],
        callback: &Callback,
    ) -> BinderResult<()> {
        let (hints, prefixes) = (&[], &[]);
        let wishes = Wishes {
            preference,
            priority,
            deadline,
            model_cache,
            data_cache,
            token,
            hints,
            prefixes,
        };
        self.prepare_model(model, &wishes, callback)
    }

    fn prepareModelFromCache(
        &self,
        deadline: i64,
        model_cache: &[ParcelFileDescriptor],
        data_cache: &[ParcelFileDescriptor],
        bytes: &[u8],
        callback: &Callback,
    ) -> BinderResult<()> {
        self.prepare(callback, |guest, notified| {
            let origin = Arc::clone(&self.0);
            let held = guest.client().hold(Holding::PreparedModels, 1)?;
            let files = CacheFiles::to_load(
                self.cache_files_needed()?,
                &handles(model_cache)?,
                &handles(data_cache)?,
            )?;
            let options = PrepareOptions {
                deadline: guest.client().preparation_deadline(clock::deadline(deadline)?),
                model_cache: files.model,
                data_cache: files.data,
                token: token(bytes)?,
                client: guest.client().clone(),
                ..PrepareOptions::default()
            };
            if notified == Notified::Later {
                origin.device.check_cache(&options)?;
            }
            let deadline = options.deadline;
            let work = move || {
                let prepared = origin.device.prepare_model_from_cache(options)?;
                let outputs = Outputs::of(None::<&Model>);
                Ok(Prepared::new(origin, guest, prepared, outputs, held))
            };
            // Which priority the model has is in the files.
            Ok((Priority::Medium, deadline, work))
        })
    }

    fn prepareModelWithConfig(
        &self,
        model: &WireModel,
        config: &PrepareModelConfig,
        callback: &Callback,
    ) -> BinderResult<()> {
        self.0.expect(Version::V4)?;
        let wishes = Wishes {
            preference: config.preference,
            priority: config.priority,
            deadline: config.deadlineNs,
            model_cache: &config.modelCache,
            data_cache: &config.dataCache,
            token: &config.cacheToken,
            hints: &config.compilationHints,
            prefixes: &config.extensionNameToPrefix,
        };
        self.prepare_model(model, &wishes, callback)
    }
}
