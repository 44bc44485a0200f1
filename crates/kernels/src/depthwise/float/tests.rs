use super::*;
use crate::convolution::float::tests::{compare, defined, numbers, output_of, turned};
use crate::preparation::prepared_twice;
use crate::{Image, ImageMut};
use proptest::prelude::*;

/// Compares all instruction sets with the definition.
fn check(shape: &Shape, gaps: [usize; 2], with_residual: bool, threads: usize, seed: u64) {
    let stride = shape.input_channels + gaps[0];
    let output_stride = shape.output_channels + gaps[1];
    let values = numbers(seed, shape.input_pixels() * stride);
    let input = Image { values: &values, pixel_stride: stride };
    let filter = numbers(seed ^ 1, shape.filter_values());
    let bias = numbers(seed ^ 2, shape.output_channels);
    let residual = numbers(seed ^ 3, shape.output_pixels() * output_stride);
    let epilogue = Epilogue { min: -20.0, max: 25.0, hard_swish: false };
    let layer = Layer { filter: &filter, bias: &bias, epilogue };
    let (channels, taps) = (shape.output_channels, shape.taps());
    let expected = defined(shape, input, &turned(&filter, [taps, channels]), &bias);
    for set in InstructionSet::available() {
        let kernel = prepared_twice(set, threads, |preparation| {
            DepthwiseConvolution::prepare(shape, stride, layer, preparation)
        });
        let image = Image { values: &residual, pixel_stride: output_stride };
        let sizes = [shape.output_pixels(), output_stride];
        let output =
            output_of(&kernel, threads, input, with_residual.then_some(image), -77.0, sizes);
        // Small multiples of a quarter: exact in any order.
        compare(&output, [output_stride, channels], 0.0, &kernel.kernel(), |pixel, channel| {
            let added = f64::from(residual[pixel * output_stride + channel]);
            let sum = expected[pixel * channels + channel].0;
            (sum + if with_residual { added } else { 0.0 }).clamp(-20.0, 25.0)
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn a_depthwise_convolution_is_what_its_shape_says(
        batch in 0_usize..3, input in [0_usize..12, 0_usize..20], output in [0_usize..8, 0_usize..22],
        filter in prop_oneof![4 => [1_usize..6, 1_usize..6], 1 => [8_usize..11, 8_usize..11]],
        stride in [1_usize..4, 1_usize..4],
        dilation in [1_usize..4, 1_usize..3], padding_before in [0_usize..7, 0_usize..7],
        (input_channels, multiplier) in prop_oneof![(0_usize..90, Just(1_usize)), (0_usize..5, 1_usize..4)],
        gaps in [0_usize..2, 0_usize..2], with_residual: bool, threads in 1_usize..4, seed: u64,
    ) {
        let shape = Shape {
            batch, input, input_channels, output, output_channels: input_channels * multiplier,
            filter, stride, dilation, padding_before, groups: input_channels.max(1),
        };
        check(&shape, gaps, with_residual, threads, seed);
    }

    #[test]
    fn usual_filters_slide(
        batch in 1_usize..3, input in [0_usize..20, 0_usize..20], output in [1_usize..20, 1_usize..20],
        filter in prop_oneof![Just(3_usize), Just(5)], stride in 1_usize..3,
        dilation in [1_usize..5, 1_usize..5], padding_before in [0_usize..7, 0_usize..7],
        channels in prop_oneof![1_usize..70, Just(16), Just(32)],
        gaps in [0_usize..2, 0_usize..2], with_residual: bool, threads in 1_usize..4, seed: u64,
    ) {
        let shape = Shape {
            batch, input, input_channels: channels, output, output_channels: channels,
            filter: [filter; 2], stride: [stride; 2],
            dilation: if stride == 1 { dilation } else { [1; 2] },
            padding_before, groups: channels,
        };
        check(&shape, gaps, with_residual, threads, seed);
    }
}

/// Pixels that fill the same sets of the first cache, and strides of 2: computed pixel by pixel where two vectors are a line.
#[test]
fn pixels_that_meet_in_one_set() {
    for (stride, width, channels) in
        [(1, 40, 128), (1, 18, 256), (2, 7, 70), (2, 40, 19), (2, 9, 8)]
    {
        for dilation in [1, 2] {
            for padding in [0, 1, 3] {
                let dilation = if stride == 1 { dilation } else { 1 };
                let seen = 2 * dilation + 1;
                let output = [5, width].map(|side: usize| (side + 2 * padding - seen) / stride + 1);
                let shape = Shape {
                    batch: 2,
                    input: [5, width],
                    input_channels: channels,
                    output,
                    output_channels: channels,
                    filter: [3; 2],
                    stride: [stride; 2],
                    dilation: [dilation; 2],
                    padding_before: [padding; 2],
                    groups: channels,
                };
                check(&shape, [0, 1], padding == 1, 2, 7);
                check(&shape, [if stride == 1 { 0 } else { 3 }, 0], padding != 1, 1, 8);
            }
        }
    }
}

#[test]
fn filters_of_very_many_taps() {
    let shape = Shape { groups: 20, ..Shape::same([12, 12], [20, 20], [9, 9], 1) };
    check(&shape, [0, 0], false, 2, 1);
    // All channels of the output see the only one of the input, as those of any convolution do.
    let shape = Shape { input_channels: 1, groups: 1, ..shape };
    check(&shape, [0, 0], false, 2, 1);
    let (filter, bias) = (vec![0.5; shape.filter_values()], [0.0; 20]);
    let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::NONE };
    let preparation = &mut Preparation::new(InstructionSet::best(), 1);
    let kernel = DepthwiseConvolution::prepare(&shape, 1, layer, preparation).unwrap();
    assert!(!kernel.kernel().starts_with("tap by tap"), "{}", kernel.kernel());
}

/// Of one row of as many pixels as the filter is wide.
fn one_row(channels: usize, filter: [usize; 2]) -> Shape {
    Shape {
        output: [1, filter[1]],
        padding_before: [0, filter[1] / 2],
        groups: channels,
        ..Shape::same(filter, [channels; 2], filter, 1)
    }
}

#[test]
#[should_panic(expected = "values of the panels")]
fn fewer_weights_than_the_panels_have_are_refused() {
    let shape = one_row(96, [1, 1]);
    let mut preparation = Preparation::new(InstructionSet::best(), 1);
    let blocking = Direct::blocking(preparation.set());
    let panels = Panels::at_run_time(blocking, 1, [1, 96]).unwrap();
    let direct = Direct::new(&shape, 96, panels, Epilogue::NONE, &mut preparation).unwrap();
    let weights = vec![0.0; direct.panels().count_values()];
    let mut output = [0.0; 96];
    let images =
        Images::new(Image::contiguous(&[0.0; 96], 96), ImageMut::contiguous(&mut output, 96));
    direct.run(&mut Team::alone(), &weights[..weights.len() - 1], images);
}

#[test]
#[should_panic(expected = "the input is too small")]
fn strips_of_a_short_input_are_refused() {
    let (shape, set) = (one_row(4, [3, 3]), InstructionSet::best());
    let mut preparation = Preparation::new(set, 1);
    let blocking = Sliding::blocking(set);
    let panels = Panels::pack(&mut preparation, blocking, 9, [1, 4], |_| 0.0, |_, _| 1.0).unwrap();
    let sliding =
        Sliding::new(&shape, 4, panels, Epilogue::NONE, preparation.threads(), &mut preparation)
            .unwrap();
    drop(preparation);
    let (input, mut output) = ([0.0; 36], [0.0; 12]);
    let (input, output) =
        (Image::contiguous(&input[..35], 4), ImageMut::contiguous(&mut output, 4));
    sliding.run(&mut Team::alone(), Images::new(input, output));
}

#[test]
#[should_panic(expected = "cannot have a stride of 3 values")]
fn output_pixels_that_overlap_are_refused() {
    let shape = one_row(4, [1, 65]);
    let preparation = Preparation::new(InstructionSet::best(), 1);
    let wide = Wide::new(&shape, 4, Epilogue::NONE, &preparation);
    let (input, mut output) = (vec![0.0; 65 * 4], vec![0.0; 65 * 4]);
    wide.run(
        &mut Team::alone(),
        [&input, &[0.0; 4]],
        Images::new(
            Image::contiguous(&input, 4),
            ImageMut { values: &mut output, pixel_stride: 3 },
        ),
    );
}

/// What a thread reads is then what it has written itself in the step before, if products are cut by rows.
#[test]
fn threads_get_equal_numbers_of_strips_each_of_one_part_of_the_image() {
    for (side, dilation, threads) in [(25, 1, 2), (14, 1, 2), (33, 2, 2), (56, 1, 3)] {
        let shape = Shape {
            dilation: [dilation; 2],
            padding_before: [dilation; 2],
            groups: 64,
            ..Shape::same([side; 2], [64; 2], [3; 2], 1)
        };
        let mut preparation = Preparation::new(InstructionSet::best(), threads);
        let (filter, bias) = (vec![0.5; shape.filter_values()], [0.0; 64]);
        let layer = Layer { filter: &filter, bias: &bias, epilogue: Epilogue::NONE };
        let kernel = DepthwiseConvolution::prepare(&shape, 64, layer, &mut preparation);
        let Ok(DepthwiseConvolution { method: Method::Sliding(sliding), .. }) = kernel else {
            panic!("another method");
        };
        let parts = sliding.row_parts();
        assert_eq!(parts.len() % threads, 0, "{side} rows in {} tasks", parts.len());
        let rows: Vec<usize> = parts
            .chunks(parts.len() / threads)
            .map(|parts| parts.iter().map(ExactSizeIterator::len).sum())
            .collect();
        let [least, most] = [rows.iter().min(), rows.iter().max()].map(|it| *it.unwrap());
        assert!(most - least <= most / 4, "{rows:?} of {side} rows");
        assert!(parts.windows(2).all(|two| two[0].start <= two[1].start), "{parts:?}");
    }
}
