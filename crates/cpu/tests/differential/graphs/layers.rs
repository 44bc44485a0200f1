//! Single operations, with the weights and parameters that they need.

use super::sketch::{Kind, SIGNED_UNIT_STEPS, Sketch, Steps, UNIT_STEPS, Value};
use super::windows::{Order, SAME, VALID, Window, int};
use super::{decoders, patterns};
use nnhal_hal::{OperandId, OperationType as Op};

/// Elements that a value has at most.
const MOST_ELEMENTS: u32 = 12_000;

/// Elements that a filter has at most, unless it has one unit.
const MOST_WEIGHTS: u32 = 40_000;

/// Channels that fit vectors, and such that do not.
const CHANNELS: [u32; 10] = [1, 2, 3, 4, 8, 13, 16, 17, 24, 32];

fn count(dimensions: &[u32]) -> u32 {
    dimensions.iter().product()
}

/// The input that a graph begins with.
pub fn image_input(sketch: &mut Sketch<'_>) -> Value {
    let dice = &mut sketch.dice;
    let batch = if dice.one_in(4) { 2 } else { 1 };
    let (height, width) = (dice.length(3, 11), dice.length(3, 11));
    let channels = dice.pick(&CHANNELS);
    sketch.input(&[batch, height, width, channels])
}

/// One more layer.
pub fn draw(sketch: &mut Sketch<'_>) {
    match sketch.dice.int(0, 25) {
        0..=3 => drop(convolution(sketch)),
        4 | 5 => padded_convolution(sketch),
        6 | 7 => drop(activation(sketch)),
        8..=10 => arithmetic(sketch),
        11..=14 => concatenation(sketch),
        15 => pool(sketch),
        16 => resize(sketch),
        17 => view(sketch),
        18 => transpose(sketch),
        19 => fully_connected(sketch),
        20 => reduce(sketch),
        21 => split(sketch),
        22 => slice(sketch),
        23 => softmax(sketch),
        24 => decoders::draw(sketch),
        _ => patterns::draw(sketch),
    }
}

/// A value that is an image: one that there is, or a view of it.
pub fn image(sketch: &mut Sketch<'_>) -> Value {
    let value = sketch.any();
    let dimensions = sketch.dimensions(value);
    if dimensions.len() == 4 {
        return value;
    }
    let depth = *dimensions.last().unwrap_or(&1);
    let rest = count(&dimensions) / depth;
    let height = (1..=rest.min(6)).rev().find(|height| rest.is_multiple_of(*height)).unwrap_or(1);
    reshape(sketch, value, &[1, height, rest / height, depth])
}

/// RESHAPE
pub fn reshape(sketch: &mut Sketch<'_>, value: Value, dimensions: &[u32]) -> Value {
    let lengths: Vec<i32> = dimensions.iter().copied().map(int).collect();
    let input = sketch.read(value);
    let lengths = sketch.integers(&[u32::try_from(lengths.len()).unwrap_or(0)], &lengths);
    let steps = sketch.steps(value);
    sketch.operation(Op::Reshape, &[input, lengths], dimensions, steps)
}

/// A fused activation: mostly none.
pub fn fused(sketch: &mut Sketch<'_>) -> i32 {
    sketch.dice.pick(&[0, 0, 0, 1, 2, 3])
}

fn convolution(sketch: &mut Sketch<'_>) -> Value {
    let image = image(sketch);
    convolution_of(sketch, image, None)
}

