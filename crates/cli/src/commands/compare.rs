//! `nnhal compare`

use super::{print, print_json, shape};
use crate::error::{CliError, Result};
use crate::inputs::{self, InputArguments};
use crate::session::{ModelArguments, Threads};
use nnhal::compare::{self, Comparison, Differs, Finding, Limits};
use nnhal::{DataType, Input};

/// The arguments of `nnhal compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal compare model.tflite --devices nnhal-reference,nnhal-reference --fill random

Both devices get the same inputs. Results are compared in the order in which the second device
computes them; quantized ones as stored integers. Values between operations that one device
computes as one are not compared. Exit code 1: they differ.")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    inputs: InputArguments,
    /// The device that is right, and the one that is judged; may be the same
    #[arg(long, value_name = "A,B", value_delimiter = ',', required = true, num_args = 1..)]
    devices: Vec<String>,
    #[command(flatten)]
    threads: Threads,
    /// Largest absolute difference of floats [default: 1e-5; with float16 in the model 5e-3]
    #[arg(long, value_name = "NUMBER")]
    atol: Option<f64>,
    /// Largest relative difference of floats [default: 1e-5; with float16 in the model 5e-3]
    #[arg(long, value_name = "NUMBER")]
    rtol: Option<f64>,
    /// Largest difference of stored integers
    #[arg(long, default_value_t = 1, value_name = "N")]
    steps: u32,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Compares two devices.
pub fn run(arguments: &Arguments) -> Result<()> {
    let [judge, judged] = &*arguments.devices else {
        return Err(CliError::Input("--devices takes two names: A,B".into()));
    };
    let model = arguments.model.load()?;
    let (model, filled) = inputs::fill(&arguments.inputs, model)?;
    let inputs: Vec<Input<'_>> = inputs::values(&filled).collect();
    let open = |device: &String| model.session(arguments.threads.options(device));
    let (right, found) = (open(judge)?, open(judged)?);
    let limits =
        Limits { absolute: arguments.atol, relative: arguments.rtol, steps: arguments.steps };
    match compare::run(&right, &found, &inputs, limits)? {
        Comparison::Agree { compared } if arguments.json => {
            print_json(&serde_json::json!({ "agree": true, "compared": compared }))
        }
        Comparison::Agree { compared } => {
            print(&format!("{judge} and {judged} agree in all {compared} results that both have\n"))
        }
        Comparison::Differ(finding) => {
            report(&finding, arguments.json)?;
            Err(CliError::Negative(format!("{judge} and {judged} differ")))
        }
    }
}

fn report(finding: &Finding, is_json: bool) -> Result<()> {
    let Finding { place, origin, output, data_type, what, .. } = finding;
    let data_type = data_type.map_or("another type".to_owned(), |it: DataType| it.to_string());
    if is_json {
        let difference = match what {
            Differs::Elements(difference) => Some(difference),
            Differs::OnlyThere | Differs::Shape { .. } => None,
        };
        return print_json(&serde_json::json!({
            "agree": false,
            "subgraph": place.subgraph.to_string(),
            "operation": place.index,
            "operation_type": place.operation_type.to_string(),
            "origin": origin.as_ref().map(ToString::to_string),
            "output": output,
            "shape": finding.shape,
            "what": what.to_string(),
            "element": difference.map(|it| it.index),
            "expected": difference.map(|it| it.expected),
            "found": difference.map(|it| it.found),
        }));
    }
    let origin = origin.as_ref().map_or(String::new(), |origin| format!(", from {origin}"));
    print(&format!(
        "first difference: {place}{origin}\n  output {output} ({data_type} {}): {what}\n",
        shape(&finding.shape)
    ))
}
