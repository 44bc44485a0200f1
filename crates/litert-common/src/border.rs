//! [`guarded`] and [`telling`]: where panics stop, and processes that were forked in the middle of a call.

use crate::error::Error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Calls without letting a panic through. In a process that was forked while another thread was in a call, whatever
/// that thread held stays held: there no call is made.
///
/// # Errors
/// That of the call; [`Error::Fault`] with the panic's words; [`Error::ForkedInside`].
pub fn guarded<T, E: From<Error>>(call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    static CALLS: Calls = Calls::new();
    let _inside = CALLS.enter(std::process::id())?;
    // What a panic leaves half done is behind locks, and is not used afterwards without being checked.
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(Error::Fault(words(&*panic)).into()))
}

/// Tells somebody about an error. Only panics stop here, so that one of a process that was forked is reported too.
pub fn telling(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

/// The calls that are being made, in one process.
struct Calls {
    /// The process, 0 before the first call.
    process: AtomicU32,
    inside: AtomicUsize,
}

/// A call that is being made.
struct Inside<'c>(&'c Calls);

impl Calls {
    const fn new() -> Self {
        Self { process: AtomicU32::new(0), inside: AtomicUsize::new(0) }
    }

    /// Takes no lock: one could be held by a thread that there is not in this process.
    fn enter(&self, process: u32) -> Result<Inside<'_>, Error> {
        let made_in = self.process.load(Ordering::SeqCst);
        if made_in != process {
            // What is counted here are calls of the parent, or of a thread of this process that was faster.
            let is_inside = made_in != 0 && self.inside.load(Ordering::SeqCst) > 0;
            if is_inside && self.process.load(Ordering::SeqCst) != process {
                return Err(Error::ForkedInside { made_in, found: process });
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

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        let panicked: Result<(), Error> = guarded(|| panic!("word {}", 1));
        assert!(panicked.unwrap_err().to_string().ends_with("report it: word 1"));
        assert_eq!(guarded(|| Ok::<_, Error>(3)).unwrap(), 3);
    }

    #[test]
    fn a_process_that_was_forked_in_a_call_makes_none() {
        let calls = Calls::new();
        drop(calls.enter(1).unwrap());
        drop(calls.enter(2).unwrap());
        let inside = calls.enter(2).unwrap();
        assert!(calls.enter(2).is_ok());
        let error = calls.enter(3).err().unwrap().to_string();
        assert!(error.contains("process 2") && error.contains('3'), "{error}");
        drop(inside);
        assert!(calls.enter(3).is_ok());
    }
}
