//! Which operations still run their reference kernel inside a plan, or are interpreted.
//!
//! Every operation is drawn a number of times in the types of every row of its signature, with all
//! arguments but the first constant. What is not computed by fast kernels alone must
//! stand in `reference_steps.txt` with the reasons that its steps give, and nothing else: what has got a
//! fast kernel is taken out of it.

#[path = "../../reference/tests/calls/mod.rs"]
mod calls;

use calls::model::{Constants, Shapes, alone};
use calls::random::Random;
use calls::sample::Sample;
use calls::samples;
use nnhal_cpu::{CpuEngine, Settings};
use nnhal_driver::{Budget, CompileOptions, Engine, Program};
use nnhal_hal::{ExecutionPreference, HalVersion, OperationType, Priority};
use nnhal_ops::Row;
use nnhal_ops::extension::{operation_name, type_name};
use std::collections::{BTreeMap, BTreeSet};

/// What must not grow.
const KNOWN: &str = include_str!("reference_steps.txt");

/// Drawn of each operation.
const SAMPLES: u64 = 24;

/// How a model runs, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Execution {
    Fast,
    Reference,
    Interpreted,
}

/// How models of a case run.
#[derive(Debug, Default)]
struct Runs {
    counts: BTreeMap<Execution, u32>,
    /// Why reference kernels ran.
    reasons: BTreeSet<String>,
}

/// How a model of one operation runs, and why its reference kernel does.
fn way(
    engine: &CpuEngine,
    sample: &Sample,
    row: &Row,
    random: &mut Random,
) -> (Execution, BTreeSet<String>) {
    let call = sample.typed(row);
    let (model, _) = alone(&call, Shapes::OfInputs, Constants::AllButFirst, random).unwrap();
    let model = nnhal_ops::validate(&model, HalVersion::LATEST).unwrap();
    let options = CompileOptions {
        preference: ExecutionPreference::FastSingleAnswer,
        priority: Priority::Medium,
        hints: nnhal_hal::Hints::NONE,
    };
    let program = engine.compile(&model, &options, &Budget::unlimited()).unwrap();
    let steps = program.plan();
    let reasons: BTreeSet<String> =
        steps.iter().filter_map(|step| step.why_reference.clone()).collect();
    let execution = if steps.iter().any(|step| step.kernel == "reference") {
        Execution::Reference
    } else if steps.is_empty() && program.save().is_none() {
        Execution::Interpreted
    } else {
        Execution::Fast
    };
    assert_eq!(execution == Execution::Reference, !reasons.is_empty(), "{steps:?}");
    (execution, reasons)
}

/// By what a line begins with, how often a model runs which way.
fn survey(operation: OperationType) -> BTreeMap<String, Runs> {
    let engine = CpuEngine::new(Settings::default());
    let mut all: BTreeMap<String, Runs> = BTreeMap::new();
    for seed in 0..SAMPLES {
        let mut random = Random::new(seed);
        let sample = samples::draw(operation, &mut random).expect("a sample");
        let channels_first = sample.channels_first();
        let layouts = [Some(sample), channels_first];
        for (sample, layout) in layouts.iter().zip(["", " NCHW"]) {
            let Some(sample) = sample else { continue };
            for row in sample.rows() {
                let types: Vec<String> =
                    row.types.iter().map(|it| short(&type_name(*it))).collect();
                let name = match operation {
                    OperationType::Extension(_) => {
                        format!("extension {}", operation_name(operation))
                    }
                    _ => operation.to_string(),
                };
                let case = format!("{name}{layout} {}", types.join(" "));
                let (execution, reasons) = way(&engine, sample, row, &mut random);
                let runs = all.entry(case).or_default();
                *runs.counts.entry(execution).or_default() += 1;
                runs.reasons.extend(reasons);
            }
        }
    }
    all
}

fn short(name: &str) -> String {
    name.replace("TENSOR_", "").to_lowercase()
}

/// What stands in the list about a case; nothing of one that is always fast.
fn line(case: &str, runs: &Runs) -> Option<String> {
    let (worst, count) = runs.counts.last_key_value()?;
    let how_often = if *count == runs.counts.values().sum() { "always" } else { "sometimes" };
    let what = match worst {
        Execution::Fast => return None,
        Execution::Reference => "reference",
        Execution::Interpreted => "interpreted",
    };
    let mut line = format!("{case}: {how_often} {what}");
    for reason in &runs.reasons {
        line += &format!("; {reason}");
    }
    Some(line)
}

#[test]
fn what_has_no_fast_kernel_is_known() {
    let cases = samples::operations().flat_map(survey);
    let found: BTreeSet<String> = cases.filter_map(|(case, runs)| line(&case, &runs)).collect();
    let known: BTreeSet<String> = KNOWN.lines().map(str::to_owned).collect();
    let list = |lines: Vec<&String>| lines.into_iter().cloned().collect::<Vec<_>>().join("\n");
    let (new, gone) =
        (list(found.difference(&known).collect()), list(known.difference(&found).collect()));
    assert!(
        new.is_empty() && gone.is_empty(),
        "not in reference_steps.txt, but so:\n{new}\n\nin it, but not so any more:\n{gone}"
    );
}
