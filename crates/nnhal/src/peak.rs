//! [`Peaks`]: what the processor can do at most, beside which a plan's steps are seen.

use crate::devices::default_threads;
use crate::error::Result;
use nnhal_cpu::peak::{self, Numbers};
use nnhal_driver::PlannedStep;
use std::num::NonZeroUsize;
use std::time::Duration;

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
}

#[allow(clippy::cast_precision_loss)] // Counts of operations and bytes, for people.
impl Peaks {
    /// Measures, for some tenths of a second, what this many threads can do; `None`: as many as are used
    /// unless said otherwise.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting): an environment variable makes no sense.
    pub fn measure(threads: Option<NonZeroUsize>) -> Result<Self> {
        let set = nnhal_cpu::Settings::from_environment()?.instruction_set;
        let threads = threads.map_or_else(default_threads, Ok)?;
        let of = |numbers| peak::operations_per_nanosecond(set, numbers);
        let bytes =
            (0..=DOUBLINGS).map(|doublings| peak::bytes_per_nanosecond(FEWEST_BYTES << doublings));
        Ok(Self {
            float32: of(Numbers::Float32),
            bits8: of(Numbers::Bits8),
            bytes: bytes.collect(),
            threads: threads.get() as f64,
        })
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
