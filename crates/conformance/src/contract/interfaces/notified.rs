//! [`Notified`]: a callback that writes down what it is notified of.

use super::super::Violation;
use nnhal_hidl::v1_2::{OutputShape, Timing};
use nnhal_hidl::{Return, v1_0, v1_2, v1_3};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For how long the first notification is waited for.
const TIMEOUT: Duration = Duration::from_secs(20);
/// For how long a second one is waited for, while the driver keeps the callback.
const SUSPICION: Duration = Duration::from_millis(200);

/// What a driver reported of an execution.
pub(super) struct Ended {
    /// As a number.
    pub(super) status: i32,
    /// Not there if 1.0's method reported it.
    pub(super) details: Option<(Vec<OutputShape>, Timing)>,
}

/// A callback of every version that writes down what it is notified of.
pub(super) struct Notified<T> {
    notified: Mutex<Vec<T>>,
    changed: Condvar,
    /// Looks at something in the moment of the first notification.
    witness: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl<T> Notified<T> {
    pub(super) fn new() -> Arc<Self> {
        Self::with_witness(|| {})
    }

    pub(super) fn with_witness(witness: impl FnOnce() + Send + 'static) -> Arc<Self> {
        let witness = Mutex::new(Some(Box::new(witness) as _));
        Arc::new(Self { notified: Mutex::default(), changed: Condvar::new(), witness })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.notified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, what: T) -> Return<()> {
        let witness = self.witness.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(witness) = witness {
            witness();
        }
        self.lock().push(what);
        self.changed.notify_all();
        Ok(())
    }

    /// The only notification (contract: CB-1). A driver that has let go of the callback
    /// cannot tell anything more; one that keeps it is given a little time to.
    pub(super) fn only(self: Arc<Self>) -> Result<T, Violation> {
        self.wait(TIMEOUT, |notified| notified == 1);
        self.wait(SUSPICION, |notified| notified > 1);
        let mut notified = self.lock();
        match (notified.len(), notified.pop()) {
            (1, Some(notified)) => Ok(notified),
            (0, _) if Arc::strong_count(&self) == 1 => {
                Err(Violation("CB-1: the driver lets go of the callback and never tells it".into()))
            }
            (0, _) => Err(Violation(format!("CB-1: nothing is reported within {TIMEOUT:?}"))),
            (times, _) => Err(Violation(format!("CB-1: the callback is notified {times} times"))),
        }
    }

    /// Waits until it has been notified often enough, or cannot be notified any more, or for so long.
    fn wait(self: &Arc<Self>, longest: Duration, is_enough: impl Fn(usize) -> bool) {
        let begin = Instant::now();
        let mut notified = self.lock();
        while !is_enough(notified.len()) && begin.elapsed() < longest {
            // In this order: who lets go may have reported before.
            if Arc::strong_count(self) == 1 {
                return;
            }
            let woken = self.changed.wait_timeout(notified, Duration::from_millis(1));
            notified = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl v1_0::IExecutionCallback for Notified<Ended> {
    fn notify(&self, status: i32) -> Return<()> {
        self.put(Ended { status, details: None })
    }
}

impl v1_2::IExecutionCallback for Notified<Ended> {
    fn notify_1_2(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        self.put(Ended { status, details: Some((shapes.to_vec(), timing)) })
    }
}

impl v1_3::IExecutionCallback for Notified<Ended> {
    fn notify_1_3(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        self.put(Ended { status, details: Some((shapes.to_vec(), timing)) })
    }
}
