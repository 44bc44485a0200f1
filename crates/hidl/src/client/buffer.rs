//! [`Buffer`]: a driver's buffer as a [`nnhal_hal::Buffer`].

use super::answer::{ask, expect_none};
use crate::convert::Convert;
use crate::memory::HidlMemory;
use crate::v1_3::IBuffer;
use nnhal_hal::Memory;
use std::sync::Arc;

/// A driver's buffer.
pub(super) struct Buffer {
    buffer: Arc<dyn IBuffer>,
    token: u32,
}

impl Buffer {
    pub(super) fn new(buffer: Arc<dyn IBuffer>, token: u32) -> Self {
        Self { buffer, token }
    }
}

impl nnhal_hal::Buffer for Buffer {
    fn token(&self) -> u32 {
        self.token
    }

    fn copy_to(&self, destination: &Memory) -> nnhal_hal::Result<()> {
        let memory = Convert::from_canonical(destination)?;
        expect_none("copyTo", ask("copyTo", || self.buffer.copy_to(&memory))?)
    }

    fn copy_from(&self, source: &Memory, dimensions: &[u32]) -> nnhal_hal::Result<()> {
        let memory = Convert::from_canonical(source).inspect_err(|_| self.discard())?;
        expect_none("copyFrom", ask("copyFrom", || self.buffer.copy_from(&memory, dimensions))?)
    }

    /// There is no method for it, but there is memory that no driver can copy from.
    fn discard(&self) {
        let nothing = HidlMemory::default();
        let refused = ask("copyFrom", || self.buffer.copy_from(&nothing, &[]));
        tracing::debug!(?refused, "a buffer was made uninitialized");
    }
}
