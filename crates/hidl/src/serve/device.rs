//! [`Device`]: a device behind `IDevice` of every version.

use super::buffer::Buffer;
use super::cache::CacheFiles;
use super::preparation::{Preparation, PreparedModelCallback};
use super::prepared::PreparedModel;
use super::status::{Answer, NONE};
use super::{Origin, guarded};
use crate::cast::Cast;
use crate::checks::{self, Outputs};
use crate::convert::Convert;
use crate::handle::Handle;
use crate::tasks::{Kind, Limits, Tasks};
use crate::transport::Return;
use crate::v1_2::CacheToken;
use crate::v1_3::{IBuffer, OptionalTimePoint};
use crate::{v1_0, v1_1, v1_2, v1_3};
use nnhal_hal::background::NotRun;
use nnhal_hal::client::{Held, Holding};
use nnhal_hal::{
    BufferDescription, CacheFilesNeeded, Client, Deadline, DeviceStatus, Error,
    ExecutionPreference, HalVersion, Model, PrepareOptions, Priority,
};
use std::any::Any;
use std::sync::Arc;

/// A [`nnhal_hal::Device`] behind `IDevice` of every version.
pub struct Device {
    origin: Arc<Origin>,
}

impl Device {
    /// Serves a device.
    pub fn new(device: Arc<dyn nnhal_hal::Device>) -> Arc<Self> {
        Self::with_limits(device, Limits::default())
    }

    /// Serves a device with other limits to what goes on in the background.
    pub fn with_limits(device: Arc<dyn nnhal_hal::Device>, limits: Limits) -> Arc<Self> {
        Self::for_client(device, Client::in_process(), limits)
    }

    /// Serves a device to one client. A service makes one of these for each of its clients, which
    /// then has threads of its own, and calls [`Client::leave`] when the client is gone.
    pub fn for_client(
        device: Arc<dyn nnhal_hal::Device>,
        client: Client,
        limits: Limits,
    ) -> Arc<Self> {
        let (tasks, tokens) = (Tasks::new(limits), Arc::default());
        Arc::new(Self { origin: Arc::new(Origin { device, client, tasks, tokens }) })
    }

    /// The device behind the interface.
    pub fn inner(&self) -> &Arc<dyn nnhal_hal::Device> {
        &self.origin.device
    }

    /// What the device says of itself by a method of this version, if it is such as the method may
    /// say.
    fn describe<T: Default>(
        &self,
        version: HalVersion,
        ask: impl FnOnce(&dyn nnhal_hal::Device) -> nnhal_hal::Result<T>,
    ) -> (i32, T) {
        let described = guarded(|| {
            self.origin.expect_version(version)?;
            ask(&*self.origin.device)
        });
        match described {
            Ok(description) => (NONE, description),
            Err(error) => (Answer::Description.refuse(&error), T::default()),
        }
    }

    fn capabilities<C: Convert<Canonical = nnhal_hal::Capabilities> + Default>(
        &self,
        version: HalVersion,
    ) -> (i32, C) {
        self.describe(version, |device| {
            // Of newer types than the method's it is then silent (contract: DEV-CAP-5).
            let capabilities = checks::capabilities(device.capabilities(), HalVersion::LATEST)?;
            Ok(C::from_canonical(&capabilities)?)
        })
    }

    fn supported_operations<M: Convert<Canonical = Model>>(
        &self,
        model: &M,
        version: HalVersion,
    ) -> (i32, Vec<bool>) {
        let answer = guarded(|| {
            self.origin.expect_version(version)?;
            let model = model.to_canonical()?;
            let supported = self.origin.device.supported_operations(&model, version)?;
            let count = model.main.operations.len();
            Ok::<_, Error>(checks::supported("supported_operations", count, supported)?)
        });
        match answer {
            Ok(supported) => (NONE, supported.iter().map(nnhal_hal::Support::is_yes).collect()),
            Err(error) => (Answer::Plain.refuse(&error), Vec::new()),
        }
    }

