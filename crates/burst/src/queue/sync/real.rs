//! What queues are made of outside of tests.

use crate::queue::error::QueueError;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::num::NonZeroU32;
use std::time::Duration;

pub(in crate::queue) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A word of the ring. Whoever is honest reads it only after it was written and the counter said
/// so; it is atomic for the sake of those who are not.
pub(in crate::queue) type RingWord = AtomicU64;

/// The word of the event flag.
pub(in crate::queue) type EventWord = AtomicU32;

/// Wakes all who wait at the word for one of the bits. The futex is not private: the other side may
/// be another process.
pub(in crate::queue) fn futex_wake(word: &EventWord, bits: NonZeroU32) -> Result<(), QueueError> {
    let all = i32::MAX.cast_unsigned();
    futex::wake_bitset(word, Flags::empty(), all, bits).map_err(QueueError::system("futex"))?;
    Ok(())
}

/// Sleeps if the word still has this value, until somebody wakes one of the bits, for less than a
/// second, or for no reason.
pub(in crate::queue) fn futex_wait(
    word: &EventWord,
    value: u32,
    bits: NonZeroU32,
    longest: Duration,
) -> Result<(), QueueError> {
    match futex::wait_bitset(word, Flags::empty(), value, Some(&after(longest)), bits) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
        Err(error) => Err(QueueError::system("futex")(error)),
    }
}

/// The most words that [`futex_wait_any`] takes (`FUTEX_WAITV_MAX`).
pub(in crate::queue) const MOST_WORDS: usize = 128;

/// Whether the system has [`futex_wait_any`]: Linux 5.16 and newer, unless it is forbidden.
pub(in crate::queue) fn can_wait_any() -> bool {
    let none = futex::waitv(&[], WaitvFlags::empty(), None, ClockId::Monotonic);
    matches!(none, Err(Errno::INVAL))
}

/// Sleeps if all words still have these values, until somebody wakes any bit of one of them, for less
/// than a second, or for no reason.
pub(in crate::queue) fn futex_wait_any(
    words: &[(&EventWord, u32)],
    longest: Duration,
) -> Result<(), QueueError> {
    let of_word = |(word, value): &(&EventWord, u32)| {
        let mut wait = Wait::new();
        wait.val = u64::from(*value);
        wait.uaddr = WaitPtr::new(word.as_ptr().cast());
        wait.flags = WaitFlags::SIZE_U32;
        wait
    };
    let words: Vec<Wait> = words.iter().map(of_word).collect();
    let until = after(longest);
    match futex::waitv(&words, WaitvFlags::empty(), Some(&until), ClockId::Monotonic) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
        Err(error) => Err(QueueError::system("futex_waitv")(error)),
    }
}

/// A point of the steady clock.
fn after(duration: Duration) -> Timespec {
    let mut time = clock_gettime(ClockId::Monotonic);
    // Less than a second.
    time.tv_nsec += i64::from(duration.subsec_nanos());
    time.tv_sec += time.tv_nsec / 1_000_000_000;
    time.tv_nsec %= 1_000_000_000;
    time
}
