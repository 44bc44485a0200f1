//! [`Device`]: a driver as a [`nnhal_hal::Device`].

use super::Options;
use super::answer::{NOTIFY, ask, expect_none, expect_some, status};
use super::buffer::Buffer;
use super::callbacks::{PreparedAnswer, PreparedModelCallback};
use super::describe::{Description, supported};
use super::interface::{At, Interface};
use super::prepared::PreparedModel;
use super::wait::Wait;
use crate::convert::{ConversionError, Convert};
use crate::handle::Handle;
use crate::misbehaviour::Misbehaviour;
use crate::transport::Return;
use crate::v1_3;
use nnhal_hal::{
    BufferDescription, CacheFilesNeeded, Cancellation, Capabilities, DeviceStatus, DeviceType,
    Error, Extension, HalVersion, Model, PrepareOptions, Support,
};
use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A driver of any version as a [`nnhal_hal::Device`].
pub struct Device {
    name: String,
    interface: Interface,
    description: Description,
    options: Options,
    /// Tells the prepared models of this device from those of others.
    identity: Arc<()>,
}

impl Device {
    /// Uses a driver under this service instance name. It is asked to describe itself at once.
    ///
    /// # Errors
    /// What the driver answers; `GENERAL_FAILURE` if what it says of itself is nothing that a
    /// client could work with: an empty version string, a cost of 0, costs out of order
    /// (contract: DEV-CAP-4), names of extensions that are none.
    pub fn new(
        name: impl Into<String>,
        interface: Interface,
        options: Options,
    ) -> nnhal_hal::Result<Self> {
        let description = Description::ask(&interface)?;
        Ok(Self { name: name.into(), interface, description, options, identity: Arc::new(()) })
    }

    /// The version in which a question about a model of `version` is put to the driver.
    fn spoken(&self, version: HalVersion) -> HalVersion {
        version.min(self.interface.version())
    }

    /// Refuses a model that the driver cannot even be asked about.
    fn expect_expressible(&self, model: &Model, version: HalVersion) -> nnhal_hal::Result<()> {
        let version = self.spoken(version);
        let obstacles = model.obstacles_in(version);
        if obstacles.is_empty() {
            return Ok(());
        }
        Err(ConversionError::Inexpressible { version, obstacles }.into())
    }

    /// Waits for a prepared model.
    fn receive(
        &self,
        method: &'static str,
        launched: i32,
        wait: Wait<PreparedAnswer>,
        model: Option<&Model>,
        cancellation: Option<&Cancellation>,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::PreparedModel>> {
        expect_none(method, launched)?;
        let (notified, prepared) = wait.wait(method, self.options.timeout, cancellation)?;
        // A number that is no status belongs to the method; what it says, to the callback.
        status(method, notified)?;
        expect_none(NOTIFY, notified)?;
        let prepared = expect_some(method, "prepared model", prepared)?;
        Ok(Arc::new(PreparedModel::new(
            prepared.newest(self.interface.version())?,
            self.interface.version(),
            model,
            self.options,
            Arc::clone(&self.identity),
        )))
    }
}

fn handles(files: Vec<OwnedFd>) -> Vec<Handle> {
    files.into_iter().map(Handle::of_fd).collect()
}

impl nnhal_hal::Device for Device {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> HalVersion {
        self.interface.version()
    }

    /// `UNKNOWN` of a driver older than 1.2.
    fn version_string(&self) -> String {
        self.description.version_string.clone()
    }

    /// [`DeviceType::Other`] of a driver older than 1.2.
    fn device_type(&self) -> DeviceType {
        self.description.device_type
    }

    /// [`DeviceStatus::Offline`] if the driver cannot be reached, [`DeviceStatus::Unknown`] if what
    /// it says is no status.
    fn status(&self) -> DeviceStatus {
        match ask("getStatus", || self.interface.v1_0().get_status()) {
            Ok(code) => DeviceStatus::from_code(code).unwrap_or(DeviceStatus::Unknown),
            Err(error) if error.reason::<Misbehaviour>().is_some() => DeviceStatus::Unknown,
            Err(_) => DeviceStatus::Offline,
        }
    }

    fn expect_reachable(&self) -> nnhal_hal::Result<()> {
        match ask("getStatus", || self.interface.v1_0().get_status()) {
            Err(error) if error.is_gone() => Err(error),
            _ => Ok(()),
        }
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
        let count = model.main.operations.len();
        self.expect_expressible(model, version)?;
        let (method, answer) = match self.interface.at_most(version) {
            At::V1_0(device) => {
                let (method, model) = ("getSupportedOperations", Convert::from_canonical(model)?);
                (method, ask(method, || device.get_supported_operations(&model))?)
            }
            At::V1_1(device) => {
                let method = "getSupportedOperations_1_1";
                let model = Convert::from_canonical(model)?;
                (method, ask(method, || device.get_supported_operations_1_1(&model))?)
            }
            At::V1_2(device) => {
                let method = "getSupportedOperations_1_2";
                let model = Convert::from_canonical(model)?;
                (method, ask(method, || device.get_supported_operations_1_2(&model))?)
            }
            At::V1_3(device) => {
                let method = "getSupportedOperations_1_3";
                let model = Convert::from_canonical(model)?;
                (method, ask(method, || device.get_supported_operations_1_3(&model))?)
            }
        };
        supported(method, count, answer)
    }

