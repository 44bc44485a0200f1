//! [`Arenas`]: memory in which executions put their caller's bytes. It is kept with the compilation: making it costs more
//! than a small model takes.

use crate::error::Result;
use crate::memory::IdleMemory;

/// The least bytes of an arena.
const LEAST_ARENA: u64 = 4096;

/// Arenas that no execution uses just now.
#[derive(Debug)]
pub(crate) struct Arenas(IdleMemory);

impl Arenas {
    /// None yet.
    pub(super) fn new() -> Self {
        Self(IdleMemory::new(0))
    }

    /// Memory of at least this many bytes.
    pub(crate) fn take(&self, size: u64) -> Result<nnhal_hal::Memory> {
        let new = || {
            let size = size.max(LEAST_ARENA).checked_next_power_of_two().unwrap_or(size);
            crate::memory::allocate(size)
        };
        self.0.take(size).map_or_else(new, Ok)
    }

    /// Keeps it for the next execution.
    pub(crate) fn give_back(&self, memory: nnhal_hal::Memory) {
        self.0.give_back(memory);
    }
}
