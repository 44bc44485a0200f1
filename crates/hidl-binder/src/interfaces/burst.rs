//! The two ends of a burst: `IBurstContext`, which a service has, and `IBurstCallback`, which a client has.

use super::{arrived, call, call_for, failed, read_object, results, take};
use crate::names::{BURST_CALLBACK, BURST_CONTEXT};
use crate::session::Session;
use crate::wire::write_slice;
use nnhal_hidl::HidlMemory;
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_2::{IBurstCallback, IBurstContext};
use nnhal_hwbinder::{CallError, Caller, Interface, Object, ParcelError, Reader, Remote, Writer};
use std::sync::Arc;

/// The service's end. The burst ends when the client lets go of it.
pub(super) struct BurstContextStub {
    pub(super) context: Arc<dyn IBurstContext>,
    /// Whose it is.
    pub(super) _session: Arc<Session>,
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

/// A service's end.
struct BurstContextProxy(Arc<Remote>);

impl IBurstContext for BurstContextProxy {
    fn free_memory(&self, slot: i32) -> Return<()> {
        call_for(&self.0, &BURST_CONTEXT, 1, |request| request.i32(slot), |_| Ok(()))
    }

    fn ping(&self) -> Return<()> {
        self.0.ping().map_err(failed)
    }
}

pub(super) fn read_burst_context(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn IBurstContext>>, ParcelError> {
    read_object::<Arc<dyn IBurstContext>>(
        reader,
        |remote| Arc::new(BurstContextProxy(remote)),
        |binder| Some(Arc::clone(&binder.downcast::<BurstContextStub>()?.context)),
    )
}

/// The client's end.
pub(super) struct BurstCallbackStub(pub(crate) Arc<dyn IBurstCallback>);

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

/// A client's end.
struct BurstCallbackProxy(Arc<Remote>);

impl IBurstCallback for BurstCallbackProxy {
    fn get_memories(&self, slots: &[i32]) -> Return<(i32, Vec<HidlMemory>)> {
        call(&self.0, &BURST_CALLBACK, 1, |request| write_slice(slots, request))
    }
}

pub(super) fn read_burst_callback(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn IBurstCallback>>, ParcelError> {
    read_object::<Arc<dyn IBurstCallback>>(
        reader,
        |remote| Arc::new(BurstCallbackProxy(remote)),
        |binder| Some(Arc::clone(&binder.downcast::<BurstCallbackStub>()?.0)),
    )
}
