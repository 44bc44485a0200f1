//! [`guarded`]: where panics stop.

use crate::error::Error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls without letting a panic through.
///
/// # Errors
/// That of the call; [`Error::Fault`] with the panic's words.
pub fn guarded<T, E: From<Error>>(call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    // What a panic leaves half done is behind locks, and is not used afterwards without being checked.
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(Error::Fault(words(&*panic)).into()))
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
