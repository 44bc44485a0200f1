//! [`Slots`]: the numbers that stand for memory in a burst's requests, on the client's side.

use super::ClientError;
use crate::BurstCallback;
use nnhal_hal::{Error, Memory, RequestMemoryPool};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many slots are kept between requests, if the caller frees none. A service keeps the memory
/// of each, so a caller who makes new memory for each request would use up its descriptors.
pub const KEPT_SLOTS: usize = 64;

/// The table of slots. Only one request is running at a time.
#[derive(Debug, Default)]
pub(super) struct Slots(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By slot; `None`: free, or about to be.
    entries: Vec<Option<Entry>>,
    /// Slots that stand for nothing, on neither side.
    free: Vec<i32>,
    /// Counts requests.
    request: u64,
}

#[derive(Debug)]
struct Entry {
    memory: Memory,
    /// The last request that used it.
    used: u64,
    /// Whether the request that uses it is running.
    in_use: bool,
    /// To be freed when that request is over.
    unwanted: bool,
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for each pool of a request that is about to begin; [`Slots::done`] when it is over.
    pub(super) fn assign(&self, pools: &[RequestMemoryPool]) -> Result<Vec<i32>, ClientError> {
        let is_token = |pool: &RequestMemoryPool| matches!(pool, RequestMemoryPool::Token(_));
        if let Some(pool) = pools.iter().position(is_token) {
            return Err(ClientError::Token { pool });
        }
        let mut table = self.lock();
        table.request += 1;
        let memories = pools.iter().filter_map(|pool| match pool {
            RequestMemoryPool::Memory(memory) => Some(memory),
            RequestMemoryPool::Token(_) => None,
        });
        Ok(memories.map(|memory| table.slot_of(memory)).collect())
    }

    /// The request is over. What is left over now must be freed by the service and may then be
    /// used again ([`Slots::reuse`]).
    pub(super) fn done(&self) -> Vec<i32> {
        let mut table = self.lock();
        for entry in table.entries.iter_mut().flatten() {
            entry.in_use = false;
        }
        let mut left_over = table.remove_where(|entry| entry.unwanted);
        let kept = table.entries.iter().flatten().count();
        if kept > KEPT_SLOTS {
            let mut uses: Vec<_> = table.entries.iter().flatten().map(|entry| entry.used).collect();
            uses.sort_unstable();
            // Those that the same request used last stay or go together.
            let before = uses[kept - KEPT_SLOTS];
            left_over.extend(table.remove_where(|entry| entry.used < before));
        }
        left_over
    }

    /// Takes the slot of this memory away; it must be freed by the service and may then be used
    /// again. Not while a request uses it: then it is left over when that is done.
    pub(super) fn remove(&self, memory: &Memory) -> Option<i32> {
        let mut table = self.lock();
        for entry in table.entries.iter_mut().flatten() {
            if entry.in_use && entry.memory.is_same(memory) {
                entry.unwanted = true;
                return None;
            }
        }
        table.remove_where(|entry| entry.memory.is_same(memory)).pop()
    }

    /// The service has let go of a slot.
    pub(super) fn reuse(&self, slot: i32) {
        self.lock().free.push(slot);
    }
}

impl Table {
    /// The slot that this memory has, or gets.
    fn slot_of(&mut self, memory: &Memory) -> i32 {
        let request = self.request;
        for (slot, entry) in self.entries.iter_mut().enumerate() {
            if let Some(entry) = entry.as_mut().filter(|entry| entry.memory.is_same(memory)) {
                (entry.used, entry.in_use, entry.unwanted) = (request, true, false);
                return to_slot(slot);
            }
        }
        let entry = Entry { memory: memory.clone(), used: request, in_use: true, unwanted: false };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            to_slot(self.entries.len() - 1)
        });
        if let Some(place) = self.entries.get_mut(to_index(slot)) {
            *place = Some(entry);
        }
        slot
    }

    /// Takes entries out; their slots are not free yet.
    fn remove_where(&mut self, is_removed: impl Fn(&Entry) -> bool) -> Vec<i32> {
        let mut removed = Vec::new();
        for (slot, entry) in self.entries.iter_mut().enumerate() {
            if entry.as_ref().is_some_and(&is_removed) {
                *entry = None;
                removed.push(to_slot(slot));
            }
        }
        removed
    }
}

/// There are as many slots as a queue holds data, at most: far fewer than 2^31.
fn to_slot(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// A number that is no slot is not in the table either.
fn to_index(slot: i32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}

impl BurstCallback for Slots {
    fn get_memories(&self, slots: &[i32]) -> nnhal_hal::Result<Vec<Memory>> {
        let table = self.lock();
        let memory = |slot: &i32| {
            let entry = table.entries.get(to_index(*slot)).and_then(Option::as_ref);
            let memory = entry.map(|entry| entry.memory.clone());
            memory.ok_or_else(|| Error::invalid(format!("slot {slot} stands for no memory")))
        };
        slots.iter().map(memory).collect()
    }
}
