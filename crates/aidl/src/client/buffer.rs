//! A service's buffer as a [`nnhal_hal::Buffer`].

use super::buffers::Shared;
use super::link::Link;
use crate::convert::{all_signed, memory_to_wire};
use crate::interface::nn;
use nn::IBuffer::IBuffer;
use nnhal_hal::{Memory, Result};
use rsbinder::Strong;
use std::sync::Arc;

/// A service's buffer.
pub(super) struct Buffer {
    link: Arc<Link>,
    shared: Arc<Shared>,
}

/// Makes a buffer uninitialized. There is no method for it, but there is memory that no service can copy from: a hardware buffer
/// without a descriptor.
pub(super) fn discard(link: &Link, buffer: &Shared) {
    let nothing = nn::Memory::Memory::HardwareBuffer(Default::default());
    let refused = link.call("copyFrom", || buffer.interface.copyFrom(&nothing, &[]));
    tracing::debug!(?refused, "a buffer was made uninitialized");
}

impl Buffer {
    pub(super) fn new(link: Arc<Link>, buffer: Strong<dyn IBuffer>, token: u32) -> Self {
        let shared = link.buffers().insert(Shared { interface: buffer, token });
        Self { link, shared }
    }
}

impl nnhal_hal::Buffer for Buffer {
    fn token(&self) -> u32 {
        self.shared.token
    }

    fn copy_to(&self, destination: &Memory) -> Result<()> {
        let memory = memory_to_wire(destination)?;
        self.link.call("copyTo", || self.shared.interface.copyTo(&memory))
    }

    fn copy_from(&self, source: &Memory, dimensions: &[u32]) -> Result<()> {
        let converted = memory_to_wire(source)
            .and_then(|memory| Ok((memory, all_signed("a dimension", dimensions)?)));
        let (memory, dimensions) = converted.inspect_err(|_| self.discard())?;
        self.link.call("copyFrom", || self.shared.interface.copyFrom(&memory, &dimensions))
    }

    fn discard(&self) {
        discard(&self.link, &self.shared);
    }
}
