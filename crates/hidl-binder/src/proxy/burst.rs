//! Both ends of a burst in another process.

use super::{call, call_for, failed};
use crate::names::{BURST_CALLBACK, BURST_CONTEXT};
use crate::wire::write_slice;
use nnhal_hidl::HidlMemory;
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_2::{IBurstCallback, IBurstContext};
use nnhal_hwbinder::Remote;
use std::sync::Arc;

/// A client's end.
pub(super) struct BurstCallbackProxy(pub(super) Arc<Remote>);

impl IBurstCallback for BurstCallbackProxy {
    fn get_memories(&self, slots: &[i32]) -> Return<(i32, Vec<HidlMemory>)> {
        call(&self.0, &BURST_CALLBACK, 1, |request| write_slice(slots, request))
    }
}

/// A service's end.
pub(super) struct BurstContextProxy(pub(super) Arc<Remote>);

impl IBurstContext for BurstContextProxy {
    fn free_memory(&self, slot: i32) -> Return<()> {
        call_for(&self.0, &BURST_CONTEXT, 1, |request| request.i32(slot), |_| Ok(()))
    }

    fn ping(&self) -> Return<()> {
        self.0.ping().map_err(failed)
    }
}
