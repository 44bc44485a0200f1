//! [`wait_any`]: sleeping until one of several queues has something.

use super::error::QueueError;
use super::event_flag::{self, LONGEST_SLEEP, NOT_EMPTY};
use super::sync::{self, EventWord};
use std::time::Duration;

/// The most that [`wait_any`] takes.
pub(crate) const MOST: usize = sync::MOST_WORDS;

/// A word, and the value that it had when nothing was there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Armed<'a> {
    word: &'a EventWord,
    value: u32,
}

impl<'a> Armed<'a> {
    pub(super) fn new(word: &'a EventWord, value: u32) -> Self {
        Self { word, value }
    }
}

/// Wakes a thread that sleeps in [`wait_any`], beside queues.
#[derive(Debug, Default)]
pub(crate) struct Bell(EventWord);

impl Bell {
    /// Wakes it, now or when it is about to sleep.
    pub(crate) fn ring(&self) {
        // Without success, whoever sleeps wakes a little later by itself.
        let _ = event_flag::wake(&self.0, NOT_EMPTY);
    }

    /// To sleep on; none if it was rung since the last time.
    pub(crate) fn arm(&self) -> Option<Armed<'_>> {
        event_flag::arm(&self.0, NOT_EMPTY).map(|value| Armed::new(&self.0, value))
    }
}

/// Whether the system can do it.
pub(crate) fn can_wait_any() -> bool {
    sync::can_wait_any()
}

/// Sleeps until one of these words has been changed or woken, for `longest` or half a second, or for
/// no reason.
///
/// # Errors
/// [`QueueError::System`]
pub(crate) fn wait_any(words: &[Armed<'_>], longest: Duration) -> Result<(), QueueError> {
    let words: Vec<_> = words.iter().map(|it| (it.word, it.value)).collect();
    sync::futex_wait_any(&words, longest.min(LONGEST_SLEEP))
}
