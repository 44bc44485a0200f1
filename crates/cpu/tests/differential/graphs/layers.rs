//! Single operations, with the weights and parameters that they need.

use super::builder::{GraphBuilder, Kind, SIGNED_UNIT_STEPS, Steps, UNIT_STEPS, Value};
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
pub fn image_input(builder: &mut GraphBuilder<'_>) -> Value {
    let random = &mut builder.random;
    let batch = if random.one_in(4) { 2 } else { 1 };
    let (height, width) = (random.length(3, 11), random.length(3, 11));
    let channels = random.pick(&CHANNELS);
    builder.input(&[batch, height, width, channels])
}

/// One more layer.
pub fn draw(builder: &mut GraphBuilder<'_>) {
    match builder.random.int(0, 25) {
        0..=3 => drop(convolution(builder)),
        4 | 5 => padded_convolution(builder),
        6 | 7 => drop(activation(builder)),
        8..=10 => arithmetic(builder),
        11..=14 => concatenation(builder),
        15 => pool(builder),
        16 => resize(builder),
        17 => view(builder),
        18 => transpose(builder),
        19 => fully_connected(builder),
        20 => reduce(builder),
        21 => split(builder),
        22 => slice(builder),
        23 => softmax(builder),
        24 => decoders::draw(builder),
        _ => patterns::draw(builder),
    }
}

/// A value that is an image: one that there is, or a view of it.
pub fn image(builder: &mut GraphBuilder<'_>) -> Value {
    let value = builder.any();
    let dimensions = builder.dimensions(value);
    if dimensions.len() == 4 {
        return value;
    }
    let depth = *dimensions.last().unwrap_or(&1);
    let rest = count(&dimensions) / depth;
    let height = (1..=rest.min(6)).rev().find(|height| rest.is_multiple_of(*height)).unwrap_or(1);
    reshape(builder, value, &[1, height, rest / height, depth])
}

/// RESHAPE
pub fn reshape(builder: &mut GraphBuilder<'_>, value: Value, dimensions: &[u32]) -> Value {
    let lengths: Vec<i32> = dimensions.iter().copied().map(int).collect();
    let input = builder.read(value);
    let lengths = builder.integers(&[u32::try_from(lengths.len()).unwrap_or(0)], &lengths);
    let steps = builder.steps(value);
    builder.operation(Op::Reshape, &[input, lengths], dimensions, steps)
}

/// A fused activation: mostly none.
pub fn fused(builder: &mut GraphBuilder<'_>) -> i32 {
    builder.random.pick(&[0, 0, 0, 1, 2, 3])
}

fn convolution(builder: &mut GraphBuilder<'_>) -> Value {
    let image = image(builder);
    convolution_of(builder, image, None)
}

/// A convolution, of whichever operation.
pub fn convolution_of(builder: &mut GraphBuilder<'_>, image: Value, scheme: Option<i32>) -> Value {
    let order = Order::draw(builder);
    let [batch, height, width, depth] = order.image(&builder.dimensions(image));
    let operation = builder.random.int(0, 6);
    let window = Window::draw(builder, [height, width], scheme, operation != 6);
    let [taps_y, taps_x] = window.taps();
    let most = (MOST_ELEMENTS / (batch * window.output[0] * window.output[1])).max(1);
    let (operation, filter, channel_dim, summed, extra) = match operation {
        0..=3 => {
            let summed = taps_y * taps_x * depth;
            let units =
                builder.random.pick(&CHANNELS).min(most).min((MOST_WEIGHTS / summed).max(1));
            (Op::Conv2d, [units, taps_y, taps_x, depth], 0, summed, vec![])
        }
        4 | 5 => {
            let multiplier = if builder.random.one_in(3) { 2 } else { 1 };
            let filter = [1, taps_y, taps_x, depth * multiplier];
            (Op::DepthwiseConv2d, filter, 3, taps_y * taps_x, vec![int(multiplier)])
        }
        _ => {
            let of_several = (1..=4).rev().find(|it| depth.is_multiple_of(*it)).unwrap_or(1);
            let groups = if builder.random.one_in(2) { depth } else { of_several };
            let units = groups * builder.random.length(1, 4);
            let summed = taps_y * taps_x * (depth / groups);
            let filter = [units, taps_y, taps_x, depth / groups];
            (Op::GroupedConv2d, filter, 0, summed, vec![int(groups)])
        }
    };
    let input = builder.read(image);
    let weights = builder.weights(image, &filter, channel_dim, summed, true);
    let mut inputs = vec![input, weights[0], weights[1]];
    let activation = fused(builder);
    let numbers = [window.padding(), window.strides().to_vec(), extra, vec![activation]].concat();
    inputs.extend(builder.ints(&numbers));
    if operation == Op::GroupedConv2d {
        inputs.push(builder.bool(order == Order::Nchw));
    } else {
        inputs.extend(window.dilations(builder, order));
    }
    let units = filter[channel_dim as usize];
    let steps = builder.any_steps();
    let [height, width] = window.output;
    let output = order.dimensions([batch, height, width, units]);
    builder.operation(operation, &inputs, &output, steps)
}

