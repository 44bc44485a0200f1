//! Groups of operations that converters write for one layer of a network.

use super::builder::{GraphBuilder, Kind, Value};
use super::layers::{
    activation_of, binary, binary_with, convolution_of, image, reduce_to, reshape, softmax_of,
    split_of, transposed,
};
use nnhal_hal::OperationType as Op;

/// One of them.
pub fn draw(builder: &mut GraphBuilder<'_>) {
    let floats = !builder.kind.is_quantized();
    match builder.random.int(0, 9) {
        0 => hard_swish(builder),
        1 => leaky_relu(builder),
        2 => swish(builder),
        3 => squeeze_and_excite(builder),
        4 => residual(builder),
        5 if floats => layer_norm(builder),
        6 if floats => attention(builder),
        7 if floats => gelu(builder),
        _ if floats => attention_of_heads(builder),
        5 | 6 => through_floats(builder),
        _ => swish(builder),
    }
}

/// `x * relu6(x + 3) / 6`
fn hard_swish(builder: &mut GraphBuilder<'_>) {
    let x = builder.any();
    let three = builder.constant_of(&[1], vec![3.0]);
    let sixth = builder.constant_of(&[1], vec![1.0 / 6.0]);
    let sum = any_steps_binary(builder, Op::Add, x, three);
    let gate = activation_of(builder, sum, Op::Relu6);
    if builder.random.coin() {
        let product = any_steps_binary(builder, Op::Mul, x, gate);
        any_steps_binary(builder, Op::Mul, product, sixth);
    } else {
        let share = any_steps_binary(builder, Op::Mul, gate, sixth);
        any_steps_binary(builder, Op::Mul, share, x);
    }
}

/// What 8-bit numbers cannot do with the steps that are wanted, done with floats: nothing, functions of
/// single elements, or means. Where floats are between two steps, the result may be either.
fn through_floats(builder: &mut GraphBuilder<'_>) {
    let x = builder.any();
    let kind = std::mem::replace(&mut builder.kind, Kind::Float32);
    let dimensions = builder.dimensions(x);
    let input = builder.read(x);
    let mut real = builder.operation(Op::Dequantize, &[input], &dimensions, (0.0, 0));
    builder.ends_with(real);
    for _ in 0..builder.random.int(0, 2) {
        let operation = builder.random.pick(&[Op::Logistic, Op::Tanh, Op::Neg, Op::HardSwish]);
        real = activation_of(builder, real, operation);
        builder.ends_with(real);
    }
    if dimensions.len() == 4 && builder.random.coin() {
        real = reduce_to(builder, Op::Mean, real, &[1, 2], true);
        builder.ends_with(real);
    }
    builder.kind = kind;
    let (steps, dimensions) = (builder.any_steps(), builder.dimensions(real));
    let input = builder.read(real);
    let result = builder.operation(Op::Quantize, &[input], &dimensions, steps);
    builder.ends_with(result);
}

fn any_steps_binary(builder: &mut GraphBuilder<'_>, operation: Op, a: Value, b: Value) -> Value {
    let steps = builder.any_steps();
    binary(builder, operation, a, b, steps)
}

/// Without an activation.
fn plain_binary(builder: &mut GraphBuilder<'_>, operation: Op, a: Value, b: Value) -> Value {
    let steps = builder.any_steps();
    binary_with(builder, operation, [a, b], 0, steps)
}

/// `max(x, a * x)`
fn leaky_relu(builder: &mut GraphBuilder<'_>) {
    let x = builder.any();
    let slope = builder.constant_of(&[1], vec![0.2]);
    let scaled = any_steps_binary(builder, Op::Mul, x, slope);
    any_steps_binary(builder, Op::Maximum, x, scaled);
}

/// `x * logistic(x)`, where a convolution may be what computes `x`.
fn swish(builder: &mut GraphBuilder<'_>) {
    let x = if builder.random.coin() {
        let image = image(builder);
        convolution_of(builder, image, None)
    } else {
        builder.any()
    };
    let gate = activation_of(builder, x, Op::Logistic);
    any_steps_binary(builder, Op::Mul, x, gate);
}