    fn cache_files_needed(&self) -> nnhal_hal::Result<CacheFilesNeeded> {
        Ok(checks::cache_files_needed(guarded(|| {
            Ok::<_, Error>(self.origin.device.cache_files_needed())
        })?)?)
    }

    /// Launches a preparation (contract: PREP-1 to PREP-6).
    fn prepare<M: Convert<Canonical = Model>>(
        &self,
        model: &M,
        version: HalVersion,
        options: impl FnOnce() -> nnhal_hal::Result<PrepareOptions>,
        callback: Option<PreparedModelCallback>,
    ) -> i32 {
        let Some(callback) = callback else {
            return Answer::Plain.refuse(&Error::invalid("the callback is null"));
        };
        let preparation = Preparation::new(callback);
        let checked = guarded(|| {
            self.origin.expect_version(version)?;
            let model = model.to_canonical()?;
            let options = options()?;
            // It says whether the model is valid. What cannot be run is the task's to say (PREP-5).
            self.origin.device.supported_operations(&model, version)?;
            let held = self.hold_model()?;
            // A driver may read constants whenever an execution needs them.
            for pool in &model.pools {
                pool.kept_by(&self.origin.client)?;
            }
            Ok((model, options, held))
        });
        let (model, options, held) = match checked {
            Ok(checked) => checked,
            Err(error) => return preparation.deliver(Err(error)),
        };
        let (priority, deadline) = (options.priority, options.deadline);
        let origin = Arc::clone(&self.origin);
        let task = move |not_run: Option<NotRun>| {
            let prepared = match not_run {
                None => guarded(|| origin.device.prepare_model(&model, version, options)),
                Some(why) => Err(why.into()),
            };
            let outputs = Outputs::of(Some(&model));
            // Before the client is notified: its memory is its own again.
            drop(model);
            preparation.deliver(
                prepared
                    .map(|prepared| PreparedModel::new(origin, prepared, outputs, priority, held)),
            );
        };
        self.origin.spawn(Kind::Preparing, priority, deadline, task)
    }

    /// Counts a model that is about to be prepared, until it is gone.
    fn hold_model(&self) -> nnhal_hal::Result<Held> {
        Ok(self.origin.client.hold(Holding::PreparedModels, 1)?)
    }

    /// For a preparation that is to end at what its client asks for, or at what it may.
    fn options(&self, wanted: Option<Deadline>) -> PrepareOptions {
        let client = self.origin.client.clone();
        let deadline = client.preparation_deadline(wanted);
        PrepareOptions { client, deadline, ..PrepareOptions::default() }
    }

    /// Options with cache files, if these are as they must be (contract: PREP-7).
    fn options_with_cache(
        &self,
        preference: i32,
        deadline: Option<Deadline>,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
    ) -> nnhal_hal::Result<PrepareOptions> {
        let preference = ExecutionPreference::from_code(preference).map_err(Error::invalid)?;
        let needed = self.cache_files_needed().unwrap_or_default();
        let files = CacheFiles::to_save(needed, model_cache, data_cache);
        Ok(PrepareOptions {
            preference,
            model_cache: files.model,
            data_cache: files.data,
            token: *token,
            ..self.options(deadline)
        })
    }

    /// Launches a loading. What is wrong with the files is returned as well as notified; restoring or
    /// compiling what is in them is a task (contract: CACHE-5).
    fn load(
        &self,
        version: HalVersion,
        deadline: impl FnOnce() -> nnhal_hal::Result<Option<Deadline>>,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<PreparedModelCallback>,
    ) -> i32 {
        let Some(callback) = callback else {
            return Answer::Plain.refuse(&Error::invalid("the callback is null"));
        };
        let preparation = Preparation::new(callback);
        let checked = guarded(|| {
            self.origin.expect_version(version)?;
            let deadline = deadline()?;
            let files = CacheFiles::to_load(self.cache_files_needed()?, model_cache, data_cache)?;
            let CacheFiles { model: model_cache, data: data_cache } = files;
            let (token, options) = (*token, self.options(deadline));
            let options = PrepareOptions { model_cache, data_cache, token, ..options };
            self.origin.device.check_cache(&options)?;
            Ok((options, self.hold_model()?))
        });
        let (options, held) = match checked {
            Ok(options) => options,
            Err(error) => return preparation.deliver(Err(error)),
        };
        // Which priority the model has is in the files.
        let (priority, deadline) = (Priority::Medium, options.deadline);
        let origin = Arc::clone(&self.origin);
        let task = move |not_run: Option<NotRun>| {
            let loaded = match not_run {
                None => guarded(|| origin.device.prepare_model_from_cache(options)),
                Some(why) => Err(why.into()),
            };
            let outputs = Outputs::of(None);
            preparation.deliver(
                loaded
                    .map(|prepared| PreparedModel::new(origin, prepared, outputs, priority, held)),
            );
        };
        self.origin.spawn(Kind::Preparing, priority, deadline, task)
    }
}

