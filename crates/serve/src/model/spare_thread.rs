//! [`SpareThread`]: the right of a thread of the runtime to compute for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Handle;

/// Threads that have the right.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The right of one of the runtime's threads to compute for a while, during which at least one other reads connections.
#[derive(Debug)]
pub(super) struct SpareThread(&'static AtomicUsize);

impl SpareThread {
    /// For the thread that calls, until it is dropped; `None` if all others have it, or the thread is no runtime's.
    pub(super) fn take() -> Option<Self> {
        Self::of(&TAKEN)
    }

    fn of(taken: &'static AtomicUsize) -> Option<Self> {
        let threads = Handle::try_current().ok()?.metrics().num_workers();
        let one_more = |taken| (taken + 1 < threads).then_some(taken + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Self(taken))
    }
}

impl Drop for SpareThread {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside what other tests of this process take.
    fn take() -> Option<SpareThread> {
        static TAKEN: AtomicUsize = AtomicUsize::new(0);
        SpareThread::of(&TAKEN)
    }

    #[test]
    fn one_thread_of_a_runtime_is_left() {
        assert!(take().is_none(), "this is no thread of a runtime");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
        runtime.block_on(async {
            let first = take().expect("one of three");
            let second = take().expect("two of three");
            assert!(take().is_none(), "the third reads connections");
            drop(first);
            assert!(take().is_some());
            drop(second);
        });
        let alone = tokio::runtime::Builder::new_current_thread().build().unwrap();
        alone.block_on(async { assert!(take().is_none(), "it has no other") });
    }
}
