//! One case: a model, its inputs, LiteRT's outputs.

use crate::array::{Array, load, numbers};
use nnhal_hal::{
    Device, ErrorStatus, ExecutionOptions, HalVersion, Model, Operand, PrepareOptions,
    PreparedModel, Request, RequestBuilder, Support,
};
use nnhal_ops::extension::element_size;
use nnhal_tflite::{Import, ImportError, ImportOptions, TensorDescription, is_dynamic_range};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// What became of a case.
#[derive(Debug)]
pub enum Outcome {
    /// Outputs agree within the corpus's tolerances.
    Agrees,
    /// They do not.
    Differs(String),
    /// The model is invalid, or preparing or running it failed.
    Fails(String),
    /// The importer names operators without counterpart.
    Refused(String),
    /// The device does not support an operation.
    Unsupported(String),
}

impl Outcome {
    /// As it is counted, and as the list of what is expected has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs(_) => "differs",
            Self::Fails(_) => "fails",
            Self::Refused(_) => "refused",
            Self::Unsupported(_) => "unsupported",
        }
    }

    /// What exactly; nothing if it agrees.
    pub fn text(&self) -> &str {
        match self {
            Self::Agrees => "",
            Self::Differs(text)
            | Self::Fails(text)
            | Self::Refused(text)
            | Self::Unsupported(text) => text,
        }
    }
}

/// Imports, runs and compares.
pub fn judge(device: &dyn Device, folder: &Path) -> Outcome {
    let outcome = meta(folder).and_then(|meta| run_all(device, folder, &meta));
    outcome.map_or_else(|outcome| outcome, |()| Outcome::Agrees)
}

fn meta(folder: &Path) -> Result<Value, Outcome> {
    let text = std::fs::read_to_string(folder.join("meta.json"));
    text.map_err(|error| error.to_string())
        .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
        .map_err(Outcome::Fails)
}

/// A model on its device.
struct Ready {
    import: Import,
    prepared: Arc<dyn PreparedModel>,
}

/// Imports a subgraph for inputs of these shapes, and prepares it.
fn ready(
    device: &dyn Device,
    folder: &Path,
    shapes: &[Option<Vec<u32>>],
    subgraph: usize,
) -> Result<Ready, Outcome> {
    let file = nnhal_tflite::file_memory(&folder.join("model.tflite"));
    let options = ImportOptions { shapes, subgraph, ..ImportOptions::default() };
    let import = file.and_then(|file| nnhal_tflite::import_memory(file, &options));
    let import = match import {
        Ok(import) => import,
        Err(ImportError::Unsupported { operators, .. }) => {
            let reasons: Vec<_> =
                operators.iter().map(|it| format!("{}: {}", it.operator, it.reason)).collect();
            return Err(Outcome::Refused(reasons.join("; ")));
        }
        Err(error) => return Err(Outcome::Fails(format!("import: {error}"))),
    };
    match device.supported_operations(&import.model, HalVersion::LATEST) {
        Err(error) => return Err(Outcome::Fails(format!("validation: {error}"))),
        Ok(support) => {
            let reasons: Vec<_> = support
                .into_iter()
                .filter_map(|support| match support {
                    Support::Yes => None,
                    Support::No(reason) => Some(reason),
                })
                .collect();
            if !reasons.is_empty() {
                return Err(Outcome::Unsupported(reasons.join("; ")));
            }
        }
    }
    let prepared =
        device.prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default());
    match prepared {
        Err(error) => Err(Outcome::Fails(format!("preparing: {error}"))),
        Ok(prepared) => Ok(Ready { import, prepared }),
    }
}

/// The subgraph of a run, and the positions of its inputs and outputs by their place in the corpus:
/// those of a signature are sorted by name there.
fn places(import: &Import, run: &Value) -> Option<(usize, Vec<usize>, Vec<usize>)> {
    let name = run["signature"].as_str()?;
    let signature = import.signatures.iter().find(|signature| signature.name == name)?;
    let sorted = |names: &[(String, usize)], of: &[TensorDescription]| -> Option<Vec<usize>> {
        let mut names = names.to_vec();
        names.sort();
        names.iter().map(|(_, tensor)| of.iter().position(|it| it.index == *tensor)).collect()
    };
    let inputs = sorted(&signature.inputs, &import.inputs)?;
    Some((signature.subgraph, inputs, sorted(&signature.outputs, &import.outputs)?))
}

/// The shapes of the first run's inputs; none if they are those of a signature, in another order.
fn first_shapes(folder: &Path, meta: &Value) -> Result<Option<Vec<Option<Vec<u32>>>>, Outcome> {
    let run = &meta["runs"][0];
    if run["signature"].is_string() {
        return Ok(None);
    }
    let files = run["inputs"].as_array().into_iter().flatten();
    let shapes = files.map(|entry| {
        let array = load(&folder.join(entry["file"].as_str().unwrap_or_default()));
        Ok(Some(array.map_err(Outcome::Fails)?.shape))
    });
    shapes.collect::<Result<_, _>>().map(Some)
}

