//! [`Arenas`]: memory in which executions put their caller's bytes. It is kept with the compilation: making it costs more
//! than a small model takes.

use crate::error::Result;
use std::sync::{Mutex, PoisonError};

/// The least bytes of an arena.
const LEAST_ARENA: u64 = 4096;
/// How many arenas are kept.
const KEPT: usize = 4;
/// The most bytes of an arena that is kept.
const LONGEST_KEPT: u64 = 1 << 26;

/// Arenas that no execution uses just now.
#[derive(Debug, Default)]
pub(crate) struct Arenas(Mutex<Vec<nnhal_hal::Memory>>);

impl Arenas {
    /// Memory of at least this many bytes.
    pub(crate) fn take(&self, size: u64) -> Result<nnhal_hal::Memory> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match free {
            Some(memory) if memory.size() >= size => Ok(memory),
            _ => {
                let size = size.max(LEAST_ARENA).checked_next_power_of_two().unwrap_or(size);
                crate::memory::allocate(size)
            }
        }
    }

    /// Keeps it for the next execution.
    pub(crate) fn give_back(&self, memory: nnhal_hal::Memory) {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT && memory.size() <= LONGEST_KEPT {
            free.push(memory);
        }
    }
}