    /// Up to 1.2 there are no words for priority and deadline, and before that none for cache files
    /// and, in 1.0, preference: they are ignored.
    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::PreparedModel>> {
        self.expect_expressible(model, version)?;
        let (callback, wait) = PreparedModelCallback::new();
        let PrepareOptions { preference, priority, deadline, token, cancellation, .. } = options;
        let preference = preference.code();
        let (model_cache, data_cache) = (handles(options.model_cache), handles(options.data_cache));
        let (method, launched) = match self.interface.at_most(version) {
            At::V1_0(device) => {
                let (method, model) = ("prepareModel", Convert::from_canonical(model)?);
                (method, ask(method, || device.prepare_model(&model, Some(callback)))?)
            }
            At::V1_1(device) => {
                let (method, model) = ("prepareModel_1_1", Convert::from_canonical(model)?);
                let launch = || device.prepare_model_1_1(&model, preference, Some(callback));
                (method, ask(method, launch)?)
            }
            At::V1_2(device) => {
                let (method, model) = ("prepareModel_1_2", Convert::from_canonical(model)?);
                let launch = || {
                    device.prepare_model_1_2(
                        &model,
                        preference,
                        &model_cache,
                        &data_cache,
                        &token,
                        Some(callback),
                    )
                };
                (method, ask(method, launch)?)
            }
            At::V1_3(device) => {
                let (method, model) = ("prepareModel_1_3", Convert::from_canonical(model)?);
                let deadline = Convert::from_canonical(&deadline)?;
                let launch = || {
                    device.prepare_model_1_3(
                        &model,
                        preference,
                        priority.code(),
                        deadline,
                        &model_cache,
                        &data_cache,
                        &token,
                        Some(callback),
                    )
                };
                (method, ask(method, launch)?)
            }
        };
        self.receive(method, launched, wait, Some(model), cancellation.as_ref())
    }

    /// 1.2 has no words for the deadline, which is ignored.
    fn prepare_model_from_cache(
        &self,
        options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::PreparedModel>> {
        let PrepareOptions { model_cache, data_cache, token, deadline, cancellation, .. } = options;
        let (callback, wait) = PreparedModelCallback::new();
        let (model_cache, data_cache) = (handles(model_cache), handles(data_cache));
        let (method, launched) = match self.interface.at_most(HalVersion::LATEST) {
            At::V1_0(_) | At::V1_1(_) => {
                return Err(Error::failure("compilations can be cached from 1.2 on"));
            }
            At::V1_2(device) => {
                let method = "prepareModelFromCache";
                let launch = || {
                    device.prepare_model_from_cache(
                        &model_cache,
                        &data_cache,
                        &token,
                        Some(callback),
                    )
                };
                (method, ask(method, launch)?)
            }
            At::V1_3(device) => {
                let method = "prepareModelFromCache_1_3";
                let deadline = Convert::from_canonical(&deadline)?;
                let launch = || {
                    device.prepare_model_from_cache_1_3(
                        deadline,
                        &model_cache,
                        &data_cache,
                        &token,
                        Some(callback),
                    )
                };
                (method, ask(method, launch)?)
            }
        };
        self.receive(method, launched, wait, None, cancellation.as_ref())
    }

    fn allocate(
        &self,
        description: &BufferDescription,
    ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Buffer>> {
        let Interface::V1_3(device) = &self.interface else {
            return Err(Error::failure("drivers manage buffers from 1.3 on"));
        };
        let method = "allocate";
        let desc = v1_3::BufferDesc { dimensions: description.dimensions.clone() };
        let models = self.own_models(&description.prepared_models)?;
        let input_roles = roles(&description.input_roles)?;
        let output_roles = roles(&description.output_roles)?;
        let (status, buffer, token) = ask(method, || -> Return<_> {
            device.allocate(&desc, &models, &input_roles, &output_roles)
        })?;
        expect_none(method, status)?;
        let buffer = expect_some(method, "buffer", buffer)?;
        expect_some(method, "token", (token != 0).then_some(()))?;
        Ok(Arc::new(Buffer::new(buffer, token)))
    }
}

fn roles(roles: &[nnhal_hal::BufferRole]) -> nnhal_hal::Result<Vec<v1_3::BufferRole>> {
    roles.iter().map(|role| Ok(Convert::from_canonical(role)?)).collect()
}

impl Device {
    /// The driver's own objects behind prepared models of this device (contract: ALLOC-2).
    fn own_models(
        &self,
        models: &[Arc<dyn nnhal_hal::PreparedModel>],
    ) -> nnhal_hal::Result<Vec<Option<Arc<dyn v1_3::IPreparedModel>>>> {
        let models = models.iter().enumerate();
        models
            .map(|(index, model)| {
                let any: &dyn Any = &**model;
                let own = any.downcast_ref::<PreparedModel>();
                let own = own.filter(|model| model.is_of(&self.identity));
                own.and_then(PreparedModel::v1_3).map(|model| Some(Arc::clone(model))).ok_or_else(
                    || {
                        Error::invalid(format!(
                            "prepared model {index} was not made by {}",
                            self.name
                        ))
                    },
                )
            })
            .collect()
    }
}
