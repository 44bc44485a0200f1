//! The pieces that the two ends of a queue agree with: the standard library's atomics and the
//! system's futex; or, of the same names, those of `loom`, which tries the orders in which threads
//! can run and the values that loads can see:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p nnhal-burst --lib all_orders`.

#[cfg(loom)]
#[path = "sync/modelled.rs"]
mod pieces;
#[cfg(not(loom))]
#[path = "sync/real.rs"]
mod pieces;

pub(super) use pieces::{
    AtomicBool, AtomicU64, EventWord, MOST_WORDS, Ordering, RingWord, can_wait_any, futex_wait,
    futex_wait_any, futex_wake,
};
