//! [`InputMemory`]: memory that a device reads, for the bytes of a large request.
//!
//! Bytes are written into it as they come from the connection, so that they are not copied again before the run.

use crate::error::{Error, Result};
use nnhal::hal::Memory;
use nnhal::hal::memory::{MemoryError, MemoryView};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pieces of memory that there are at a time, those that wait to be used again included: each has a descriptor.
const MOST: usize = 64;
/// Bytes of those that wait.
const MOST_FREE: usize = 32 << 20;

/// Memory that is used again by later requests.
#[derive(Debug, Default)]
pub(crate) struct MemoryPool(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The one that was used last is at the end: it may still be in the caches.
    free: Vec<(Memory, MemoryView)>,
    taken: usize,
}

/// Memory of one request; clones share it. The last one gives it back to the pool.
#[derive(Debug, Clone)]
pub struct InputMemory(Arc<Taken>);

#[derive(Debug)]
struct Taken {
    memory: Memory,
    view: MemoryView,
    pool: Arc<MemoryPool>,
}

impl MemoryPool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of this number of bytes, with anything in it; `None` if there is none now.
    pub(crate) fn take(self: &Arc<Self>, length: usize) -> Option<InputMemory> {
        let known = {
            let mut state = self.lock();
            let at = state.free.iter().rposition(|(memory, _)| memory.size() == length as u64);
            if at.is_none() && state.taken + state.free.len() >= MOST {
                if state.free.is_empty() {
                    return None;
                }
                state.free.remove(0);
            }
            state.taken += 1;
            at.map(|at| state.free.remove(at))
        };
        let made = known.map_or_else(
            || {
                let memory = Memory::allocate(length as u64)?;
                let view = memory.view()?;
                Ok::<_, MemoryError>((memory, view))
            },
            Ok,
        );
        match made {
            Ok((memory, view)) => {
                Some(InputMemory(Arc::new(Taken { memory, view, pool: Arc::clone(self) })))
            }
            Err(error) => {
                self.lock().taken -= 1;
                tracing::debug!(%error, "no memory that devices read");
                None
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.taken -= 1;
        state.free.push((self.memory.clone(), self.view.clone()));
        let mut bytes = 0_u64;
        let fits = |(memory, _): &&(Memory, MemoryView)| {
            bytes = bytes.saturating_add(memory.size());
            bytes <= MOST_FREE as u64
        };
        let kept = state.free.iter().rev().take_while(fits).count();
        let surplus = state.free.len() - kept;
        state.free.drain(..surplus);
    }
}

impl InputMemory {
    /// Bytes that it has.
    pub fn length(&self) -> usize {
        usize::try_from(self.0.memory.size()).unwrap_or(usize::MAX)
    }

    /// The memory as devices take it.
    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
        self.0.view.write(at as u64, bytes).map_err(failed)
    }

    pub(crate) fn read(&self, from: usize, bytes: &mut [u8]) -> Result<()> {
        self.0.view.read(from as u64, bytes).map_err(failed)
    }
}

fn failed(error: MemoryError) -> Error {
    Error::Internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_by_requests_of_the_same_length() {
        let pool = Arc::new(MemoryPool::default());
        let one = pool.take(100).unwrap();
        one.write(98, &[1, 2]).unwrap();
        assert!(one.write(99, &[1, 2]).is_err(), "beyond the end");
        let first = one.memory().clone();
        let other = pool.take(100).unwrap();
        assert!(!other.memory().is_same(&first), "two requests have the same memory");
        let clone = one.clone();
        drop(one);
        assert!(!pool.take(100).unwrap().memory().is_same(&first), "a clone still has it");
        drop(clone);
        assert!(pool.take(100).unwrap().memory().is_same(&first));
        assert!(!pool.take(200).unwrap().memory().is_same(&first));
    }

    #[test]
    fn sec_there_is_no_more_of_it_than_there_may_be() {
        let pool = Arc::new(MemoryPool::default());
        let all: Vec<_> = (0..MOST).map(|_| pool.take(64).unwrap()).collect();
        assert!(pool.take(64).is_none());
        drop(all);
        // Those that wait make room for one of another length.
        let other = pool.take(128).unwrap();
        let counts = |state: MutexGuard<'_, State>| (state.taken, state.free.len());
        assert_eq!(counts(pool.lock()), (1, MOST - 1));
        drop(other);
        let large: Vec<_> = (0..5).map(|_| pool.take(MOST_FREE / 3).unwrap()).collect();
        drop(large);
        let bytes: u64 = pool.lock().free.iter().map(|(memory, _)| memory.size()).sum();
        assert!(bytes <= MOST_FREE as u64, "{bytes} bytes wait");
    }
}