/// PAD before a convolution that pads nothing.
fn padded_convolution(builder: &mut GraphBuilder<'_>) {
    let image = image(builder);
    let dimensions = builder.dimensions(image);
    let borders: Vec<[u32; 2]> = (0..4)
        .map(|axis| {
            let most =
                if axis == 1 || axis == 2 { 2 } else { u32::from(builder.random.one_in(12)) };
            [builder.random.length(0, most), builder.random.length(0, most)]
        })
        .collect();
    let padded: Vec<u32> =
        dimensions.iter().zip(&borders).map(|(length, [a, b])| length + a + b).collect();
    if count(&padded) > MOST_ELEMENTS {
        return;
    }
    let input = builder.read(image);
    let numbers: Vec<i32> = borders.concat().into_iter().map(int).collect();
    let borders = builder.integers(&[4, 2], &numbers);
    let steps = builder.steps(image);
    let padded = builder.operation(Op::Pad, &[input, borders], &padded, steps);
    convolution_of(builder, padded, Some(VALID));
}

/// A function of each element.
pub fn activation(builder: &mut GraphBuilder<'_>) -> Value {
    let value = builder.any();
    let all = [Op::Relu, Op::Relu1, Op::Relu6, Op::Tanh, Op::Logistic, Op::HardSwish, Op::Elu];
    let of_floats = [Op::Abs, Op::Neg, Op::Sin];
    let operation = builder.random.pick(&[&all[..], &of_floats[..]].concat());
    activation_of(builder, value, operation)
}

/// The operation on the value, or RELU if there is none for its type.
pub fn activation_of(builder: &mut GraphBuilder<'_>, value: Value, operation: Op) -> Value {
    let only_floats = matches!(operation, Op::Elu | Op::Abs | Op::Neg | Op::Sin);
    let operation = if only_floats && builder.kind.is_quantized() { Op::Relu } else { operation };
    let mut inputs = vec![builder.read(value)];
    if operation == Op::Elu {
        inputs.push(builder.real(0.75));
    }
    let steps = match operation {
        Op::Logistic => UNIT_STEPS,
        Op::Tanh => SIGNED_UNIT_STEPS,
        Op::HardSwish => builder.any_steps(),
        _ => builder.steps(value),
    };
    let dimensions = builder.dimensions(value);
    builder.operation(operation, &inputs, &dimensions, steps)
}

/// ADD, SUB, MUL, MAXIMUM, MINIMUM or PRELU.
pub fn binary(
    builder: &mut GraphBuilder<'_>,
    operation: Op,
    a: Value,
    b: Value,
    steps: Steps,
) -> Value {
    let activation = fused(builder);
    binary_with(builder, operation, [a, b], activation, steps)
}

/// The same with this activation, where the operation can have one.
pub fn binary_with(
    builder: &mut GraphBuilder<'_>,
    operation: Op,
    [a, b]: [Value; 2],
    activation: i32,
    steps: Steps,
) -> Value {
    let [x, y] = [a, b].map(|value| builder.dimensions(value));
    let mut inputs = vec![builder.read(a), builder.read(b)];
    if matches!(operation, Op::Add | Op::Sub | Op::Mul | Op::Div) {
        inputs.push(builder.int(activation));
    }
    // Of two shapes that broadcast to one of them.
    let rank = x.len().max(y.len());
    let length = |shape: &[u32], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    let dimensions: Vec<u32> =
        (0..rank).map(|axis| length(&x, axis).max(length(&y, axis))).collect();
    builder.operation(operation, &inputs, &dimensions, steps)
}