/// A convolution, of whichever operation.
pub fn convolution_of(sketch: &mut Sketch<'_>, image: Value, scheme: Option<i32>) -> Value {
    let order = Order::draw(sketch);
    let [batch, height, width, depth] = order.image(&sketch.dimensions(image));
    let operation = sketch.dice.int(0, 6);
    let window = Window::draw(sketch, [height, width], scheme, operation != 6);
    let [taps_y, taps_x] = window.taps();
    let most = (MOST_ELEMENTS / (batch * window.output[0] * window.output[1])).max(1);
    let (operation, filter, channel_dim, summed, extra) = match operation {
        0..=3 => {
            let summed = taps_y * taps_x * depth;
            let units = sketch.dice.pick(&CHANNELS).min(most).min((MOST_WEIGHTS / summed).max(1));
            (Op::Conv2d, [units, taps_y, taps_x, depth], 0, summed, vec![])
        }
        4 | 5 => {
            let multiplier = if sketch.dice.one_in(3) { 2 } else { 1 };
            let filter = [1, taps_y, taps_x, depth * multiplier];
            (Op::DepthwiseConv2d, filter, 3, taps_y * taps_x, vec![int(multiplier)])
        }
        _ => {
            let groups = (1..=4).rev().find(|it| depth.is_multiple_of(*it)).unwrap_or(1);
            let units = groups * sketch.dice.length(1, 4);
            let summed = taps_y * taps_x * (depth / groups);
            let filter = [units, taps_y, taps_x, depth / groups];
            (Op::GroupedConv2d, filter, 0, summed, vec![int(groups)])
        }
    };
    let input = sketch.read(image);
    let weights = sketch.weights(image, &filter, channel_dim, summed, true);
    let mut inputs = vec![input, weights[0], weights[1]];
    let activation = fused(sketch);
    let numbers = [window.padding(), window.strides().to_vec(), extra, vec![activation]].concat();
    inputs.extend(sketch.ints(&numbers));
    if operation == Op::GroupedConv2d {
        inputs.push(sketch.bool(order == Order::Nchw));
    } else {
        inputs.extend(window.dilations(sketch, order));
    }
    let units = filter[channel_dim as usize];
    let steps = sketch.any_steps();
    let [height, width] = window.output;
    let output = order.dimensions([batch, height, width, units]);
    sketch.operation(operation, &inputs, &output, steps)
}

/// PAD before a convolution that pads nothing.
fn padded_convolution(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let dimensions = sketch.dimensions(image);
    let borders: Vec<[u32; 2]> = (0..4)
        .map(|axis| {
            let most = if axis == 1 || axis == 2 { 2 } else { u32::from(sketch.dice.one_in(12)) };
            [sketch.dice.length(0, most), sketch.dice.length(0, most)]
        })
        .collect();
    let padded: Vec<u32> =
        dimensions.iter().zip(&borders).map(|(length, [a, b])| length + a + b).collect();
    if count(&padded) > MOST_ELEMENTS {
        return;
    }
    let input = sketch.read(image);
    let numbers: Vec<i32> = borders.concat().into_iter().map(int).collect();
    let borders = sketch.integers(&[4, 2], &numbers);
    let steps = sketch.steps(image);
    let padded = sketch.operation(Op::Pad, &[input, borders], &padded, steps);
    convolution_of(sketch, padded, Some(VALID));
}

/// A function of each element.
pub fn activation(sketch: &mut Sketch<'_>) -> Value {
    let value = sketch.any();
    let all = [Op::Relu, Op::Relu1, Op::Relu6, Op::Tanh, Op::Logistic, Op::HardSwish, Op::Elu];
    let of_floats = [Op::Abs, Op::Neg, Op::Sin];
    let operation = sketch.dice.pick(&[&all[..], &of_floats[..]].concat());
    activation_of(sketch, value, operation)
}

/// The operation on the value, or RELU if there is none for its type.
pub fn activation_of(sketch: &mut Sketch<'_>, value: Value, operation: Op) -> Value {
    let only_floats = matches!(operation, Op::Elu | Op::Abs | Op::Neg | Op::Sin);
    let operation = if only_floats && sketch.kind.is_quantized() { Op::Relu } else { operation };
    let mut inputs = vec![sketch.read(value)];
    if operation == Op::Elu {
        inputs.push(sketch.real(0.75));
    }
    let steps = match operation {
        Op::Logistic => UNIT_STEPS,
        Op::Tanh => SIGNED_UNIT_STEPS,
        Op::HardSwish => sketch.any_steps(),
        _ => sketch.steps(value),
    };
    let dimensions = sketch.dimensions(value);
    sketch.operation(operation, &inputs, &dimensions, steps)
}

