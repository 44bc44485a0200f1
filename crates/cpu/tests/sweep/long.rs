//! Operations on tensors of few and very long rows: deadlines are kept inside of a row.

use crate::arguments::{Invocation, Made, Source, signatures};
use crate::calls::{random, sample, samples};
use crate::{LATENESS, MACHINE, PART, ROOM, Random, described, execute, model_of, number, prepare};
use nnhal_cpu::Settings;
use nnhal_hal::{
    DataLocation, HalVersion, Model, Operand, OperandLifeTime, OperandSpec, OperandType,
    OperationType, Request,
};
use nnhal_ops::extension::{ExtensionOperation, operation_name};
use nnhal_ops::{AnyOperation, Shape, Signature};
use std::sync::PoisonError;

/// Bytes of tensors with long rows, together, unless the environment sets more.
const LONG_BYTES: u64 = 1 << 23;

/// Stands for a length while it is found out whether arguments go together.
const STAND_IN: u32 = 97;

/// A deadline for calls that show how long they take, in seconds.
const LONGEST: f64 = 1.0;

/// Bytes of a value that is repeated.
const PATTERN: usize = 1 << 16;

/// Calls that take less than this say nothing: whatever is late by less is in time.
const WORTH_MEASURING: f64 = 0.03;

/// For each input the lengths of its axes, where [`STAND_IN`] stands for the long one: by one of two rules
/// that each suit other operations.
fn long_shapes(random: &mut Random, invocation: &Invocation, usual: u32) -> Vec<Option<Vec<u32>>> {
    if random.next().is_multiple_of(2) {
        long_axes(random, invocation, usual)
    } else {
        long_lengths(random, invocation)
    }
}

/// The axes that have one of the lengths that occur are the long ones: of a recurrent layer all that are
/// as long as its inputs, or as its state.
fn long_lengths(random: &mut Random, invocation: &Invocation) -> Vec<Option<Vec<u32>>> {
    let shapes: Vec<_> = invocation
        .inputs
        .iter()
        .map(|made| made.shape.to_known().filter(|_| !made.is_omitted))
        .collect();
    let lengths: Vec<u32> = shapes.iter().flatten().flatten().copied().collect();
    if lengths.is_empty() {
        return shapes;
    }
    let long = random.pick(&lengths);
    let replaced = |length: u32| if length == long { STAND_IN } else { length };
    let of_shape = |shape: Vec<u32>| shape.into_iter().map(replaced).collect();
    shapes.into_iter().map(|shape| shape.map(of_shape)).collect()
}

/// The same axis of all, counted from the first or the last one. What is left is short.
fn long_axes(random: &mut Random, invocation: &Invocation, usual: u32) -> Vec<Option<Vec<u32>>> {
    let place = usize::try_from(random.next() % 4).unwrap();
    let from_behind = !random.next().is_multiple_of(3);
    let few = random.pick(&[1, 1, 1, 2, 3]);
    let mut shapes = Vec::new();
    for made in &invocation.inputs {
        let lengths = made.shape.to_known().filter(|_| !made.is_omitted);
        let is_kept = made.operand.operand_type.is_scalar()
            || (made.operand.operand_type == OperandType::TensorInt32
                && !random.next().is_multiple_of(3));
        let Some(lengths) = lengths.filter(|_| !is_kept) else {
            shapes.push(None);
            continue;
        };
        let rank = lengths.len();
        // What has one axis may be as long as the others' last one, or as one of the short ones.
        let long = match rank {
            1 => (!random.next().is_multiple_of(3)).then_some(0),
            _ if from_behind => rank.checked_sub(place + 1),
            _ => Some(place),
        };
        let lengths = lengths.iter().enumerate().map(|(axis, length)| match *length {
            _ if Some(axis) == long => STAND_IN,
            length if length == usual => few,
            length => length,
        });
        shapes.push(Some(lengths.collect()));
    }
    shapes
}

