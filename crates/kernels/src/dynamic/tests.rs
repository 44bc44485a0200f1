//! Layers against their definition, on all instruction sets.

use super::{Convolution, RoundedConvolution, Rounding};
use crate::convolution::Shape;
use crate::prepared::PreparedKernel;
use crate::{Epilogue, InstructionSet, Line, Preparation, SavedWeights, Team};
use bytemuck::Zeroable;
use proptest::prelude::*;

/// The integers of an image, less its zero point, and how many steps are 1.
#[allow(clippy::cast_possible_truncation)] // To integers of 9 bits.
fn rounded(image: &[f32]) -> (Vec<i32>, f32) {
    let least = image.iter().fold(0.0_f32, |least, x| least.min(*x));
    let greatest = image.iter().fold(0.0_f32, |greatest, x| greatest.max(*x));
    if image.iter().any(|x| !x.is_finite()) || !(greatest - least).is_finite() {
        return (vec![0; image.len()], f32::NAN);
    }
    let factor = 255.0 / (greatest - least);
    let factor = if factor.is_finite() { factor } else { 1.0 };
    let (low, high) = (least * factor, greatest * factor);
    let zero = if (-128.0 + low) + (127.0 + high) > 0.0 { -128.0 - low } else { 127.0 - high };
    let zero = zero.clamp(-128.0, 127.0).round_ties_even();
    let steps =
        |x: &f32| (x * factor).max(-128.0 - zero).min(127.0 - zero).round_ties_even() as i32;
    (image.iter().map(steps).collect(), factor)
}

/// By the definition.
#[allow(clippy::cast_possible_truncation)] // Rounded once.
fn expected(
    shape: &Shape,
    input: &[f32],
    weights: &[u8],
    scales: &[f32],
    bias: &[f32],
    epilogue: Epilogue,
) -> Vec<f32> {
    let (channels, [height, width]) = (shape.input_channels, shape.input);
    let depth = shape.group_input_channels();
    let mut outputs = Vec::new();
    for image in input.chunks_exact(height * width * channels) {
        let (image, factor) = rounded(image);
        let places = (0..shape.output[0]).flat_map(|y| (0..shape.output[1]).map(move |x| (y, x)));
        for ((y, x), unit) in
            places.flat_map(|at| (0..shape.output_channels).map(move |it| (at, it)))
        {
            let mut sum = 0_i32;
            for (i, j) in
                (0..shape.filter[0]).flat_map(|i| (0..shape.filter[1]).map(move |j| (i, j)))
            {
                let at = (shape.input_position(0, y, i), shape.input_position(1, x, j));
                let (Some(in_y), Some(in_x)) = at else { continue };
                let group = unit / shape.group_output_channels();
                let pixel = &image[(in_y * width + in_x) * channels + group * depth..][..depth];
                let tap = (unit * shape.filter[0] + i) * shape.filter[1] + j;
                for (q, weight) in pixel.iter().zip(&weights[tap * depth..]) {
                    sum = sum.wrapping_add(q * i32::from(weight.cast_signed()));
                }
            }
            let scale = scales[if scales.len() == 1 { 0 } else { unit }];
            let real =
                f64::from(sum) / f64::from(factor) * f64::from(scale) + f64::from(bias[unit]);
            outputs.push(epilogue.apply_to(if factor.is_nan() { f32::NAN } else { real as f32 }));
        }
    }
    outputs
}

fn assert_close(found: &[f32], expected: &[f32], size: f32, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let is_same = found.is_nan() && expected.is_nan()
            || (found - expected).abs() <= 1e-6 * (size + expected.abs());
        assert!(is_same, "{found} and not {expected} {what}");
    }
}

fn run(layer: &Convolution, threads: usize, input: &[f32]) -> Vec<f32> {
    let shape = &layer.shape;
    let mut output = vec![7.0; shape.output_pixels() * shape.output_channels];
    let mut scratch = vec![Line::zeroed(); layer.scratch_bytes() / 64];
    layer.run(&mut Team::new(threads), input, &mut output, &mut scratch);
    output
}

