//! `nnhal inspect --alternatives`

use super::plan::measure;
use crate::commands::{self, dimensions, microseconds, print_json};
use crate::error::Result;
use crate::inputs::Filled;
use nnhal::{Model, PlannedStep, Profile, SessionOptions, devices};
use serde::Serialize;
use std::num::NonZeroUsize;

/// A kernel that is faster by less is as fast: times differ by more from run to run.
const NOTABLE: f64 = 0.9;

#[derive(Serialize)]
struct Row {
    /// Index of the operation, or of the last one of those that the step computes.
    operation: usize,
    #[serde(rename = "type")]
    operation_type: String,
    dimensions: Vec<u32>,
    /// The one that is used.
    chosen: Variant,
    /// Those that could be.
    others: Vec<Variant>,
}

/// A kernel for a step.
#[derive(Serialize)]
struct Variant {
    settings: String,
    kernel: String,
    /// The median.
    microseconds: f64,
}

/// The steps of a plan with their times.
struct Timed {
    settings: String,
    profile: Profile,
}

impl Timed {
    fn variant(&self, step: &PlannedStep) -> Option<Variant> {
        let profiled = self.profile.steps.iter().find(|other| other.step.place == step.place)?;
        Some(Variant {
            settings: self.settings.clone(),
            kernel: profiled.step.kernel.clone(),
            microseconds: microseconds(profiled.time?),
        })
    }
}

impl Row {
    /// The fastest of the others, if it is notably faster.
    fn faster(&self) -> Option<&Variant> {
        let fastest =
            self.others.iter().min_by(|a, b| a.microseconds.total_cmp(&b.microseconds))?;
        (fastest.microseconds < NOTABLE * self.chosen.microseconds).then_some(fastest)
    }
}

/// Measures and prints.
pub fn print(
    model: &Model,
    filled: &[Filled],
    threads: Option<NonZeroUsize>,
    is_json: bool,
) -> Result<()> {
    let mut plans = Vec::new();
    for (settings, device) in devices::alternatives(threads)? {
        let session = model.session(SessionOptions::new().on(device))?;
        plans.push(Timed { settings, profile: measure(&session, filled)? });
    }
    let Some((chosen, others)) = plans.split_first() else { return Ok(()) };
    let row = |step: &PlannedStep| {
        let chosen = chosen.variant(step)?;
        let differs = |variant: &Variant| variant.kernel != chosen.kernel;
        Some(Row {
            operation: step.place.index,
            operation_type: step.place.operation_name(),
            dimensions: step.dimensions.clone(),
            others: others.iter().filter_map(|plan| plan.variant(step)).filter(differs).collect(),
            chosen,
        })
    };
    let rows: Vec<Row> = chosen.profile.steps.iter().filter_map(|it| row(&it.step)).collect();
    if is_json {
        print_json(&serde_json::json!({ "steps": rows }))
    } else {
        commands::print(&text(&rows))
    }
}

fn text(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.chosen.kernel.len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let Row { operation, operation_type, chosen, .. } = row;
        text += &format!("{operation:4} {operation_type:24} {:18}", dimensions(&row.dimensions));
        text += &format!(" {:width$} {:10.1} us", chosen.kernel, chosen.microseconds);
        for other in &row.others {
            text += &format!(", {} {:.1}", other.settings, other.microseconds);
        }
        if let Some(faster) = row.faster() {
            text += &format!("  <- {} is faster", faster.settings);
        }
        text += "\n";
    }
    let count = rows.iter().filter(|row| row.faster().is_some()).count();
    text += &format!("{} steps; for {count} another kernel is faster\n", rows.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(settings: &str, microseconds: f64) -> Variant {
        Variant { settings: settings.to_owned(), kernel: settings.to_owned(), microseconds }
    }

    #[test]
    fn a_kernel_is_faster_if_it_is_by_more_than_times_differ() {
        let mut row = Row {
            operation: 0,
            operation_type: "CONV_2D".to_owned(),
            dimensions: vec![1],
            chosen: variant("avx512", 10.0),
            others: vec![variant("portable", 90.0), variant("avx2", 9.5)],
        };
        assert!(row.faster().is_none());
        row.others.push(variant("without winograd", 8.0));
        assert_eq!(row.faster().map(|it| &*it.settings), Some("without winograd"));
        assert!(text(&[row]).contains("for 1 another kernel is faster"));
    }
}
