//! `IFencedExecutionCallback`.

use super::{call, read_object, results, take};
use crate::names::FENCED;
use crate::session::Session;
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_2::Timing;
use nnhal_hidl::v1_3::IFencedExecutionCallback;
use nnhal_hwbinder::{CallError, Caller, Interface, Object, ParcelError, Reader, Remote, Writer};
use std::sync::Arc;

/// What becomes of a fenced execution, behind `IFencedExecutionCallback`.
pub(super) struct FencedCallbackStub {
    pub(super) callback: Arc<dyn IFencedExecutionCallback>,
    /// Whose it is.
    pub(super) _session: Arc<Session>,
}

impl Object for FencedCallbackStub {
    fn chain(&self) -> &'static [Interface] {
        const CHAIN: &[Interface] = &[FENCED];
        CHAIN
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        if code != 1 {
            return Err(CallError::UNKNOWN);
        }
        take!(arguments, FENCED);
        results(self.callback.get_execution_info())
    }
}

/// What becomes of a fenced execution of another process.
struct FencedCallbackProxy(Arc<Remote>);

impl IFencedExecutionCallback for FencedCallbackProxy {
    fn get_execution_info(&self) -> Return<(i32, Timing, Timing)> {
        call(&self.0, &FENCED, 1, |_| {})
    }
}

pub(super) fn read_fenced_callback(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn IFencedExecutionCallback>>, ParcelError> {
    read_object::<Arc<dyn IFencedExecutionCallback>>(
        reader,
        |remote| Arc::new(FencedCallbackProxy(remote)),
        |binder| Some(Arc::clone(&binder.downcast::<FencedCallbackStub>()?.callback)),
    )
}
