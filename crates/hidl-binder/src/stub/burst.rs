//! The two ends of a burst that are called.

use super::{arrived, results, take};
use crate::names::{BURST_CALLBACK, BURST_CONTEXT};
use crate::session::Session;
use nnhal_hidl::v1_2::{IBurstCallback, IBurstContext};
use nnhal_hwbinder::{CallError, Caller, Interface, Object, Reader, Writer};
use std::sync::Arc;

/// The service's end. The burst ends when the client lets go of it.
pub(crate) struct BurstContextStub {
    pub(crate) context: Arc<dyn IBurstContext>,
    /// Whose it is.
    pub(crate) _session: Arc<Session>,
}

impl Object for BurstContextStub {
    fn chain(&self) -> &'static [Interface] {
        const CHAIN: &[Interface] = &[BURST_CONTEXT];
        CHAIN
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        if code != 1 {
            return Err(CallError::UNKNOWN);
        }
        take!(arguments, BURST_CONTEXT, slot: i32);
        arrived(self.context.free_memory(slot))?;
        Ok(Writer::reply())
    }

    /// A burst whose server has ended does not answer.
    fn is_alive(&self) -> bool {
        self.context.ping().is_ok()
    }
}

/// The client's end.
pub(crate) struct BurstCallbackStub(pub(crate) Arc<dyn IBurstCallback>);

impl Object for BurstCallbackStub {
    fn chain(&self) -> &'static [Interface] {
        const CHAIN: &[Interface] = &[BURST_CALLBACK];
        CHAIN
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        if code != 1 {
            return Err(CallError::UNKNOWN);
        }
        take!(arguments, BURST_CALLBACK, slots: Vec<i32>);
        results(self.0.get_memories(&slots))
    }
}