/// Gives the inputs these shapes, with the length that the stand-in stands for, and values as long, if
/// they are no more than `most` bytes.
fn lengthen(
    invocation: &mut Invocation,
    shapes: &[Option<Vec<u32>>],
    long: u32,
    mut most: u64,
) -> bool {
    for (made, shape) in invocation.inputs.iter_mut().zip(shapes) {
        let Some(lengths) = shape else { continue };
        let real = |length: &u32| if *length == STAND_IN { long } else { *length };
        let lengths: Vec<u32> = lengths.iter().map(real).collect();
        let size = made.operand.operand_type.element_size().unwrap_or(1) as usize;
        let bytes = lengths.iter().try_fold(size, |it, by| it.checked_mul(*by as usize));
        let left = bytes.and_then(|bytes| most.checked_sub(bytes as u64));
        let Some((bytes, left)) = bytes.zip(left) else { return false };
        most = left;
        made.shape = Shape::known(lengths);
        if let Some(value) = made.value.as_mut().filter(|value| !value.is_empty()) {
            let pattern = value.repeat(bytes.min(PATTERN).div_ceil(value.len()));
            let mut longer = Vec::with_capacity(bytes + pattern.len());
            while longer.len() < bytes {
                longer.extend_from_slice(&pattern);
            }
            longer.truncate(bytes);
            *value = longer;
        }
    }
    true
}

/// Bytes of the outputs, if the operation has them; of those that values decide as many as the inputs have.
fn output_bytes(invocation: &Invocation) -> Option<Vec<u64>> {
    let call = invocation.call();
    let shapes = AnyOperation::decode(&call).ok()?.output_shapes(&call).ok()?;
    let sizes = shapes.iter().zip(&invocation.outputs).map(|(shape, made)| {
        let size = u64::from(made.operand.operand_type.element_size().unwrap_or(1));
        match shape.to_known() {
            Some(_) => shape.element_count().and_then(|count| count.checked_mul(size)),
            None => Some(input_bytes(invocation)),
        }
    });
    sizes.collect()
}

fn input_bytes(invocation: &Invocation) -> u64 {
    let inputs = invocation.inputs.iter().filter(|made| !made.is_omitted);
    inputs.filter_map(|made| made.value.as_ref()).map(|value| value.len() as u64).sum()
}

/// Bytes of the inputs and the outputs together.
fn total_bytes(invocation: &Invocation) -> Option<u64> {
    let outputs = output_bytes(invocation)?;
    outputs.into_iter().try_fold(input_bytes(invocation), u64::checked_add)
}

/// A valid call of the operation in the types of one of its rows: blind arguments rarely go together where
/// many shapes depend on each other.
pub(crate) fn sampled(signature: &'static Signature, random: &mut Random) -> Option<Invocation> {
    let sample = samples::draw(signature.operation, &mut random::Random::new(random.next()))?;
    let rows = sample.rows();
    let row = usize::try_from(random.next()).unwrap_or_default() % rows.len();
    let sample::Call { inputs, outputs, .. } = sample.typed(&rows[row]);
    let operand = |spec: &OperandSpec| Operand {
        operand_type: spec.operand_type,
        dimensions: Vec::new(),
        number_of_consumers: 1,
        scale: spec.scale,
        zero_point: spec.zero_point,
        lifetime: OperandLifeTime::TemporaryVariable,
        location: DataLocation::default(),
        extra_params: spec.extra_params.clone(),
    };
    let inputs = inputs.into_iter().map(|input| Made {
        operand: operand(&input.spec),
        shape: Shape::known(input.spec.dimensions),
        value: Some(input.bytes),
        is_omitted: input.is_omitted,
    });
    let outputs = outputs.iter().map(|spec| Made {
        operand: operand(spec),
        shape: Shape::UNKNOWN,
        value: None,
        is_omitted: false,
    });
    let (inputs, outputs) = (inputs.collect(), outputs.collect());
    Some(Invocation { signature, inputs, outputs })
}