/// ADD, SUB, MUL, MAXIMUM, MINIMUM or PRELU.
pub fn binary(sketch: &mut Sketch<'_>, operation: Op, a: Value, b: Value, steps: Steps) -> Value {
    let activation = fused(sketch);
    binary_with(sketch, operation, [a, b], activation, steps)
}

/// The same with this activation, where the operation can have one.
pub fn binary_with(
    sketch: &mut Sketch<'_>,
    operation: Op,
    [a, b]: [Value; 2],
    activation: i32,
    steps: Steps,
) -> Value {
    let [x, y] = [a, b].map(|value| sketch.dimensions(value));
    let mut inputs = vec![sketch.read(a), sketch.read(b)];
    if matches!(operation, Op::Add | Op::Sub | Op::Mul | Op::Div) {
        inputs.push(sketch.int(activation));
    }
    // Of two shapes that broadcast to one of them.
    let rank = x.len().max(y.len());
    let length = |shape: &[u32], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    let dimensions: Vec<u32> =
        (0..rank).map(|axis| length(&x, axis).max(length(&y, axis))).collect();
    sketch.operation(operation, &inputs, &dimensions, steps)
}

fn arithmetic(sketch: &mut Sketch<'_>) {
    let operation = sketch.dice.pick(&[
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Maximum,
        Op::Minimum,
        Op::Prelu,
    ]);
    let value = sketch.any();
    let dimensions = sketch.dimensions(value);
    let last = *dimensions.last().unwrap_or(&1);
    let alike: Vec<Value> = sketch
        .readable()
        .into_iter()
        .filter(|other| *other != value && sketch.dimensions(*other) == dimensions)
        .collect();
    let other = match sketch.dice.int(0, 9) {
        0..=4 if !alike.is_empty() => sketch.dice.pick(&alike),
        0 => value,
        1 => sketch.constant(&[1]),
        2 => sketch.constant(&[last]),
        3 => sketch.constant(&dimensions),
        4 => sketch.input(&dimensions),
        5 => sketch.input(&[last]),
        // What lies beside it, from the same input.
        _ => match (sketch.dimensions(value).len(), operation) {
            (4, Op::Add) => same_sized_convolution(sketch, value),
            _ => sketch.constant(&[last]),
        },
    };
    let steps = sketch.any_steps();
    if operation != Op::Prelu && sketch.dice.coin() {
        binary(sketch, operation, other, value, steps);
    } else {
        binary(sketch, operation, value, other, steps);
    }
}

/// CONV_2D of 1x1 or 3x3 whose result has the image's shape.
fn same_sized_convolution(sketch: &mut Sketch<'_>, image: Value) -> Value {
    let dimensions = sketch.dimensions(image);
    let depth = dimensions[3];
    let taps = sketch.dice.pick(&[1, 3]);
    let input = sketch.read(image);
    let filter = [depth, taps, taps, depth];
    let weights = sketch.weights(image, &filter, 0, taps * taps * depth, true);
    let activation = fused(sketch);
    let numbers = sketch.ints(&[SAME, 1, 1, activation]);
    let inputs = [vec![input, weights[0], weights[1]], numbers].concat();
    let steps = sketch.any_steps();
    sketch.operation(Op::Conv2d, &inputs, &dimensions, steps)
}

