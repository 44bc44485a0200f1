//! How long preparing and running a model takes.

use crate::error::Result;
use crate::loaded_from::LoadedFrom;
use crate::runner::Runner;
use crate::session::{Input, Session};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How a model is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Runs that are not measured, before those that are; of each requester.
    pub warmup: u32,
    /// Measured runs at least; one at least.
    pub runs: u32,
    /// For how long runs are measured at least.
    pub time: Duration,
    /// How many threads request runs at a time, each the next one when it has got the last. The runs of
    /// a stateful model wait for each other.
    pub parallel: NonZeroUsize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { warmup: 3, runs: 20, time: Duration::ZERO, parallel: NonZeroUsize::MIN }
    }
}

/// How long runs took, from call to return; inputs are set before, and outputs are left in memory that
/// is shared with the device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// How many runs were measured.
    pub runs: u32,
    /// The time that half of the runs did not exceed.
    pub median: Duration,
    /// The shortest.
    pub min: Duration,
    /// The time that nine tenths of the runs did not exceed.
    pub p90: Duration,
    /// The same for 95 of 100.
    pub p95: Duration,
    /// The same for 99 of 100.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// All together, by their number.
    pub mean: Duration,
    /// The standard deviation.
    pub deviation: Duration,
    /// From the beginning of the first measured run to the end of the last one.
    pub elapsed: Duration,
}

impl Statistics {
    /// Of these times; `None` if there are none. They are taken to have followed each other.
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let runs = u32::try_from(times.len()).ok().filter(|runs| *runs > 0)?;
        let elapsed = times.iter().sum::<Duration>();
        let mean = elapsed / runs;
        let square = |time: &Duration| (time.as_secs_f64() - mean.as_secs_f64()).powi(2);
        let variance = times.iter().map(square).sum::<f64>() / f64::from(runs);
        Some(Self {
            runs,
            median: quantile(&times, 1, 2),
            min: times[0],
            p90: quantile(&times, 9, 10),
            p95: quantile(&times, 95, 100),
            p99: quantile(&times, 99, 100),
            max: times[times.len() - 1],
            mean,
            deviation: Duration::try_from_secs_f64(variance.sqrt()).unwrap_or_default(),
            elapsed,
        })
    }

    /// Runs in a second.
    pub fn throughput(&self) -> f64 {
        f64::from(self.runs) / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The least time that at least this share of all times does not exceed.
fn quantile(sorted: &[Duration], numerator: usize, denominator: usize) -> Duration {
    let rank = (sorted.len() * numerator).div_ceil(denominator).max(1);
    sorted[rank - 1]
}

/// Times that are kept: of more runs, those behind only count for [`Plan::time`].
const MOST_TIMES: usize = 10_000_000;

/// Measures runs of a session with these inputs. `done` is called after each run, also those before
/// the measured ones.
///
/// # Errors
/// As [`Session::run`].
pub fn run<'a, I: Into<Input<'a>>>(
    session: &Session,
    inputs: impl IntoIterator<Item = I>,
    plan: Plan,
    done: impl FnMut() + Send,
) -> Result<Statistics> {
    let inputs: Vec<Input<'a>> = inputs.into_iter().map(Into::into).collect();
    let measurement = Measurement {
        session,
        inputs: &inputs,
        plan,
        done: Mutex::new(done),
        warm: AtomicUsize::new(0),
        begun: OnceLock::new(),
        started: AtomicU32::new(0),
        has_failed: AtomicBool::new(false),
    };
    let mut times = Vec::new();
    if plan.parallel == NonZeroUsize::MIN {
        times = measurement.request()?;
    } else {
        let results: Vec<_> = std::thread::scope(|scope| {
            let request = || measurement.request();
            let threads: Vec<_> = (0..plan.parallel.get()).map(|_| scope.spawn(request)).collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        for result in results {
            times.extend(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
    }
    let elapsed = measurement.begun.get().map_or(Duration::ZERO, Instant::elapsed);
    // There is a run at least.
    Ok(Statistics { elapsed, ..Statistics::of(times).unwrap_or_default() })
}

/// What the threads that request runs share.
struct Measurement<'a, D> {
    session: &'a Session,
    inputs: &'a [Input<'a>],
    plan: Plan,
    done: Mutex<D>,
    /// How many have warmed up.
    warm: AtomicUsize,
    begun: OnceLock<Instant>,
    /// Measured runs.
    started: AtomicU32,
    has_failed: AtomicBool,
}

impl<D: FnMut()> Measurement<'_, D> {
    /// Requests runs until there are enough.
    fn request(&self) -> Result<Vec<Duration>> {
        let measured =
            self.session.with_inputs(self.inputs.to_vec(), |runner| self.measure(runner));
        // The others do not go on for nothing.
        measured.inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed))
    }

    fn measure(&self, runner: &mut Runner) -> Result<Vec<Duration>> {
        // The first run finds out what room outputs of unknown size need.
        for _ in 0..self.plan.warmup {
            self.once(runner)?;
        }
        self.warm.fetch_add(1, Ordering::Relaxed);
        // Runs of a stateful model wait for each other: no two are here.
        while !self.session.model().is_stateful() && !self.all_are_warm() {
            self.once(runner)?;
        }
        let mut times = Vec::new();
        let begun = *self.begun.get_or_init(Instant::now);
        while self.is_wanted(begun) {
            let time = self.once(runner)?;
            if times.len() < MOST_TIMES {
                times.push(time);
            }
        }
        Ok(times)
    }

    fn all_are_warm(&self) -> bool {
        self.warm.load(Ordering::Relaxed) == self.plan.parallel.get()
            || self.has_failed.load(Ordering::Relaxed)
    }

    /// Whether to begin a further measured run, which is counted.
    fn is_wanted(&self, begun: Instant) -> bool {
        let before = self.started.fetch_add(1, Ordering::Relaxed);
        let is_enough = before >= self.plan.runs.max(1) && begun.elapsed() >= self.plan.time;
        !is_enough && before < u32::MAX / 2 && !self.has_failed.load(Ordering::Relaxed)
    }

    fn once(&self, runner: &mut Runner) -> Result<Duration> {
        let begun = Instant::now();
        runner.run()?;
        let time = begun.elapsed();
        (self.done.lock().unwrap_or_else(PoisonError::into_inner))();
        Ok(time)
    }
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
        assert_eq!(statistics.p95, Duration::from_micros(10));
        assert_eq!(statistics.max, Duration::from_micros(10));
        assert_eq!(statistics.min, Duration::from_micros(1));
        assert_eq!(statistics.deviation.as_nanos() / 10, 287, "the root of 8.25");
        assert!((statistics.throughput() - 1e6 / 5.5).abs() < 1.0);
        let one = Statistics::of(vec![Duration::from_micros(7)]).unwrap();
        assert_eq!(one.p90, Duration::from_micros(7));
        assert_eq!(Statistics::of(Vec::new()), None);
    }

    #[test]
    fn peak_memory_is_known_here() {
        assert!(peak_resident_kib() > Some(100));
    }
}
