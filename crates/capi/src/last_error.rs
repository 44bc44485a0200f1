//! Why the last call of this thread failed, in words.
//!
//! The C API only has codes. The sentence behind one is kept here for `nnhal_lastError`, and
//! logged as an error, which the environment variable `NNHAL_LOG` makes visible.

use nnhal_c_boundary::log;
use nnhal_runtime::Error;
use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps a failure for the person who asks.
pub(crate) fn keep(function: &str, error: &Error) {
    let sentence = format!("{function}: {error}");
    // A setting that makes no sense is said by whoever asks for devices.
    let _ = log::begin();
    tracing::error!(target: "neuralnetworks", "{sentence}");
    let sentence = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
    // While a thread ends there is no one left to ask.
    let _ = LAST.try_with(|last| *last.borrow_mut() = sentence);
}

/// The sentence of this thread's last failure, empty if there was none; valid until the thread's
/// next failure.
pub(crate) fn pointer() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