/// CONCATENATION of what fits together, with constants and inputs of the graph, a value twice.
fn concatenation(sketch: &mut Sketch<'_>) {
    let first = sketch.any();
    let dimensions = sketch.dimensions(first);
    let rank = dimensions.len();
    let axis = if sketch.dice.coin() {
        rank - 1
    } else {
        sketch.dice.length(0, u32::try_from(rank - 1).unwrap_or(0)) as usize
    };
    let fits = |other: &[u32]| {
        let differs = |at: usize| at != axis && other[at] != dimensions[at];
        other.len() == rank && !(0..rank).any(differs)
    };
    let fitting: Vec<Value> =
        sketch.readable().into_iter().filter(|other| fits(&sketch.dimensions(*other))).collect();
    let mut parts = vec![first];
    for _ in 0..sketch.dice.length(1, 3) {
        let mut others = dimensions.clone();
        others[axis] = sketch.dice.length(1, 4);
        let part = match sketch.dice.int(0, 9) {
            0 => sketch.constant(&others),
            1 => sketch.input(&others),
            2 => first,
            3..=5 => {
                // Computed for this alone.
                let operation = sketch.dice.pick(&[Op::Relu, Op::Tanh, Op::HardSwish]);
                let of = sketch.dice.pick(&fitting);
                activation_of(sketch, of, operation)
            }
            6 | 7 if rank == 4 && axis == 3 => {
                let of = sketch.dice.pick(&fitting);
                same_sized_convolution(sketch, of)
            }
            _ => sketch.dice.pick(&fitting),
        };
        parts.push(part);
    }
    let turn = sketch.dice.length(0, u32::try_from(parts.len() - 1).unwrap_or(0)) as usize;
    parts.rotate_left(turn);
    let mut joined = dimensions;
    joined[axis] = parts.iter().map(|part| sketch.dimensions(*part)[axis]).sum();
    if count(&joined) > MOST_ELEMENTS {
        return;
    }
    let mut inputs: Vec<OperandId> = parts.iter().map(|part| sketch.read(*part)).collect();
    inputs.push(sketch.int(i32::try_from(axis).unwrap_or(0)));
    let steps = if sketch.dice.coin() { sketch.steps(first) } else { sketch.any_steps() };
    sketch.operation(Op::Concatenation, &inputs, &joined, steps);
}

fn pool(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let order = Order::draw(sketch);
    let [batch, height, width, depth] = order.image(&sketch.dimensions(image));
    let window = Window::draw(sketch, [height, width], None, false);
    let mut operations = vec![Op::AveragePool2d, Op::MaxPool2d];
    if !sketch.kind.is_quantized() {
        operations.push(Op::L2Pool2d);
    }
    let operation = sketch.dice.pick(&operations);
    let [height, width] = window.taps().map(int);
    let activation = fused(sketch);
    let parts =
        [window.padding(), window.strides().to_vec(), vec![width, height, activation]].concat();
    let mut inputs = vec![sketch.read(image)];
    inputs.extend(sketch.ints(&parts));
    if order == Order::Nchw {
        inputs.push(sketch.bool(true));
    }
    let steps = sketch.steps(image);
    let output = order.dimensions([batch, window.output[0], window.output[1], depth]);
    sketch.operation(operation, &inputs, &output, steps);
}

fn resize(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let order = Order::draw(sketch);
    let [batch, _, _, depth] = order.image(&sketch.dimensions(image));
    let (height, width) = (sketch.dice.length(1, 14), sketch.dice.length(1, 14));
    let output = order.dimensions([batch, height, width, depth]);
    if count(&output) > MOST_ELEMENTS {
        return;
    }
    let operation = sketch.dice.pick(&[Op::ResizeBilinear, Op::ResizeNearestNeighbor]);
    let (corners, centers) = sketch.dice.pick(&[(false, false), (true, false), (false, true)]);
    let mut inputs = vec![sketch.read(image)];
    inputs.extend(sketch.ints(&[int(width), int(height)]));
    inputs.extend([order == Order::Nchw, corners, centers].map(|flag| sketch.bool(flag)));
    let steps = sketch.steps(image);
    sketch.operation(operation, &inputs, &output, steps);
}

