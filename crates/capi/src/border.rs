//! The border itself: how a function of Rust becomes a function of C.
//!
//! [`export!`] writes the C function around a body that answers [`Outcome`]. No panic crosses, and
//! why a call failed is kept for [`last_error`](crate::last_error).

use crate::last_error;
use crate::outcome::{NO_ERROR, Outcome};
use nnhal_runtime::{Error, ResultCode};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the inside of a C function that answers a result code.
pub(crate) fn result_code(name: &str, body: impl FnOnce() -> Outcome) -> i32 {
    // What a panic leaves half done is behind a lock that is poisoned: no one sees it afterwards.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => NO_ERROR,
        Ok(Err(error)) => {
            last_error::keep(name, &error);
            error.code().code()
        }
        Err(panic) => {
            let error = fault(&*panic);
            last_error::keep(name, &error);
            error.code().code()
        }
    }
}

/// Runs the inside of a C function that answers something else; `otherwise` after a panic.
pub(crate) fn value<T>(name: &str, otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        last_error::keep(name, &fault(&*panic));
        otherwise
    })
}

fn fault(panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words");
    Error::new(ResultCode::OpFailed, format!("a fault of the library, please report it: {text}"))
}

/// Makes C functions of the library.
///
/// `fn NAME(arguments) { body }` answers a result code; the body is an `Outcome`. `fn NAME(arguments)
/// -> Type, otherwise; { body }` answers a value, `otherwise` after a panic. How C comes by the name
/// is in [`exports`](crate::exports).
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
        pub extern "C" fn $name($($argument: $Argument),*) -> i32 {
            $crate::border::result_code(stringify!($name), move || $body)
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
            $crate::border::value(stringify!($name), $otherwise, move || $body)
        }
        $crate::border::export! { $($rest)* }
    };
}

/// Makes functions as [`export!`] does that C reaches by the structure of the support library only.
macro_rules! inner {
    () => {};
    (
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $Argument:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the name that C knows")]
        pub extern "C" fn $name($($argument: $Argument),*) -> i32 {
            $crate::border::result_code(stringify!($name), move || $body)
        }
        $crate::border::inner! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $Argument:ty),* $(,)?) -> $Value:ty, $otherwise:expr;
        $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the name that C knows")]
        pub extern "C" fn $name($($argument: $Argument),*) -> $Value {
            $crate::border::value(stringify!($name), $otherwise, move || $body)
        }
        $crate::border::inner! { $($rest)* }
    };
}

pub(crate) use {export, inner};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::bad_data;
    use std::ffi::CStr;

    fn last() -> String {
        #[allow(unsafe_code, reason = "as C reads it")]
        // SAFETY: a string that ends, of this thread, which does not fail meanwhile.
        let text = unsafe { CStr::from_ptr(last_error::pointer()) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_is_a_result_code() {
        let code = result_code("name", || panic!("word {}", 1));
        assert_eq!(code, ResultCode::OpFailed.code());
        assert_eq!(last(), "name: OP_FAILED: a fault of the library, please report it: word 1");
        assert_eq!(value("other", 7, || panic!("word")), 7);
        assert!(last().starts_with("other: OP_FAILED"), "{}", last());
    }

    #[test]
    fn a_failure_is_its_code_and_success_keeps_the_last_one() {
        assert_eq!(result_code("name", || Err(bad_data("a\0b"))), 4);
        assert_eq!(last(), "name: BAD_DATA: a b");
        assert_eq!(result_code("name", || Ok(())), 0);
        assert_eq!(last(), "name: BAD_DATA: a b");
    }
}
