//! [`Peaks`]: what the processor can do at most, beside which a plan's steps are seen.

use crate::devices::default_threads;
use crate::error::Result;
use nnhal_cpu::peak::{self, Numbers};
use nnhal_driver::PlannedStep;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// As few bytes as any cache holds, and how often they are doubled until no cache holds them.
const FEWEST_BYTES: usize = 16 << 10;
const DOUBLINGS: usize = 12;

/// The most that this processor can do, with the instruction set that `nnhal-cpu` uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Peaks {
    /// Operations in a nanosecond, of one thread.
    float32: Option<f64>,
    bits8: Option<f64>,
    /// Bytes read or written in a nanosecond, by how many there are: each time twice as many.
    bytes: Vec<f64>,
    threads: f64,
    is_certain: bool,
}

/// How often it is measured until it can be relied on, and the time between.
const ATTEMPTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(50);

/// Of the time of a measurement, what the thread may have waited for a processor.
const MOST_WAITING: f64 = 0.02;

/// By how much the best two measurements may differ.
const MOST_SPREAD: f64 = 0.05;

#[allow(clippy::cast_precision_loss)] // Counts of operations and bytes, for people.
impl Peaks {
    /// Measures, for some tenths of a second, what this many threads can do; `None`: as many as are used
    /// unless said otherwise. While others use the processor it is measured again, some times.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting): an environment variable makes no sense.
    pub fn measure(threads: Option<NonZeroUsize>) -> Result<Self> {
        let set = nnhal_cpu::Settings::from_environment()?.instruction_set;
        let threads = threads.map_or_else(default_threads, Ok)?;
        let once = || {
            let of = |numbers| peak::operations_per_nanosecond(set, numbers);
            [of(Numbers::Float32), of(Numbers::Bits8)]
        };
        let mut best = [Best::default(), Best::default()];
        let mut bytes = vec![0.0_f64; DOUBLINGS + 1];
        let mut is_certain = false;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            let (began, waited) = (Instant::now(), waited());
            for _ in 0..2 {
                for (best, found) in best.iter_mut().zip(once()) {
                    best.take(found);
                }
            }
            for (doublings, best) in bytes.iter_mut().enumerate() {
                *best = best.max(peak::bytes_per_nanosecond(FEWEST_BYTES << doublings));
            }
            let waiting = waited.zip(self::waited()).map_or(0.0, |(before, after)| {
                after.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64()
            });
            is_certain = waiting <= MOST_WAITING && best.iter().all(Best::is_certain);
            if is_certain {
                break;
            }
        }
        let [float32, bits8] = best.map(|best| best.first);
        Ok(Self { float32, bits8, bytes, threads: threads.get() as f64, is_certain })
    }

    /// Whether nothing else used the processor while this was measured. If not, the processor can do
    /// more than what was found.
    pub fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Operations of a step in a nanosecond, at most.
    fn operations(&self, step: &PlannedStep) -> Option<f64> {
        let peak = if step.is_8_bit { self.bits8 } else { self.float32 };
        peak.filter(|_| step.arithmetic > 0).map(|peak| peak * self.threads)
    }

    /// Nanoseconds that a step takes at least: its arithmetic at the processor's peak, or its bytes as
    /// fast as this many can be moved, whichever takes longer. Small steps take parts of one.
    pub fn least_nanoseconds(&self, step: &PlannedStep) -> f64 {
        let arithmetic =
            self.operations(step).map_or(0.0, |operations| step.arithmetic as f64 / operations);
        let doublings = (step.bytes / FEWEST_BYTES as u64).max(1).ilog2() as usize;
        let rate = self.bytes[doublings.min(DOUBLINGS)] * self.threads;
        arithmetic.max(step.bytes as f64 / rate)
    }

    /// What a step that takes so long reaches of the peak of additions and multiplications; `None`
    /// where those are not most of its work.
    pub fn share(&self, step: &PlannedStep, time: Duration) -> Option<f64> {
        let rate = step.arithmetic as f64 / (time.as_secs_f64() * 1e9);
        self.operations(step).map(|peak| rate / peak)
    }
}

/// The two highest numbers that were measured.
#[derive(Default)]
struct Best {
    first: Option<f64>,
    second: Option<f64>,
}

impl Best {
    fn take(&mut self, found: Option<f64>) {
        if found > self.first {
            self.second = std::mem::replace(&mut self.first, found);
        } else if found > self.second {
            self.second = found;
        }
    }

    /// Whether the two agree; also where there is nothing to be measured.
    fn is_certain(&self) -> bool {
        match (self.first, self.second) {
            (Some(first), Some(second)) => first - second <= MOST_SPREAD * first,
            (first, _) => first.is_none(),
        }
    }
}

/// For how long this thread could have run and waited for a processor; `None` where the system does
/// not say.
fn waited() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_that_differ_are_uncertain() {
        let best = |found: &[f64]| {
            let mut best = Best::default();
            found.iter().for_each(|it| best.take(Some(*it)));
            best.is_certain()
        };
        assert!(best(&[10.0, 60.0, 99.0, 100.0]));
        assert!(!best(&[10.0, 60.0, 80.0, 100.0]));
        assert!(!best(&[100.0]));
        assert!(Best::default().is_certain(), "there are no such instructions");
    }

    #[test]
    fn time_that_others_take_is_seen() {
        assert!(waited().is_some());
    }
}
