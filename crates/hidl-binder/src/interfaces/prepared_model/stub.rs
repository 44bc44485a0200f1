//! [`PreparedModelStub`]: a prepared model behind `IPreparedModel`.

use crate::interfaces::burst::{BurstContextStub, read_burst_callback};
use crate::interfaces::execution::read_execution_callback;
use crate::interfaces::fenced::FencedCallbackStub;
use crate::interfaces::{arrived, results, take};
use crate::names::{MODEL_1_0, MODEL_1_2, MODEL_1_3, MODELS, chain_of};
use crate::session::Session;
use crate::wire::Argument;
use nnhal_hal::HalVersion;
use nnhal_hidl::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{Handle, MQDescriptor, v1_0, v1_2, v1_3};
use nnhal_hwbinder::{Binder, CallError, Caller, Interface, Object, Reader, Writer};
use std::sync::Arc;

/// A prepared model by the newest version that it implements.
#[derive(Clone)]
pub(crate) enum Model {
    V1_0(Arc<dyn v1_0::IPreparedModel>),
    V1_2(Arc<dyn v1_2::IPreparedModel>),
    V1_3(Arc<dyn v1_3::IPreparedModel>),
}

impl Model {
    pub(crate) fn newest(model: Arc<dyn v1_0::IPreparedModel>) -> Self {
        let newest = model.cast().map(Self::V1_3).or_else(|| model.cast().map(Self::V1_2));
        newest.unwrap_or(Self::V1_0(model))
    }

    fn v1_0(&self) -> &dyn v1_0::IPreparedModel {
        match self {
            Self::V1_0(model) => &**model,
            Self::V1_2(model) => &**model,
            Self::V1_3(model) => &**model,
        }
    }

    fn v1_2(&self) -> Result<&dyn v1_2::IPreparedModel, CallError> {
        match self {
            Self::V1_0(_) => Err(CallError::UNKNOWN),
            Self::V1_2(model) => Ok(&**model),
            Self::V1_3(model) => Ok(&**model),
        }
    }

    pub(crate) fn v1_3(&self) -> Result<&Arc<dyn v1_3::IPreparedModel>, CallError> {
        match self {
            Self::V1_0(_) | Self::V1_2(_) => Err(CallError::UNKNOWN),
            Self::V1_3(model) => Ok(model),
        }
    }

    fn version(&self) -> HalVersion {
        match self {
            Self::V1_0(_) => HalVersion::V1_0,
            Self::V1_2(_) => HalVersion::V1_2,
            Self::V1_3(_) => HalVersion::V1_3,
        }
    }
}

/// A prepared model behind `IPreparedModel`.
pub(crate) struct PreparedModelStub {
    pub(crate) model: Model,
    /// Whose it is.
    pub(crate) session: Arc<Session>,
}

impl Object for PreparedModelStub {
    fn chain(&self) -> &'static [Interface] {
        chain_of(MODELS, self.model.version())
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        let session = &self.session;
        match code {
            1 => {
                take!(arguments, MODEL_1_0, request: v1_0::Request);
                let callback = read_execution_callback(arguments, session)?;
                let callback = callback.map(|callback| callback as _);
                results(self.model.v1_0().execute(&request, callback))
            }
            2 => {
                let model = self.model.v1_2()?;
                take!(arguments, MODEL_1_2, request: v1_0::Request, measure: i32);
                let callback = read_execution_callback(arguments, session)?;
                let callback = callback.map(|callback| callback as _);
                results(model.execute_1_2(&request, measure, callback))
            }
            3 => {
                let model = self.model.v1_2()?;
                take!(arguments, MODEL_1_2, request: v1_0::Request, measure: i32);
                results(model.execute_synchronously(&request, measure))
            }
            4 => {
                let model = self.model.v1_2()?;
                take!(arguments, MODEL_1_2);
                let callback = read_burst_callback(arguments)?;
                let requests = MQDescriptor::read(arguments)?;
                let answers = MQDescriptor::read(arguments)?;
                let (status, context) =
                    arrived(model.configure_execution_burst(callback, &requests, &answers))?;
                let mut reply = Writer::reply();
                status.write(&mut reply);
                let stub = |context| {
                    Binder::local(BurstContextStub { context, _session: Arc::clone(session) })
                };
                reply.binder(context.map(stub));
                Ok(reply)
            }
            5 => {
                let model = self.model.v1_3()?;
                take!(
                    arguments,
                    MODEL_1_3,
                    request: v1_3::Request,
                    measure: i32,
                    deadline: OptionalTimePoint,
                    loop_timeout: OptionalTimeoutDuration,
                );
                let callback = read_execution_callback(arguments, session)?;
                let callback = callback.map(|callback| callback as _);
                results(model.execute_1_3(&request, measure, deadline, loop_timeout, callback))
            }
            6 => {
                let model = self.model.v1_3()?;
                take!(
                    arguments,
                    MODEL_1_3,
                    request: v1_3::Request,
                    measure: i32,
                    deadline: OptionalTimePoint,
                    loop_timeout: OptionalTimeoutDuration,
                );
                results(model.execute_synchronously_1_3(&request, measure, deadline, loop_timeout))
            }
            7 => {
                let model = self.model.v1_3()?;
                take!(
                    arguments,
                    MODEL_1_3,
                    request: v1_3::Request,
                    wait_for: Vec<Handle>,
                    measure: i32,
                    deadline: OptionalTimePoint,
                    loop_timeout: OptionalTimeoutDuration,
                    duration: OptionalTimeoutDuration,
                );
                let (status, fence, callback) = arrived(model.execute_fenced(
                    &request,
                    &wait_for,
                    measure,
                    deadline,
                    loop_timeout,
                    duration,
                ))?;
                if callback.is_some() {
                    session.keep_while_executing();
                }
                let mut reply = Writer::reply();
                (status, fence).write(&mut reply);
                let stub = |callback| {
                    Binder::local(FencedCallbackStub { callback, _session: Arc::clone(session) })
                };
                reply.binder(callback.map(stub));
                Ok(reply)
            }
            _ => Err(CallError::UNKNOWN),
        }
    }
}
