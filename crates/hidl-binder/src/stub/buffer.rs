//! [`BufferStub`]: a buffer behind `IBuffer`.

use super::{results, take};
use crate::names::BUFFER;
use crate::session::Session;
use nnhal_hidl::HidlMemory;
use nnhal_hidl::v1_3::IBuffer;
use nnhal_hwbinder::{CallError, Caller, Interface, Object, Reader, Writer};
use std::sync::Arc;

/// A buffer behind `IBuffer`. It exists as long as the client refers to it.
pub(crate) struct BufferStub {
    pub(crate) buffer: Arc<dyn IBuffer>,
    /// Whose it is.
    pub(crate) _session: Arc<Session>,
}

impl Object for BufferStub {
    fn chain(&self) -> &'static [Interface] {
        const CHAIN: &[Interface] = &[BUFFER];
        CHAIN
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        match code {
            1 => {
                take!(arguments, BUFFER, destination: HidlMemory);
                results(self.buffer.copy_to(&destination))
            }
            2 => {
                take!(arguments, BUFFER, source: HidlMemory, dimensions: Vec<u32>);
                results(self.buffer.copy_from(&source, &dimensions))
            }
            _ => Err(CallError::UNKNOWN),
        }
    }
}
