//! `nnhal inspect --plan` and `--profile`

use crate::commands::{self, dimensions, microseconds, print_json};
use crate::error::Result;
use crate::inputs::{self, Filled};
use nnhal::peak::Peaks;
use nnhal::{Profile, ProfiledStep, Session, bench, devices};
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Measured runs, and those before them.
pub const RUNS: usize = 30;
pub const WARMUP: usize = 3;

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
    /// Of the most additions and multiplications that the plan's threads can do.
    share_of_peak: Option<f64>,
    /// Of a step on the reference kernel: why no fast one computes it.
    why_reference: Option<String>,
}

/// How to print a plan.
pub struct How {
    /// With the time of every step.
    pub is_profile: bool,
    /// Print one JSON array instead of lines.
    pub is_json: bool,
    /// How many threads share the work.
    pub threads: NonZeroUsize,
}

/// Prints a plan.
pub fn print(session: &Session, filled: &[Filled], how: &How) -> Result<()> {
    let profile = if how.is_profile {
        measure(session, filled)?
    } else {
        let step = |step| ProfiledStep { origin: None, time: None, step };
        Profile { steps: session.plan()?.into_iter().map(step).collect() }
    };
    let has_peaks = session.device().name() == devices::DEFAULT;
    let peaks = has_peaks.then(|| Peaks::measure(Some(how.threads))).transpose()?;
    let row = |ProfiledStep { step, time, .. }: ProfiledStep| Row {
        operation: step.place.index,
        operation_type: step.place.operation_name(),
        estimated_microseconds: peaks.as_ref().map(|it| it.least_nanoseconds(&step) / 1e3),
        microseconds: time.map(microseconds),
        share_of_peak: peaks.as_ref().zip(time).and_then(|(peaks, time)| peaks.share(&step, time)),
        is_8_bit: step.is_8_bit,
        kernel: step.kernel,
        dimensions: step.dimensions,
        arithmetic: step.arithmetic,
        bytes: step.bytes,
        why_reference: step.why_reference,
    };
    let rows: Vec<Row> = profile.steps.into_iter().map(row).collect();
    // Without looking at steps: with what is between them, and copies of inputs and outputs.
    let run = how.is_profile.then(|| whole_run(session, filled)).transpose()?;
    if how.is_json {
        let is_certain = peaks.as_ref().map(Peaks::is_certain);
        print_json(&serde_json::json!({
            "steps": rows, "peak_is_certain": is_certain, "run_microseconds": run,
            "assumed_shapes": assumed(filled).map(|it| (&*it.name, it.tensor.shape())).collect::<BTreeMap<_, _>>(),
        }))
    } else {
        let mut shown = String::new();
        for input in assumed(filled) {
            let (name, shape) = (&input.name, input.tensor.shape());
            shown += &format!(
                "input {name} is taken to have shape {shape:?}, as the file leaves lengths open; --shape gives others\n"
            );
        }
        shown += &text(&rows);
        if let Some(run) = run {
            shown += &format!("a run as a whole takes {run:.1} us\n");
        }
        if peaks.is_some_and(|peaks| !peaks.is_certain()) {
            shown += "the peak is uncertain: others used the processor while it was measured; it can \
                      do more, and shares of it are less\n";
        }
        commands::print(&shown)
    }
}

/// Inputs whose open lengths are those of the example.
fn assumed(filled: &[Filled]) -> impl Iterator<Item = &Filled> {
    filled.iter().filter(|it| it.is_assumed)
}

/// The steps with their times.
pub(super) fn measure(session: &Session, filled: &[Filled]) -> Result<Profile> {
    Ok(session.profile(inputs::values(filled), WARMUP, RUNS)?)
}

/// The median of runs of which nothing else is wanted, in microseconds.
fn whole_run(session: &Session, filled: &[Filled]) -> Result<f64> {
    let runs = u32::try_from(RUNS).unwrap_or(u32::MAX);
    let plan = bench::Plan { warmup: 1, runs, ..bench::Plan::default() };
    Ok(microseconds(bench::run(session, inputs::values(filled), plan, || ())?.median))
}

fn text(rows: &[Row]) -> String {
    let total: f64 = rows.iter().filter_map(|row| row.microseconds).sum();
    let width = rows.iter().map(|row| row.kernel.len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let Row { operation, operation_type, kernel, .. } = row;
        text += &format!("{operation:4} {operation_type:24} {kernel:width$} ");
        text += &format!("{:18}", dimensions(&row.dimensions));
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
        if let Some(why) = &row.why_reference {
            text += &format!("     on the reference kernel: {why}\n");
        }
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
