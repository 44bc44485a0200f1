//! Groups of operations that converters write for one layer of a network.

use super::layers::{activation_of, binary, convolution_of, image, reduce_to, reshape, softmax_of};
use super::sketch::{Sketch, Value};
use hal::OperationType as Op;

/// One of them.
pub fn draw(sketch: &mut Sketch<'_>) {
    let floats = !sketch.kind.is_quantized();
    match sketch.dice.int(0, 6) {
        0 => hard_swish(sketch),
        1 => leaky_relu(sketch),
        2 => swish(sketch),
        3 => squeeze_and_excite(sketch),
        4 => residual(sketch),
        5 if floats => layer_norm(sketch),
        _ if floats => attention(sketch),
        _ => swish(sketch),
    }
}

/// `x * relu6(x + 3) / 6`
fn hard_swish(sketch: &mut Sketch<'_>) {
    let x = sketch.any();
    let three = sketch.constant_of(&[1], vec![3.0]);
    let sixth = sketch.constant_of(&[1], vec![1.0 / 6.0]);
    let sum = any_steps_binary(sketch, Op::Add, x, three);
    let gate = activation_of(sketch, sum, Op::Relu6);
    if sketch.dice.coin() {
        let product = any_steps_binary(sketch, Op::Mul, x, gate);
        any_steps_binary(sketch, Op::Mul, product, sixth);
    } else {
        let share = any_steps_binary(sketch, Op::Mul, gate, sixth);
        any_steps_binary(sketch, Op::Mul, share, x);
    }
}

fn any_steps_binary(sketch: &mut Sketch<'_>, operation: Op, a: Value, b: Value) -> Value {
    let steps = sketch.any_steps();
    binary(sketch, operation, a, b, steps)
}

/// `max(x, a * x)`
fn leaky_relu(sketch: &mut Sketch<'_>) {
    let x = sketch.any();
    let slope = sketch.constant_of(&[1], vec![0.2]);
    let scaled = any_steps_binary(sketch, Op::Mul, x, slope);
    any_steps_binary(sketch, Op::Maximum, x, scaled);
}

/// `x * logistic(x)`, where a convolution may be what computes `x`.
fn swish(sketch: &mut Sketch<'_>) {
    let x = if sketch.dice.coin() {
        let image = image(sketch);
        convolution_of(sketch, image, None)
    } else {
        sketch.any()
    };
    let gate = activation_of(sketch, x, Op::Logistic);
    any_steps_binary(sketch, Op::Mul, x, gate);
}

/// An image times what its means make of each channel.
fn squeeze_and_excite(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let depth = sketch.dimensions(image)[3];
    let means = reduce_to(sketch, Op::Mean, image, &[1, 2], true);
    let mut gate = means;
    for (units, operation) in [(depth.div_ceil(4), Op::Relu), (depth, Op::Logistic)] {
        let dimensions = sketch.dimensions(gate);
        let from = dimensions[3];
        let input = sketch.read(gate);
        let weights = sketch.weights(gate, &[units, 1, 1, from], 0, from, true);
        let numbers = sketch.ints(&[1, 1, 1, 0]);
        let inputs = [vec![input, weights[0], weights[1]], numbers].concat();
        let steps = sketch.any_steps();
        gate = sketch.operation(Op::Conv2d, &inputs, &[dimensions[0], 1, 1, units], steps);
        gate = activation_of(sketch, gate, operation);
    }
    any_steps_binary(sketch, Op::Mul, image, gate);
}

/// Two convolutions of one image, added, and an activation of the sum.
fn residual(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let a = convolution_of(sketch, image, None);
    let dimensions = sketch.dimensions(a);
    // With the same shape: of the first one's result, or of an input that looks like it.
    let other = if sketch.dice.coin() { a } else { sketch.input(&dimensions) };
    let depth = dimensions[3];
    let input = sketch.read(other);
    let weights = sketch.weights(other, &[depth, 1, 1, depth], 0, depth, true);
    let numbers = sketch.ints(&[1, 1, 1, 0]);
    let inputs = [vec![input, weights[0], weights[1]], numbers].concat();
    let steps = sketch.any_steps();
    let b = sketch.operation(Op::Conv2d, &inputs, &dimensions, steps);
    let sum = any_steps_binary(sketch, Op::Add, a, b);
    let operation = sketch.dice.pick(&[Op::Relu, Op::Relu6, Op::HardSwish]);
    activation_of(sketch, sum, operation);
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + offset`, along the last axis.
fn layer_norm(sketch: &mut Sketch<'_>) {
    let x = sketch.any();
    let dimensions = sketch.dimensions(x);
    let last = dimensions.len() - 1;
    let depth = dimensions[last];
    let mean = reduce_to(sketch, Op::Mean, x, &[last], true);
    let centred = any_steps_binary(sketch, Op::Sub, x, mean);
    let square = any_steps_binary(sketch, Op::Mul, centred, centred);
    let variance = reduce_to(sketch, Op::Mean, square, &[last], true);
    // Large, so that what is nearly equal is not blown up: rounding would be, too.
    let epsilon = sketch.constant_of(&[1], vec![0.25]);
    let variance = any_steps_binary(sketch, Op::Add, variance, epsilon);
    let factor = {
        let dimensions = sketch.dimensions(variance);
        let input = sketch.read(variance);
        let steps = sketch.any_steps();
        sketch.operation(Op::Rsqrt, &[input], &dimensions, steps)
    };
    let scaled = any_steps_binary(sketch, Op::Mul, centred, factor);
    let (scale, offset) = (sketch.constant(&[depth]), sketch.constant(&[depth]));
    let scaled = any_steps_binary(sketch, Op::Mul, scaled, scale);
    any_steps_binary(sketch, Op::Add, scaled, offset);
}

/// `softmax(q * k^T) * v`, of an image's pixels.
fn attention(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let dimensions = sketch.dimensions(image);
    let (rows, depth) = (dimensions[1] * dimensions[2], dimensions[3]);
    let x = reshape(sketch, image, &[dimensions[0], rows, depth]);
    let scale = sketch.constant_of(&[1], vec![0.3 / f64::from(depth).sqrt()]);
    let query = any_steps_binary(sketch, Op::Mul, x, scale);
    let scores = matmul(sketch, query, x, true, [dimensions[0], rows, rows]);
    let shares = softmax_of(sketch, scores);
    matmul(sketch, shares, x, false, [dimensions[0], rows, depth]);
}

/// BATCH_MATMUL, the second one's matrices transposed or not.
fn matmul(
    sketch: &mut Sketch<'_>,
    a: Value,
    b: Value,
    is_transposed: bool,
    dimensions: [u32; 3],
) -> Value {
    let mut inputs = vec![sketch.read(a), sketch.read(b)];
    inputs.extend([false, is_transposed].map(|flag| sketch.bool(flag)));
    let steps = sketch.any_steps();
    sketch.operation(Op::BatchMatmul, &inputs, &dimensions, steps)
}