/// Numbers of all sizes, zeros and strange ones, by row.
fn rows_of(random: &mut fastrand::Rng, rows: usize, inputs: usize) -> Vec<f32> {
    let mut all = Vec::new();
    for _ in 0..rows {
        let kind = random.u32(..8);
        let mut row: Vec<f32> = (0..inputs)
            .map(|_| match kind {
                0 => 0.0,
                1 => random.f32() + 0.5,
                2 => -random.f32(),
                3 => random.f32() * 1e-39,
                _ => (random.f32() - 0.3) * 8.0,
            })
            .collect();
        if kind == 4 && inputs > 0 {
            let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][random.usize(..3)];
            row[random.usize(..inputs)] = strange;
        }
        if kind == 5 && inputs > 1 {
            (row[0], row[inputs - 1]) = (f32::MAX, f32::MIN);
        }
        all.extend(row);
    }
    all
}

/// As floats, with a rounding for each product.
fn compare_rounded(
    shape: &Shape,
    (weights, scales, bias): (&[u8], &[f32], &[f32]),
    epilogue: Epilogue,
    input: &[f32],
    expected: &[f32],
    threads: usize,
) {
    let greatest = |values: &[f32]| {
        values.iter().filter(|it| it.is_finite()).fold(0.0_f32, |most, it| most.max(it.abs()))
    };
    for set in InstructionSet::available() {
        if !RoundedConvolution::suits(shape, set) {
            continue;
        }
        let mut preparation = Preparation::new(set, threads);
        let layer =
            RoundedConvolution::prepare(shape, weights, scales, bias, epilogue, &mut preparation)
                .unwrap();
        drop(preparation);
        let mut output = vec![7.0; shape.output_pixels() * shape.output_channels];
        let mut scratch = vec![Line::zeroed(); layer.scratch_bytes() / 64];
        layer.run(&mut Team::new(threads), input, &mut output, &mut scratch);
        // Of each product at most: inputs of images that are not finite do not count.
        let of_image = input.len() / shape.batch.max(1);
        let images = input.chunks(of_image.max(1)).map(greatest);
        let sizes: Vec<f32> = images.map(|it| it * greatest(scales) * 128.0).collect();
        let of_output = output.len() / shape.batch.max(1);
        #[allow(clippy::cast_precision_loss)] // Of small numbers.
        let products = (shape.taps() * shape.group_input_channels() + 2) as f32;
        for (index, (found, expected)) in output.iter().zip(expected).enumerate() {
            let bound = 2e-7 * products * (sizes[index / of_output] * products.sqrt() + 1.0);
            let is_same = found.is_nan() && expected.is_nan() || (found - expected).abs() <= bound;
            assert!(is_same, "{found} and not {expected}, {set}, {shape:?}");
        }
    }
}

/// All instruction sets compute the definition, and what they save is what they had.
fn compare(
    shape: &Shape,
    input: &[f32],
    by_unit: bool,
    epilogue: Epilogue,
    random: &mut fastrand::Rng,
) {
    let units = shape.output_channels;
    let weights: Vec<u8> = (0..shape.filter_values()).map(|_| random.u8(..)).collect();
    let scales: Vec<f32> =
        (0..if by_unit { units } else { 1 }).map(|_| random.f32() * 0.01 + 0.001).collect();
    let bias: Vec<f32> = (0..units).map(|_| random.f32() - 0.5).collect();
    let expected = expected(shape, input, &weights, &scales, &bias, epilogue);
    compare_rounded(shape, (&weights, &scales, &bias), epilogue, input, &expected, 2);
    for set in InstructionSet::available() {
        for threads in [1, 2] {
            let mut preparation = Preparation::new(set, threads);
            let layer =
                Convolution::prepare(shape, &weights, &scales, &bias, epilogue, &mut preparation)
                    .unwrap();
            let packed = preparation.take_packed();
            drop(preparation);
            let found = run(&layer, threads, input);
            assert_close(&found, &expected, 1.0, set.to_string().as_str());
            let saved: Vec<u8> = packed.iter().flat_map(|it| it.bytes().to_vec()).collect();
            let saved = SavedWeights::new(saved.into());
            let mut preparation = Preparation::restore(set, threads, saved);
            let restored =
                Convolution::prepare(shape, &[], &scales, &bias, epilogue, &mut preparation)
                    .unwrap();
            preparation.finish().unwrap();
            let again = run(&restored, threads, input);
            assert!(
                bytemuck::cast_slice::<_, u32>(&again) == bytemuck::cast_slice::<_, u32>(&found)
            );
        }
    }
}