/// An image times what its means make of each channel.
fn squeeze_and_excite(builder: &mut GraphBuilder<'_>) {
    let image = image(builder);
    let depth = builder.dimensions(image)[3];
    let means = reduce_to(builder, Op::Mean, image, &[1, 2], true);
    let mut gate = means;
    for (units, operation) in [(depth.div_ceil(4), Op::Relu), (depth, Op::Logistic)] {
        let dimensions = builder.dimensions(gate);
        let from = dimensions[3];
        let input = builder.read(gate);
        let weights = builder.weights(gate, &[units, 1, 1, from], 0, from, true);
        let numbers = builder.ints(&[1, 1, 1, 0]);
        let inputs = [vec![input, weights[0], weights[1]], numbers].concat();
        let steps = builder.any_steps();
        gate = builder.operation(Op::Conv2d, &inputs, &[dimensions[0], 1, 1, units], steps);
        gate = activation_of(builder, gate, operation);
    }
    any_steps_binary(builder, Op::Mul, image, gate);
}

/// Two convolutions of one image, added, and an activation of the sum.
fn residual(builder: &mut GraphBuilder<'_>) {
    let image = image(builder);
    let a = convolution_of(builder, image, None);
    let dimensions = builder.dimensions(a);
    // With the same shape: of the first one's result, or of an input that looks like it.
    let other = if builder.random.coin() { a } else { builder.input(&dimensions) };
    let depth = dimensions[3];
    let input = builder.read(other);
    let weights = builder.weights(other, &[depth, 1, 1, depth], 0, depth, true);
    let numbers = builder.ints(&[1, 1, 1, 0]);
    let inputs = [vec![input, weights[0], weights[1]], numbers].concat();
    let steps = builder.any_steps();
    let b = builder.operation(Op::Conv2d, &inputs, &dimensions, steps);
    let sum = any_steps_binary(builder, Op::Add, a, b);
    let operation = builder.random.pick(&[Op::Relu, Op::Relu6, Op::HardSwish]);
    activation_of(builder, sum, operation);
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + offset`, along the last axis.
fn layer_norm(builder: &mut GraphBuilder<'_>) {
    let x = builder.any();
    let dimensions = builder.dimensions(x);
    let last = dimensions.len() - 1;
    let depth = dimensions[last];
    // What there is one of for each row keeps the axis, or has it again where it is needed.
    let keeps = builder.random.coin();
    let mut wide_dimensions = dimensions.clone();
    wide_dimensions[last] = 1;
    let wide = |builder: &mut GraphBuilder<'_>, value| {
        if keeps { value } else { reshape(builder, value, &wide_dimensions) }
    };
    let of_rows = reduce_to(builder, Op::Mean, x, &[last], keeps);
    let mean = wide(builder, of_rows);
    let centred = plain_binary(builder, Op::Sub, x, mean);
    // As SQUARED_DIFFERENCE and SUB, or with one SUB for both.
    let again = |builder: &mut GraphBuilder<'_>| {
        let is_shared = builder.random.coin();
        if is_shared { centred } else { plain_binary(builder, Op::Sub, x, mean) }
    };
    let square = plain_binary(builder, Op::Mul, centred, centred);
    let variance = reduce_to(builder, Op::Mean, square, &[last], keeps);
    // Large, so that what is nearly equal is not blown up: rounding would be, too.
    let epsilon = builder.constant_of(&[1], vec![0.25]);
    let variance = plain_binary(builder, Op::Add, variance, epsilon);
    let (scale, offset) = (builder.constant(&[depth]), builder.constant(&[depth]));
    match builder.random.int(0, 5) {
        0 => {
            let root = activation_of(builder, variance, Op::Sqrt);
            let (root, centred) = (wide(builder, root), again(builder));
            plain_binary(builder, Op::Div, centred, root);
        }
        1 => {
            let factor = activation_of(builder, variance, Op::Rsqrt);
            let factor = wide(builder, factor);
            let factor = plain_binary(builder, Op::Mul, factor, scale);
            let product = plain_binary(builder, Op::Mul, x, factor);
            let of_mean = plain_binary(builder, Op::Mul, mean, factor);
            let rest = plain_binary(builder, Op::Sub, offset, of_mean);
            plain_binary(builder, Op::Add, product, rest);
        }
        2 => {
            // As litert-torch writes it.
            let factor = activation_of(builder, variance, Op::Rsqrt);
            let of_mean = plain_binary(builder, Op::Mul, factor, of_rows);
            let zero = builder.constant_of(&[1], vec![0.0]);
            let rest = plain_binary(builder, Op::Sub, zero, of_mean);
            let (factor, rest) = (wide(builder, factor), wide(builder, rest));
            let product = plain_binary(builder, Op::Mul, x, factor);
            let sum = plain_binary(builder, Op::Add, product, rest);
            let scaled = plain_binary(builder, Op::Mul, sum, scale);
            plain_binary(builder, Op::Add, scaled, offset);
        }
        3 => {
            // As Keras writes it.
            let factor = activation_of(builder, variance, Op::Rsqrt);
            let mut factor = wide(builder, factor);
            if builder.random.coin() {
                factor = plain_binary(builder, Op::Mul, factor, scale);
            }
            let negated = activation_of(builder, mean, Op::Neg);
            let mut rest = plain_binary(builder, Op::Mul, negated, factor);
            if builder.random.coin() {
                rest = plain_binary(builder, Op::Add, rest, offset);
            }
            let product = plain_binary(builder, Op::Mul, x, factor);
            plain_binary(builder, Op::Add, product, rest);
        }
        _ => {
            let factor = activation_of(builder, variance, Op::Rsqrt);
            let (factor, centred) = (wide(builder, factor), again(builder));
            let scaled = plain_binary(builder, Op::Mul, centred, factor);
            let scaled = plain_binary(builder, Op::Mul, scaled, scale);
            plain_binary(builder, Op::Add, scaled, offset);
        }
    }
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`, in one of the orders it is written in.
fn gelu(builder: &mut GraphBuilder<'_>) {
    let x = builder.any();
    let mut number = |number: f64| builder.constant_of(&[1], vec![number]);
    let (cubic, outer, one, half) =
        (number(0.044_715), number(0.797_884_560_8), number(1.0), number(0.5));
    let mul = |builder: &mut GraphBuilder<'_>, a, b| plain_binary(builder, Op::Mul, a, b);
    let square = mul(builder, x, x);
    let inner = if builder.random.coin() {
        let cube = mul(builder, square, x);
        let scaled = mul(builder, cubic, cube);
        plain_binary(builder, Op::Add, x, scaled)
    } else {
        let scaled = mul(builder, square, cubic);
        let bracket = plain_binary(builder, Op::Add, scaled, one);
        mul(builder, bracket, x)
    };
    let argument = mul(builder, inner, outer);
    let gate = activation_of(builder, argument, Op::Tanh);
    let gate = plain_binary(builder, Op::Add, gate, one);
    if builder.random.coin() {
        let halved = mul(builder, x, half);
        mul(builder, halved, gate);
    } else {
        let halved = mul(builder, gate, half);
        mul(builder, x, halved);
    }
}

/// An image that attention may read. Scores are products of its elements: where these are large numbers of
/// float16, the rounding of a score is no longer small for SOFTMAX, so computed ones are between -1 and 1.
fn image_for_attention(builder: &mut GraphBuilder<'_>) -> Value {
    let image = image(builder);
    if builder.kind == Kind::Float16 && builder.computes() {
        return activation_of(builder, image, Op::Tanh);
    }
    image
}

/// `softmax(q * k^T * factor + mask) * v` of heads that are beside each other, which are split and
/// put together by RESHAPE and TRANSPOSE, or by SPLIT and CONCATENATION.
fn attention_of_heads(builder: &mut GraphBuilder<'_>) {
    let image = image_for_attention(builder);
    let dimensions = builder.dimensions(image);
    let (batch, rows, depth) = (dimensions[0], dimensions[1] * dimensions[2], dimensions[3]);
    let heads = if depth.is_multiple_of(4) { 4 } else { 1 };
    let size = depth / heads;
    let x = reshape(builder, image, &[batch, rows, heads, size]);
    let factor = builder.constant_of(&[1], vec![0.3 / f64::from(size).sqrt()]);
    let mask = builder.random.pick(&[vec![batch, 1, 1, rows], vec![rows], vec![rows, rows]]);
    let mask = builder.constant(&mask);
    if builder.random.coin() {
        let query = transposed(builder, x, &[0, 2, 1, 3]);
        let [key, value] = match builder.random.coin() {
            true => [0; 2].map(|_| transposed(builder, x, &[0, 2, 1, 3])),
            false => [0; 2].map(|_| repeated_head(builder, x)),
        };
        let key =
            if builder.random.coin() { plain_binary(builder, Op::Mul, key, factor) } else { key };
        let scores = matmul(builder, query, key, true, &[batch, heads, rows, rows]);
        let scores = plain_binary(builder, Op::Mul, scores, factor);
        let scores = plain_binary(builder, Op::Add, scores, mask);
        let shares = softmax_of(builder, scores);
        let result = matmul(builder, shares, value, false, &[batch, heads, rows, size]);
        let result = transposed(builder, result, &[0, 2, 1, 3]);
        reshape(builder, result, &[batch, rows, depth]);
    } else {
        let x = reshape(builder, image, &[batch, rows, depth]);
        let turned = transposed(builder, x, &[0, 2, 1]);
        let parts = split_of(builder, x, 2, heads);
        let turned = split_of(builder, turned, 1, heads);
        let results: Vec<Value> = parts
            .into_iter()
            .zip(turned)
            .map(|(part, turned)| {
                let scores = matmul(builder, part, turned, false, &[batch, rows, rows]);
                let scores = plain_binary(builder, Op::Mul, scores, factor);
                let shares = softmax_of(builder, scores);
                matmul(builder, shares, turned, true, &[batch, rows, size])
            })
            .collect();
        let mut inputs: Vec<_> = results.iter().map(|value| builder.read(*value)).collect();
        inputs.push(builder.int(2));
        let steps = builder.any_steps();
        builder.operation(Op::Concatenation, &inputs, &[batch, rows, depth], steps);
    }
}

/// The first of `[batch, rows, heads, size]` as `[batch, heads, rows, size]`, as often as there are heads.
fn repeated_head(builder: &mut GraphBuilder<'_>, x: Value) -> Value {
    let dimensions = builder.dimensions(x);
    let [batch, rows, heads, size] = dimensions[..] else { return x };
    let head = split_of(builder, x, 2, heads)[0];
    let head = transposed(builder, head, &[0, 2, 1, 3]);
    let head = reshape(builder, head, &[batch, 1, rows * size]);
    let multiples = builder.integers(&[3], &[1, i32::try_from(heads).unwrap_or(1), 1]);
    let inputs = [builder.read(head), multiples];
    let steps = builder.steps(head);
    let repeated = builder.operation(Op::Tile, &inputs, &[batch, heads, rows * size], steps);
    reshape(builder, repeated, &[batch, heads, rows, size])
}

/// `softmax(q * k^T) * v`, of an image's pixels.
fn attention(builder: &mut GraphBuilder<'_>) {
    let image = image_for_attention(builder);
    let dimensions = builder.dimensions(image);
    let (rows, depth) = (dimensions[1] * dimensions[2], dimensions[3]);
    let x = reshape(builder, image, &[dimensions[0], rows, depth]);
    let scale = builder.constant_of(&[1], vec![0.3 / f64::from(depth).sqrt()]);
    let query = any_steps_binary(builder, Op::Mul, x, scale);
    let scores = matmul(builder, query, x, true, &[dimensions[0], rows, rows]);
    let shares = softmax_of(builder, scores);
    matmul(builder, shares, x, false, &[dimensions[0], rows, depth]);
}

/// BATCH_MATMUL, the second one's matrices transposed or not.
fn matmul(
    builder: &mut GraphBuilder<'_>,
    a: Value,
    b: Value,
    is_transposed: bool,
    dimensions: &[u32],
) -> Value {
    let mut inputs = vec![builder.read(a), builder.read(b)];
    inputs.extend([false, is_transposed].map(|flag| builder.bool(flag)));
    let steps = builder.any_steps();
    builder.operation(Op::BatchMatmul, &inputs, dimensions, steps)
}
