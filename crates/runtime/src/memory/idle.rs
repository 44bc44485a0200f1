//! [`IdleMemory`]: memory that is kept for the next execution, until another use finds no room.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many memories one keeps.
pub(crate) const MOST_KEPT: usize = 4;
/// The most bytes of each.
pub(crate) const LONGEST_KEPT: u64 = 1 << 26;

/// All of the process. Those of compilations that are gone stay until there is no room for another.
static ALL: Mutex<Vec<Weak<Kept>>> = Mutex::new(Vec::new());

type Kept = Mutex<Vec<nnhal_hal::Memory>>;

/// Memory that no execution uses just now.
#[derive(Debug)]
pub(crate) struct IdleMemory {
    kept: Arc<Kept>,
    /// How many are kept however long they are.
    of_any_length: usize,
}

impl IdleMemory {
    /// None yet. Of `of_any_length` memories it does not matter how long they are.
    pub(crate) fn new(of_any_length: usize) -> Self {
        let kept = Arc::default();
        let mut all = lock(&ALL);
        if all.len() == all.capacity() {
            all.retain(|it| it.strong_count() > 0);
        }
        all.push(Arc::downgrade(&kept));
        Self { kept, of_any_length }
    }

    /// Memory of at least `size` bytes, if some is kept. What is shorter is let go of.
    pub(crate) fn take(&self, size: u64) -> Option<nnhal_hal::Memory> {
        let kept = lock(&self.kept).pop();
        kept.filter(|memory| memory.size() >= size)
    }

    /// Keeps it for the next execution.
    pub(crate) fn give_back(&self, memory: nnhal_hal::Memory) {
        let mut kept = lock(&self.kept);
        let longest = if kept.len() < self.of_any_length { u64::MAX } else { LONGEST_KEPT };
        if kept.len() < MOST_KEPT && memory.size() <= longest {
            kept.push(memory);
        }
    }
}

/// Frees what all compilations of the process keep.
pub(super) fn let_go() {
    let all: Vec<Arc<Kept>> = lock(&ALL).iter().filter_map(Weak::upgrade).collect();
    for kept in all {
        let freed = std::mem::take(&mut *lock(&kept));
        drop(freed);
    }
}

/// Nothing is left half done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
