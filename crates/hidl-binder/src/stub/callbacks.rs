//! The callbacks of a client.

use super::{arrived, take};
use crate::names::{
    EXECUTED, EXECUTED_1_0, EXECUTED_1_2, EXECUTED_1_3, PREPARED, PREPARED_1_0, PREPARED_1_2,
    PREPARED_1_3, chain_of,
};
use crate::proxy::read_model;
use nnhal_hal::{ErrorStatus, HalVersion};
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_2::{OutputShape, Timing};
use nnhal_hidl::{v1_0, v1_2, v1_3};
use nnhal_hwbinder::{CallError, Caller, Interface, Object, Reader, Remote, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who is notified of a preparation, by the method that was asked for it.
pub(crate) enum Prepared {
    V1_0(Arc<dyn v1_0::IPreparedModelCallback>),
    V1_2(Arc<dyn v1_2::IPreparedModelCallback>),
    V1_3(Arc<dyn v1_3::IPreparedModelCallback>),
}

/// Who is notified of an execution.
pub(crate) enum Executed {
    V1_0(Arc<dyn v1_0::IExecutionCallback>),
    V1_2(Arc<dyn v1_2::IExecutionCallback>),
    V1_3(Arc<dyn v1_3::IExecutionCallback>),
}

const GONE: i32 = ErrorStatus::DeviceUnavailable as i32;

/// Whether a service that let go of a callback without a notification has ended, which the client then learns
/// (contract: IPC-5).
fn has_ended(notified: &AtomicBool, service: &Remote) -> bool {
    !notified.load(Ordering::Acquire) && service.ping() == Err(nnhal_hwbinder::Error::Dead)
}

/// A client's callback behind `IPreparedModelCallback`.
pub(crate) struct PreparedModelCallbackStub {
    callback: Prepared,
    notified: AtomicBool,
    service: Arc<Remote>,
}

impl PreparedModelCallbackStub {
    pub(crate) fn new(callback: Prepared, service: Arc<Remote>) -> Self {
        Self { callback, notified: AtomicBool::new(false), service }
    }

    fn v1_0(&self) -> &dyn v1_0::IPreparedModelCallback {
        match &self.callback {
            Prepared::V1_0(callback) => &**callback,
            Prepared::V1_2(callback) => &**callback,
            Prepared::V1_3(callback) => &**callback,
        }
    }

    fn notified(&self, notify: impl FnOnce() -> Return<()>) -> Result<Writer, CallError> {
        self.notified.store(true, Ordering::Release);
        arrived(notify())?;
        Ok(Writer::reply())
    }
}

impl Object for PreparedModelCallbackStub {
    fn chain(&self) -> &'static [Interface] {
        chain_of(
            PREPARED,
            match &self.callback {
                Prepared::V1_0(_) => HalVersion::V1_0,
                Prepared::V1_2(_) => HalVersion::V1_2,
                Prepared::V1_3(_) => HalVersion::V1_3,
            },
        )
    }

    fn is_one_way(&self, _: u32) -> bool {
        true
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        match (code, &self.callback) {
            (1, _) => {
                take!(arguments, PREPARED_1_0, status: i32);
                let model = read_model(arguments)?.map(|model| model as _);
                self.notified(|| self.v1_0().notify(status, model))
            }
            (2, Prepared::V1_2(_) | Prepared::V1_3(_)) => {
                take!(arguments, PREPARED_1_2, status: i32);
                let model = read_model(arguments)?.map(|model| model as _);
                self.notified(|| match &self.callback {
                    Prepared::V1_0(_) => Ok(()),
                    Prepared::V1_2(callback) => callback.notify_1_2(status, model),
                    Prepared::V1_3(callback) => callback.notify_1_2(status, model),
                })
            }
            (3, Prepared::V1_3(callback)) => {
                take!(arguments, PREPARED_1_3, status: i32);
                let model = read_model(arguments)?.map(|model| model as _);
                self.notified(|| callback.notify_1_3(status, model))
            }
            _ => Err(CallError::UNKNOWN),
        }
    }
}

impl Drop for PreparedModelCallbackStub {
    fn drop(&mut self) {
        if has_ended(&self.notified, &self.service) {
            let notified = self.v1_0().notify(GONE, None);
            tracing::debug!(?notified, "the service ended while it prepared a model");
        }
    }
}

/// A client's callback behind `IExecutionCallback`.
pub(crate) struct ExecutionCallbackStub {
    callback: Executed,
    notified: AtomicBool,
    service: Arc<Remote>,
}

impl ExecutionCallbackStub {
    pub(crate) fn new(callback: Executed, service: Arc<Remote>) -> Self {
        Self { callback, notified: AtomicBool::new(false), service }
    }

    fn v1_0(&self) -> &dyn v1_0::IExecutionCallback {
        match &self.callback {
            Executed::V1_0(callback) => &**callback,
            Executed::V1_2(callback) => &**callback,
            Executed::V1_3(callback) => &**callback,
        }
    }

    fn notified(&self, notify: impl FnOnce() -> Return<()>) -> Result<Writer, CallError> {
        self.notified.store(true, Ordering::Release);
        arrived(notify())?;
        Ok(Writer::reply())
    }
}

impl Object for ExecutionCallbackStub {
    fn chain(&self) -> &'static [Interface] {
        chain_of(
            EXECUTED,
            match &self.callback {
                Executed::V1_0(_) => HalVersion::V1_0,
                Executed::V1_2(_) => HalVersion::V1_2,
                Executed::V1_3(_) => HalVersion::V1_3,
            },
        )
    }

    fn is_one_way(&self, _: u32) -> bool {
        true
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        match (code, &self.callback) {
            (1, _) => {
                take!(arguments, EXECUTED_1_0, status: i32);
                self.notified(|| self.v1_0().notify(status))
            }
            (2, Executed::V1_2(_) | Executed::V1_3(_)) => {
                take!(arguments, EXECUTED_1_2, status: i32, shapes: Vec<OutputShape>, timing: Timing);
                self.notified(|| match &self.callback {
                    Executed::V1_0(_) => Ok(()),
                    Executed::V1_2(callback) => callback.notify_1_2(status, &shapes, timing),
                    Executed::V1_3(callback) => callback.notify_1_2(status, &shapes, timing),
                })
            }
            (3, Executed::V1_3(callback)) => {
                take!(arguments, EXECUTED_1_3, status: i32, shapes: Vec<OutputShape>, timing: Timing);
                self.notified(|| callback.notify_1_3(status, &shapes, timing))
            }
            _ => Err(CallError::UNKNOWN),
        }
    }
}

impl Drop for ExecutionCallbackStub {
    fn drop(&mut self) {
        if has_ended(&self.notified, &self.service) {
            let notified = self.v1_0().notify(GONE);
            tracing::debug!(?notified, "the service ended during an execution");
        }
    }
}
