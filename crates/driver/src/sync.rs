//! The pieces that threads agree with, from the standard library; or from `loom`, which tries the
//! orders in which threads can run: `RUSTFLAGS="--cfg loom" cargo test -p nnhal-driver --release
//! --lib schedule`.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
};

/// For how long work keeps its slot, in nanoseconds, though another client waits that is behind.
#[cfg(not(loom))]
pub(crate) const SLICE: u64 = 4_000_000;
/// Under loom there is no time: work gives way whenever it is asked.
#[cfg(loom)]
pub(crate) const SLICE: u64 = 0;

/// Nanoseconds since some moment.
#[cfg(not(loom))]
pub(crate) fn now() -> u64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let begin = BEGIN.get_or_init(std::time::Instant::now);
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Always the same, since every order must be the same when it is tried again.
#[cfg(loom)]
pub(crate) fn now() -> u64 {
    0
}
