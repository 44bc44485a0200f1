//! [`DeviceStub`]: a device behind `IDevice`.

use crate::interfaces::buffer::BufferStub;
use crate::interfaces::preparation::read_prepared_callback;
use crate::interfaces::prepared_model::read_model;
use crate::interfaces::{arrived, results, take};
use crate::names::{DEVICE_1_0, DEVICE_1_1, DEVICE_1_2, DEVICE_1_3, device_chain};
use crate::session::Sessions;
use crate::wire::Argument;
use nnhal_hal::client::{ClientGroup, ClientLimits};
use nnhal_hidl::tasks::Limits;
use nnhal_hidl::v1_0::IDevice as _;
use nnhal_hidl::v1_1::IDevice as _;
use nnhal_hidl::v1_2::{CacheToken, IDevice as _};
use nnhal_hidl::v1_3::{BufferDesc, BufferRole, IDevice as _, IPreparedModel, OptionalTimePoint};
use nnhal_hidl::{Handle, v1_0, v1_1, v1_2, v1_3};
use nnhal_hwbinder::{Binder, CallError, Caller, Interface, Object, ParcelError, Reader, Writer};
use std::sync::Arc;

/// A device behind `IDevice`, for the clients of a service. Each process that calls is a client of its own, whose
/// work ends with it.
pub struct DeviceStub {
    sessions: Arc<Sessions>,
    chain: &'static [Interface],
}

impl DeviceStub {
    /// Offers a device in its version of the interface, of 1.0 to 1.3.
    pub fn new(
        device: Arc<dyn nnhal_hal::Device>,
        limits: ClientLimits,
        group: ClientGroup,
        tasks: Limits,
    ) -> Self {
        let chain = device_chain(device.version());
        Self { sessions: Sessions::new(device, limits, group, tasks), chain }
    }

    /// Clients that have anything of the service.
    pub fn clients(&self) -> usize {
        self.sessions.len()
    }
}

/// The last method of each version.
fn last_code(chain: &[Interface]) -> u32 {
    match chain.len() {
        1 => 4,
        2 => 7,
        3 => 15,
        _ => 20,
    }
}

