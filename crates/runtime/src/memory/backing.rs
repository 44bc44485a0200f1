//! [`Backing`]: what holds the bytes of a memory, or of a value between steps.

use nnhal_hal::Buffer;
use std::sync::Arc;

/// What holds a value.
#[derive(Clone)]
pub(crate) enum Backing {
    /// Memory that all devices can reach.
    Shared(nnhal_hal::Memory),
    /// A device's buffer.
    Buffer(Arc<dyn Buffer>),
}
