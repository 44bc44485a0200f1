//! Valid calls with one argument changed: its rank, a length, a value. Validation may refuse such a
//! call, execution may; nothing panics, whatever is known of it when. Whether it can be computed is
//! not a matter of the engine.

use super::model::{Constants, Shapes, alone};
use super::random::Random;
use super::sample::{Call, Typed};
use super::{each_sample_on, samples};
use nnhal_hal::{
    DataLocation, Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, Memory, Model,
    OperandLifeTime, OperandType, PrepareOptions, Request,
};
use std::sync::Arc;
use std::time::Duration;

/// A memory limit for the devices: enough for every call but those with a length that was made large.
pub const MEMORY_LIMIT: u64 = 16 << 20;

/// Largest value of an input, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// How a call was changed.
struct Perturbed {
    call: Call,
    what: String,
}

/// The call with each of its arguments changed in every way, one at a time.
fn perturbations(call: &Call) -> Vec<Perturbed> {
    let mut all = Vec::new();
    for (index, input) in call.inputs.iter().enumerate() {
        let mut change = |what: String, input: Option<Typed>| {
            let mut call = call.clone();
            call.inputs[index] =
                input.unwrap_or_else(|| Typed { is_omitted: true, ..call.inputs[index].clone() });
            all.push(Perturbed { call, what: format!("input {index}: {what}") });
        };
        if input.is_omitted {
            continue;
        }
        change("left out".to_owned(), None);
        for (what, dimensions) in shapes(&input.spec.dimensions) {
            if !input.spec.operand_type.is_scalar() {
                change(what, reshaped(input, dimensions));
            }
        }
        for (what, bytes) in values(input) {
            change(what, Some(Typed { bytes, ..input.clone() }));
        }
    }
    all
}

/// Other ranks, and each length changed.
fn shapes(dimensions: &[u32]) -> Vec<(String, Vec<u32>)> {
    let mut shapes = Vec::new();
    for axis in 0..=dimensions.len() {
        let mut longer = dimensions.to_vec();
        longer.insert(axis, 1);
        shapes.push(longer);
        let Some(&length) = dimensions.get(axis) else { continue };
        let mut shorter = dimensions.to_vec();
        shorter.remove(axis);
        shapes.push(shorter);
        for other in [0, 1, length + 1, length.saturating_sub(1), 2 * length, 9973, 1 << 31] {
            let mut changed = dimensions.to_vec();
            changed[axis] = other;
            shapes.push(changed);
        }
    }
    shapes.push(vec![dimensions.iter().product()]);
    shapes.push(vec![1; 8]);
    shapes.retain(|it| it != dimensions && !it.is_empty());
    shapes.into_iter().map(|it| (format!("{it:?} instead of {dimensions:?}"), it)).collect()
}

/// The argument with these dimensions; its elements are repeated. `None` if they would be too many.
fn reshaped(input: &Typed, dimensions: Vec<u32>) -> Option<Typed> {
    let element = nnhal_ops::extension::element_size(input.spec.operand_type)?;
    let size = dimensions
        .iter()
        .try_fold(u64::from(element), |size, length| size.checked_mul(u64::from(*length)))
        .filter(|size| *size <= MOST_BYTES)?;
    let elements = input.bytes.iter().copied().cycle().chain(std::iter::repeat(1));
    let bytes = elements.take(usize::try_from(size).ok()?).collect();
    let mut spec = input.spec.clone();
    spec.dimensions = dimensions;
    Some(Typed { spec, bytes, is_omitted: false })
}

