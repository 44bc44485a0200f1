//! How long preparing and running a model takes.

use crate::cache::LoadedFrom;
use crate::error::Result;
use crate::runner::Runner;
use crate::session::{Input, Session};
use std::time::{Duration, Instant};

/// How a model is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Runs that are not measured, before those that are.
    pub warmup: u32,
    /// Measured runs; one at least.
    pub runs: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self { warmup: 3, runs: 20 }
    }
}

/// How long runs took, from call to return; inputs are set before, and outputs are left in memory that
/// is shared with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// How many runs were measured.
    pub runs: u32,
    /// The time that half of the runs did not exceed.
    pub median: Duration,
    /// The shortest.
    pub min: Duration,
    /// The time that nine tenths of the runs did not exceed.
    pub p90: Duration,
    /// All together, by their number.
    pub mean: Duration,
}

impl Statistics {
    /// Of these times; `None` if there are none.
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let runs = u32::try_from(times.len()).ok().filter(|runs| *runs > 0)?;
        Some(Self {
            runs,
            median: quantile(&times, 1, 2),
            min: times[0],
            p90: quantile(&times, 9, 10),
            mean: times.iter().sum::<Duration>() / runs,
        })
    }
}

/// The least time that at least this share of all times does not exceed.
fn quantile(sorted: &[Duration], numerator: usize, denominator: usize) -> Duration {
    let rank = (sorted.len() * numerator).div_ceil(denominator).max(1);
    sorted[rank - 1]
}

/// Measures runs of a session with these inputs. `done` is called after each run, also those before
/// the measured ones.
///
/// # Errors
/// As [`Session::run`].
pub fn run<'a, I: Into<Input<'a>>>(
    session: &Session,
    inputs: impl IntoIterator<Item = I>,
    plan: Plan,
    mut done: impl FnMut(),
) -> Result<Statistics> {
    let mut times = Vec::with_capacity(plan.runs.max(1) as usize);
    let inputs = inputs.into_iter().map(Into::into).collect();
    session.with_inputs(inputs, |runner: &mut Runner| {
        // The first run finds out what room outputs of unknown size need.
        for round in 0..u64::from(plan.warmup) + u64::from(plan.runs.max(1)) {
            let begun = Instant::now();
            runner.run()?;
            let time = begun.elapsed();
            if round >= u64::from(plan.warmup) {
                times.push(time);
            }
            done();
        }
        Ok(())
    })?;
    // There is a run at least.
    Ok(Statistics::of(times).unwrap_or(Statistics {
        runs: 0,
        median: Duration::ZERO,
        min: Duration::ZERO,
        p90: Duration::ZERO,
        mean: Duration::ZERO,
    }))
}

/// How long it takes to load a session's model from a file that it was kept in, see
/// [`SessionOptions::cache_dir`](crate::SessionOptions::cache_dir): the median of `loads`.
///
/// # Errors
/// The device does not keep prepared models in files, or a file cannot be written.
pub fn load(session: &Session, loads: u32) -> Result<Duration> {
    let kept = LoadedFrom::a_temporary_file(session.prepared())?;
    let mut times = Vec::new();
    for _ in 0..loads.max(1) {
        let begun = Instant::now();
        let loaded = kept.load();
        times.push(begun.elapsed());
        drop(loaded?);
    }
    times.sort_unstable();
    Ok(quantile(&times, 1, 2))
}

/// The most memory that this process ever had resident, in KiB; `None` where the system does not say.
pub fn peak_resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let times: Vec<_> = (1..=10).map(Duration::from_micros).collect();
        let statistics = Statistics::of(times).unwrap();
        assert_eq!(statistics.median, Duration::from_micros(5));
        assert_eq!(statistics.p90, Duration::from_micros(9));
        assert_eq!(statistics.min, Duration::from_micros(1));
        let one = Statistics::of(vec![Duration::from_micros(7)]).unwrap();
        assert_eq!(one.p90, Duration::from_micros(7));
        assert_eq!(Statistics::of(Vec::new()), None);
    }

    #[test]
    fn peak_memory_is_known_here() {
        assert!(peak_resident_kib() > Some(100));
    }
}
