//! The border: how a function of Rust becomes a function of C.
//!
//! [`export!`] writes the C function around a body that answers a `Result`. No panic crosses; a failure
//! becomes a status, and its sentence goes to the error reporter of the program.

use crate::abi::TfLiteStatus;
use crate::report::Reporter;
use nnhal_c_boundary::calls::Calls;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    pub(crate) status: TfLiteStatus,
    pub(crate) sentence: String,
    /// Whom to report it to.
    pub(crate) reporter: Reporter,
}

/// What the inside of a C function answers.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self::of(TfLiteStatus::Error, sentence)
    }

    pub(crate) fn of(status: TfLiteStatus, sentence: impl Into<String>) -> Self {
        Self { status, sentence: sentence.into(), reporter: Reporter::NONE }
    }

    /// The same failure, for this reporter.
    pub(crate) fn to(self, reporter: Reporter) -> Self {
        Self { reporter, ..self }
    }

    fn fault(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("without words");
        Self::new(format!("a fault of the library, please report it: {text}"))
    }
}

impl From<nnhal::Error> for Failure {
    fn from(error: nnhal::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// The inside of an object, for this thread alone. What a fault of the library left half done is not
/// touched again.
pub(crate) fn lock<T>(object: &Mutex<T>) -> Outcome<MutexGuard<'_, T>> {
    object.lock().map_err(|_| Failure::new("a fault of the library broke the object"))
}

/// Runs the inside of a C function; `otherwise` is its answer after a failure.
pub(crate) fn run<T>(
    name: &str,
    otherwise: impl FnOnce(TfLiteStatus) -> T,
    body: impl FnOnce() -> Outcome<T>,
) -> T {
    static CALLS: Calls = Calls::new();
    let outcome = match CALLS.enter() {
        // What a panic leaves half done is behind a lock that is poisoned: no one sees it afterwards.
        Ok(_inside) => catch_unwind(AssertUnwindSafe(body)),
        Err(error) => Ok(Err(Failure::new(error.to_string()))),
    };
    let failure = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::fault(&*panic),
    };
    // The program's own function runs here, without any of our locks.
    let reported = catch_unwind(AssertUnwindSafe(|| {
        failure.reporter.tell(&format!("{name}: {}", failure.sentence));
    }));
    drop(reported);
    otherwise(failure.status)
}

/// Makes C functions of the library.
///
/// `fn NAME(arguments) { body }` answers a status; the body is an `Outcome`. `fn NAME(arguments) -> Type,
/// otherwise; { body }` answers a value, `otherwise` after a failure. How C comes by the name is in
/// [`exports`](crate::exports).
macro_rules! export {
    () => {};
    (
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $Argument:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[cfg_attr(not(versioned), unsafe(no_mangle))]
        #[cfg_attr(not(versioned), allow(unsafe_code, reason = "a name that nothing else has"))]
        #[allow(non_snake_case, reason = "the name that C knows")]
        pub extern "C" fn $name($($argument: $Argument),*) -> $crate::abi::TfLiteStatus {
            $crate::border::run(stringify!($name), |status| status, move || {
                let body = move || -> $crate::border::Outcome { $body };
                body().map(|()| $crate::abi::TfLiteStatus::Ok)
            })
        }
        $crate::border::export! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $Argument:ty),* $(,)?) -> $Value:ty, $otherwise:expr;
        $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[cfg_attr(not(versioned), unsafe(no_mangle))]
        #[cfg_attr(not(versioned), allow(unsafe_code, reason = "a name that nothing else has"))]
        #[allow(non_snake_case, reason = "the name that C knows")]
        pub extern "C" fn $name($($argument: $Argument),*) -> $Value {
            $crate::border::run(stringify!($name), |_| $otherwise, move || $body)
        }
        $crate::border::export! { $($rest)* }
    };
}

pub(crate) use export;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status_and_breaks_only_its_object() {
        let object = Mutex::new(1);
        let status = run(
            "name",
            |status| status,
            || {
                let _held = lock(&object)?;
                panic!("word {}", 1)
            },
        );
        assert_eq!(status, TfLiteStatus::Error);
        let failure = lock(&object).map(|_| ()).unwrap_err();
        assert_eq!(failure.sentence, "a fault of the library broke the object");
        let fault = Failure::fault(&"word 1");
        assert_eq!(fault.sentence, "a fault of the library, please report it: word 1");
        assert_eq!(run("name", |_| 7, || Ok(3)), 3);
    }
}
