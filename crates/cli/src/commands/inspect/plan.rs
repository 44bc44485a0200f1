//! `nnhal inspect --plan` and `--profile`

use crate::commands::{self, print_json, shape};
use crate::error::Result;
use crate::inputs::{self, InputArguments};
use crate::session::Session;
use crate::tensor::Tensor;
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
    /// Additions and multiplications, where they are most of the work.
    arithmetic: u64,
    bytes: u64,
    /// The median.
    microseconds: Option<f64>,
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
pub fn print(import: &Import, session: &Session, is_profile: bool, is_json: bool) -> Result<()> {
    let times = if is_profile { measure(import, session)? } else { HashMap::new() };
    let row = |step: PlannedStep| Row {
        operation: step.place.index,
        operation_type: step.place.operation_type.to_string(),
        microseconds: times.get(&step.place).copied(),
        kernel: step.kernel,
        dimensions: step.dimensions,
        arithmetic: step.arithmetic,
        bytes: step.bytes,
    };
    let rows: Vec<Row> = session.plan()?.into_iter().map(row).collect();
    if is_json { print_json(&rows) } else { commands::print(&text(&rows)) }
}

/// The median duration of each step, in microseconds.
fn measure(import: &Import, session: &Session) -> Result<HashMap<OperationPlace, f64>> {
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
        if let Some(microseconds) = row.microseconds {
            let per_second = if row.arithmetic > 0 {
                format!("{:7.1} Gop/s", row.arithmetic as f64 / microseconds / 1e3)
            } else {
                format!("{:7.1} GB/s ", row.bytes as f64 / microseconds / 1e3)
            };
            let share = 100.0 * microseconds / total;
            text += &format!(" {microseconds:10.1} us {share:5.1}% {per_second}");
        }
        text += "\n";
    }
    if total > 0.0 {
        text += &format!("{} steps, {total:.1} us\n", rows.len());
    }
    text
}
