//! [`Job`]: an execution that goes on in the background, behind its dependencies or none.

use super::state::{Failure, Outcome, Times};
use super::{Arguments, Execution};
use crate::background::Work;
use crate::error::{Error, ResultCode};
use crate::event::Completion;
use nnhal_hal::background::NotRun;
use nnhal_hal::{Deadline, ErrorStatus, FenceSignal, Hints, Priority, Timing};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an execution goes by once it has started.
pub(super) struct Started {
    pub(super) arguments: Arc<Arguments>,
    pub(super) measure: bool,
    pub(super) deadline: Option<Deadline>,
    pub(super) loop_timeout: Option<Duration>,
    pub(super) attributes: Arc<Hints>,
}

/// An asynchronous execution.
pub(crate) struct Job {
    pub(super) execution: Execution,
    pub(super) started: Started,
    pub(super) behind: Option<BehindDependencies>,
    pub(super) completion: Arc<Completion>,
}

/// What an execution with dependencies has beside.
pub(super) struct BehindDependencies {
    /// From when the last dependency has ended.
    pub(super) timeout: Option<Duration>,
    pub(super) called: Instant,
    pub(super) signal: FenceSignal,
}

impl Work for Job {
    fn class(&self) -> Priority {
        self.execution.compilation().priority()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.started.deadline
    }

    fn deadline_after(&self, ready: Instant) -> Option<Deadline> {
        let timeout = self.behind.as_ref().and_then(|behind| behind.timeout);
        let after = timeout.map(|it| Deadline::after(it.saturating_sub(ready.elapsed())));
        self.started.deadline.into_iter().chain(after).min()
    }

    fn run(mut self: Box<Self>, ready: Instant) {
        self.started.deadline = self.deadline_after(ready);
        let mut outcome = self.execution.compute_now(&self.started, &[]);
        if let Some(behind) = &self.behind
            && let Ok(Outcome { times: Times::Known(launched, fenced), .. }) = &mut outcome
            && self.started.measure
        {
            let on_device = launched.time_on_device;
            let timing =
                |in_driver| Timing { time_on_device: on_device, time_in_driver: Some(in_driver) };
            (*launched, *fenced) = (timing(behind.called.elapsed()), timing(ready.elapsed()));
        }
        self.conclude(outcome);
    }

    fn end(self: Box<Self>, why: NotRun) {
        self.conclude(Err(Error::from(nnhal_hal::Error::from(why)).into()));
    }
}

impl Job {
    /// Says what came of it.
    pub(super) fn conclude(self, outcome: Result<Outcome, Failure>) {
        let Self { execution, started, behind, completion } = self;
        let result = execution.lock().finish(outcome);
        // Before it is reported: what they hold may be the caller's.
        drop((execution, started));
        completion.complete(result.clone());
        match (behind, result) {
            (None, _) => {}
            (Some(behind), Ok(())) => behind.signal.signal(),
            (Some(behind), Err(error)) => {
                let status = status_of(error.code());
                behind.signal.fail(nnhal_hal::Error::new(status, error));
            }
        }
    }
}

/// What a result code is called below.
fn status_of(code: ResultCode) -> ErrorStatus {
    let found = ErrorStatus::ALL
        .iter()
        .copied()
        .find(|status| *status != ErrorStatus::None && ResultCode::from(*status) == code);
    found.unwrap_or(ErrorStatus::GeneralFailure)
}