proptest! {
    #[test]
    fn all_instruction_sets_convolve_by_the_definition(
        batch in 1_usize..4, input in [1_usize..9, 1_usize..9], input_channels in 1_usize..20,
        output_channels in prop_oneof![1_usize..40, 60_usize..70], filter in [1_usize..4, 1_usize..4],
        stride in [1_usize..3, 1_usize..3], dilation in [1_usize..3, 1_usize..3],
        padding_before in [0_usize..3, 0_usize..3], output in [1_usize..9, 1_usize..9],
        by_unit: bool, clamped: bool, seed: u64,
    ) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let shape = Shape {
            batch, input, input_channels, output, output_channels, filter, stride, dilation,
            padding_before, groups: 1,
        };
        let input = rows_of(random, batch, input[0] * input[1] * input_channels);
        let epilogue = if clamped { Epilogue::RELU6 } else { Epilogue::NONE };
        compare(&shape, &input, by_unit, epilogue, random);
    }

    #[test]
    fn all_instruction_sets_convolve_groups_by_the_definition(
        batch in 1_usize..3, input in [1_usize..9, 1_usize..9], groups in 1_usize..7,
        inputs in prop_oneof![1_usize..10, 15_usize..40],
        outputs in prop_oneof![1_usize..10, 15_usize..70], filter in [1_usize..4, 1_usize..4],
        stride in [1_usize..3, 1_usize..3], dilation in [1_usize..3, 1_usize..3],
        padding_before in [0_usize..3, 0_usize..3], output in [1_usize..9, 1_usize..9],
        is_plain: bool, by_unit: bool, seed: u64,
    ) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (input_channels, output_channels) = (groups * inputs, groups * outputs);
        let any = Shape {
            batch, input, input_channels, output, output_channels, filter, stride, dilation,
            padding_before, groups,
        };
        let plain = Shape {
            output: input, filter: [1, 1], stride: [1, 1], padding_before: [0, 0], ..any
        };
        let values = rows_of(random, batch, input[0] * input[1] * input_channels);
        compare(if is_plain { &plain } else { &any }, &values, by_unit, Epilogue::NONE, random);
    }

    #[test]
    fn all_instruction_sets_compute_the_definition(
        rows in prop_oneof![Just(1_usize), 0_usize..60, 90_usize..110],
        inputs in prop_oneof![1_usize..40, 60_usize..300],
        units in prop_oneof![1_usize..40, 40_usize..300],
        by_unit: bool, clamped: bool, seed: u64,
    ) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let shape = Convolution::fully_connected([rows, inputs, units]);
        let input = rows_of(random, rows, inputs);
        let epilogue = if clamped { Epilogue::RELU6 } else { Epilogue::NONE };
        compare(&shape, &input, by_unit, epilogue, random);
    }

    #[test]
    fn all_instruction_sets_round_as_layers_do(
        count in 1_usize..5, elements in prop_oneof![1_usize..70, 16_000_usize..70_000], seed: u64,
    ) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let input = rows_of(random, count, elements);
        for set in InstructionSet::available() {
            for threads in [1, 3] {
                let mut preparation = Preparation::new(set, threads);
                let rounding = Rounding::prepare([count, elements], &mut preparation).unwrap();
                drop(preparation);
                let mut output = vec![7.0; count * elements];
                let mut scratch = vec![Line::zeroed(); rounding.scratch_bytes() / 64];
                rounding.run(&mut Team::new(threads), &input, &mut output, &mut scratch);
                for (found, image) in output.chunks(elements).zip(input.chunks(elements)) {
                    let (steps, factor) = rounded(image);
                    for (found, steps) in found.iter().zip(steps) {
                        #[allow(clippy::cast_precision_loss)] // Of 9 bits.
                        let expected = steps as f32 / factor;
                        prop_assert!(*found == expected || found.is_nan() && factor.is_nan(), "{set}");
                    }
                }
            }
        }
    }
}

