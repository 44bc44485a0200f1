//! [`Calls`]: the calls that a process is making, so that one which was forked in the middle of a call of its parent finds
//! out: what that thread held stays held there.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The calls that are being made, in one process.
#[derive(Debug)]
pub struct Calls {
    /// The process, 0 before the first call.
    process: AtomicU32,
    inside: AtomicUsize,
}

/// A call that is being made.
#[derive(Debug)]
pub struct Inside<'c>(&'c Calls);

/// The process was forked while another thread was in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkedInside {
    /// The process of the thread.
    pub made_in: u32,
    /// This process.
    pub found: u32,
}

impl fmt::Display for ForkedInside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { made_in, found } = self;
        write!(
            formatter,
            "process {found} was forked while a thread of process {made_in} was in a call of the library, which cannot \
             be used here"
        )
    }
}

impl std::error::Error for ForkedInside {}

impl Default for Calls {
    fn default() -> Self {
        Self::new()
    }
}

impl Calls {
    /// None yet.
    pub const fn new() -> Self {
        Self { process: AtomicU32::new(0), inside: AtomicUsize::new(0) }
    }

    /// Begins a call in this process, which ends when the answer is dropped. Takes no lock: one could be held by a
    /// thread that there is not in this process.
    ///
    /// # Errors
    /// [`ForkedInside`]
    pub fn enter(&self) -> Result<Inside<'_>, ForkedInside> {
        self.enter_in(std::process::id())
    }

    fn enter_in(&self, process: u32) -> Result<Inside<'_>, ForkedInside> {
        let made_in = self.process.load(Ordering::SeqCst);
        if made_in != process {
            // What is counted here are calls of the parent, or of a thread of this process that was faster.
            let is_inside = made_in != 0 && self.inside.load(Ordering::SeqCst) > 0;
            if is_inside && self.process.load(Ordering::SeqCst) != process {
                return Err(ForkedInside { made_in, found: process });
            }
            self.process.store(process, Ordering::SeqCst);
        }
        self.inside.fetch_add(1, Ordering::SeqCst);
        Ok(Inside(self))
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_forked_in_a_call_makes_none() {
        let calls = Calls::new();
        drop(calls.enter_in(1).unwrap());
        drop(calls.enter_in(2).unwrap());
        let inside = calls.enter_in(2).unwrap();
        assert!(calls.enter_in(2).is_ok());
        let error = calls.enter_in(3).unwrap_err();
        assert_eq!(error, ForkedInside { made_in: 2, found: 3 });
        assert!(error.to_string().contains("forked"));
        drop(inside);
        assert!(calls.enter_in(3).is_ok());
    }
}
