use super::float::{SeparableConvolution, Shapes};
use crate::convolution::Shape;
use crate::convolution::float::Layer;
use crate::convolution::float::tests::{compare, defined, numbers, output_of, turned};
use crate::preparation::prepared_twice;
use crate::{Epilogue, Image, ImageKernel, InstructionSet};
use proptest::prelude::*;

const RELU6: Epilogue = Epilogue::RELU6;
const CLAMPED: Epilogue = Epilogue { min: -300.0, max: 400.0, hard_swish: false };

/// A layer by the definition.
fn layer(shape: &Shape, input: &[f32], filter: &[f32], bias: &[f32], it: Epilogue) -> Vec<f32> {
    let input = Image::contiguous(input, shape.input_channels);
    let sums = defined(shape, input, filter, bias);
    #[allow(clippy::cast_possible_truncation)] // They are floats of 32 bits.
    let narrow = |(sum, _): (f64, f64)| it.apply_to(sum as f32);
    sums.into_iter().map(narrow).collect()
}

fn of((filter, bias): &(Vec<f32>, Vec<f32>), epilogue: Epilogue) -> Layer<'_> {
    Layer { filter, bias, epilogue }
}

/// Compares all instruction sets with the definition of each convolution after the other.
fn check(shapes: &Shapes, rows: usize, gaps: [usize; 2], residual: bool, threads: usize) {
    let Shapes { before, depthwise, behind } = shapes;
    let (first, last) =
        (before.as_ref().unwrap_or(depthwise), behind.as_ref().unwrap_or(depthwise));
    let (channels, taps) = (depthwise.output_channels, depthwise.taps());
    let stride = first.input_channels + gaps[0];
    let output_stride = last.output_channels + gaps[1];
    let values = numbers(1, first.input_pixels() * stride);
    let image: Vec<f32> =
        values.chunks(stride).flat_map(|pixel| &pixel[..first.input_channels]).copied().collect();
    let filter = |shape: &Option<Shape>, seed| {
        shape
            .as_ref()
            .map(|it| (numbers(seed, it.filter_values()), numbers(seed + 1, it.output_channels)))
    };
    let (of_before, of_behind) = (filter(before, 10), filter(behind, 20));
    let (of_depthwise, bias) = (numbers(30, depthwise.filter_values()), numbers(31, channels));
    let by_channel = turned(&of_depthwise, [taps, channels]);
    let added = numbers(40, last.output_pixels() * output_stride);
    let mut expected = image;
    if let (Some(shape), Some((filter, bias))) = (before, &of_before) {
        expected = layer(shape, &expected, filter, bias, RELU6);
    }
    expected = layer(depthwise, &expected, &by_channel, &bias, CLAMPED);
    if let (Some(shape), Some((filter, bias))) = (behind, &of_behind) {
        expected = layer(shape, &expected, filter, bias, Epilogue::NONE);
    }
    for set in InstructionSet::available() {
        let kernel = prepared_twice(set, threads, |preparation| {
            let layers = [
                of_before.as_ref().map(|it| of(it, RELU6)),
                Some(Layer { filter: &of_depthwise, bias: &bias, epilogue: CLAMPED }),
                of_behind.as_ref().map(|it| of(it, Epilogue::NONE)),
            ];
            SeparableConvolution::in_strips(rows, shapes, stride, layers, preparation)
        });
        let input = Image { values: &values, pixel_stride: stride };
        let image = Image { values: &added, pixel_stride: output_stride };
        let sizes = [last.output_pixels(), output_stride];
        let output = output_of(&kernel, threads, input, residual.then_some(image), -77.0, sizes);
        let channels = last.output_channels;
        compare(&output, [output_stride, channels], 0.0, &kernel.name(), |pixel, channel| {
            let added = added[pixel * output_stride + channel];
            let sum = expected[pixel * channels + channel];
            f64::from(if residual { sum + added } else { sum })
        });
    }
}

/// A 1x1 convolution of an image.
fn pointwise(batch: usize, size: [usize; 2], channels: [usize; 2]) -> Shape {
    Shape { batch, ..Shape::same(size, channels, [1; 2], 1) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

    #[test]
    fn strips_are_the_convolutions_one_after_the_other(
        batch in 1_usize..3, input in [1_usize..24, 1_usize..14], filter in prop::sample::select(vec![3_usize, 5]),
        stride in 1_usize..3, before_behind in 0_usize..3, channels in [1_usize..12, 8_usize..20, 8_usize..20],
        padding in [0_usize..3, 0_usize..3], rows in 1_usize..9, gaps in [0_usize..3, 0_usize..3],
        residual in any::<bool>(), threads in 1_usize..4,
    ) {
        let padding = padding.map(|it| it.min(filter - 1));
        // As many rows as see one of the input, or some fewer.
        let output = [0, 1].map(|axis| {
            ((input[axis] + padding[axis] - 1) / stride + 1 - rows % 2).max(1)
        });
        let has = [before_behind != 1, before_behind != 0];
        let depthwise = Shape {
            batch,
            output,
            padding_before: padding,
            groups: channels[1],
            ..Shape::same(input, [channels[1]; 2], [filter; 2], stride)
        };
        let shapes = Shapes {
            before: has[0].then(|| pointwise(batch, input, [channels[0], channels[1]])),
            depthwise,
            behind: has[1].then(|| pointwise(batch, output, [channels[1], channels[2]])),
        };
        check(&shapes, rows, gaps, residual && has[1], threads);
    }
}

#[test]
fn what_stays_in_the_caches_needs_no_strips() {
    let set = InstructionSet::Portable;
    let of_sizes = |side: usize, [few, many]: [usize; 2]| Shapes {
        before: Some(pointwise(1, [side; 2], [few, many])),
        depthwise: Shape {
            padding_before: [1; 2],
            filter: [3; 2],
            groups: many,
            ..pointwise(1, [side; 2], [many; 2])
        },
        behind: Some(pointwise(1, [side; 2], [many, few])),
    };
    let of_side = |side| of_sizes(side, [24, 144]);
    assert!(of_side(112).suit(set, 1) && of_side(112).suit(set, 2));
    assert!(!of_side(14).suit(set, 1));
    let dilated = |mut shapes: Shapes| {
        shapes.depthwise.dilation = [2; 2];
        shapes
    };
    assert!(!dilated(of_side(112)).suit(set, 1));
    assert!(!Shapes { before: None, behind: None, ..of_side(112) }.suit(set, 1));
    // Threads wait for each other less often, if each can read all weights and few rows are computed twice.
    let without_before = |shapes: Shapes| Shapes { before: None, ..shapes };
    assert!(of_side(28).suit(set, 2));
    assert!(!of_side(14).suit(set, 2) && without_before(of_side(14)).suit(set, 2));
    assert!(!without_before(of_side(14)).suit(set, 1));
    assert!(!without_before(of_sizes(14, [512, 512])).suit(set, 2));
    assert!(!without_before(of_side(14)).suit(set, 8));
}