#[test]
fn large_images_are_cut_into_parts_that_have_one_range() {
    let random = &mut fastrand::Rng::with_seed(3);
    let shape = Shape { padding_before: [1, 1], ..Shape::same([60, 70], [17, 33], [3, 3], 2) };
    let mut input: Vec<f32> = (0..60 * 70 * 17).map(|_| random.f32()).collect();
    let last = input.len() - 1;
    (input[0], input[last]) = (-3.0, 4.0);
    compare(&shape, &input, true, Epilogue::NONE, random);
}

/// With more addresses of taps than a table has for a whole tile of rows, up to as many as it has, and more.
#[test]
fn filters_of_many_taps_that_are_no_run() {
    let random = &mut fastrand::Rng::with_seed(4);
    for (taps, groups, dilation) in [(129, 2, 1), (300, 3, 1), (1024, 1, 2), (1030, 2, 1)] {
        let shape = Shape {
            batch: 2,
            input: [1, 40],
            input_channels: 4 * groups,
            output: [1, 11],
            output_channels: 5 * groups,
            filter: [1, taps],
            stride: [1, 3],
            dilation: [1, dilation],
            padding_before: [0, taps * dilation / 2],
            groups,
        };
        let input = rows_of(random, 2, 40 * shape.input_channels);
        compare(&shape, &input, true, Epilogue::NONE, random);
    }
}

#[test]
fn values_by_hand() {
    // 0 to 255, each a step: q - zero is the input.
    let input: Vec<f32> = vec![0.0, 255.0, 3.0, 1.5];
    let weights = [1, 0xFF, 100, 1, 0, 2, 0, 0x80];
    for set in InstructionSet::available() {
        let mut preparation = Preparation::new(set, 1);
        let layer = Convolution::prepare(
            &Convolution::fully_connected([1, 4, 2]),
            &weights,
            &[0.5, 0.25],
            &[10.0, -1.0],
            Epilogue::NONE,
            &mut preparation,
        )
        .unwrap();
        drop(preparation);
        // (-255 + 300 + 2) / 2 + 10; (510 - 256) / 4 - 1.
        assert_eq!(run(&layer, 1, &input), [33.5, 62.5], "{set}");
    }
}

#[test]
fn what_is_not_finite_stays_in_its_row() {
    let input = [1.0, f32::INFINITY, 1.0, 1.0, f32::NAN, 0.0, 0.0, 0.0];
    for set in InstructionSet::available() {
        let mut preparation = Preparation::new(set, 1);
        let layer = Convolution::prepare(
            &Convolution::fully_connected([4, 2, 1]),
            &[1, 1],
            &[1.0],
            &[0.5],
            Epilogue::RELU,
            &mut preparation,
        )
        .unwrap();
        drop(preparation);
        let found = run(&layer, 1, &input);
        assert!(found[0].is_nan() && found[2].is_nan(), "{set}: {found:?}");
        assert_close(&[found[1], found[3]], &[2.5, 0.5], 1.0, set.to_string().as_str());
    }
}

#[test]
fn sizes_beyond_memory_and_beyond_the_limit_are_refused() {
    let refused = |rows, limit: usize| {
        let mut preparation = Preparation::new(InstructionSet::best(), 1).with_limit(limit);
        let (bias, weights) = ([0.0; 4], [0; 32]);
        let layer = Convolution::prepare(
            &Convolution::fully_connected([rows, 8, 4]),
            &weights,
            &[1.0],
            &bias,
            Epilogue::NONE,
            &mut preparation,
        );
        layer.err().map(|it| it.what)
    };
    let most = isize::MAX.unsigned_abs();
    assert_eq!(refused(1, most), None);
    assert_eq!(refused(1, 8), Some("scales of weights"));
    assert_eq!(refused(1 << 20, 1 << 20), Some("scratch memory"));
}
