//! [`FencedCallbackStub`]: what becomes of a fenced execution.

use super::{results, take};
use crate::names::FENCED;
use crate::session::Session;
use nnhal_hidl::v1_3::IFencedExecutionCallback;
use nnhal_hwbinder::{CallError, Caller, Interface, Object, Reader, Writer};
use std::sync::Arc;

/// What becomes of a fenced execution, behind `IFencedExecutionCallback`.
pub(crate) struct FencedCallbackStub {
    pub(crate) callback: Arc<dyn IFencedExecutionCallback>,
    /// Whose it is.
    pub(crate) _session: Arc<Session>,
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