fn arithmetic(builder: &mut GraphBuilder<'_>) {
    let operation = builder.random.pick(&[
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Maximum,
        Op::Minimum,
        Op::Prelu,
    ]);
    let value = builder.any();
    let dimensions = builder.dimensions(value);
    let last = *dimensions.last().unwrap_or(&1);
    let alike: Vec<Value> = builder
        .readable()
        .into_iter()
        .filter(|other| *other != value && builder.dimensions(*other) == dimensions)
        .collect();
    let other = match builder.random.int(0, 9) {
        0..=4 if !alike.is_empty() => builder.random.pick(&alike),
        0 => value,
        1 => builder.constant(&[1]),
        2 => builder.constant(&[last]),
        3 => builder.constant(&dimensions),
        4 => builder.input(&dimensions),
        5 => builder.input(&[last]),
        // What is beside it, from the same input.
        _ => match (builder.dimensions(value).len(), operation) {
            (4, Op::Add) => same_sized_convolution(builder, value),
            _ => builder.constant(&[last]),
        },
    };
    let steps = builder.any_steps();
    if operation != Op::Prelu && builder.random.coin() {
        binary(builder, operation, other, value, steps);
    } else {
        binary(builder, operation, value, other, steps);
    }
}

/// CONV_2D of 1x1 or 3x3 whose result has the image's shape.
fn same_sized_convolution(builder: &mut GraphBuilder<'_>, image: Value) -> Value {
    let dimensions = builder.dimensions(image);
    let depth = dimensions[3];
    let taps = builder.random.pick(&[1, 3]);
    let input = builder.read(image);
    let filter = [depth, taps, taps, depth];
    let weights = builder.weights(image, &filter, 0, taps * taps * depth, true);
    let activation = fused(builder);
    let numbers = builder.ints(&[SAME, 1, 1, activation]);
    let inputs = [vec![input, weights[0], weights[1]], numbers].concat();
    let steps = builder.any_steps();
    builder.operation(Op::Conv2d, &inputs, &dimensions, steps)
}

/// CONCATENATION of what fits together, with constants and inputs of the graph, a value twice.
fn concatenation(builder: &mut GraphBuilder<'_>) {
    let first = builder.any();
    let dimensions = builder.dimensions(first);
    let rank = dimensions.len();
    let axis = if builder.random.coin() {
        rank - 1
    } else {
        builder.random.length(0, u32::try_from(rank - 1).unwrap_or(0)) as usize
    };
    let fits = |other: &[u32]| {
        let differs = |at: usize| at != axis && other[at] != dimensions[at];
        other.len() == rank && !(0..rank).any(differs)
    };
    let fitting: Vec<Value> =
        builder.readable().into_iter().filter(|other| fits(&builder.dimensions(*other))).collect();
    let mut parts = vec![first];
    for _ in 0..builder.random.length(1, 3) {
        let mut others = dimensions.clone();
        others[axis] = builder.random.length(1, 4);
        let part = match builder.random.int(0, 9) {
            0 => builder.constant(&others),
            1 => builder.input(&others),
            2 => first,
            3..=5 => {
                // Computed for this alone.
                let operation = builder.random.pick(&[Op::Relu, Op::Tanh, Op::HardSwish]);
                let of = builder.random.pick(&fitting);
                activation_of(builder, of, operation)
            }
            6 | 7 if rank == 4 && axis == 3 => {
                let of = builder.random.pick(&fitting);
                same_sized_convolution(builder, of)
            }
            _ => builder.random.pick(&fitting),
        };
        parts.push(part);
    }
    let turn = builder.random.length(0, u32::try_from(parts.len() - 1).unwrap_or(0)) as usize;
    parts.rotate_left(turn);
    let mut joined = dimensions;
    joined[axis] = parts.iter().map(|part| builder.dimensions(*part)[axis]).sum();
    if count(&joined) > MOST_ELEMENTS {
        return;
    }
    let mut inputs: Vec<OperandId> = parts.iter().map(|part| builder.read(*part)).collect();
    inputs.push(builder.int(i32::try_from(axis).unwrap_or(0)));
    let steps = if builder.random.coin() { builder.steps(first) } else { builder.any_steps() };
    builder.operation(Op::Concatenation, &inputs, &joined, steps);
}

fn pool(builder: &mut GraphBuilder<'_>) {
    let image = image(builder);
    let order = Order::draw(builder);
    let [batch, height, width, depth] = order.image(&builder.dimensions(image));
    let window = Window::draw(builder, [height, width], None, false);
    let mut operations = vec![Op::AveragePool2d, Op::MaxPool2d];
    if !builder.kind.is_quantized() {
        operations.push(Op::L2Pool2d);
    }
    let operation = builder.random.pick(&operations);
    let [height, width] = window.taps().map(int);
    let activation = fused(builder);
    let parts =
        [window.padding(), window.strides().to_vec(), vec![width, height, activation]].concat();
    let mut inputs = vec![builder.read(image)];
    inputs.extend(builder.ints(&parts));
    if order == Order::Nchw {
        inputs.push(builder.bool(true));
    }
    let steps = builder.steps(image);
    let output = order.dimensions([batch, window.output[0], window.output[1], depth]);
    builder.operation(operation, &inputs, &output, steps);
}

