//! `nnhal inspect --plan` and `--profile`

use crate::commands::{self, print_json, shape};
use crate::error::Result;
use crate::inputs::{self, InputArguments};
use crate::session::Session;
use crate::tensor::Tensor;
use cpu::peak::{self, Numbers};
use driver::{Observer, OperationPlace, PlannedStep};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tflite::Import;

/// Measured runs, and those before them.
const RUNS: usize = 30;
const WARMUP: usize = 3;

#[derive(Serialize)]
struct Row {
    /// Index of the operation, or of the last one of those that the step computes.
    operation: usize,
    #[serde(rename = "type")]
    operation_type: String,
    kernel: String,
    dimensions: Vec<u32>,
    /// Additions and multiplications, where they are most of the work; otherwise 0.
    arithmetic: u64,
    is_8_bit: bool,
    bytes: u64,
    /// At the processor's peak.
    estimated_microseconds: Option<f64>,
    /// The median.
    microseconds: Option<f64>,
    /// Of the most additions and multiplications that so many threads can do.
    share_of_peak: Option<f64>,
}

/// How to print a plan.
pub struct How {
    /// With the time of every step.
    pub is_profile: bool,
    /// As JSON.
    pub is_json: bool,
    /// How many threads share the work.
    pub threads: u16,
}

/// The most that this processor can do.
struct Peaks {
    /// Operations in a nanosecond.
    float32: Option<f64>,
    bits8: Option<f64>,
    /// Bytes read or written in a nanosecond, by how many there are: each time twice as many.
    bytes: Vec<f64>,
    threads: f64,
}

/// As few bytes as any cache holds, and how often they are doubled until no cache holds them.
const FEWEST_BYTES: usize = 16 << 10;
const DOUBLINGS: usize = 12;

impl Peaks {
    /// With the instruction set that the device uses unless it is told otherwise.
    fn measure(threads: u16) -> Self {
        let set = cpu::Settings::default().instruction_set;
        let of = |numbers| peak::operations_per_nanosecond(set, numbers);
        let bytes =
            (0..=DOUBLINGS).map(|doublings| peak::bytes_per_nanosecond(FEWEST_BYTES << doublings));
        Self {
            float32: of(Numbers::Float32),
            bits8: of(Numbers::Bits8),
            bytes: bytes.collect(),
            threads: threads.into(),
        }
    }

    /// Operations of a step in a nanosecond, at most.
    fn operations(&self, step: &PlannedStep) -> Option<f64> {
        let peak = if step.is_8_bit { self.bits8 } else { self.float32 };
        peak.filter(|_| step.arithmetic > 0).map(|peak| peak * self.threads)
    }

    /// Microseconds that a step takes at least: its arithmetic at the processor's peak, or its bytes
    /// as fast as so many can be moved, whichever takes longer.
    fn estimate(&self, step: &PlannedStep) -> f64 {
        let arithmetic =
            self.operations(step).map_or(0.0, |operations| step.arithmetic as f64 / operations);
        let doublings = (step.bytes / FEWEST_BYTES as u64).max(1).ilog2() as usize;
        let rate = self.bytes[doublings.min(DOUBLINGS)] * self.threads;
        arithmetic.max(step.bytes as f64 / rate) / 1e3
    }

    /// What a step reaches of the peak.
    fn share(&self, step: &PlannedStep, microseconds: f64) -> Option<f64> {
        let rate = step.arithmetic as f64 / (microseconds * 1e3);
        self.operations(step).map(|peak| rate / peak)
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

/// Prints a plan.
pub fn print(import: &Import, session: &Session, how: &How) -> Result<()> {
    let times = if how.is_profile { measure(import, session)? } else { HashMap::new() };
    let has_peaks = session.device == cpu::DEVICE_NAME;
    let peaks = has_peaks.then(|| Peaks::measure(how.threads));
    let share = |step: &PlannedStep| peaks.as_ref()?.share(step, *times.get(&step.place)?);
    let row = |step: PlannedStep| Row {
        operation: step.place.index,
        operation_type: step.place.operation_type.to_string(),
        estimated_microseconds: peaks.as_ref().map(|peaks| peaks.estimate(&step)),
        microseconds: times.get(&step.place).copied(),
        share_of_peak: share(&step),
        is_8_bit: step.is_8_bit,
        kernel: step.kernel,
        dimensions: step.dimensions,
        arithmetic: step.arithmetic,
        bytes: step.bytes,
    };
    let rows: Vec<Row> = session.plan()?.into_iter().map(row).collect();
    if how.is_json { print_json(&rows) } else { commands::print(&text(&rows)) }
}

/// The median duration of each step, in microseconds.
pub(super) fn measure(import: &Import, session: &Session) -> Result<HashMap<OperationPlace, f64>> {
    let filled = inputs::fill(&InputArguments::default(), import)?;
    let tensors: Vec<Tensor> = filled.into_iter().map(|filled| filled.tensor).collect();
    let stopwatch = Stopwatch::default();
    for run in 0..WARMUP + RUNS {
        session.run_observed(&tensors, &stopwatch)?;
        if run + 1 == WARMUP {
            stopwatch.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
    let durations = stopwatch.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let median = |(place, mut times): (OperationPlace, Vec<Duration>)| {
        times.sort_unstable();
        (place, times[times.len() / 2].as_secs_f64() * 1e6)
    };
    Ok(durations.into_iter().map(median).collect())
}

fn text(rows: &[Row]) -> String {
    let total: f64 = rows.iter().filter_map(|row| row.microseconds).sum();
    let mut text = String::new();
    for row in rows {
        let Row { operation, operation_type, kernel, .. } = row;
        text += &format!("{operation:4} {operation_type:24} {kernel:32} ");
        text += &format!("{:18}", shape(&row.dimensions));
        if row.arithmetic > 0 {
            text += &format!(" {:9.3} Mop", row.arithmetic as f64 / 1e6);
        } else {
            text += &format!(" {:9.1} KiB", row.bytes as f64 / 1024.0);
        }
        if let Some(estimated) = row.estimated_microseconds {
            text += &format!(" {estimated:10.1} us at peak");
        }
        if let Some(microseconds) = row.microseconds {
            let per_second = if row.arithmetic > 0 {
                format!("{:7.1} Gop/s", row.arithmetic as f64 / microseconds / 1e3)
            } else {
                format!("{:7.1} GB/s ", row.bytes as f64 / microseconds / 1e3)
            };
            let share = 100.0 * microseconds / total;
            text += &format!(" {microseconds:10.1} us {share:5.1}% {per_second}");
            if let Some(share) = row.share_of_peak {
                text += &format!(" {:5.1}% of peak", 100.0 * share);
            }
        }
        text += "\n";
    }
    text += &format!("{} steps", rows.len());
    let estimated: f64 = rows.iter().filter_map(|row| row.estimated_microseconds).sum();
    if estimated > 0.0 {
        text += &format!(", {estimated:.1} us at peak");
    }
    if total > 0.0 {
        text += &format!(", {total:.1} us measured");
    }
    text += "\n";
    text
}
