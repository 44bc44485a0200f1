//! The event flag of a queue: a word that both sides wait on by futex, with a bit for each.
//!
//! As libfmq's `EventFlag` does it, so that its users can be on the other side: to wake is to set
//! bits and to wake by futex those who wait for them, unless the bits were all set already; to wait
//! is to clear one's bits and, if none was set, to sleep by futex. A bit that is set stands for a
//! wake-up that no one has slept for yet.

use super::error::QueueError;
use super::shared::Shared;
use super::sync::{AtomicBool, EventWord, Ordering, futex_wait, futex_wake};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// There is room again: a writer may go on.
pub(super) const NOT_FULL: NonZeroU32 = NonZeroU32::new(1).unwrap();
/// There is something: a reader may go on.
pub(super) const NOT_EMPTY: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// The longest sleep. A hostile other side can swallow a wake-up, by writing the word back at the
/// right moment; then whoever waits sees at the latest after this time that it was interrupted.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// Wakes all who wait for this bit, if it was not set already.
pub(super) fn wake(flag: &EventWord, bit: NonZeroU32) -> Result<(), QueueError> {
    if flag.fetch_or(bit.get(), Ordering::SeqCst) & bit.get() == 0 {
        futex_wake(flag, bit)?;
    }
    Ok(())
}

/// Clears this bit, so that the next wake-up changes the word. The value that the word then has, for
/// whoever sleeps as long as it has it; none if the bit was set, which is a wake-up.
pub(super) fn arm(flag: &EventWord, bit: NonZeroU32) -> Option<u32> {
    let before = flag.fetch_and(!bit.get(), Ordering::SeqCst);
    (before & bit.get() == 0).then_some(before)
}

/// Sleeps until somebody wakes those who wait for this bit, until `deadline`, or for a while: the
/// caller looks for itself why it woke.
fn sleep(flag: &EventWord, bit: NonZeroU32, deadline: Option<Instant>) -> Result<(), QueueError> {
    let Some(before) = arm(flag, bit) else { return Ok(()) };
    let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    futex_wait(flag, before, bit, remaining.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP))
}

/// Ends the waiting of one end of a queue from outside: because the process on the other side died,
/// say, or because no one is interested any more. Clones are the same switch.
///
/// Throwing it never blocks. It stays thrown: whoever waits later does not wait.
#[derive(Debug, Clone)]
pub struct Interrupt {
    thrown: Arc<AtomicBool>,
    shared: Arc<Shared>,
    bit: NonZeroU32,
}

impl Interrupt {
    pub(super) fn new(shared: Arc<Shared>, bit: NonZeroU32) -> Self {
        Self { thrown: Arc::new(AtomicBool::new(false)), shared, bit }
    }

    /// Wakes whoever waits at this end of the queue with [`QueueError::Interrupted`].
    pub fn throw(&self) {
        self.thrown.store(true, Ordering::SeqCst);
        if let Some(flag) = self.shared.event_flag() {
            // The bit may be set by somebody hostile, while somebody sleeps all the same.
            flag.fetch_or(self.bit.get(), Ordering::SeqCst);
            // Without success, whoever sleeps wakes a little later by itself.
            let _ = futex_wake(flag, self.bit);
        }
    }

    /// Whether it was thrown.
    pub fn is_thrown(&self) -> bool {
        self.thrown.load(Ordering::SeqCst)
    }

    /// Sleeps as [`sleep`] does.
    ///
    /// # Errors
    /// [`QueueError::Interrupted`], [`QueueError::TimedOut`], [`QueueError::NoEventFlag`]
    pub(super) fn sleep(&self, deadline: Option<Instant>) -> Result<(), QueueError> {
        let flag = self.shared.event_flag().ok_or(QueueError::NoEventFlag)?;
        if self.is_thrown() {
            return Err(QueueError::Interrupted);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(QueueError::TimedOut);
        }
        sleep(flag, self.bit, deadline)
    }
}
