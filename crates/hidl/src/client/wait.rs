//! [`channel`]: one value from whoever answers to whoever waits, or the news that none will come.

use crate::misbehaviour::Misbehaviour;
use nnhal_hal::{Cancellation, Error};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often someone who waits looks at the switch that cancels.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(10);

/// Two ends for one value.
pub(super) fn channel<T>() -> (Answer<T>, Wait<T>) {
    let shared = Arc::new(Shared { state: Mutex::new(State::Open), changed: Condvar::new() });
    (Answer(Arc::clone(&shared)), Wait(shared))
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    /// Nothing yet.
    Open,
    /// The answer, to be taken.
    Answered(T),
    /// There is nothing more to come.
    Closed,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, settled: State<T>) {
        let mut state = self.lock();
        // What comes second is dropped, outside the lock: a driver may have put anything into it.
        let late = if matches!(*state, State::Open) {
            *state = settled;
            None
        } else {
            Some(settled)
        };
        drop(state);
        self.changed.notify_all();
        drop(late);
    }
}

/// The end that a callback holds. Dropping it says that nothing will come.
pub(super) struct Answer<T>(Arc<Shared<T>>);

impl<T> Answer<T> {
    /// Gives the value; only the first counts.
    pub(super) fn give(&self, value: T) {
        self.0.settle(State::Answered(value));
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.0.settle(State::Closed);
    }
}

/// The end that waits.
pub(super) struct Wait<T>(Arc<Shared<T>>);

impl<T> Wait<T> {
    /// Waits for the value.
    ///
    /// # Errors
    /// [`Misbehaviour::NeverNotified`], [`Misbehaviour::NotInTime`], or that it was cancelled.
    pub(super) fn wait(
        self,
        method: &'static str,
        timeout: Duration,
        cancellation: Option<&Cancellation>,
    ) -> nnhal_hal::Result<T> {
        // A time so far away that the clock cannot say it never comes.
        let until = Instant::now().checked_add(timeout);
        let mut state = self.0.lock();
        loop {
            match std::mem::replace(&mut *state, State::Closed) {
                State::Answered(value) => return Ok(value),
                State::Closed => return Err(Misbehaviour::NeverNotified { method }.into()),
                State::Open => *state = State::Open,
            }
            if cancellation.is_some_and(Cancellation::is_cancelled) {
                return Err(Error::failure("cancelled"));
            }
            let remaining = until.map(|until| until.saturating_duration_since(Instant::now()));
            if remaining == Some(Duration::ZERO) {
                return Err(Misbehaviour::NotInTime { method, seconds: timeout.as_secs() }.into());
            }
            let interval = if cancellation.is_some() { CANCELLATION_INTERVAL } else { LONG };
            let interval = remaining.map_or(interval, |remaining| remaining.min(interval));
            let woken = self.0.changed.wait_timeout(state, interval);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Longer than anybody waits at a time.
const LONG: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const METHOD: &str = "execute";

    fn misbehaviour(error: &Error) -> &Misbehaviour {
        error.reason().unwrap()
    }

    #[test]
    fn the_first_answer_counts() {
        let (answer, wait) = channel();
        answer.give(1);
        answer.give(2);
        drop(answer);
        assert_eq!(wait.wait(METHOD, Duration::ZERO, None).unwrap(), 1);
    }

    #[test]
    fn an_answer_from_another_thread_wakes_who_waits() {
        let (answer, wait) = channel();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            answer.give(7);
        });
        assert_eq!(wait.wait(METHOD, Duration::MAX, None).unwrap(), 7);
        other.join().unwrap();
    }

    #[test]
    fn a_dropped_answer_ends_the_wait() {
        let (answer, wait) = channel::<()>();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            drop(answer);
        });
        let lost = wait.wait(METHOD, Duration::MAX, None).unwrap_err();
        assert_eq!(misbehaviour(&lost), &Misbehaviour::NeverNotified { method: METHOD });
        other.join().unwrap();
    }

    #[test]
    fn timeout_ends() {
        let (_answer, wait) = channel::<()>();
        let lost = wait.wait(METHOD, Duration::from_millis(20), None).unwrap_err();
        assert_eq!(misbehaviour(&lost), &Misbehaviour::NotInTime { method: METHOD, seconds: 0 });
    }

    #[test]
    fn who_waits_can_be_called_off() {
        let (_answer, wait) = channel::<()>();
        let cancellation = Cancellation::new();
        let switch = cancellation.clone();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            switch.cancel();
        });
        let lost = wait.wait(METHOD, Duration::MAX, Some(&cancellation)).unwrap_err();
        assert_eq!(lost.to_string(), "GENERAL_FAILURE: cancelled");
        other.join().unwrap();
    }
}
