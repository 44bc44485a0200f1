//! Preparing models beside executions (contract: CONC-4).
//!
//! Compiling takes long, so it must not take anything that executions wait for. It has slots of its
//! own, and each preparation that has one gets a thread of its own, with a lower priority in the operating
//! system than threads that execute. The thread ends with it: a priority that was lowered cannot
//! be raised again without privileges, so the thread cannot be used for anything else.

use crate::error::EngineError;
use nnhal_hal::{Error, ErrorStatus};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// The nice value that threads which prepare have above others. Linux
/// gives a thread a good quarter of a processor that it shares with one that executes, and with other
/// processes: much less would make preparing slow wherever something else computes.
const NICE: i32 = 4;

/// How many models are prepared at once, by an engine that computes `executions_at_once` executions.
pub(crate) fn slots(executions_at_once: usize) -> usize {
    executions_at_once.div_ceil(2)
}

/// Does some work on a thread that prepares, and waits for it.
pub(crate) fn on_own_thread<T: Send>(
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    thread::scope(|scope| {
        let spawned = thread::Builder::new().name("nnhal-prepare".to_owned()).spawn_scoped(
            scope,
            move || {
                lower_priority();
                catch_unwind(AssertUnwindSafe(work))
                    .unwrap_or_else(|payload| Err(EngineError::panicked(&*payload).into()))
            },
        );
        let thread =
            spawned.map_err(|error| Error::new(ErrorStatus::ResourceExhaustedTransient, error))?;
        thread.join().unwrap_or_else(|payload| Err(EngineError::panicked(&*payload).into()))
    })
}

/// Of this thread only: to Linux each is a process in this respect. Threads that it starts inherit
/// the lower priority.
fn lower_priority() {
    let lowered = rustix::process::getpriority_process(None)
        .and_then(|nice| rustix::process::setpriority_process(None, nice + NICE));
    if let Err(error) = lowered {
        tracing::debug!(%error, "a thread that prepares keeps the priority of those that execute");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn conc_4_only_the_thread_that_prepares_has_a_lower_priority() {
        let before = getpriority_process(None).unwrap();
        let inside = on_own_thread(|| Ok(getpriority_process(None).unwrap())).unwrap();
        assert_eq!(inside, (before + NICE).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
        let panicked = on_own_thread::<()>(|| panic!("on purpose")).unwrap_err();
        assert!(panicked.to_string().contains("on purpose"), "{panicked}");
    }
}