/// Which input is the shape of an output, where an operation has no other rows.
fn shape_by_value(operation: OperationType) -> Option<usize> {
    use ExtensionOperation as E;
    match (operation, ExtensionOperation::of(operation)) {
        (OperationType::Fill, _)
        | (_, Some(E::Fill | E::RandomUniform | E::RandomStandardNormal)) => Some(0),
        (_, Some(E::RngBitGenerator)) => Some(1),
        _ => None,
    }
}

/// Makes the values such that an output is long which has no rows in its inputs; false if it is none.
fn lengthen_by_value(invocation: &mut Invocation, most: u64) -> bool {
    // Elements have eight bytes at most.
    let count = i32::try_from(most / 8).unwrap_or(i32::MAX);
    if let Some(at) = shape_by_value(invocation.signature.operation) {
        let shape = &mut invocation.inputs[at];
        shape.shape = Shape::known([1]);
        shape.value = Some(count.to_le_bytes().to_vec());
        return true;
    }
    if ExtensionOperation::of(invocation.signature.operation) != Some(ExtensionOperation::Range) {
        return false;
    }
    for (made, number) in invocation.inputs.iter_mut().zip([0, count, 1]) {
        made.shape = Shape::known([1]);
        made.value = Some(match made.operand.operand_type.element_size() {
            Some(8) => i64::from(number).to_le_bytes().to_vec(),
            _ if made.operand.operand_type == OperandType::TensorFloat32 => {
                (number as f32).to_le_bytes().to_vec()
            }
            _ => number.to_le_bytes().to_vec(),
        });
    }
    true
}

/// A model and a request with long rows, of this many bytes at most, if these arguments go together.
fn long_model(
    random: &mut Random,
    invocation: &mut Invocation,
    usual: u32,
    most: u64,
) -> Option<(Model, Request)> {
    if lengthen_by_value(invocation, most) {
        let outputs = output_bytes(invocation)?;
        let room = |output: usize| usize::try_from(outputs[output]).unwrap_or(ROOM);
        let may_be_fed = random.next().is_multiple_of(2);
        let (model, request) = model_of(random, invocation, |_| may_be_fed, room)?;
        nnhal_ops::validate(&model, HalVersion::LATEST).ok()?;
        return Some((model, request));
    }
    let shapes = long_shapes(random, invocation, usual);
    // What decides shapes mostly comes with the model: otherwise the reference engine computes.
    let is_number = |made: &Made| made.operand.operand_type == OperandType::TensorInt32;
    let is_of_numbers = invocation.inputs.first().is_some_and(is_number);
    let may_decide = random.next().is_multiple_of(4);
    let may_be_fed = |made: &Made| is_of_numbers || may_decide || !is_number(made);
    if !shapes.iter().flatten().flatten().any(|length| *length == STAND_IN) {
        return None;
    }
    // A little more than is wanted, since it is found by halves.
    let most = most + most / 8;
    if !lengthen(invocation, &shapes, STAND_IN, most) {
        return None;
    }
    let (small, _) = model_of(&mut Random(1), invocation, may_be_fed, |_| 4)?;
    nnhal_ops::validate(&small, HalVersion::LATEST).ok()?;
    // What grows with the length, and faster than that where outputs are tables of pairs.
    let mut long = most / (total_bytes(invocation)? / u64::from(STAND_IN) + 1);
    loop {
        let length = u32::try_from(long).ok().filter(|long| *long > 4 * STAND_IN)?;
        if lengthen(invocation, &shapes, length, most) && total_bytes(invocation)? <= most {
            break;
        }
        long /= 2;
    }
    let outputs = output_bytes(invocation)?;
    let room = |output: usize| usize::try_from(outputs[output]).unwrap_or(ROOM);
    model_of(random, invocation, may_be_fed, room)
}

/// A deadline that was missed by too much, confirmed by measuring again.
struct Late {
    what: &'static str,
    /// What the call took without a deadline, the deadline, and what it took with that.
    took: [f64; 3],
}