fn run_all(device: &dyn Device, folder: &Path, meta: &Value) -> Result<(), Outcome> {
    let mut base = match ready(device, folder, &[], 0) {
        // The file's example may be a shape that nothing runs at, LiteRT neither.
        Err(Outcome::Refused(reason)) => match first_shapes(folder, meta)? {
            Some(shapes) => ready(device, folder, &shapes, 0)?,
            None => return Err(Outcome::Refused(reason)),
        },
        ready => ready?,
    };
    let keeps_state = meta["keeps_state"] == true;
    let mut states: Vec<Vec<u8>> = Vec::new();
    // Resource variables, which signatures have in common.
    let mut variables: HashMap<String, Vec<u8>> = HashMap::new();
    for (number, run) in meta["runs"].as_array().into_iter().flatten().enumerate() {
        let mut order = None;
        if let Some(name) = run["signature"].as_str() {
            let found = base.import.signatures.iter().find(|signature| signature.name == name);
            let subgraph = found.map_or(0, |signature| signature.subgraph);
            base = ready(device, folder, &[], subgraph)?;
            order = places(&base.import, run);
            if order.is_none() {
                return Err(Outcome::Fails(format!("run {number}: there is no signature {name}")));
            }
        }
        let arrays = |what: &str| -> Result<Vec<Array>, Outcome> {
            let files = run[what].as_array().into_iter().flatten();
            files
                .map(|entry| load(&folder.join(entry["file"].as_str().unwrap_or_default())))
                .collect::<Result<_, _>>()
                .map_err(Outcome::Fails)
        };
        let mut inputs = arrays("inputs")?;
        if let Some((_, places, _)) = &order {
            let mut sorted: Vec<(usize, Array)> = places.iter().copied().zip(inputs).collect();
            sorted.sort_by_key(|(place, _)| *place);
            inputs = sorted.into_iter().map(|(_, array)| array).collect();
        }
        // Where shapes had to be chosen at import, others are other models; so are those with a length of 0, which no
        // request can say.
        let has_other_shapes = base.import.inputs.iter().zip(&inputs).any(|(info, array)| {
            let known = info.shape.iter().copied().collect::<Option<Vec<u32>>>();
            known.is_some_and(|known| known != array.shape) || array.shape.contains(&0)
        });
        let resized = if has_other_shapes {
            let shapes: Vec<_> = inputs.iter().map(|array| Some(array.shape.clone())).collect();
            let subgraph = order.as_ref().map_or(0, |(subgraph, ..)| *subgraph);
            Some(ready(device, folder, &shapes, subgraph)?)
        } else {
            None
        };
        let Ready { import, prepared } = resized.as_ref().unwrap_or(&base);
        if states.len() != import.states.len() || !keeps_state {
            states = initial_states(import);
        }
        for (state, value) in import.states.iter().zip(&mut states).filter(|_| keeps_state) {
            if let Some(kept) = state.name.as_ref().and_then(|name| variables.get(name)) {
                value.clone_from(kept);
            }
        }
        let outputs = execute(import, &**prepared, &inputs, &states)
            .map_err(|error| Outcome::Fails(format!("run {number}: {error}")))?;
        states = import.states.iter().map(|state| outputs[state.output].1.clone()).collect();
        let named = import.states.iter().zip(&states);
        let named = named.filter_map(|(state, value)| Some((state.name.clone()?, value.clone())));
        variables.extend(named);
        // With weights dequantized first, where the importer does that and the corpus has it.
        let mut operations = import.model.main.operations.iter();
        let is_rounded = operations.any(|it| is_dynamic_range(it.operation_type));
        let directory = folder.join("float_weights");
        for (index, expected) in arrays("outputs")?.into_iter().enumerate() {
            let closer = directory.join(format!("{index}.npy"));
            let expected = if number == 0 && !is_rounded && closer.is_file() {
                load(&closer).map_err(Outcome::Fails)?
            } else {
                expected
            };
            let tolerance = &run["outputs"][index]["tolerance"];
            let at = order.as_ref().map_or(index, |(_, _, outputs)| outputs[index]);
            compare(&expected, &outputs[at], tolerance).map_err(|what| {
                Outcome::Differs(format!("run {number}, output {index}: {what}"))
            })?;
        }
    }
    Ok(())
}

fn operand(model: &Model, indexes: &[u32], at: usize) -> Operand {
    model.main.operands[indexes[at] as usize].clone()
}

fn byte_size(operand: &Operand, dimensions: &[u32]) -> usize {
    let element = element_size(operand.operand_type).unwrap_or(1) as usize;
    dimensions.iter().fold(element, |size, length| size * *length as usize)
}

