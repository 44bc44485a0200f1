//! Memory that the runtime itself takes: what it allocates, what it copies arguments and constants
//! into, and the pages of holes in memory that it is given. All of a process is counted together, like
//! what a client of a device holds.

use super::{idle, memory_error};
use crate::error::Result;
use nnhal_hal::client::{Client, ClientLimits};
use nnhal_hal::memory::machine_memory;
use std::sync::OnceLock;

/// Who holds it: at most half of the memory of the machine, or of the process's control groups. Devices
/// count what they take themselves.
fn holder() -> &'static Client {
    static HOLDER: OnceLock<Client> = OnceLock::new();
    HOLDER.get_or_init(|| {
        let limits = ClientLimits { memory: machine_memory() / 2, ..ClientLimits::default() };
        Client::new("of the runtime", limits)
    })
}

/// Does something that takes memory; where there is not enough, once more without what is kept for later executions.
fn with_idle_memory<T, E>(
    take: impl Fn() -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    take().or_else(|_| {
        idle::let_go();
        take()
    })
}

/// New memory, which counts while anybody has it.
///
/// # Errors
/// `OUT_OF_MEMORY` if it is more than the runtime may take, or the system has no more.
pub(crate) fn allocate(size: u64) -> Result<nnhal_hal::Memory> {
    with_idle_memory(|| nnhal_hal::Memory::allocate_for(holder(), size)).map_err(memory_error)
}

/// New memory with these bytes, which counts while anybody has it.
///
/// # Errors
/// As [`allocate`].
pub(crate) fn copy_of(bytes: &[u8]) -> Result<nnhal_hal::Memory> {
    let memory = allocate(bytes.len() as u64)?;
    let view = memory.view().map_err(memory_error)?;
    view.write(0, bytes).map_err(memory_error)?;
    Ok(memory)
}

/// Counts what reading all of it may take.
///
/// # Errors
/// `OUT_OF_MEMORY` if it is more than the runtime may take.
pub(super) fn count_holes(memory: &nnhal_hal::Memory) -> Result<()> {
    let holes = memory.bytes_in_holes();
    with_idle_memory(|| memory.held_by(holder(), holes)).map_err(memory_error)
}
