//! `IBuffer`.

use super::{call, read_object, results, take};
use crate::names::BUFFER;
use crate::session::Session;
use crate::wire::{Argument, write_slice};
use nnhal_hidl::HidlMemory;
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_3::IBuffer;
use nnhal_hwbinder::{CallError, Caller, Interface, Object, ParcelError, Reader, Remote, Writer};
use std::sync::Arc;

/// A buffer behind `IBuffer`. It exists as long as the client refers to it.
pub(super) struct BufferStub {
    pub(super) buffer: Arc<dyn IBuffer>,
    /// Whose it is.
    pub(super) _session: Arc<Session>,
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

/// A buffer of another process.
struct BufferProxy(Arc<Remote>);

impl IBuffer for BufferProxy {
    fn copy_to(&self, dst: &HidlMemory) -> Return<i32> {
        call(&self.0, &BUFFER, 1, |writer| dst.write(writer))
    }

    fn copy_from(&self, src: &HidlMemory, dimensions: &[u32]) -> Return<i32> {
        call(&self.0, &BUFFER, 2, |writer| {
            src.write(writer);
            write_slice(dimensions, writer);
        })
    }
}

pub(super) fn read_buffer(
    reader: &mut Reader<'_>,
) -> Result<Option<Arc<dyn IBuffer>>, ParcelError> {
    read_object::<Arc<dyn IBuffer>>(reader, |remote| Arc::new(BufferProxy(remote)), |_| None)
}
