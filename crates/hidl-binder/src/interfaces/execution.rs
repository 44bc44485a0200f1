//! `IExecutionCallback`.

use super::callbacks::{GONE, has_ended, watch};
use super::{arrived, call_one_way, read_object, take};
use crate::names::{EXECUTED, EXECUTED_1_0, EXECUTED_1_2, EXECUTED_1_3, chain_of};
use crate::session::Session;
use crate::wire::{Argument, write_slice};
use nnhal_hal::HalVersion;
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_2::{OutputShape, Timing};
use nnhal_hidl::{v1_0, v1_2, v1_3};
use nnhal_hwbinder::{
    CallError, Caller, DeathLink, Interface, Object, ParcelError, Reader, Remote, Writer,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who is notified of an execution.
pub(super) enum Executed {
    V1_0(Arc<dyn v1_0::IExecutionCallback>),
    V1_2(Arc<dyn v1_2::IExecutionCallback>),
    V1_3(Arc<dyn v1_3::IExecutionCallback>),
}

/// A client's callback behind `IExecutionCallback`.
pub(super) struct ExecutionCallbackStub {
    callback: Executed,
    notified: AtomicBool,
    service: Arc<Remote>,
}

impl ExecutionCallbackStub {
    pub(super) fn new(callback: Executed, service: Arc<Remote>) -> Self {
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

/// The callback of a client in another process. As long as it is to be notified, it is linked to the death of its client.
pub(super) struct ExecutionCallbackProxy {
    remote: Arc<Remote>,
    /// Kept for as long as the client is to be notified.
    _session: Arc<Session>,
    _link: DeathLink,
}

impl ExecutionCallbackProxy {
    fn new(remote: Arc<Remote>, session: Arc<Session>) -> Self {
        let _link = watch(&remote, &session);
        Self { remote, _session: session, _link }
    }
}

fn write_outcome(request: &mut Writer, status: i32, shapes: &[OutputShape], timing: Timing) {
    request.i32(status);
    write_slice(shapes, request);
    timing.write(request);
}

impl v1_0::IExecutionCallback for ExecutionCallbackProxy {
    fn notify(&self, status: i32) -> Return<()> {
        call_one_way(&self.remote, &EXECUTED_1_0, 1, |request| request.i32(status))
    }
}

impl v1_2::IExecutionCallback for ExecutionCallbackProxy {
    fn notify_1_2(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        call_one_way(&self.remote, &EXECUTED_1_2, 2, |request| {
            write_outcome(request, status, shapes, timing);
        })
    }
}

impl v1_3::IExecutionCallback for ExecutionCallbackProxy {
    fn notify_1_3(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        call_one_way(&self.remote, &EXECUTED_1_3, 3, |request| {
            write_outcome(request, status, shapes, timing);
        })
    }
}

pub(super) fn read_execution_callback(
    reader: &mut Reader<'_>,
    session: &Arc<Session>,
) -> Result<Option<Arc<ExecutionCallbackProxy>>, ParcelError> {
    let proxy = |remote| Arc::new(ExecutionCallbackProxy::new(remote, Arc::clone(session)));
    read_object(reader, proxy, |_| None)
}