/// What the file says, else zeros: quantized states hold the zero point.
fn initial_states(import: &Import) -> Vec<Vec<u8>> {
    let zeros = import.states.iter().map(|state| {
        if let Some(initial) = &state.initial {
            return initial.clone();
        }
        let operand = operand(&import.model, &import.model.main.inputs, state.input);
        let size = byte_size(&operand, &operand.dimensions);
        let byte = u8::try_from(operand.zero_point & 0xFF).unwrap_or(0);
        let is_byte = element_size(operand.operand_type) == Some(1);
        vec![if is_byte { byte } else { 0 }; size]
    });
    zeros.collect()
}

type Output = (Vec<u32>, Vec<u8>);

fn execute(
    import: &Import,
    prepared: &dyn PreparedModel,
    inputs: &[Array],
    states: &[Vec<u8>],
) -> Result<Vec<Output>, String> {
    let main = &import.model.main;
    let build = |sizes: &[usize]| -> Result<Request, String> {
        let mut request = RequestBuilder::new();
        for (at, array) in inputs.iter().enumerate() {
            let operand = operand(&import.model, &main.inputs, at);
            if array.shape.contains(&0) {
                // In the place of an input without elements there is one that nothing reads.
                request.input(&vec![0; byte_size(&operand, &operand.dimensions)]);
            } else if operand.has_known_dimensions() {
                request.input(&array.bytes);
            } else {
                request.input_shaped(&array.bytes, &array.shape);
            }
        }
        for state in states {
            request.input(state);
        }
        sizes.iter().for_each(|size| {
            request.output(*size);
        });
        request.build().map_err(|error| error.to_string())
    };
    let operands: Vec<Operand> =
        (0..main.outputs.len()).map(|at| operand(&import.model, &main.outputs, at)).collect();
    let mut sizes: Vec<usize> =
        operands.iter().map(|operand| byte_size(operand, &operand.dimensions)).collect();
    let options = ExecutionOptions::default();
    let mut request = build(&sizes)?;
    let execution = match prepared.execute(&request, &options) {
        Err(failed) if failed.error.status() == ErrorStatus::OutputInsufficientSize => {
            sizes = failed
                .output_shapes
                .iter()
                .zip(&operands)
                .map(|(shape, operand)| byte_size(operand, &shape.dimensions))
                .collect();
            request = build(&sizes)?;
            prepared.execute(&request, &options)
        }
        answer => answer,
    };
    let execution = execution.map_err(|failed| failed.error.to_string())?;
    execution
        .output_shapes
        .into_iter()
        .zip(&operands)
        .enumerate()
        .map(|(index, (shape, operand))| {
            let mut bytes =
                RequestBuilder::read_output(&request, index).map_err(|error| error.to_string())?;
            bytes.truncate(byte_size(operand, &shape.dimensions));
            Ok((shape.dimensions, bytes))
        })
        .collect()
}

fn compare(expected: &Array, (shape, bytes): &Output, tolerance: &Value) -> Result<(), String> {
    // A scalar is a vector of one in the HAL.
    let wanted = if expected.shape.is_empty() { &[1][..] } else { &expected.shape };
    if shape != wanted {
        return Err(format!("shape {shape:?}, expected {wanted:?}"));
    }
    let number = |name: &str| tolerance[name].as_f64();
    let (atol, rtol) = match (number("steps"), number("atol")) {
        (Some(steps), _) => (steps, 0.0),
        (None, Some(atol)) => (atol, number("rtol").unwrap_or(0.0)),
        (None, None) => (0.0, 0.0),
    };
    let is_exact = atol == 0.0 && rtol == 0.0;
    let is_wide_integer = matches!(&*expected.element, "i8" | "u8");
    if is_exact && is_wide_integer && expected.bytes != *bytes {
        let differs = expected.bytes.chunks(8).zip(bytes.chunks(8)).position(|(a, b)| a != b);
        return Err(format!("element {} differs", differs.unwrap_or(0)));
    }
    let (expected, found) =
        (numbers(&expected.element, &expected.bytes), numbers(&expected.element, bytes));
    if expected.len() != found.len() {
        return Err(format!("{} elements, expected {}", found.len(), expected.len()));
    }
    let agrees = |expected: f64, found: f64| {
        expected.is_nan() && found.is_nan()
            || expected.to_bits() == found.to_bits()
            || (expected - found).abs() <= atol + rtol * expected.abs()
    };
    let mut differing = expected
        .iter()
        .zip(&found)
        .enumerate()
        .filter(|(_, (expected, found))| !agrees(**expected, **found));
    let Some((index, (wanted, found))) = differing.next() else { return Ok(()) };
    let count = differing.count() + 1;
    Err(format!("element {index} is {found}, expected {wanted} ({count} of {})", expected.len()))
}
