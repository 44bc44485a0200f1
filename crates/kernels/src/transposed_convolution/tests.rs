use super::Shape;
use super::float::TransposedConvolution;
use super::quantized;
use super::shape::tasks_by_place;
use crate::convolution;
use crate::convolution::float::Layer;
use crate::convolution::float::tests::{compare, numbers, output_of};
use crate::preparation::prepared_twice;
use crate::{Epilogue, Image, InstructionSet, Preparation};
use proptest::prelude::*;

/// Which value of the output an input pixel is added to by the filter's values of this output channel
/// and tap, if there is one.
pub(crate) fn tap(shape: &Shape, pixel: usize, channel_and_tap: usize) -> Option<usize> {
    let [height, width] = shape.input;
    let [n, y, x] = [pixel / width / height, pixel / width % height, pixel % width];
    let taps = shape.filter[0] * shape.filter[1];
    let (channel, tap) = (channel_and_tap / taps, channel_and_tap % taps);
    let place = |axis: usize, position: usize, tap: usize| {
        let place = position * shape.stride[axis] + tap;
        place.checked_sub(shape.padding_before[axis]).filter(|at| *at < shape.output[axis])
    };
    let (y, x) = (place(0, y, tap / shape.filter[1])?, place(1, x, tap % shape.filter[1])?);
    let pixel = (n * shape.output[0] + y) * shape.output[1] + x;
    Some(pixel * shape.output_channels + channel)
}

/// Sums by the definition, each input pixel spread over the output.
fn defined(shape: &Shape, input: &[f32], filter: &[f32], bias: &[f32]) -> Vec<f32> {
    let mut sums: Vec<f32> = bias.repeat(shape.output_pixels());
    for (pixel, values) in input.chunks_exact(shape.input_channels.max(1)).enumerate() {
        for (at, weights) in filter.chunks_exact(shape.input_channels.max(1)).enumerate() {
            let Some(output) = tap(shape, pixel, at) else { continue };
            let products = values.iter().zip(weights).map(|(value, weight)| value * weight);
            sums[output] += products.sum::<f32>();
        }
    }
    sums
}

pub(crate) fn any_shape() -> impl Strategy<Value = Shape> {
    let pair = |least: usize, most: usize| [least..=most, least..=most];
    let channels = prop_oneof![[0_usize..5, 0_usize..6], [0_usize..40, 0_usize..50]];
    (0_usize..3, pair(0, 6), channels, pair(0, 20), pair(1, 5), pair(1, 4), pair(0, 4)).prop_map(
        |(batch, input, channels, output, filter, stride, padding_before)| {
            Shape(convolution::Shape {
                batch,
                input,
                input_channels: channels[0],
                output,
                output_channels: channels[1],
                filter,
                stride,
                padding_before,
                dilation: [1, 1],
                groups: 1,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 300 }))]

    #[test]
    fn each_input_pixel_is_spread_by_the_filter(
        shape in any_shape(), gaps in [0_usize..2, 0_usize..2], threads in 1_usize..4, seed: u64,
    ) {
        prop_assume!(shape.is_valid());
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let contiguous = numbers(seed, shape.input_pixels() * inputs);
        let strides = [inputs + gaps[0], outputs + gaps[1]];
        let mut input = numbers(seed ^ 4, shape.input_pixels() * strides[0]);
        for (to, from) in input.chunks_mut(strides[0].max(1)).zip(contiguous.chunks(inputs.max(1))) {
            to[..inputs].copy_from_slice(&from[..inputs]);
        }
        let filter = numbers(seed ^ 1, shape.filter_values());
        let bias = numbers(seed ^ 2, outputs);
        let epilogue = Epilogue { min: -30.0, max: 40.0, hard_swish: false };
        let layer = Layer { filter: &filter, bias: &bias, epilogue };
        let expected = defined(&shape, &contiguous, &filter, &bias);
        for set in InstructionSet::available() {
            let kernel = prepared_twice(set, threads, |preparation| {
                TransposedConvolution::prepare(&shape, strides, layer, preparation)
            });
            let image = Image { values: &input, pixel_stride: strides[0] };
            let sizes = [shape.output_pixels(), strides[1]];
            let output = output_of(&kernel, threads, image, None, -77.0, sizes);
            compare(&output, [strides[1], outputs], 0.0, &kernel.kernel(), |pixel, channel| {
                f64::from(expected[pixel * outputs + channel].clamp(-30.0, 40.0))
            });
        }
    }
}

#[test]
fn tasks_of_all_phases_go_through_the_image_together() {
    let tasks = tasks_by_place([2, 1, 4].into_iter());
    assert_eq!(tasks, [(2, 0), (0, 0), (2, 1), (1, 0), (2, 2), (0, 1), (2, 3)]);
}

#[test]
fn output_pixels_that_overlap_are_refused() {
    use crate::Requantization;
    use crate::convolution::quantized as quantized_convolution;
    use crate::quantization::{Activations, Signedness, Weights};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let shape = Shape(convolution::Shape {
        output: [4, 4],
        ..convolution::Shape::same([2, 2], [3, 5], [2, 2], 2)
    });
    let (filter, bias) = (vec![1.0; shape.filter_values()], [0.0; 5]);
    let weights = vec![1; shape.filter_values()];
    let signedness = Signedness::Signed;
    let layer = quantized_convolution::Layer {
        weights: Weights { values: &weights, signedness, zero_point: 0 },
        bias: &[0; 5],
        activations: Activations { signedness, zero_point: 0 },
        requantization: Requantization::by(0.5, 0, Signedness::Signed),
    };
    let floats = |stride| {
        let mut preparation = Preparation::new(InstructionSet::best(), 1);
        let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::NONE };
        TransposedConvolution::prepare(&shape, [3, stride], layer, &mut preparation).map(drop)
    };
    let bytes = |stride| {
        let preparation = &mut Preparation::new(InstructionSet::best(), 1);
        quantized::TransposedConvolution::prepare(&shape, stride, &layer, preparation).map(drop)
    };
    for stride in [5, 6] {
        floats(stride).unwrap();
        bytes(stride).unwrap();
    }
    for stride in [0, 1, 4] {
        catch_unwind(AssertUnwindSafe(|| floats(stride))).unwrap_err();
        catch_unwind(AssertUnwindSafe(|| bytes(stride))).unwrap_err();
    }
}