/// RESHAPE, EXPAND_DIMS or SQUEEZE.
fn view(sketch: &mut Sketch<'_>) {
    let value = sketch.any();
    let dimensions = sketch.dimensions(value);
    let steps = sketch.steps(value);
    let first_of_one = dimensions.iter().position(|length| *length == 1);
    match (sketch.dice.int(0, 3), first_of_one) {
        (0, _) if dimensions.len() < 4 => {
            let at = sketch.dice.length(0, u32::try_from(dimensions.len()).unwrap_or(0));
            let mut deeper = dimensions;
            deeper.insert(at as usize, 1);
            let inputs = [sketch.read(value), sketch.int(int(at))];
            sketch.operation(Op::ExpandDims, &inputs, &deeper, steps);
        }
        (1, Some(axis)) if dimensions.len() > 1 => {
            let mut flatter = dimensions;
            flatter.remove(axis);
            let axes = [i32::try_from(axis).unwrap_or(0)];
            let inputs = [sketch.read(value), sketch.integers(&[1], &axes)];
            sketch.operation(Op::Squeeze, &inputs, &flatter, steps);
        }
        _ => {
            let all = count(&dimensions);
            let last = *dimensions.last().unwrap_or(&1);
            let shape = match sketch.dice.int(0, 3) {
                0 => vec![1, all],
                1 => vec![all],
                2 => vec![all / last, last],
                _ => vec![1, 1, all / last, last],
            };
            reshape(sketch, value, &shape);
        }
    }
}

fn transpose(sketch: &mut Sketch<'_>) {
    let value = sketch.any();
    let rank = sketch.dimensions(value).len();
    let axes = sketch.dice.permutation(rank);
    transposed(sketch, value, &axes);
}

/// A value with its axes in this order.
pub fn transposed(sketch: &mut Sketch<'_>, value: Value, axes: &[usize]) -> Value {
    let dimensions = sketch.dimensions(value);
    let output: Vec<u32> = axes.iter().map(|axis| dimensions[*axis]).collect();
    let axes: Vec<i32> = axes.iter().map(|axis| i32::try_from(*axis).unwrap_or(0)).collect();
    let inputs = [sketch.read(value), sketch.integers(&[int_length(&axes)], &axes)];
    let steps = sketch.steps(value);
    sketch.operation(Op::Transpose, &inputs, &output, steps)
}

fn int_length(numbers: &[i32]) -> u32 {
    u32::try_from(numbers.len()).expect("few numbers")
}

fn fully_connected(sketch: &mut Sketch<'_>) {
    let value = sketch.any();
    let dimensions = sketch.dimensions(value);
    let all = count(&dimensions);
    let last = *dimensions.last().unwrap_or(&1);
    let is_flat = all <= 2000 && sketch.dice.coin();
    // More than two axes are flattened, whichever the weights' second length is.
    let (rows, inner) = match dimensions.len() {
        1 => return,
        2 => (dimensions[0], last),
        _ if is_flat => (1, all),
        _ => (all / last, last),
    };
    let most = (MOST_ELEMENTS / rows).min(MOST_WEIGHTS / inner).max(1);
    let units = sketch.dice.pick(&CHANNELS).min(most);
    let input = sketch.read(value);
    let weights = sketch.weights(value, &[units, inner], 0, inner, false);
    let activation = fused(sketch);
    let inputs = [input, weights[0], weights[1], sketch.int(activation)];
    let steps = sketch.any_steps();
    sketch.operation(Op::FullyConnected, &inputs, &[rows, units], steps);
}

/// MEAN, or another reduction.
fn reduce(sketch: &mut Sketch<'_>) {
    let value = sketch.any();
    let operation = sketch.dice.pick(&[Op::Mean, Op::Mean, Op::ReduceMax, Op::ReduceMin]);
    let rank = sketch.dimensions(value).len();
    let axes = if rank == 4 && sketch.dice.coin() {
        vec![1, 2]
    } else {
        vec![sketch.dice.length(0, u32::try_from(rank - 1).unwrap_or(0)) as usize]
    };
    let keeps = rank <= axes.len() || sketch.dice.coin();
    reduce_to(sketch, operation, value, &axes, keeps);
}

