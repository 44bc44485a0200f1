//! On which processors the threads of a team run.
//!
//! On a busy machine the system may leave a helper waiting on the caller's own processor for many
//! executions, until it balances its queues. A helper that finds itself there goes elsewhere.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Whether there is no system that says or changes where threads run.
const IS_MODEL: bool = cfg!(any(miri, loom));

/// The processor that the calling thread runs on.
pub(super) fn current() -> usize {
    if IS_MODEL { 0 } else { sched_getcpu() }
}

/// Where a thread may run.
pub(super) struct Allowed {
    processors: Option<CpuSet>,
}

impl Allowed {
    /// Where the calling thread may run; no one knows if the system does not say.
    pub(super) fn of_this_thread() -> Self {
        Self { processors: if IS_MODEL { None } else { sched_getaffinity(None).ok() } }
    }

    /// Moves the calling thread if it runs on this processor and may run on others.
    pub(super) fn leave(&self, processor: usize) {
        if let Some(mut elsewhere) = self.processors
            && processor < CpuSet::MAX_CPU
            && sched_getcpu() == processor
        {
            elsewhere.unset(processor);
            if elsewhere.count() > 0 {
                // Where the system does not want it, things stay as they were.
                let _ = sched_setaffinity(None, &elsewhere);
            }
        }
    }
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_processor_if_there_are_others() {
        std::thread::spawn(|| {
            let allowed = Allowed::of_this_thread();
            let others = allowed.processors.is_some_and(|processors| processors.count() > 1);
            for _ in 0..10 {
                let left = current();
                allowed.leave(left);
                // It may have been moved by the system before it asked to be.
                let now = sched_getaffinity(None).unwrap();
                assert!(!others || !now.is_set(left) || current() != left);
            }
            allowed.leave(usize::MAX);
        })
        .join()
        .unwrap();
    }
}
