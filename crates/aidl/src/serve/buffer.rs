//! `IBuffer`.

use super::{Origin, guarded, version_methods};
use crate::convert::{all_unsigned, memory_from_wire};
use crate::interface::nn;
use crate::status::Answer;
use nn::IBuffer::IBuffer;
use nn::Memory::Memory;
use nnhal_hal::Error;
use nnhal_hidl::serve::Given;
use rsbinder::{BinderResult, Interface};
use std::sync::Arc;

/// A buffer; it exists as long as this object (contract: ALLOC-8).
pub(super) struct Buffer {
    /// Dropped first: once the buffer is gone, its token may be another one's.
    _given: Given,
    buffer: Arc<dyn nnhal_hal::Buffer>,
    origin: Arc<Origin>,
}

impl Buffer {
    pub(super) fn new(
        origin: Arc<Origin>,
        buffer: Arc<dyn nnhal_hal::Buffer>,
        given: Given,
    ) -> Self {
        Self { _given: given, buffer, origin }
    }
}

impl Interface for Buffer {}

#[allow(non_snake_case)] // The methods' names are the files'.
impl IBuffer for Buffer {
    version_methods!(origin);

    fn copyFrom(&self, source: &Memory, dimensions: &[i32]) -> BinderResult<()> {
        let copied = guarded(|| {
            let converted = memory_from_wire(source)
                .and_then(|source| Ok((source, all_unsigned("a dimension", dimensions)?)));
            // A copy that fails leaves nothing (contract: BUF-1).
            let (source, dimensions) = converted.inspect_err(|_| self.buffer.discard())?;
            self.buffer.copy_from(&source, &dimensions)
        });
        copied.map_err(|error: Error| Answer::Plain.refuse(&error))
    }

    fn copyTo(&self, destination: &Memory) -> BinderResult<()> {
        let copied = guarded(|| self.buffer.copy_to(&memory_from_wire(destination)?));
        copied.map_err(|error: Error| Answer::Plain.refuse(&error))
    }
}
