//! Groups of operations that converters write for one layer of a network.

use super::layers::{
    activation_of, binary, binary_with, convolution_of, image, reduce_to, reshape, softmax_of,
    split_of, transposed,
};
use super::sketch::{Kind, Sketch, Value};
use nnhal_hal::OperationType as Op;

/// One of them.
pub fn draw(sketch: &mut Sketch<'_>) {
    let floats = !sketch.kind.is_quantized();
    match sketch.dice.int(0, 9) {
        0 => hard_swish(sketch),
        1 => leaky_relu(sketch),
        2 => swish(sketch),
        3 => squeeze_and_excite(sketch),
        4 => residual(sketch),
        5 if floats => layer_norm(sketch),
        6 if floats => attention(sketch),
        7 if floats => gelu(sketch),
        _ if floats => attention_of_heads(sketch),
        5 | 6 => through_floats(sketch),
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

/// What 8-bit numbers cannot do with the steps that are wanted, done with floats: nothing, functions of
/// single elements, or means. Where floats lie between two steps, the result may be either.
fn through_floats(sketch: &mut Sketch<'_>) {
    let x = sketch.any();
    let kind = std::mem::replace(&mut sketch.kind, Kind::Float32);
    let dimensions = sketch.dimensions(x);
    let input = sketch.read(x);
    let mut real = sketch.operation(Op::Dequantize, &[input], &dimensions, (0.0, 0));
    sketch.ends_with(real);
    for _ in 0..sketch.dice.int(0, 2) {
        let operation = sketch.dice.pick(&[Op::Logistic, Op::Tanh, Op::Neg, Op::HardSwish]);
        real = activation_of(sketch, real, operation);
        sketch.ends_with(real);
    }
    if dimensions.len() == 4 && sketch.dice.coin() {
        real = reduce_to(sketch, Op::Mean, real, &[1, 2], true);
        sketch.ends_with(real);
    }
    sketch.kind = kind;
    let (steps, dimensions) = (sketch.any_steps(), sketch.dimensions(real));
    let input = sketch.read(real);
    let result = sketch.operation(Op::Quantize, &[input], &dimensions, steps);
    sketch.ends_with(result);
}

fn any_steps_binary(sketch: &mut Sketch<'_>, operation: Op, a: Value, b: Value) -> Value {
    let steps = sketch.any_steps();
    binary(sketch, operation, a, b, steps)
}

/// Without an activation.
fn plain_binary(sketch: &mut Sketch<'_>, operation: Op, a: Value, b: Value) -> Value {
    let steps = sketch.any_steps();
    binary_with(sketch, operation, [a, b], 0, steps)
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
    let centred = plain_binary(sketch, Op::Sub, x, mean);
    // As SQUARED_DIFFERENCE and SUB, or with one SUB for both.
    let again = |sketch: &mut Sketch<'_>| {
        let is_shared = sketch.dice.coin();
        if is_shared { centred } else { plain_binary(sketch, Op::Sub, x, mean) }
    };
    let square = plain_binary(sketch, Op::Mul, centred, centred);
    let variance = reduce_to(sketch, Op::Mean, square, &[last], true);
    // Large, so that what is nearly equal is not blown up: rounding would be, too.
    let epsilon = sketch.constant_of(&[1], vec![0.25]);
    let variance = plain_binary(sketch, Op::Add, variance, epsilon);
    let (scale, offset) = (sketch.constant(&[depth]), sketch.constant(&[depth]));
    match sketch.dice.int(0, 3) {
        0 => {
            let root = activation_of(sketch, variance, Op::Sqrt);
            let centred = again(sketch);
            plain_binary(sketch, Op::Div, centred, root);
        }
        1 => {
            let factor = activation_of(sketch, variance, Op::Rsqrt);
            let factor = plain_binary(sketch, Op::Mul, factor, scale);
            let product = plain_binary(sketch, Op::Mul, x, factor);
            let of_mean = plain_binary(sketch, Op::Mul, mean, factor);
            let rest = plain_binary(sketch, Op::Sub, offset, of_mean);
            plain_binary(sketch, Op::Add, product, rest);
        }
        _ => {
            let factor = activation_of(sketch, variance, Op::Rsqrt);
            let centred = again(sketch);
            let scaled = plain_binary(sketch, Op::Mul, centred, factor);
            let scaled = plain_binary(sketch, Op::Mul, scaled, scale);
            plain_binary(sketch, Op::Add, scaled, offset);
        }
    }
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`, in one of the orders it is written in.
fn gelu(sketch: &mut Sketch<'_>) {
    let x = sketch.any();
    let mut number = |number: f64| sketch.constant_of(&[1], vec![number]);
    let (cubic, outer, one, half) =
        (number(0.044_715), number(0.797_884_560_8), number(1.0), number(0.5));
    let mul = |sketch: &mut Sketch<'_>, a, b| plain_binary(sketch, Op::Mul, a, b);
    let square = mul(sketch, x, x);
    let inner = if sketch.dice.coin() {
        let cube = mul(sketch, square, x);
        let scaled = mul(sketch, cubic, cube);
        plain_binary(sketch, Op::Add, x, scaled)
    } else {
        let scaled = mul(sketch, square, cubic);
        let bracket = plain_binary(sketch, Op::Add, scaled, one);
        mul(sketch, bracket, x)
    };
    let argument = mul(sketch, inner, outer);
    let gate = activation_of(sketch, argument, Op::Tanh);
    let gate = plain_binary(sketch, Op::Add, gate, one);
    if sketch.dice.coin() {
        let halved = mul(sketch, x, half);
        mul(sketch, halved, gate);
    } else {
        let halved = mul(sketch, gate, half);
        mul(sketch, x, halved);
    }
}

/// `softmax(q * k^T * factor + mask) * v` of heads that lie beside each other, which are taken apart and
/// put together by RESHAPE and TRANSPOSE, or by SPLIT and CONCATENATION.
fn attention_of_heads(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let dimensions = sketch.dimensions(image);
    let (batch, rows, depth) = (dimensions[0], dimensions[1] * dimensions[2], dimensions[3]);
    let heads = if depth.is_multiple_of(4) { 4 } else { 1 };
    let size = depth / heads;
    let x = reshape(sketch, image, &[batch, rows, heads, size]);
    let factor = sketch.constant_of(&[1], vec![0.3 / f64::from(size).sqrt()]);
    let mask = sketch.dice.pick(&[vec![batch, 1, 1, rows], vec![rows], vec![rows, rows]]);
    let mask = sketch.constant(&mask);
    if sketch.dice.coin() {
        let [query, key, value] = [0; 3].map(|_| transposed(sketch, x, &[0, 2, 1, 3]));
        let scores = matmul(sketch, query, key, true, &[batch, heads, rows, rows]);
        let scores = plain_binary(sketch, Op::Mul, scores, factor);
        let scores = plain_binary(sketch, Op::Add, scores, mask);
        let shares = softmax_of(sketch, scores);
        let result = matmul(sketch, shares, value, false, &[batch, heads, rows, size]);
        let result = transposed(sketch, result, &[0, 2, 1, 3]);
        reshape(sketch, result, &[batch, rows, depth]);
    } else {
        let x = reshape(sketch, image, &[batch, rows, depth]);
        let turned = transposed(sketch, x, &[0, 2, 1]);
        let parts = split_of(sketch, x, 2, heads);
        let turned = split_of(sketch, turned, 1, heads);
        let results: Vec<Value> = parts
            .into_iter()
            .zip(turned)
            .map(|(part, turned)| {
                let scores = matmul(sketch, part, turned, false, &[batch, rows, rows]);
                let scores = plain_binary(sketch, Op::Mul, scores, factor);
                let shares = softmax_of(sketch, scores);
                matmul(sketch, shares, turned, true, &[batch, rows, size])
            })
            .collect();
        let mut inputs: Vec<_> = results.iter().map(|value| sketch.read(*value)).collect();
        inputs.push(sketch.int(2));
        let steps = sketch.any_steps();
        sketch.operation(Op::Concatenation, &inputs, &[batch, rows, depth], steps);
    }
}

/// `softmax(q * k^T) * v`, of an image's pixels.
fn attention(sketch: &mut Sketch<'_>) {
    let image = image(sketch);
    let dimensions = sketch.dimensions(image);
    let (rows, depth) = (dimensions[1] * dimensions[2], dimensions[3]);
    let x = reshape(sketch, image, &[dimensions[0], rows, depth]);
    let scale = sketch.constant_of(&[1], vec![0.3 / f64::from(depth).sqrt()]);
    let query = any_steps_binary(sketch, Op::Mul, x, scale);
    let scores = matmul(sketch, query, x, true, &[dimensions[0], rows, rows]);
    let shares = softmax_of(sketch, scores);
    matmul(sketch, shares, x, false, &[dimensions[0], rows, depth]);
}

/// BATCH_MATMUL, the second one's matrices transposed or not.
fn matmul(
    sketch: &mut Sketch<'_>,
    a: Value,
    b: Value,
    is_transposed: bool,
    dimensions: &[u32],
) -> Value {
    let mut inputs = vec![sketch.read(a), sketch.read(b)];
    inputs.extend([false, is_transposed].map(|flag| sketch.bool(flag)));
    let steps = sketch.any_steps();
    sketch.operation(Op::BatchMatmul, &inputs, dimensions, steps)
}
