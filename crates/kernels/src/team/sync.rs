//! The pieces that threads agree with, from the standard library; or from `loom`, which tries the
//! orders in which threads can run: `RUSTFLAGS="--cfg loom" cargo test -p nnhal-kernels --release
//! --lib all_orders`.

#[cfg(loom)]
pub(super) use loom::{
    cell::UnsafeCell,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle, Thread},
};
#[cfg(not(loom))]
pub(super) use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle, Thread},
};

/// A value that its users take turns at, as they agree elsewhere.
#[cfg(not(loom))]
#[derive(Debug)]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(super) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    pub(super) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// What a thread does between two looks at something that another thread changes soon.
pub(super) fn pause() {
    #[cfg(loom)]
    thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}
