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

/// How many requests took how long: bounds of ranges, of which eight are a doubling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latencies([u64; RANGES]);

/// From 10 µs to 42 s, and one for what takes longer.
const RANGES: usize = 22 * PER_DOUBLING + 2;
const PER_DOUBLING: usize = 8;
const SHORTEST: f64 = 10e-6;

impl Default for Latencies {
    fn default() -> Self {
        Self([0; RANGES])
    }
}

impl Latencies {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within the ranges.
    fn add(&mut self, time: Duration) {
        let doublings = (time.as_secs_f64() / SHORTEST).log2();
        let at = (doublings * PER_DOUBLING as f64).ceil().clamp(0.0, (RANGES - 1) as f64);
        self.0[at as usize] += 1;
    }

    /// The ranges in which there are requests, in ascending order: the greatest time of each, in microseconds, and
    /// their number. A range begins at an eighth of a doubling before, that of the longest times has no end.
    pub fn ranges(&self) -> impl Iterator<Item = (f64, u64)> {
        let bound = |at: usize| SHORTEST * 1e6 * (at as f64 / PER_DOUBLING as f64).exp2();
        let used = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        used.map(move |(at, count)| (bound(at), *count))
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
    /// The same, by how long they took.
    pub latencies: Latencies,
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
            counts.latencies.add(*since_arrival);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_in_ranges_of_an_eighth_of_a_doubling() {
        let of = |microseconds: u64| {
            let mut latencies = Latencies::default();
            latencies.add(Duration::from_micros(microseconds));
            let ranges: Vec<_> = latencies.ranges().collect();
            assert_eq!(ranges.len(), 1);
            assert_eq!(ranges[0].1, 1);
            ranges[0].0
        };
        for microseconds in [11, 150, 999, 2_000, 1_000_000, 40_000_000] {
            let (time, bound) = (microseconds as f64, of(microseconds));
            assert!(time <= bound && bound < time * 1.0906, "{time} {bound}");
        }
        assert!((of(0) - 10.0).abs() < 1e-9 && (of(10) - 10.0).abs() < 1e-9);
        assert!((of(10_000_000_000) - of(100_000_000)).abs() < 1e-9, "all that takes longer");
    }
}
