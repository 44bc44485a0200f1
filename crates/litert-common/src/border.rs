//! [`guarded`] and [`telling`]: where panics stop, and processes that were forked in the middle of a call.

use crate::error::Error;
use nnhal_c_boundary::calls::Calls;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls without letting a panic through. In a process that was forked while another thread was in a call, whatever
/// that thread held stays held: there no call is made.
///
/// # Errors
/// That of the call; [`Error::Fault`] with the panic's words; [`Error::ForkedInside`].
pub fn guarded<T, E: From<Error>>(call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    static CALLS: Calls = Calls::new();
    let _inside = CALLS.enter().map_err(Error::ForkedInside)?;
    // What a panic leaves half done is behind locks, and is not used afterwards without being checked.
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(Error::Fault(words(&*panic)).into()))
}

/// Tells somebody about an error. Only panics stop here, so that one of a process that was forked is reported too.
pub fn telling(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
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
}