fn resize(builder: &mut GraphBuilder<'_>) {
    let image = image(builder);
    let order = Order::draw(builder);
    let [batch, _, _, depth] = order.image(&builder.dimensions(image));
    let (height, width) = (builder.random.length(1, 14), builder.random.length(1, 14));
    let output = order.dimensions([batch, height, width, depth]);
    if count(&output) > MOST_ELEMENTS {
        return;
    }
    let operation = builder.random.pick(&[Op::ResizeBilinear, Op::ResizeNearestNeighbor]);
    let (corners, centers) = builder.random.pick(&[(false, false), (true, false), (false, true)]);
    let mut inputs = vec![builder.read(image)];
    inputs.extend(builder.ints(&[int(width), int(height)]));
    inputs.extend([order == Order::Nchw, corners, centers].map(|flag| builder.bool(flag)));
    let steps = builder.steps(image);
    builder.operation(operation, &inputs, &output, steps);
}

/// RESHAPE, EXPAND_DIMS or SQUEEZE.
fn view(builder: &mut GraphBuilder<'_>) {
    let value = builder.any();
    let dimensions = builder.dimensions(value);
    let steps = builder.steps(value);
    let first_of_one = dimensions.iter().position(|length| *length == 1);
    match (builder.random.int(0, 3), first_of_one) {
        (0, _) if dimensions.len() < 4 => {
            let at = builder.random.length(0, u32::try_from(dimensions.len()).unwrap_or(0));
            let mut deeper = dimensions;
            deeper.insert(at as usize, 1);
            let inputs = [builder.read(value), builder.int(int(at))];
            builder.operation(Op::ExpandDims, &inputs, &deeper, steps);
        }
        (1, Some(axis)) if dimensions.len() > 1 => {
            let mut flatter = dimensions;
            flatter.remove(axis);
            let axes = [i32::try_from(axis).unwrap_or(0)];
            let inputs = [builder.read(value), builder.integers(&[1], &axes)];
            builder.operation(Op::Squeeze, &inputs, &flatter, steps);
        }
        _ => {
            let all = count(&dimensions);
            let last = *dimensions.last().unwrap_or(&1);
            let shape = match builder.random.int(0, 3) {
                0 => vec![1, all],
                1 => vec![all],
                2 => vec![all / last, last],
                _ => vec![1, 1, all / last, last],
            };
            reshape(builder, value, &shape);
        }
    }
}

fn transpose(builder: &mut GraphBuilder<'_>) {
    let value = builder.any();
    let rank = builder.dimensions(value).len();
    let axes = builder.random.permutation(rank);
    transposed(builder, value, &axes);
}

/// A value with its axes in this order.
pub fn transposed(builder: &mut GraphBuilder<'_>, value: Value, axes: &[usize]) -> Value {
    let dimensions = builder.dimensions(value);
    let output: Vec<u32> = axes.iter().map(|axis| dimensions[*axis]).collect();
    let axes: Vec<i32> = axes.iter().map(|axis| i32::try_from(*axis).unwrap_or(0)).collect();
    let inputs = [builder.read(value), builder.integers(&[int_length(&axes)], &axes)];
    let steps = builder.steps(value);
    builder.operation(Op::Transpose, &inputs, &output, steps)
}

fn int_length(numbers: &[i32]) -> u32 {
    u32::try_from(numbers.len()).expect("few numbers")
}

fn fully_connected(builder: &mut GraphBuilder<'_>) {
    let value = builder.any();
    let dimensions = builder.dimensions(value);
    let all = count(&dimensions);
    let last = *dimensions.last().unwrap_or(&1);
    let is_flat = all <= 2000 && builder.random.coin();
    // More than two axes are flattened, whichever the weights' second length is.
    let (rows, inner) = match dimensions.len() {
        1 => return,
        2 => (dimensions[0], last),
        _ if is_flat => (1, all),
        _ => (all / last, last),
    };
    let most = (MOST_ELEMENTS / rows).min(MOST_WEIGHTS / inner).max(1);
    let units = builder.random.pick(&CHANNELS).min(most);
    let input = builder.read(value);
    let weights = builder.weights(value, &[units, inner], 0, inner, false);
    let activation = fused(builder);
    let inputs = [input, weights[0], weights[1], builder.int(activation)];
    let steps = builder.any_steps();
    builder.operation(Op::FullyConnected, &inputs, &[rows, units], steps);
}

