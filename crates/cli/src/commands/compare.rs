//! `nnhal compare`

mod answer;

use super::{print, print_json};
use crate::error::{CliError, Result};
use crate::inputs::{self, InputArguments};
use crate::session::{ModelArguments, Pair, REFERENCE, Threads};
pub use answer::{Answer, step_json};
use answer::{Nearest, Winograd};
use nnhal::compare::{self, Compared, Comparison, Limits, Responsible};
use nnhal::{Input, Model, Session, SessionOptions, devices};

/// The arguments of `nnhal compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nnhal compare assets/digits/digits_float32.tflite --fill random
  nnhal compare model.tflite --devices nnhal-cpu,nnhal-reference --fill random --json

Both devices get the same inputs. What counts are the model's outputs: they may differ by as much as
rounding explains, which follows from their types and from how many operations round on the way to
them, and is shown. If they differ by more, each step of the second device (and, if it has none that is
wrong, of the first) is computed again alone from what that device itself had computed before: the first
step that computes something else is responsible. Two further lines say whether the kernels of Winograd
are the reason, and which device is nearer to nnhal-reference, which adds in double precision and rounds
once for each operation. Exit code 1: the outputs differ, or a step is wrong although they hide it.")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    inputs: InputArguments,
    /// The device that is right, and the one that is judged; may be the same
    #[arg(long, value_name = "A,B", default_value = "nnhal-reference,nnhal-cpu")]
    devices: Pair,
    #[command(flatten)]
    threads: Threads,
    /// Largest absolute difference of floats [default: by type and depth]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = tolerance)]
    atol: Option<f64>,
    /// Largest relative difference of floats, beside --atol [default: by type and depth]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = tolerance)]
    rtol: Option<f64>,
    /// Largest difference of stored integers [default: by type and depth]
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if number >= 0.0 { Ok(number) } else { Err("a difference is 0 or more".into()) }
}

/// Compares two devices.
pub fn run(arguments: &Arguments) -> Result<()> {
    arguments.threads.check(&arguments.devices.0)?;
    let [judge, judged] = &arguments.devices.0;
    let loaded = arguments.model.load();
    let (model, filled) = inputs::fill(&arguments.inputs, &arguments.model, loaded)?;
    let inputs: Vec<Input<'_>> = inputs::values(&filled).collect();
    let hinted = arguments.inputs.hinted(&model);
    let open = |device: &String| model.session(arguments.threads.options(device)).map_err(&hinted);
    let (right, found) = (open(judge)?, open(judged)?);
    let limits =
        Limits { absolute: arguments.atol, relative: arguments.rtol, steps: arguments.steps };
    let comparison = compare::run(&right, &found, &inputs, &limits).map_err(&hinted)?;
    let trial = Trial { arguments, model: &model, inputs: &inputs, limits };
    let answer = Answer {
        devices: [judge.clone(), judged.clone()],
        responsible: responsible(&comparison, &right, &found),
        winograd: trial.winograd(judge, judged, &comparison)?,
        nearest: trial.nearest(judge, judged, &comparison)?,
        comparison,
    };
    if arguments.json {
        print_json(&answer.json())?;
    } else {
        print(&answer.text())?;
    }
    match (answer.comparison.agree(), answer.is_step_wrong()) {
        (true, false) => Ok(()),
        (true, true) => Err(CliError::Negative("a step is wrong, which the outputs hide".into())),
        (false, _) => Err(CliError::Negative(format!("{judge} and {judged} differ"))),
    }
}

/// Of the judged device, or else of the other one, which step is responsible; nothing if they agree.
fn responsible(
    comparison: &Comparison,
    judge: &Session,
    judged: &Session,
) -> Option<(String, Responsible)> {
    if comparison.agree() && !comparison.steps_differ() {
        return None;
    }
    let name = |session: &Session| session.device().name().to_owned();
    let found = comparison.responsible(judged);
    if matches!(found, Responsible::Step { .. }) || name(judge) == REFERENCE {
        return Some((name(judged), found));
    }
    match comparison.responsible_of_judge(judge) {
        step @ Responsible::Step { .. } => Some((name(judge), step)),
        _ => Some((name(judged), found)),
    }
}

/// What further runs need.
struct Trial<'a> {
    arguments: &'a Arguments,
    model: &'a Model,
    inputs: &'a [Input<'a>],
    limits: Limits,
}

impl Trial<'_> {
    /// What the outputs are without the transforms of Winograd; nothing if no plan has them.
    fn winograd(
        &self,
        judge: &String,
        judged: &String,
        comparison: &Comparison,
    ) -> Result<Option<Winograd>> {
        let threads = self.arguments.threads;
        let Some(plain) = devices::without_winograd(threads.wanted())? else { return Ok(None) };
        let open = |name: &String| -> Result<Option<Session>> {
            if name != devices::DEFAULT {
                return Ok(None);
            }
            let session = self.model.session(threads.options(name))?;
            // Those of 8-bit numbers are exact.
            let uses = session.plan()?.iter().any(|step| step.kernel.contains("winograd f32"));
            let options = SessionOptions::new().on(std::sync::Arc::clone(&plain));
            Ok(if uses { Some(self.model.session(options)?) } else { None })
        };
        let (first, second) = (open(judge)?, open(judged)?);
        if first.is_none() && second.is_none() {
            return Ok(None);
        }
        let or_usual = |session: Option<Session>, name: &String| match session {
            Some(session) => Ok(session),
            None => self.model.session(threads.options(name)),
        };
        let (first, second) = (or_usual(first, judge)?, or_usual(second, judged)?);
        let without = compare::run(&first, &second, self.inputs, &self.limits)?;
        Ok(Some(Winograd {
            agree: without.agree(),
            with: share(&comparison.outputs),
            without: share(&without.outputs),
        }))
    }

    /// How far each device is from the reference device; nothing if all outputs are the same.
    fn nearest(
        &self,
        judge: &String,
        judged: &String,
        comparison: &Comparison,
    ) -> Result<Option<Nearest>> {
        let is_same = |it: &Compared| it.distance.is_some_and(|distance| distance.largest == 0.0);
        if comparison.outputs.iter().all(is_same) {
            return Ok(None);
        }
        let threads = self.arguments.threads;
        let reference = self.model.session(threads.options(REFERENCE))?;
        let distance = |name: &String, known: bool| -> Result<f64> {
            if name == REFERENCE {
                return Ok(0.0);
            }
            if known {
                return Ok(share(&comparison.outputs));
            }
            let session = self.model.session(threads.options(name))?;
            let found = compare::run(&reference, &session, self.inputs, &self.limits)?;
            Ok(share(&found.outputs))
        };
        let first = distance(judge, judged == REFERENCE)?;
        let second = distance(judged, judge == REFERENCE)?;
        Ok(Some(Nearest { distances: [first, second] }))
    }
}

/// The largest difference of any output, as a share of that output's largest magnitude.
fn share(outputs: &[Compared]) -> f64 {
    let share = |it: &Compared| it.distance.map_or(f64::INFINITY, |found| found.of_magnitude());
    outputs.iter().map(share).fold(0.0, f64::max)
}