/// Makes a call with deadlines that pass while it computes, and without one before: a lateness that is too
/// much three times, and the greatest of those that were not.
fn lateness(
    what: &'static str,
    whole: f64,
    call: impl Fn(Option<f64>) -> f64,
) -> (Option<Late>, f64) {
    let mut greatest = 0.0_f64;
    if whole < WORTH_MEASURING {
        return (None, greatest);
    }
    for part in [0.2, 0.4, 0.6, 0.8] {
        let deadline = part * whole;
        let allowed = LATENESS.max(PART * deadline);
        let mut took = f64::INFINITY;
        // Whatever else kept the machine busy does not do so three times.
        for _ in 0..3 {
            took = took.min(call(Some(deadline)));
            if took - deadline <= allowed {
                break;
            }
        }
        let late = took - deadline;
        greatest = greatest.max(late);
        if late > allowed {
            return (Some(Late { what, took: [whole, deadline, took] }), greatest);
        }
    }
    (None, greatest)
}

#[test]
fn deadlines_are_kept_inside_of_a_row() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = number("NNHAL_TEST_CASES").unwrap_or(1);
    let most = number("NNHAL_TEST_BYTES").unwrap_or(LONG_BYTES);
    let only = std::env::var("NNHAL_TEST_OPERATION").ok();
    let mut random = Random(number("NNHAL_TEST_SEED").unwrap_or(0x9E37_79B9_7F4A_7C15).max(1));
    let memory_limit = (4 * most).max(1 << 30);
    let settings = Settings { memory_limit, ..Settings::default() };
    let device = nnhal_cpu::device(settings);
    let (mut complaints, mut tried, mut without) = (Vec::new(), 0, Vec::new());
    for signature in signatures() {
        let name = operation_name(signature.operation);
        if only.as_ref().is_some_and(|only| only.split(',').all(|only| only != name)) {
            continue;
        }
        let (mut done, mut greatest) = (0, 0.0_f64);
        // Most arguments do not go together.
        for _ in 0..cases * 600 {
            if done == cases {
                break;
            }
            let mut bytes: Vec<u8> = (0..400).map(|_| random.next().to_le_bytes()[0]).collect();
            let usual = [1, 1, 2, 2, 3, 4][usize::from(bytes[1]) % 6];
            // Mostly tame.
            bytes[2] |= 64;
            let is_sampled = random.next().is_multiple_of(2);
            let sampled = is_sampled.then(|| sampled(signature, &mut random)).flatten();
            let blind = || Invocation::of(signature, &mut Source::new(&bytes));
            let mut invocation = sampled.unwrap_or_else(blind);
            let made = long_model(&mut random, &mut invocation, usual, most);
            let Some((model, request)) = made else { continue };
            drop(invocation);
            (done, tried) = (done + 1, tried + 1);
            let (prepared, whole) = prepare(&*device, &model, Some(LONGEST));
            let (mut late, longest) =
                lateness("preparing", whole, |deadline| prepare(&*device, &model, deadline).1);
            greatest = greatest.max(longest);
            if let Ok(prepared) = prepared {
                // The first time memory is taken, which the next ones use again.
                execute(&*prepared, &request, Some(LONGEST));
                let (_, whole) = execute(&*prepared, &request, Some(LONGEST));
                let call = |deadline| execute(&*prepared, &request, deadline).1;
                let (of_execution, longest) = lateness("executing", whole, call);
                greatest = greatest.max(longest);
                late = late.or(of_execution);
            }
            if let Some(Late { what, took: [whole, deadline, took] }) = late {
                complaints.push(format!(
                    "{name}: {what}, {whole:.3} s long, took {took:.3} s with a deadline of \
                     {deadline:.3} s\n    {}",
                    described(&model)
                ));
                eprintln!("{}", complaints.last().unwrap());
            }
        }
        eprintln!("{name}: {done} cases, late by {:.1} ms at most", greatest * 1e3);
        if done == 0 {
            without.push(name);
        }
    }
    assert!(complaints.is_empty(), "{} of {tried}:\n{}", complaints.len(), complaints.join("\n"));
    assert!(without.is_empty(), "no arguments of {} go together", without.join(", "));
}
