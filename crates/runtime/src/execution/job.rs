//! [`Job`]: an execution that goes on in the background, behind its dependencies or none.

use super::state::{Failure, Outcome, Times};
use super::{Arguments, Execution};
use crate::background::Work;
use crate::error::{Error, ResultCode};
use crate::event::Completion;
use nnhal_hal::background::NotRun;
use nnhal_hal::{Deadline, ErrorStatus, FenceSignal, Hints, Priority, Timing};
use std::sync::{Arc, Mutex, PoisonError};
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
    pub(super) ended_by: EndedBy,
}

/// Who ends an asynchronous execution.
pub(super) enum EndedBy {
    /// The thread that computes it.
    ItsThread(Arc<Completion>),
    /// Whoever waits for its event first.
    ItsEvent(BehindDependencies),
}

/// What an execution with dependencies has beside.
pub(super) struct BehindDependencies {
    /// From when the last dependency has ended.
    pub(super) timeout: Option<Duration>,
    pub(super) called: Instant,
    pub(super) outcome: Arc<LateOutcome>,
    pub(super) signal: FenceSignal,
}

/// What came of an execution whose event no one has waited for yet.
#[derive(Default)]
pub(super) struct LateOutcome(Mutex<Option<Result<Outcome, Failure>>>);

impl LateOutcome {
    fn keep(&self, outcome: Result<Outcome, Failure>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    /// What came of it, given what its fence says.
    pub(super) fn take(&self, signalled: Result<(), Error>) -> Result<Outcome, Failure> {
        let outcome = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome.unwrap_or_else(|| {
            let error = signalled.err();
            Err(error.unwrap_or_else(|| Error::failed("the execution was given up")).into())
        })
    }
}

impl Work for Job {
    fn class(&self) -> Priority {
        self.execution.compilation().priority()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.started.deadline
    }

    fn deadline_after(&self, ready: Instant) -> Option<Deadline> {
        let timeout = self.behind().and_then(|behind| behind.timeout);
        let after = timeout.map(|it| Deadline::after(it.saturating_sub(ready.elapsed())));
        self.started.deadline.into_iter().chain(after).min()
    }

    fn run(mut self: Box<Self>, ready: Instant) {
        self.started.deadline = self.deadline_after(ready);
        let mut outcome = self.execution.compute_now(&self.started, &[]);
        if let Some(behind) = self.behind()
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
    fn behind(&self) -> Option<&BehindDependencies> {
        match &self.ended_by {
            EndedBy::ItsThread(_) => None,
            EndedBy::ItsEvent(behind) => Some(behind),
        }
    }

    /// Says what came of it.
    fn conclude(self, outcome: Result<Outcome, Failure>) {
        let Self { execution, started, ended_by } = self;
        match ended_by {
            EndedBy::ItsThread(completion) => {
                let result = execution.finish(outcome);
                // Before it is reported: what they hold may be the caller's.
                drop((execution, started));
                completion.complete(result);
            }
            EndedBy::ItsEvent(BehindDependencies { outcome: place, signal, .. }) => {
                drop((execution, started));
                let error = outcome.as_ref().err().map(|failure| failure.error.clone());
                place.keep(outcome);
                match error {
                    None => signal.signal(),
                    Some(error) => {
                        let status = status_of(error.code());
                        signal.fail(nnhal_hal::Error::new(status, error));
                    }
                }
            }
        }
    }
}

/// What a result code is called below.
fn status_of(code: ResultCode) -> ErrorStatus {
    if code == ResultCode::DeadObject {
        return ErrorStatus::DeviceUnavailable;
    }
    let found = ErrorStatus::ALL
        .iter()
        .copied()
        .find(|status| *status != ErrorStatus::None && ResultCode::from(*status) == code);
    found.unwrap_or(ErrorStatus::GeneralFailure)
}
