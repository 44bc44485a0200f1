//! [`Profile`]: the steps of a plan, and how long each takes.

use crate::error::Result;
use crate::options::RunOptions;
use crate::prepared::origin;
use crate::session::{Input, Session};
use nnhal_driver::{Observer, OperationPlace, PlannedStep};
use nnhal_tflite::OperatorOrigin;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A step of a plan, and how long it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfiledStep {
    /// What the device does.
    pub step: PlannedStep,
    /// The operator of the file that it comes from.
    pub origin: Option<OperatorOrigin>,
    /// The median of the runs; `None` if the device did not say.
    pub time: Option<Duration>,
}

/// The steps of a plan with their times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// In the order in which they run.
    pub steps: Vec<ProfiledStep>,
}

impl Profile {
    /// All steps together.
    pub fn total(&self) -> Duration {
        self.steps.iter().filter_map(|step| step.time).sum()
    }
}

/// The durations of each step.
#[derive(Default)]
struct Stopwatch(Mutex<HashMap<OperationPlace, Vec<Duration>>>);

impl Observer for Stopwatch {
    fn duration(&self, place: OperationPlace, duration: Duration) {
        let mut durations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        durations.entry(place).or_default().push(duration);
    }
}

impl Session {
    /// The steps of a run, as far as they are settled: a model whose lengths are open has some once it
    /// has been run.
    ///
    /// # Errors
    /// [`Error::Opaque`](crate::Error::Opaque): the device does not show them.
    pub fn plan(&self) -> Result<Vec<PlannedStep>> {
        Ok(self.prepared().driver()?.plan())
    }

    /// The operator of the file that an operation comes from.
    pub fn origin(&self, place: OperationPlace) -> Option<OperatorOrigin> {
        origin(self.model(), place)
    }

    /// Runs the model `warmup` and then `runs` times, and gives the steps with their median times.
    ///
    /// # Errors
    /// As [`Session::run_observed`].
    pub fn profile<'a, I: Into<Input<'a>>>(
        &self,
        inputs: impl IntoIterator<Item = I>,
        warmup: usize,
        runs: usize,
    ) -> Result<Profile> {
        let inputs: Vec<Input<'a>> = inputs.into_iter().map(Into::into).collect();
        let stopwatch = Stopwatch::default();
        for run in 0..warmup + runs.max(1) {
            if run == warmup {
                stopwatch.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            self.run_observed(&RunOptions::default(), inputs.iter().cloned(), &stopwatch)?;
        }
        let mut durations = stopwatch.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut median = |place: OperationPlace| {
            let times = durations.get_mut(&place)?;
            times.sort_unstable();
            times.get(times.len() / 2).copied()
        };
        let steps = self.plan()?.into_iter().map(|step| ProfiledStep {
            origin: self.origin(step.place),
            time: median(step.place),
            step,
        });
        Ok(Profile { steps: steps.collect() })
    }
}