impl v1_0::IDevice for Device {
    fn get_capabilities(&self) -> Return<(i32, v1_0::Capabilities)> {
        Ok(self.capabilities(HalVersion::V1_0))
    }

    fn get_supported_operations(&self, model: &v1_0::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported_operations(model, HalVersion::V1_0))
    }

    fn prepare_model(
        &self,
        model: &v1_0::Model,
        callback: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        Ok(self.prepare(
            model,
            HalVersion::V1_0,
            || Ok(self.options(None)),
            callback.map(PreparedModelCallback::V1_0),
        ))
    }

    fn get_status(&self) -> Return<i32> {
        let status = guarded(|| Ok::<_, Error>(self.origin.device.status()));
        Ok(status.unwrap_or(DeviceStatus::Unknown).code())
    }

    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        if self.origin.has(HalVersion::V1_1) {
            cast.provide::<dyn v1_1::IDevice>(self.clone());
        }
        if self.origin.has(HalVersion::V1_2) {
            cast.provide::<dyn v1_2::IDevice>(self.clone());
        }
        if self.origin.has(HalVersion::V1_3) {
            cast.provide::<dyn v1_3::IDevice>(self);
        }
    }
}

impl v1_1::IDevice for Device {
    fn get_capabilities_1_1(&self) -> Return<(i32, v1_1::Capabilities)> {
        Ok(self.capabilities(HalVersion::V1_1))
    }

    fn get_supported_operations_1_1(&self, model: &v1_1::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported_operations(model, HalVersion::V1_1))
    }

    fn prepare_model_1_1(
        &self,
        model: &v1_1::Model,
        preference: i32,
        callback: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        Ok(self.prepare(
            model,
            HalVersion::V1_1,
            || self.options_with_cache(preference, None, &[], &[], &CacheToken::default()),
            callback.map(PreparedModelCallback::V1_0),
        ))
    }
}

impl v1_2::IDevice for Device {
    fn get_version_string(&self) -> Return<(i32, String)> {
        Ok(self.describe(HalVersion::V1_2, |device| {
            Ok(checks::version_string(device.version_string())?)
        }))
    }

    fn get_type(&self) -> Return<(i32, v1_2::DeviceType)> {
        Ok(self.describe(HalVersion::V1_2, |device| Ok(device.device_type().code())))
    }

    fn get_capabilities_1_2(&self) -> Return<(i32, v1_2::Capabilities)> {
        Ok(self.capabilities(HalVersion::V1_2))
    }

    fn get_supported_extensions(&self) -> Return<(i32, Vec<v1_2::Extension>)> {
        Ok(self.describe(HalVersion::V1_2, |device| {
            let extensions = checks::extensions(device.supported_extensions())?;
            extensions.iter().map(|one| Ok(Convert::from_canonical(one)?)).collect()
        }))
    }

