//! What queues are made of under `loom`. It is stricter than what it stands for: words of the ring
//! are no atomics, so a read that the counters do not order after its write is an error even if the
//! value is right; and no one who sleeps wakes by itself, so a lost wake-up never ends.

#![allow(unsafe_code)]

use crate::queue::error::QueueError;
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use std::num::NonZeroU32;
use std::time::Duration;

pub(in crate::queue) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A word of the ring. Loom ends the test when two threads access it with nothing that puts one
/// before the other.
#[derive(Debug, Default)]
pub(in crate::queue) struct RingWord(UnsafeCell<u64>);

// SAFETY: loom runs one thread at a time and refuses accesses that would race.
unsafe impl Sync for RingWord {}

impl RingWord {
    pub(in crate::queue) fn load(&self, _order: Ordering) -> u64 {
        // SAFETY: the pointer is valid, and loom refuses a read that a write could meet.
        self.0.with(|word| unsafe { *word })
    }

    pub(in crate::queue) fn store(&self, value: u64, _order: Ordering) {
        // SAFETY: the pointer is valid, and loom refuses a write that another access could meet.
        self.0.with_mut(|word| unsafe { *word = value });
    }
}

/// The word of the event flag, and what the system keeps of those who wait at it.
#[derive(Debug)]
pub(in crate::queue) struct EventWord {
    word: AtomicU32,
    /// How often each bit was woken. The system's lock of a futex: the word is compared, and who
    /// sleeps is found, under it.
    woken: Mutex<[u32; 2]>,
    changed: Condvar,
}

impl Default for EventWord {
    fn default() -> Self {
        Self { word: AtomicU32::new(0), woken: Mutex::new([0; 2]), changed: Condvar::new() }
    }
}

impl EventWord {
    pub(in crate::queue) fn fetch_or(&self, bits: u32, order: Ordering) -> u32 {
        self.word.fetch_or(bits, order)
    }

    pub(in crate::queue) fn fetch_and(&self, bits: u32, order: Ordering) -> u32 {
        self.word.fetch_and(bits, order)
    }
}

/// Which of the two bits; each call names one.
fn number_of(bit: NonZeroU32) -> usize {
    bit.trailing_zeros() as usize
}

pub(in crate::queue) fn futex_wake(word: &EventWord, bit: NonZeroU32) -> Result<(), QueueError> {
    word.woken.lock().unwrap()[number_of(bit)] += 1;
    word.changed.notify_all();
    Ok(())
}

pub(in crate::queue) fn futex_wait(
    word: &EventWord,
    value: u32,
    bit: NonZeroU32,
    _longest: Duration,
) -> Result<(), QueueError> {
    let mut woken = word.woken.lock().unwrap();
    if word.word.load(Ordering::Relaxed) != value {
        return Ok(());
    }
    let before = woken[number_of(bit)];
    while woken[number_of(bit)] == before {
        woken = word.changed.wait(woken).unwrap();
    }
    Ok(())
}

/// As of the system.
pub(in crate::queue) const MOST_WORDS: usize = 128;

/// Not modelled: each end sleeps for itself.
pub(in crate::queue) fn can_wait_any() -> bool {
    false
}

pub(in crate::queue) fn futex_wait_any(
    _words: &[(&EventWord, u32)],
    _longest: Duration,
) -> Result<(), QueueError> {
    Err(QueueError::system("futex_waitv")(rustix::io::Errno::NOSYS))
}