/// MEAN, or another reduction.
fn reduce(builder: &mut GraphBuilder<'_>) {
    let value = builder.any();
    let operation = builder.random.pick(&[Op::Mean, Op::Mean, Op::ReduceMax, Op::ReduceMin]);
    let rank = builder.dimensions(value).len();
    let axes = if rank == 4 && builder.random.coin() {
        vec![1, 2]
    } else {
        vec![builder.random.length(0, u32::try_from(rank - 1).unwrap_or(0)) as usize]
    };
    let keeps = rank <= axes.len() || builder.random.coin();
    reduce_to(builder, operation, value, &axes, keeps);
}

/// A reduction along these axes, which are kept with length 1 or go.
pub fn reduce_to(
    builder: &mut GraphBuilder<'_>,
    operation: Op,
    value: Value,
    axes: &[usize],
    keeps: bool,
) -> Value {
    let dimensions = builder.dimensions(value);
    let lengths = dimensions.iter().enumerate();
    let output: Vec<u32> = lengths
        .filter_map(|(axis, length)| match axes.contains(&axis) {
            true if keeps => Some(1),
            true => None,
            false => Some(*length),
        })
        .collect();
    let axes: Vec<i32> = axes.iter().map(|axis| i32::try_from(*axis).unwrap_or(0)).collect();
    let input = builder.read(value);
    let axes = builder.integers(&[int_length(&axes)], &axes);
    let keeps =
        if operation == Op::Mean { builder.int(i32::from(keeps)) } else { builder.bool(keeps) };
    let steps = builder.steps(value);
    builder.operation(operation, &[input, axes, keeps], &output, steps)
}

fn split(builder: &mut GraphBuilder<'_>) {
    let value = builder.any();
    let dimensions = builder.dimensions(value);
    let parts = builder.random.length(2, 4);
    let fitting: Vec<usize> =
        (0..dimensions.len()).filter(|axis| dimensions[*axis].is_multiple_of(parts)).collect();
    let Some(axis) = fitting.last().copied() else { return };
    split_of(builder, value, axis, parts);
}

/// This many equal parts of a value.
pub fn split_of(
    builder: &mut GraphBuilder<'_>,
    value: Value,
    axis: usize,
    parts: u32,
) -> Vec<Value> {
    let mut part = builder.dimensions(value);
    part[axis] /= parts;
    let input = builder.read(value);
    let numbers = builder.ints(&[i32::try_from(axis).unwrap_or(0), int(parts)]);
    let inputs = [vec![input], numbers].concat();
    let steps = builder.steps(value);
    builder.operation_with(Op::Split, &inputs, &vec![part; parts as usize], steps)
}

fn slice(builder: &mut GraphBuilder<'_>) {
    let value = builder.any();
    let dimensions = builder.dimensions(value);
    let sizes: Vec<u32> = dimensions
        .iter()
        .map(|length| builder.random.length(length.div_ceil(2), *length))
        .collect();
    let begins: Vec<u32> = dimensions
        .iter()
        .zip(&sizes)
        .map(|(length, size)| builder.random.length(0, length - size))
        .collect();
    let [begins, lengths] =
        [&begins, &sizes].map(|numbers| numbers.iter().copied().map(int).collect::<Vec<_>>());
    let rank = int_length(&begins);
    let inputs = [
        builder.read(value),
        builder.integers(&[rank], &begins),
        builder.integers(&[rank], &lengths),
    ];
    let steps = builder.steps(value);
    builder.operation(Op::Slice, &inputs, &sizes, steps);
}

/// SOFTMAX of the last axis. Of bytes it is not read on: it may be a step away.
fn softmax(builder: &mut GraphBuilder<'_>) {
    let value = builder.any();
    let output = softmax_of(builder, value);
    if builder.kind != Kind::Float32 {
        builder.ends_with(output);
    }
}

/// SOFTMAX of the last axis.
pub fn softmax_of(builder: &mut GraphBuilder<'_>, value: Value) -> Value {
    let dimensions = builder.dimensions(value);
    let inputs = [builder.read(value), builder.real(0.8), builder.int(-1)];
    builder.operation(Op::Softmax, &inputs, &dimensions, UNIT_STEPS)
}
