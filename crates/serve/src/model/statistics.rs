//! [`Statistics`]: what a model has done, as the statistics extension reports it.

use super::program::Times;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A number of times and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Durations {
    /// How often.
    pub count: u64,
    /// The sum, in nanoseconds.
    pub nanoseconds: u64,
}

impl Durations {
    fn add(&mut self, count: u64, time: Duration) {
        self.count = self.count.saturating_add(count);
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds = self.nanoseconds.saturating_add(time);
    }
}

/// What runs of one number of rows took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Copying inputs.
    pub input: Durations,
    /// Computing.
    pub compute: Durations,
    /// Copying outputs.
    pub output: Durations,
}

/// What a model has done since it was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// When the last request came, in milliseconds since 1970; 0: none came.
    pub last_inference: u64,
    /// Rows of successful requests.
    pub inferences: u64,
    /// Successful runs.
    pub executions: u64,
    /// Successful requests, from arrival to answer.
    pub success: Durations,
    /// Requests that failed, from arrival to answer.
    pub fail: Durations,
    /// Waiting.
    pub queue: Durations,
    /// Copying inputs, computing, and copying outputs, of successful requests.
    pub work: BatchCounts,
    /// By number of rows that ran together.
    pub batches: BTreeMap<usize, BatchCounts>,
}

/// Counts while it is used.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Mutex<Counts>);

impl Statistics {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// A batch was computed; `rows` and the times since arrival and of waiting, by request.
    pub(crate) fn computed(&self, jobs: &[(usize, Duration, Duration)], times: &Times) {
        let mut counts = self.lock();
        let all: usize = jobs.iter().map(|(rows, ..)| rows).sum();
        counts.executions += 1;
        counts.inferences += all as u64;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        counts.last_inference = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        for (_, since_arrival, waited) in jobs {
            counts.success.add(1, *since_arrival);
            counts.queue.add(1, *waited);
            counts.work.input.add(1, times.input);
            counts.work.compute.add(1, times.compute);
            counts.work.output.add(1, times.output);
        }
        let batch = counts.batches.entry(all).or_default();
        batch.input.add(1, times.input);
        batch.compute.add(1, times.compute);
        batch.output.add(1, times.output);
    }

    /// A request failed after this time.
    pub(crate) fn failed(&self, since_arrival: Duration) {
        self.lock().fail.add(1, since_arrival);
    }
}
