//! [`HidlMemory`]: memory as HIDL passes it.

use crate::handle::Handle;

/// A `memory` of HIDL (`hidl_memory`): a kind by its name, the descriptors behind it, a size. What
/// the kinds are is in [`nnhal_hal::memory`]; nothing here has been checked. Cloning shares the handle.
#[derive(Debug, Clone, Default)]
pub struct HidlMemory {
    /// Name of the kind, such as `ashmem`.
    pub name: String,
    /// What is behind it.
    pub handle: Handle,
    /// Bytes.
    pub size: u64,
}