/// Extremes for a scalar, and for the elements of a list of integers, one at a time and all.
fn values(input: &Typed) -> Vec<(String, Vec<u8>)> {
    let integers = [0, 1, -1, 2, 127, 128, 65_536, i32::MAX, i32::MIN, 1 << 30, i32::MAX / 3];
    let floats = [0.0, -0.0, -1.0, 1e-30, 1e30, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let elements: Vec<Vec<u8>> = match input.spec.operand_type {
        OperandType::Int32 | OperandType::TensorInt32 => {
            integers.iter().map(|it: &i32| it.to_le_bytes().to_vec()).collect()
        }
        OperandType::Float32 | OperandType::TensorFloat32 => {
            floats.iter().map(|it: &f32| it.to_le_bytes().to_vec()).collect()
        }
        OperandType::Float16 | OperandType::TensorFloat16 => {
            floats.iter().map(|it| half::f16::from_f32(*it).to_le_bytes().to_vec()).collect()
        }
        OperandType::Bool => vec![vec![0], vec![1]],
        _ => return Vec::new(),
    };
    let size = elements[0].len();
    let count = (input.bytes.len() / size).min(6);
    let is_list = input.spec.operand_type == OperandType::TensorInt32;
    let mut values = Vec::new();
    for element in &elements {
        values.push((format!("all {element:?}"), element.repeat(input.bytes.len() / size)));
        for at in 0..if is_list { count } else { 0 } {
            let mut bytes = input.bytes.clone();
            bytes[at * size..][..size].copy_from_slice(element);
            values.push((format!("element {at} {element:?}"), bytes));
        }
    }
    values
}

/// What a model says beforehand, and where constants are.
const WAYS: [(&str, Shapes<'static>, Constants, bool); 5] = [
    ("constants in the model", Shapes::OfInputs, Constants::AllButFirst, false),
    // Validation does not look at those.
    ("constants in a pool", Shapes::OfInputs, Constants::AllButFirst, true),
    ("constants in a pool, no shape known", Shapes::Unknown, Constants::AllButFirst, true),
    ("all from the request", Shapes::OfInputs, Constants::None, false),
    ("all from the request, no shape known", Shapes::Unknown, Constants::None, false),
];

/// The model with its constants in a pool.
fn with_pool(mut model: Model) -> Model {
    let values = std::mem::replace(&mut model.operand_values, Arc::new([]));
    if values.is_empty() {
        return model;
    }
    model.pools = vec![Memory::from_bytes(&values).unwrap()];
    for operand in &mut model.main.operands {
        if operand.lifetime == OperandLifeTime::ConstantCopy {
            operand.lifetime = OperandLifeTime::ConstantReference;
            operand.location = DataLocation { pool_index: 0, ..operand.location };
        }
    }
    model
}

/// Whether the device computes it, `None` where that is a matter of memory or time.
fn outcome(device: &dyn Device, model: &Model, request: &Request) -> Result<Option<bool>, String> {
    let answer = |error: &nnhal_hal::Error| match error.status() {
        _ if error.to_string().contains("panicked") => Err(error.to_string()),
        ErrorStatus::InvalidArgument | ErrorStatus::GeneralFailure => Ok(Some(false)),
        _ => Ok(None),
    };
    let prepared = match device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default())
    {
        Ok(prepared) => prepared,
        Err(error) => return answer(&error),
    };
    let options = ExecutionOptions {
        deadline: Some(Deadline::after(Duration::from_millis(500))),
        ..ExecutionOptions::default()
    };
    match prepared.execute(request, &options) {
        Ok(_) => Ok(Some(true)),
        Err(failed) => answer(&failed.error),
    }
}

/// Tries a call in a way of being known, on all devices.
fn check(
    devices: &[(&str, Arc<dyn Device>)],
    call: &Call,
    way: usize,
    random: &mut Random,
) -> Result<(), String> {
    let (name, shapes, constants, in_pool) = WAYS[way];
    let Ok((model, request)) = alone(call, shapes, constants, random) else { return Ok(()) };
    let model = if in_pool { with_pool(model) } else { model };
    let mut outcomes = Vec::new();
    for (device, it) in devices {
        let outcome = outcome(&**it, &model, &request);
        outcomes.push(outcome.map_err(|error| format!("{name}; {device}: {error}"))?);
    }
    outcomes.retain(Option::is_some);
    outcomes.dedup();
    match outcomes.len() {
        0 | 1 => Ok(()),
        _ => Err(format!("{name}; not all devices compute it")),
    }
}

/// Calls mostly wait for the devices' threads.
const THREADS: usize = 4;

/// Changes each argument of valid calls of every operation, in the types of up to this many rows of
/// its signature, and fails if an engine panics, or if one computes what another refuses.
pub fn each_is_computed_or_refused(devices: &[(&str, Arc<dyn Device>)], most_rows: usize) {
    std::panic::set_hook(Box::new(|_| {}));
    each_sample_on(THREADS, 1, samples::operations(), |sample, random| {
        let channels_first = sample.channels_first();
        let mut failures: Vec<String> = Vec::new();
        for sample in [Some(sample), channels_first.as_ref()].into_iter().flatten() {
            let rows = sample.rows();
            // Rows of our extension's operations share their kernels.
            let step = rows.len().div_ceil(most_rows).max(1);
            let first = random.int(0, i32::try_from(step).unwrap() - 1);
            for row in rows.iter().skip(usize::try_from(first).unwrap()).step_by(step) {
                for (index, changed) in perturbations(&sample.typed(row)).iter().enumerate() {
                    for way in [index % WAYS.len(), random.length(0, 4) as usize] {
                        if let Err(error) = check(devices, &changed.call, way, random) {
                            failures.push(format!("{:?}, {}, {error}", row.types, changed.what));
                        }
                    }
                }
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    });
    drop(std::panic::take_hook());
}
