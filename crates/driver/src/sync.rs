//! The pieces that threads agree with, from the standard library; or from `loom`, which tries the
//! orders in which threads can run: `RUSTFLAGS="--cfg loom" cargo test -p nnhal-driver --release
//! --lib schedule`.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, Ordering},
};
