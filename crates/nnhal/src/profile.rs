//! [`Profile`]: the steps of a plan, and how long each takes.

use crate::error::Result;
use crate::options::RunOptions;
use crate::prepared::origin;
use crate::session::{Input, Session};
use nnhal_driver::{ObservedOutput, Observer, OperationPlace, PlannedStep};
use nnhal_tflite::OperatorOrigin;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
struct Stopwatch(Mutex<Times>);

#[derive(Default)]
struct Times {
    durations: HashMap<OperationPlace, Vec<Duration>>,
    /// In which steps came first.
    order: Vec<OperationPlace>,
    /// Lengths of the first output, of operations that no plan has.
    dimensions: HashMap<OperationPlace, Vec<u32>>,
}

impl Stopwatch {
    fn lock(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Stopwatch {
    fn output(&self, output: &ObservedOutput<'_>) {
        if output.output == 0 {
            self.lock().dimensions.insert(output.place, output.dimensions.to_vec());
        }
    }

    fn duration(&self, place: OperationPlace, duration: Duration) {
        let mut times = self.lock();
        let Times { durations, order, .. } = &mut *times;
        durations.entry(place).or_insert_with(|| {
            order.push(place);
            Vec::new()
        });
        durations.entry(place).or_default().push(duration);
    }
}

/// An operation that is interpreted, as a step.
fn interpreted(place: OperationPlace, dimensions: Vec<u32>) -> PlannedStep {
    PlannedStep {
        kernel: format!("{} reference", place.operation_name().to_lowercase()),
        place,
        dimensions,
        arithmetic: 0,
        is_8_bit: false,
        bytes: 0,
        weight_bytes: 0,
        reads: Vec::new(),
        writes: Vec::new(),
        scratch: 0..0,
        plan: 0,
        why_reference: Some(
            "it is interpreted: the device plans nothing, or lengths depend on values".to_owned(),
        ),
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

    /// Runs the model `warmup` and then `runs` times, and gives the steps with their median times:
    /// those of the plan, and operations that are interpreted.
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
        for run in 0..warmup.saturating_add(runs.max(1)) {
            if run == warmup {
                stopwatch.lock().durations.clear();
                stopwatch.lock().order.clear();
            }
            self.run_observed(&RunOptions::default(), inputs.iter().cloned(), &stopwatch)?;
        }
        let times = stopwatch.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Times { mut durations, order, mut dimensions } = times;
        let mut steps = self.plan()?;
        let planned: HashSet<OperationPlace> = steps.iter().map(|step| step.place).collect();
        for place in order.iter().filter(|place| !planned.contains(place)) {
            steps.push(interpreted(*place, dimensions.remove(place).unwrap_or_default()));
        }
        if steps.len() > planned.len() {
            let positions: HashMap<&OperationPlace, usize> =
                order.iter().enumerate().map(|(at, place)| (place, at)).collect();
            steps.sort_by_key(|step| positions.get(&step.place).copied().unwrap_or(usize::MAX));
        }
        let mut median = |place: OperationPlace| {
            let times = durations.get_mut(&place)?;
            times.sort_unstable();
            times.get(times.len() / 2).copied()
        };
        let steps = steps.into_iter().map(|step| ProfiledStep {
            origin: self.origin(step.place),
            time: median(step.place),
            step,
        });
        Ok(Profile { steps: steps.collect() })
    }
}
