//! [`DeviceProxy`]: a device of another process, found again when its service has ended and another one has come.

use crate::interfaces::buffer::read_buffer;
use crate::interfaces::preparation::{Prepared, PreparedModelCallbackStub};
use crate::interfaces::prepared_model::PreparedModelProxy;
use crate::interfaces::{call_for, failed};
use crate::names::{DEVICE_1_0, DEVICE_1_1, DEVICE_1_2, DEVICE_1_3};
use crate::wire::{Argument, write_slice};
use nnhal_hal::HalVersion;
use nnhal_hidl::cast::Cast;
use nnhal_hidl::transport::{Return, TransportError};
use nnhal_hidl::v1_2::{CacheToken, Extension};
use nnhal_hidl::v1_3::{BufferDesc, BufferRole, IBuffer, OptionalTimePoint};
use nnhal_hidl::{Handle, v1_0, v1_1, v1_2, v1_3};
use nnhal_hwbinder::{Binder, DeathLink, Interface, Manager, Process, Remote, Writer};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device of another process.
pub(crate) struct DeviceProxy {
    process: Arc<Process>,
    interface: String,
    name: String,
    /// What the object implements; a service that comes back as an older one is not taken.
    version: HalVersion,
    found: Mutex<Option<Found>>,
}

/// The service as it was found last.
struct Found {
    remote: Arc<Remote>,
    /// So that its end is known before the next call.
    _link: DeathLink,
}

impl Found {
    fn new(remote: Arc<Remote>) -> Self {
        let _link = remote.link_to_death(|| {});
        Self { remote, _link }
    }
}