/// A reduction along these axes, which are kept with length 1 or go.
pub fn reduce_to(
    sketch: &mut Sketch<'_>,
    operation: Op,
    value: Value,
    axes: &[usize],
    keeps: bool,
) -> Value {
    let dimensions = sketch.dimensions(value);
    let lengths = dimensions.iter().enumerate();
    let output: Vec<u32> = lengths
        .filter_map(|(axis, length)| match axes.contains(&axis) {
            true if keeps => Some(1),
            true => None,
            false => Some(*length),
        })
        .collect();
    let axes: Vec<i32> = axes.iter().map(|axis| i32::try_from(*axis).unwrap_or(0)).collect();
    let input = sketch.read(value);
    let axes = sketch.integers(&[int_length(&axes)], &axes);
    let keeps =
        if operation == Op::Mean { sketch.int(i32::from(keeps)) } else { sketch.bool(keeps) };
    let steps = sketch.steps(value);
    sketch.operation(operation, &[input, axes, keeps], &output, steps)
}

fn split(sketch: &mut Sketch<'_>) {
    let value = sketch.any();
    let dimensions = sketch.dimensions(value);
    let parts = sketch.dice.length(2, 4);
    let fitting: Vec<usize> =
        (0..dimensions.len()).filter(|axis| dimensions[*axis].is_multiple_of(parts)).collect();
    let Some(axis) = fitting.last().copied() else { return };
    split_of(sketch, value, axis, parts);
}

/// So many equal parts of a value.
pub fn split_of(sketch: &mut Sketch<'_>, value: Value, axis: usize, parts: u32) -> Vec<Value> {
    let mut part = sketch.dimensions(value);
    part[axis] /= parts;
    let input = sketch.read(value);
    let numbers = sketch.ints(&[i32::try_from(axis).unwrap_or(0), int(parts)]);
    let inputs = [vec![input], numbers].concat();
    let steps = sketch.steps(value);
    sketch.operation_with(Op::Split, &inputs, &vec![part; parts as usize], steps)
}

fn slice(sketch: &mut Sketch<'_>) {
    let value = sketch.any();
    let dimensions = sketch.dimensions(value);
    let sizes: Vec<u32> =
        dimensions.iter().map(|length| sketch.dice.length(length.div_ceil(2), *length)).collect();
    let begins: Vec<u32> = dimensions
        .iter()
        .zip(&sizes)
        .map(|(length, size)| sketch.dice.length(0, length - size))
        .collect();
    let [begins, lengths] =
        [&begins, &sizes].map(|numbers| numbers.iter().copied().map(int).collect::<Vec<_>>());
    let rank = int_length(&begins);
    let inputs =
        [sketch.read(value), sketch.integers(&[rank], &begins), sketch.integers(&[rank], &lengths)];
    let steps = sketch.steps(value);
    sketch.operation(Op::Slice, &inputs, &sizes, steps);
}

/// SOFTMAX of the last axis. Of bytes it is not read on: it may be a step away.
fn softmax(sketch: &mut Sketch<'_>) {
    let value = sketch.any();
    let output = softmax_of(sketch, value);
    if sketch.kind != Kind::Float32 {
        sketch.ends_with(output);
    }
}

/// SOFTMAX of the last axis.
pub fn softmax_of(sketch: &mut Sketch<'_>, value: Value) -> Value {
    let dimensions = sketch.dimensions(value);
    let inputs = [sketch.read(value), sketch.real(0.8), sketch.int(-1)];
    sketch.operation(Op::Softmax, &inputs, &dimensions, UNIT_STEPS)
}
