//! [`Untaken`]: answers of a connection that its client has not taken yet, and since when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client that sends or takes more slowly than this, in bytes a second, is cut off when its timeout is over.
pub(super) const SLOWEST: u64 = 16 << 10;

/// Bytes of an answer by which it is seen to move.
pub(super) const PIECE: usize = 64 << 10;

/// How often a connection is looked at within the client's timeout.
const LOOKS: u32 = 4;

/// The time that the slowest client needs for this many bytes.
pub(super) fn slowest_time(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / SLOWEST)
}

/// Answers of a connection that its client has not taken yet, and since when. HTTP/2 sends a client no more than it has asked for,
/// so that a connection can be alive and take nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Untaken(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    parts: BTreeMap<u64, Part>,
    next: u64,
}

/// A part of an answer.
#[derive(Debug)]
struct Part {
    since: Instant,
    moved: usize,
    left: usize,
}

/// A part of an answer that is not taken yet, until it is dropped.
#[derive(Debug)]
pub(super) struct Taking {
    all: Untaken,
    number: u64,
}

impl Untaken {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the client is expected to take this many bytes.
    pub(super) fn begin(&self, left: usize) -> Taking {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.parts.insert(number, Part { since: Instant::now(), moved: 0, left });
        drop(state);
        Taking { all: self.clone(), number }
    }

    /// Whether one of the answers is not taken in time: after the timeout a client takes at least [`SLOWEST`] bytes a second, of
    /// several answers together.
    fn is_late(&self, timeout: Duration) -> bool {
        let state = self.lock();
        let count = state.parts.len() as u64;
        state.parts.values().any(|part| {
            // The piece that is on its way is seen when it has been taken.
            let moved = (part.moved as u64).saturating_mul(count);
            let more = slowest_time(moved.saturating_add(part.left.min(PIECE) as u64));
            part.since.elapsed() > timeout.saturating_add(more)
        })
    }

    /// Waits until one of the answers is not taken in time.
    pub(super) async fn stalled(&self, timeout: Duration) {
        let pause = (timeout / LOOKS).max(Duration::from_millis(10));
        while !self.is_late(timeout) {
            tokio::time::sleep(pause).await;
        }
    }
}

impl Taking {
    /// The client has taken this many bytes.
    pub(super) fn moved(&self, bytes: usize) {
        if let Some(part) = self.all.lock().parts.get_mut(&self.number) {
            part.moved = part.moved.saturating_add(bytes);
            part.left = part.left.saturating_sub(bytes);
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.all.lock().parts.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_taken_slowly_enough_is_late() {
        const TIMEOUT: Duration = Duration::from_millis(40);
        let all = Untaken::default();
        assert!(!all.is_late(Duration::ZERO), "there is none");
        let large = all.begin(1 << 30);
        let small = all.begin(16);
        std::thread::sleep(TIMEOUT * 2);
        assert!(all.is_late(TIMEOUT), "the small one does not move");
        drop(small);
        assert!(!all.is_late(TIMEOUT), "a piece of the large one may be on its way");
        large.moved(1 << 20);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!all.is_late(Duration::ZERO), "it moves");
        drop(large);
        assert!(!all.is_late(Duration::ZERO));
    }
}
