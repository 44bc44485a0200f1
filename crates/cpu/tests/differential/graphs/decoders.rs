//! What enlarges images by weights.

use super::builder::GraphBuilder;
use super::layers::{fused, image};
use super::windows::{Order, int};
use nnhal_hal::OperationType as Op;

/// Elements that the output has at most.
const MOST_ELEMENTS: u32 = 12_000;

/// TRANSPOSE_CONV_2D, its padding by numbers.
pub fn draw(builder: &mut GraphBuilder<'_>) {
    let image = image(builder);
    let order = Order::draw(builder);
    let [batch, height, width, depth] = order.image(&builder.dimensions(image));
    let taps = builder.random.pick(&[[2, 2], [2, 2], [3, 3], [4, 4], [1, 1], [3, 2], [5, 5]]);
    let strides = builder.random.pick(&[[2, 2], [2, 2], [2, 2], [1, 1], [3, 1], [4, 4]]);
    let mut padding = [[0; 2]; 2];
    let mut output = [0; 2];
    for (axis, length) in [height, width].into_iter().enumerate() {
        let most = (taps[axis] - 1_u32).min(2);
        let cut = [builder.random.length(0, most), builder.random.length(0, most)];
        let covered = (length - 1) * strides[axis] + taps[axis];
        let Some(left) = covered.checked_sub(cut[0] + cut[1]).filter(|left| *left > 0) else {
            return;
        };
        (padding[axis], output[axis]) = (cut, left);
    }
    let units = builder.random.pick(&[1, 2, 3, 8, 16, 21]);
    let pixels = batch * output[0] * output[1];
    if pixels * units > MOST_ELEMENTS {
        return;
    }
    let input = builder.read(image);
    let filter = [units, taps[0], taps[1], depth];
    let weights = builder.weights(image, &filter, 0, taps[0] * taps[1] * depth, true);
    let activation = fused(builder);
    let [[top, bottom], [left, right]] = padding;
    let numbers = [left, right, top, bottom, strides[1], strides[0]];
    let mut inputs = vec![input, weights[0], weights[1]];
    inputs.extend(builder.ints(&numbers.map(int)));
    inputs.push(builder.int(activation));
    inputs.push(builder.bool(order == Order::Nchw));
    let steps = builder.any_steps();
    let dimensions = order.dimensions([batch, output[0], output[1], units]);
    builder.operation(Op::TransposeConv2d, &inputs, &dimensions, steps);
}
