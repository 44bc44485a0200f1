//! `nnhal compare`

use super::{print, print_json, shape};
use crate::error::{CliError, Result};
use crate::inputs::{self, InputArguments};
use crate::session::{self, Session};
use crate::tensor::Tensor;
use conformance::compare::{Difference, difference};
use conformance::vectors::Tolerance;
use driver::{ObservedOutput, Observer, OperationPlace, Round};
use hal::OperandType;
use hal::model::SubgraphName;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The arguments of `nnhal compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal compare model.tflite --devices nnhal-reference,nnhal-reference --fill random

Both devices get the same inputs. Results are compared in the order in which the second device
computes them; quantised ones as stored integers. What lies within operations that one device
computes as one is not compared. Exit code 1: they differ.")]
pub struct Arguments {
    /// The .tflite file
    model: PathBuf,
    #[command(flatten)]
    inputs: InputArguments,
    /// The device that is right, and the one that is judged; may be the same
    #[arg(long, value_name = "A,B", value_delimiter = ',', required = true, num_args = 1..)]
    devices: Vec<String>,
    /// Most threads to use (nnhal-reference always uses one)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
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
    json: bool,
}

/// Names one value of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    place: OperationPlace,
    output: usize,
    rounds: Vec<Round>,
}

#[derive(Debug, Clone)]
struct Value {
    key: Key,
    operand_type: OperandType,
    dimensions: Vec<u32>,
    bytes: Vec<u8>,
}

/// Keeps every result, in the order in which they come.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Value>>);

impl Observer for Recorder {
    fn output(&self, output: &ObservedOutput<'_>) {
        let value = Value {
            key: Key { place: output.place, output: output.output, rounds: output.rounds.to_vec() },
            operand_type: output.operand_type,
            dimensions: output.dimensions.to_vec(),
            bytes: output.bytes.to_vec(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

/// What was found at the first result that differs.
struct Finding {
    value: Value,
    what: String,
    difference: Option<Difference>,
}

/// Compares two devices.
pub fn run(arguments: &Arguments) -> Result<()> {
    let [judge, judged] = &*arguments.devices else {
        return Err(CliError::Input("--devices takes two names: A,B".into()));
    };
    let import = session::import(&arguments.model)?;
    let filled = inputs::fill(&arguments.inputs, &import)?;
    let tensors: Vec<Tensor> = filled.iter().map(|filled| filled.tensor.clone()).collect();
    let record = |device: &str| -> Result<Vec<Value>> {
        let session = Session::new(&import, device, arguments.threads.into())?;
        let recorder = Recorder::default();
        session.run_observed(&tensors, &recorder)?;
        Ok(recorder.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let expected = record(judge)?;
    let found = record(judged)?;
    let has_float16 = expected.iter().any(|it| it.operand_type == OperandType::TensorFloat16);
    let outcome = first_difference(arguments, has_float16, expected, found);
    report(arguments, [judge, judged], outcome, &import)
}

/// How many results agree, if all that both devices have do.
fn first_difference(
    arguments: &Arguments,
    has_float16: bool,
    expected: Vec<Value>,
    found: Vec<Value>,
) -> Result<usize, Box<Finding>> {
    let usual = if has_float16 { 5e-3 } else { 1e-5 };
    let floats =
        Tolerance { atol: arguments.atol.unwrap_or(usual), rtol: arguments.rtol.unwrap_or(usual) };
    let integers = Tolerance { atol: arguments.steps.into(), rtol: 0.0 };
    let mut expected: HashMap<Key, Value> =
        expected.into_iter().map(|value| (value.key.clone(), value)).collect();
    let mut compared = 0;
    for value in found {
        let Some(right) = expected.remove(&value.key) else {
            // A device that fuses operations reports fewer results of the main subgraph. Elsewhere
            // a result that only one has means that the two took different paths.
            if value.key.place.subgraph == SubgraphName::Main {
                continue;
            }
            let what = "computed by one only".into();
            return Err(Box::new(Finding { value, what, difference: None }));
        };
        compared += 1;
        if right.dimensions != value.dimensions {
            let what = format!("shape {:?}, expected {:?}", value.dimensions, right.dimensions);
            return Err(Box::new(Finding { value, what, difference: None }));
        }
        let is_float =
            matches!(value.operand_type, OperandType::TensorFloat32 | OperandType::TensorFloat16);
        let tolerance = if is_float { floats } else { integers };
        let differing = difference(value.operand_type, &right.bytes, &value.bytes, tolerance);
        // A NaN on both sides is agreement here: the question is whether devices differ.
        if let Some(difference) = differing
            && right.bytes != value.bytes
        {
            let what = difference.to_string();
            return Err(Box::new(Finding { value, what, difference: Some(difference) }));
        }
    }
    Ok(compared)
}

fn report(
    arguments: &Arguments,
    [judge, judged]: [&String; 2],
    outcome: Result<usize, Box<Finding>>,
    import: &tflite::Import,
) -> Result<()> {
    let Finding { value, what, difference } = match outcome {
        Err(finding) => *finding,
        Ok(compared) if arguments.json => {
            return print_json(&serde_json::json!({ "agree": true, "compared": compared }));
        }
        Ok(compared) => {
            return print(&format!(
                "{judge} and {judged} agree in all {compared} results that both have\n"
            ));
        }
    };
    let place = value.key.place;
    let origin = match place.subgraph {
        SubgraphName::Main => import.operator_origin.get(place.index).map(ToString::to_string),
        SubgraphName::Referenced(_) => None,
    };
    if arguments.json {
        print_json(&serde_json::json!({
            "agree": false,
            "subgraph": place.subgraph.to_string(),
            "operation": place.index,
            "operation_type": place.operation_type.to_string(),
            "origin": origin,
            "output": value.key.output,
            "shape": value.dimensions,
            "what": what,
            "element": difference.as_ref().map(|it| it.index),
            "expected": difference.as_ref().map(|it| it.expected),
            "found": difference.as_ref().map(|it| it.found),
        }))?;
    } else {
        let origin = origin.map_or(String::new(), |origin| format!(", from {origin}"));
        print(&format!(
            "first difference: {place}{origin}\n  output {} ({} {}): {what}\n",
            value.key.output,
            value.operand_type,
            shape(&value.dimensions)
        ))?;
    }
    Err(CliError::Negative(format!("{judge} and {judged} differ")))
}