    fn get_supported_operations_1_2(&self, model: &v1_2::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported_operations(model, HalVersion::V1_2))
    }

    fn get_number_of_cache_files_needed(&self) -> Return<(i32, u32, u32)> {
        let (status, needed) = self.describe(HalVersion::V1_2, |_| self.cache_files_needed());
        Ok((status, needed.model, needed.data))
    }

    fn prepare_model_1_2(
        &self,
        model: &v1_2::Model,
        preference: i32,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        Ok(self.prepare(
            model,
            HalVersion::V1_2,
            || self.options_with_cache(preference, None, model_cache, data_cache, token),
            callback.map(PreparedModelCallback::V1_2),
        ))
    }

    fn prepare_model_from_cache(
        &self,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let callback = callback.map(PreparedModelCallback::V1_2);
        Ok(self.load(HalVersion::V1_2, || Ok(None), model_cache, data_cache, token, callback))
    }
}

impl v1_3::IDevice for Device {
    fn get_capabilities_1_3(&self) -> Return<(i32, v1_3::Capabilities)> {
        Ok(self.capabilities(HalVersion::V1_3))
    }

    fn get_supported_operations_1_3(&self, model: &v1_3::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported_operations(model, HalVersion::V1_3))
    }

    fn prepare_model_1_3(
        &self,
        model: &v1_3::Model,
        preference: i32,
        priority: v1_3::Priority,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_3::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let options = || {
            let deadline = deadline.to_canonical()?;
            let options =
                self.options_with_cache(preference, deadline, model_cache, data_cache, token)?;
            let priority = Priority::from_code(priority).map_err(Error::invalid)?;
            Ok(PrepareOptions { priority, ..options })
        };
        let callback = callback.map(PreparedModelCallback::V1_3);
        Ok(self.prepare(model, HalVersion::V1_3, options, callback))
    }

    fn prepare_model_from_cache_1_3(
        &self,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_3::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let deadline = || Ok(deadline.to_canonical()?);
        let callback = callback.map(PreparedModelCallback::V1_3);
        Ok(self.load(HalVersion::V1_3, deadline, model_cache, data_cache, token, callback))
    }

    fn allocate(
        &self,
        desc: &v1_3::BufferDesc,
        prepared_models: &[Option<Arc<dyn v1_3::IPreparedModel>>],
        input_roles: &[v1_3::BufferRole],
        output_roles: &[v1_3::BufferRole],
    ) -> Return<(i32, Option<Arc<dyn IBuffer>>, u32)> {
        let allocated = guarded(|| {
            self.origin.expect_version(HalVersion::V1_3)?;
            let description = BufferDescription {
                dimensions: desc.dimensions.clone(),
                prepared_models: self.own_models(prepared_models)?,
                input_roles: roles(input_roles)?,
                output_roles: roles(output_roles)?,
            };
            let buffer = self.origin.device.allocate(&description)?;
            match buffer.token() {
                0 => Err(Error::failure("the device gave a buffer no token")),
                token => {
                    let _given = self.origin.tokens.give(token);
                    Ok((Buffer { _given, buffer }, token))
                }
            }
        });
        Ok(match allocated {
            Ok((buffer, token)) => (NONE, Some(Arc::new(buffer)), token),
            Err(error) => (Answer::Plain.refuse(&error), None, 0),
        })
    }
}

fn roles(roles: &[v1_3::BufferRole]) -> nnhal_hal::Result<Vec<nnhal_hal::BufferRole>> {
    roles.iter().map(|role| Ok(role.to_canonical()?)).collect()
}

impl Device {
    /// The prepared models behind the interfaces, all of this device (contract: ALLOC-2, IPC-6).
    fn own_models(
        &self,
        models: &[Option<Arc<dyn v1_3::IPreparedModel>>],
    ) -> nnhal_hal::Result<Vec<Arc<dyn nnhal_hal::PreparedModel>>> {
        let models = models.iter().enumerate();
        models
            .map(|(index, model)| {
                let Some(model) = model else {
                    return Err(Error::invalid(format!("prepared model {index} is null")));
                };
                let any: &dyn Any = &**model;
                match any.downcast_ref::<PreparedModel>() {
                    Some(model) if model.is_of(&self.origin) => Ok(Arc::clone(model.inner())),
                    _ => Err(Error::invalid(format!(
                        "prepared model {index} was not made by this device"
                    ))),
                }
            })
            .collect()
    }
}
