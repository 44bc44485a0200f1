//! [`Background`]: the threads on which asynchronous executions over a list of devices run.

use nnhal_hal::background::{self, Limits, NotRun};
use nnhal_hal::{Deadline, Priority};
use std::time::{Duration, Instant};

/// Runs the asynchronous executions over a list of devices, those of each priority on threads of
/// their own.
pub(crate) type Background = background::Background<Task>;

/// How many asynchronous executions of each priority compute or wait for a device at once, how many
/// more may wait for that or for their dependencies, and how long an idle thread stays.
pub(crate) const LIMITS: Limits =
    Limits { threads: 64, waiting: 100_000, idle: Duration::from_millis(500) };

/// None yet.
pub(crate) fn background(limits: Limits) -> Background {
    Background::new("nnhal-execution", limits)
}

/// What is to be done in the background; see [`background::Job`].
pub(crate) trait Work: Send + 'static {
    fn class(&self) -> Priority;
    fn deadline(&self) -> Option<Deadline>;
    fn deadline_after(&self, ready: Instant) -> Option<Deadline>;
    fn run(self: Box<Self>, ready: Instant);
    fn end(self: Box<Self>, why: NotRun);
}

/// Work whose type the list of devices does not know: executions are above it.
pub(crate) struct Task(Box<dyn Work>);

impl Task {
    pub(crate) fn new(work: impl Work) -> Self {
        Self(Box::new(work))
    }
}

impl background::Job for Task {
    type Class = Priority;

    fn class(&self) -> Priority {
        self.0.class()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.0.deadline()
    }

    fn deadline_after(&self, ready: Instant) -> Option<Deadline> {
        self.0.deadline_after(ready)
    }

    fn run(self, ready: Instant) {
        self.0.run(ready);
    }

    fn end(self, why: NotRun) {
        self.0.end(why);
    }
}
