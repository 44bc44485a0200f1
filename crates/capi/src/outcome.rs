//! What the inside of a C function answers: nothing, or a result code with a sentence.

use nnhal_runtime::{Error, ResultCode};
use std::sync::{Mutex, MutexGuard};

/// What the inside of every C function answers.
pub(crate) type Outcome<T = ()> = Result<T, Error>;

/// `ANEURALNETWORKS_NO_ERROR`
pub(crate) const NO_ERROR: i32 = 0;

/// A pointer is null that must not be.
pub(crate) fn null(argument: &str) -> Error {
    Error::new(ResultCode::UnexpectedNull, format!("{argument} is null"))
}

/// An argument has a wrong value.
pub(crate) fn bad_data(reason: impl Into<String>) -> Error {
    Error::new(ResultCode::BadData, reason.into())
}

/// The object is not in a state in which this can be called.
pub(crate) fn bad_state(reason: impl Into<String>) -> Error {
    Error::new(ResultCode::BadState, reason.into())
}

/// There is no memory to be had.
pub(crate) fn out_of_memory(reason: impl Into<String>) -> Error {
    Error::new(ResultCode::OutOfMemory, reason.into())
}

/// The inside of an object, for this thread alone. What a fault of the library left half done is
/// not touched again.
pub(crate) fn lock<T>(object: &Mutex<T>) -> Outcome<MutexGuard<'_, T>> {
    object.lock().map_err(|_| bad_state("a fault of the library broke the object"))
}

/// An index that C passes as `int32_t`: negative ones are as wrong as those that are too large.
pub(crate) fn index(index: i32) -> u32 {
    index.cast_unsigned()
}

/// The result code of any number, if it is one.
pub(crate) fn result_name(code: i32) -> &'static str {
    if code == NO_ERROR {
        return "NO_ERROR";
    }
    ResultCode::ALL.iter().find(|known| known.code() == code).map_or("UNKNOWN", |code| code.name())
}
