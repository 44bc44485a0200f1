//! [`Observer`]: is notified of executions that have ended.

use super::Execution;
use crate::error::Result;
use std::time::{Duration, Instant};

/// How an execution was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Start {
    /// [`Execution::compute`]
    Synchronous,
    /// [`Execution::start_compute`]
    Asynchronous,
    /// [`Execution::burst_compute`]
    Burst,
    /// [`Execution::start_compute_with_dependencies`]
    Fenced,
}

/// Is notified of executions that have ended. One that could not be started because it goes on or has
/// ended before has not; one that lacks an argument has.
pub trait Observer: Send + Sync {
    /// Whether there is interest in an execution that starts now.
    fn is_interested(&self) -> bool;

    /// An execution has ended in which there was interest. Called before anybody learns of it who waits
    /// for it, on the thread that computed it; if it was behind dependencies, on the one that waited for
    /// its event first. `elapsed` is how long that took since it was started.
    fn ended(&self, execution: &Execution, start: Start, elapsed: Duration, result: &Result<()>);
}

/// An execution that its observer is to be notified of.
#[derive(Clone, Copy)]
pub(super) struct Observed {
    start: Start,
    began: Instant,
}

impl Observed {
    /// One that starts now, if there is interest in it.
    pub(super) fn begin(observer: Option<&dyn Observer>, start: Start) -> Option<Self> {
        observer.filter(|it| it.is_interested()).map(|_| Self { start, began: Instant::now() })
    }

    pub(super) fn end(self, observer: &dyn Observer, execution: &Execution, result: &Result<()>) {
        observer.ended(execution, self.start, self.began.elapsed(), result);
    }
}