impl Object for DeviceStub {
    fn chain(&self) -> &'static [Interface] {
        self.chain
    }

    fn call(
        &self,
        code: u32,
        arguments: &mut Reader<'_>,
        caller: Caller,
    ) -> Result<Writer, CallError> {
        if code > last_code(self.chain) {
            return Err(CallError::UNKNOWN);
        }
        let session = self.sessions.of(caller);
        let device = &*session.served;
        match code {
            1 => {
                take!(arguments, DEVICE_1_0);
                results(device.get_capabilities())
            }
            2 => {
                take!(arguments, DEVICE_1_0, model: v1_0::Model);
                results(device.get_supported_operations(&model))
            }
            3 => {
                take!(arguments, DEVICE_1_0, model: v1_0::Model);
                let callback = read_prepared_callback(arguments, &session)?;
                results(device.prepare_model(&model, callback.map(|callback| callback as _)))
            }
            4 => {
                take!(arguments, DEVICE_1_0);
                results(device.get_status())
            }
            5 => {
                take!(arguments, DEVICE_1_1);
                results(device.get_capabilities_1_1())
            }
            6 => {
                take!(arguments, DEVICE_1_1, model: v1_1::Model);
                results(device.get_supported_operations_1_1(&model))
            }
            7 => {
                take!(arguments, DEVICE_1_1, model: v1_1::Model, preference: i32);
                let callback = read_prepared_callback(arguments, &session)?;
                let callback = callback.map(|callback| callback as _);
                results(device.prepare_model_1_1(&model, preference, callback))
            }
            8 => {
                take!(arguments, DEVICE_1_2);
                results(device.get_version_string())
            }
            9 => {
                take!(arguments, DEVICE_1_2);
                results(device.get_type())
            }
            10 => {
                take!(arguments, DEVICE_1_2);
                results(device.get_capabilities_1_2())
            }
            11 => {
                take!(arguments, DEVICE_1_2);
                results(device.get_supported_extensions())
            }
            12 => {
                take!(arguments, DEVICE_1_2, model: v1_2::Model);
                results(device.get_supported_operations_1_2(&model))
            }
            13 => {
                take!(arguments, DEVICE_1_2);
                results(device.get_number_of_cache_files_needed())
            }
            14 => {
                take!(
                    arguments,
                    DEVICE_1_2,
                    model: v1_2::Model,
                    preference: i32,
                    model_cache: Vec<Handle>,
                    data_cache: Vec<Handle>,
                    token: CacheToken,
                );
                let callback = read_prepared_callback(arguments, &session)?;
                results(device.prepare_model_1_2(
                    &model,
                    preference,
                    &model_cache,
                    &data_cache,
                    &token,
                    callback.map(|callback| callback as _),
                ))
            }
            15 => {
                take!(
                    arguments,
                    DEVICE_1_2,
                    model_cache: Vec<Handle>,
                    data_cache: Vec<Handle>,
                    token: CacheToken,
                );
                let callback = read_prepared_callback(arguments, &session)?;
                let callback = callback.map(|callback| callback as _);
                results(device.prepare_model_from_cache(
                    &model_cache,
                    &data_cache,
                    &token,
                    callback,
                ))
            }
            16 => {
                take!(arguments, DEVICE_1_3);
                results(device.get_capabilities_1_3())
            }
            17 => {
                take!(arguments, DEVICE_1_3, model: v1_3::Model);
                results(device.get_supported_operations_1_3(&model))
            }
            18 => {
                take!(
                    arguments,
                    DEVICE_1_3,
                    model: v1_3::Model,
                    preference: i32,
                    priority: i32,
                    deadline: OptionalTimePoint,
                    model_cache: Vec<Handle>,
                    data_cache: Vec<Handle>,
                    token: CacheToken,
                );
                let callback = read_prepared_callback(arguments, &session)?;
                results(device.prepare_model_1_3(
                    &model,
                    preference,
                    priority,
                    deadline,
                    &model_cache,
                    &data_cache,
                    &token,
                    callback.map(|callback| callback as _),
                ))
            }
            19 => {
                take!(
                    arguments,
                    DEVICE_1_3,
                    deadline: OptionalTimePoint,
                    model_cache: Vec<Handle>,
                    data_cache: Vec<Handle>,
                    token: CacheToken,
                );
                let callback = read_prepared_callback(arguments, &session)?;
                results(device.prepare_model_from_cache_1_3(
                    deadline,
                    &model_cache,
                    &data_cache,
                    &token,
                    callback.map(|callback| callback as _),
                ))
            }
            20 => {
                take!(arguments, DEVICE_1_3, desc: BufferDesc);
                let models = read_models(arguments)?;
                let input_roles = Vec::<BufferRole>::read(arguments)?;
                let output_roles = Vec::<BufferRole>::read(arguments)?;
                let (status, buffer, token) =
                    arrived(device.allocate(&desc, &models, &input_roles, &output_roles))?;
                let mut reply = Writer::reply();
                status.write(&mut reply);
                let stub = |buffer| Binder::local(BufferStub { buffer, _session: session });
                reply.binder(buffer.map(stub));
                token.write(&mut reply);
                Ok(reply)
            }
            _ => Err(CallError::UNKNOWN),
        }
    }

    fn debug(&self) -> String {
        let device = self.sessions.device();
        let (name, version) = (device.name(), device.version_string());
        format!("{name} ({version}), {} clients\n", self.clients())
    }
}

/// An array of prepared models: a count, and that number of objects.
fn read_models(
    arguments: &mut Reader<'_>,
) -> Result<Vec<Option<Arc<dyn IPreparedModel>>>, ParcelError> {
    let count = arguments.u64()?;
    // Each takes 24 bytes: there is no room for more than that.
    let most = arguments.remaining() as u64 / 24;
    if count > most {
        return Err(ParcelError::Length { found: most, expected: count });
    }
    (0..count)
        .map(|_| Ok(read_model(arguments)?.map(|model| model as Arc<dyn IPreparedModel>)))
        .collect()
}
