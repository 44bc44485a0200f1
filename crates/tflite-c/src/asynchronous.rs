//! `TfLiteBackendBuffer...`, `TfLiteSynchronization...`: a pointer of the program's in an object each.
//!
//! Asynchronous executions need a delegate of the program's, which this library does not call. So these
//! objects lead nowhere further.

use crate::border::export;
use crate::handle::{get, give, take};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

nnhal_c_boundary::opaque! {
    /// Memory of a backend (asynchronous executions).
    TfLiteBackendBuffer: Held, 6;
    /// A fence of a backend (asynchronous executions).
    TfLiteSynchronization: Held, 7;
}

/// What the program keeps here.
#[derive(Debug, Default)]
pub struct Held(AtomicPtr<c_void>);

export! {
    /// An object with nothing in it.
    fn TfLiteBackendBufferCreate() -> *mut TfLiteBackendBuffer, null_mut(); {
        give(Arc::new(Held::default()))
    }

    /// Deletes the object.
    fn TfLiteBackendBufferDelete(buffer: *mut TfLiteBackendBuffer) -> (), (); {
        take(buffer).map(drop)
    }

    /// Keeps a pointer.
    fn TfLiteBackendBufferSetPtr(buffer: *mut TfLiteBackendBuffer, pointer: *mut c_void) -> (), (); {
        get(buffer).map(|held| held.0.store(pointer, Ordering::Relaxed))
    }

    /// The pointer that was kept.
    fn TfLiteBackendBufferGetPtr(buffer: *const TfLiteBackendBuffer) -> *mut c_void, null_mut(); {
        get(buffer).map(|held| held.0.load(Ordering::Relaxed))
    }

    /// An object with nothing in it.
    fn TfLiteSynchronizationCreate() -> *mut TfLiteSynchronization, null_mut(); {
        give(Arc::new(Held::default()))
    }

    /// Deletes the object.
    fn TfLiteSynchronizationDelete(fence: *mut TfLiteSynchronization) -> (), (); {
        take(fence).map(drop)
    }

    /// Keeps a pointer.
    fn TfLiteSynchronizationSetPtr(fence: *mut TfLiteSynchronization, pointer: *mut c_void) -> (), (); {
        get(fence).map(|held| held.0.store(pointer, Ordering::Relaxed))
    }

    /// The pointer that was kept.
    fn TfLiteSynchronizationGetPtr(fence: *const TfLiteSynchronization) -> *mut c_void, null_mut(); {
        get(fence).map(|held| held.0.load(Ordering::Relaxed))
    }
}
