//! [`Buffer`]: a buffer that the driver manages, behind `IBuffer`.

use super::guarded;
use super::status::{Answer, NONE};
use super::tokens::Given;
use crate::convert::Convert;
use crate::memory::HidlMemory;
use crate::transport::Return;
use crate::v1_3::IBuffer;
use nnhal_hal::Error;
use std::sync::Arc;

/// A buffer; it exists as long as this object (contract: ALLOC-8).
pub(super) struct Buffer {
    /// Dropped first: once the buffer is gone, its token may be another one's.
    pub(super) _given: Given,
    pub(super) buffer: Arc<dyn nnhal_hal::Buffer>,
}

impl IBuffer for Buffer {
    fn copy_to(&self, dst: &HidlMemory) -> Return<i32> {
        Ok(answer(guarded(|| {
            let memory = dst.to_canonical()?;
            if !memory.is_writable() {
                return Err(Error::invalid("the destination may not be written"));
            }
            self.buffer.copy_to(&memory)
        })))
    }

    fn copy_from(&self, src: &HidlMemory, dimensions: &[u32]) -> Return<i32> {
        Ok(answer(guarded(|| {
            // What fails here never comes to the device, but its buffer must know (contract: BUF-1).
            let memory = src.to_canonical().inspect_err(|_| self.buffer.discard())?;
            self.buffer.copy_from(&memory, dimensions)
        })))
    }
}

fn answer(result: nnhal_hal::Result<()>) -> i32 {
    result.map_or_else(|error| Answer::Plain.refuse(&error), |()| NONE)
}