impl DeviceProxy {
    pub(crate) fn new(
        process: Arc<Process>,
        remote: Arc<Remote>,
        interface: String,
        name: String,
        version: HalVersion,
    ) -> Self {
        Self { process, interface, name, version, found: Mutex::new(Some(Found::new(remote))) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The service, looked for again if it has ended.
    fn remote(&self) -> Return<Arc<Remote>> {
        let mut found = self.lock();
        if let Some(found) = found.as_ref().filter(|found| !found.remote.is_known_dead()) {
            return Ok(Arc::clone(&found.remote));
        }
        *found = None;
        let manager = Manager::find(&self.process).map_err(failed)?;
        let again = manager.get(&self.interface, &self.name).map_err(failed)?;
        let Some(Binder::Remote(remote)) = again else { return Err(TransportError::DeadObject) };
        tracing::info!(name = self.name, "the service is there again");
        *found = Some(Found::new(Arc::clone(&remote)));
        Ok(remote)
    }

    fn call_for<T>(
        &self,
        interface: &Interface,
        code: u32,
        write: impl FnOnce(&mut Writer, &Arc<Remote>),
        read: impl FnOnce(&mut nnhal_hwbinder::Reader<'_>) -> Result<T, nnhal_hwbinder::ParcelError>,
    ) -> Return<T> {
        let remote = self.remote()?;
        let write = |request: &mut Writer| write(request, &remote);
        let answer = call_for(&remote, interface, code, write, read);
        if matches!(answer, Err(TransportError::DeadObject)) {
            // Before the notice of it, maybe.
            let mut found = self.lock();
            if found.as_ref().is_some_and(|found| Arc::ptr_eq(&found.remote, &remote)) {
                *found = None;
            }
        }
        answer
    }

    fn call<T: Argument>(
        &self,
        interface: &Interface,
        code: u32,
        write: impl FnOnce(&mut Writer),
    ) -> Return<T> {
        self.call_for(interface, code, |request, _| write(request), T::read)
    }

    /// Calls a method whose last argument is a callback.
    fn prepare(
        &self,
        interface: &Interface,
        code: u32,
        write: impl FnOnce(&mut Writer),
        callback: Option<Prepared>,
    ) -> Return<i32> {
        let write = |request: &mut Writer, service: &Arc<Remote>| {
            write(request);
            let stub = |callback| PreparedModelCallbackStub::new(callback, Arc::clone(service));
            request.binder(callback.map(|callback| Binder::local(stub(callback))));
        };
        self.call_for(interface, code, write, i32::read)
    }
}

impl v1_0::IDevice for DeviceProxy {
    fn get_capabilities(&self) -> Return<(i32, v1_0::Capabilities)> {
        self.call(&DEVICE_1_0, 1, |_| {})
    }

    fn get_supported_operations(&self, model: &v1_0::Model) -> Return<(i32, Vec<bool>)> {
        self.call(&DEVICE_1_0, 2, |request| model.write(request))
    }

    fn prepare_model(
        &self,
        model: &v1_0::Model,
        callback: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let write = |request: &mut Writer| model.write(request);
        self.prepare(&DEVICE_1_0, 3, write, callback.map(Prepared::V1_0))
    }

    fn get_status(&self) -> Return<i32> {
        self.call(&DEVICE_1_0, 4, |_| {})
    }

    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        if self.version >= HalVersion::V1_1 {
            cast.provide::<dyn v1_1::IDevice>(self.clone());
        }
        if self.version >= HalVersion::V1_2 {
            cast.provide::<dyn v1_2::IDevice>(self.clone());
        }
        if self.version >= HalVersion::V1_3 {
            cast.provide::<dyn v1_3::IDevice>(self);
        }
    }
}

impl v1_1::IDevice for DeviceProxy {
    fn get_capabilities_1_1(&self) -> Return<(i32, v1_1::Capabilities)> {
        self.call(&DEVICE_1_1, 5, |_| {})
    }

    fn get_supported_operations_1_1(&self, model: &v1_1::Model) -> Return<(i32, Vec<bool>)> {
        self.call(&DEVICE_1_1, 6, |request| model.write(request))
    }

    fn prepare_model_1_1(
        &self,
        model: &v1_1::Model,
        preference: i32,
        callback: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let write = |request: &mut Writer| {
            model.write(request);
            request.i32(preference);
        };
        self.prepare(&DEVICE_1_1, 7, write, callback.map(Prepared::V1_0))
    }
}

impl v1_2::IDevice for DeviceProxy {
    fn get_version_string(&self) -> Return<(i32, String)> {
        self.call(&DEVICE_1_2, 8, |_| {})
    }

    fn get_type(&self) -> Return<(i32, i32)> {
        self.call(&DEVICE_1_2, 9, |_| {})
    }

    fn get_capabilities_1_2(&self) -> Return<(i32, v1_2::Capabilities)> {
        self.call(&DEVICE_1_2, 10, |_| {})
    }

    fn get_supported_extensions(&self) -> Return<(i32, Vec<Extension>)> {
        self.call(&DEVICE_1_2, 11, |_| {})
    }

    fn get_supported_operations_1_2(&self, model: &v1_2::Model) -> Return<(i32, Vec<bool>)> {
        self.call(&DEVICE_1_2, 12, |request| model.write(request))
    }

    fn get_number_of_cache_files_needed(&self) -> Return<(i32, u32, u32)> {
        self.call(&DEVICE_1_2, 13, |_| {})
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
        let write = |request: &mut Writer| {
            model.write(request);
            request.i32(preference);
            write_slice(model_cache, request);
            write_slice(data_cache, request);
            token.write(request);
        };
        self.prepare(&DEVICE_1_2, 14, write, callback.map(Prepared::V1_2))
    }

    fn prepare_model_from_cache(
        &self,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let write = |request: &mut Writer| {
            write_slice(model_cache, request);
            write_slice(data_cache, request);
            token.write(request);
        };
        self.prepare(&DEVICE_1_2, 15, write, callback.map(Prepared::V1_2))
    }
}

impl v1_3::IDevice for DeviceProxy {
    fn get_capabilities_1_3(&self) -> Return<(i32, v1_3::Capabilities)> {
        self.call(&DEVICE_1_3, 16, |_| {})
    }

    fn get_supported_operations_1_3(&self, model: &v1_3::Model) -> Return<(i32, Vec<bool>)> {
        self.call(&DEVICE_1_3, 17, |request| model.write(request))
    }

    fn prepare_model_1_3(
        &self,
        model: &v1_3::Model,
        preference: i32,
        priority: i32,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_3::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let write = |request: &mut Writer| {
            model.write(request);
            (preference, priority, deadline).write(request);
            write_slice(model_cache, request);
            write_slice(data_cache, request);
            token.write(request);
        };
        self.prepare(&DEVICE_1_3, 18, write, callback.map(Prepared::V1_3))
    }

    fn prepare_model_from_cache_1_3(
        &self,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_3::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let write = |request: &mut Writer| {
            deadline.write(request);
            write_slice(model_cache, request);
            write_slice(data_cache, request);
            token.write(request);
        };
        self.prepare(&DEVICE_1_3, 19, write, callback.map(Prepared::V1_3))
    }

    fn allocate(
        &self,
        desc: &BufferDesc,
        prepared_models: &[Option<Arc<dyn v1_3::IPreparedModel>>],
        input_roles: &[BufferRole],
        output_roles: &[BufferRole],
    ) -> Return<(i32, Option<Arc<dyn IBuffer>>, u32)> {
        let write = |request: &mut Writer, _: &Arc<Remote>| {
            desc.write(request);
            request.u64(prepared_models.len() as u64);
            for model in prepared_models {
                request.binder(model.as_deref().and_then(object_of));
            }
            write_slice(input_roles, request);
            write_slice(output_roles, request);
        };
        self.call_for(&DEVICE_1_3, 20, write, |reply| {
            Ok((i32::read(reply)?, read_buffer(reply)?, u32::read(reply)?))
        })
    }
}

/// The object behind a prepared model that came from a service; one that did not is null to it.
fn object_of(model: &dyn v1_3::IPreparedModel) -> Option<Binder> {
    let any: &dyn Any = model;
    let proxy = any.downcast_ref::<PreparedModelProxy>()?;
    Some(Binder::Remote(Arc::clone(&proxy.remote)))
}
