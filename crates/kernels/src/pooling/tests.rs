//! Pooling against its definition.

use super::*;
use crate::image::{Image, ImageMut};
use crate::vector::Byte;
use crate::{ImageKernel, Images, InstructionSet};
use proptest::prelude::*;

/// Every output, by what `reduce` makes of the elements that its window sees.
fn expected<T: Copy, U>(
    shape: &Shape,
    (input, stride): (&[T], usize),
    reduce: impl Fn(&[T]) -> U,
) -> Vec<U> {
    let mut output = Vec::new();
    for pixel in 0..shape.output_pixels() {
        let (row, x) = (pixel / shape.output[1], pixel % shape.output[1]);
        let (image, y) = (row / shape.output[0], row % shape.output[0]);
        for channel in 0..shape.channels {
            let mut seen = Vec::new();
            for i in 0..shape.filter[0] {
                for j in 0..shape.filter[1] {
                    let row = (y * shape.stride[0] + i).wrapping_sub(shape.padding_before[0]);
                    let column = (x * shape.stride[1] + j).wrapping_sub(shape.padding_before[1]);
                    if row < shape.input[0] && column < shape.input[1] {
                        let at = (image * shape.input[0] + row) * shape.input[1] + column;
                        seen.push(input[at * stride + channel]);
                    }
                }
            }
            output.push(reduce(&seen));
        }
    }
    output
}

fn check_floats(shape: &Shape, gaps: [usize; 2], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let [stride, output_stride] = gaps.map(|gap| shape.channels + gap);
    let input: Vec<f32> =
        (0..shape.input_pixels() * stride).map(|_| random.f32() * 8.0 - 4.0).collect();
    let range = (-1.5, 3.0);
    for reduction in [Reduction::Average, Reduction::Max, Reduction::L2] {
        let expected = expected(shape, (&input, stride), |seen| {
            let wide = seen.iter().copied().map(f64::from);
            #[allow(clippy::cast_precision_loss)]
            let count = seen.len().max(1) as f64;
            let value = match reduction {
                Reduction::Average => wide.sum::<f64>() / count,
                Reduction::Max => wide.fold(f64::NEG_INFINITY, f64::max),
                Reduction::L2 => (wide.map(|it| it * it).sum::<f64>() / count).sqrt(),
            };
            value.clamp(-1.5, 3.0)
        });
        for set in InstructionSet::available() {
            let pooling = FloatPooling::prepare(set, *shape, reduction, range);
            let mut output = vec![9.0; shape.output_pixels() * output_stride];
            let input = Image { values: &input, pixel_stride: stride };
            let values = ImageMut { values: &mut output, pixel_stride: output_stride };
            pooling.run(&mut Team::new(2), Images::new(input, values), &mut []);
            for (pixel, found) in output.chunks(output_stride.max(1)).enumerate() {
                let expected = &expected[pixel * shape.channels..][..shape.channels];
                for (found, expected) in found.iter().zip(expected) {
                    let near = (f64::from(*found) - expected).abs() < 3e-6;
                    assert!(near, "{set} {reduction:?} {shape:?}: {found} not {expected}");
                }
                assert!(found[shape.channels..].iter().all(|gap| *gap == 9.0));
            }
        }
    }
}

fn check_bytes<T: Byte>(shape: &Shape, gaps: [usize; 2], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let [stride, output_stride] = gaps.map(|gap| shape.channels + gap);
    let input: Vec<T> = (0..shape.input_pixels() * stride)
        .map(|_| T::nearest(random.i32(T::RANGE.0..=T::RANGE.1)))
        .collect();
    let range = (-90, 200);
    for reduction in [Reduction::Average, Reduction::Max] {
        let expected = expected(shape, (&input, stride), |seen| {
            let wide = seen.iter().map(|it| it.wide());
            let value = if reduction == Reduction::Max {
                wide.max().unwrap_or(i32::MIN)
            } else {
                // Exact: halves in double precision are.
                #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
                ((f64::from(wide.sum::<i32>()) / seen.len().max(1) as f64).round() as i32)
            };
            T::nearest(value.clamp(-90, 200))
        });
        for set in InstructionSet::available() {
            let pooling = QuantizedPooling::<T>::prepare(set, *shape, reduction, range);
            let mut output = vec![T::nearest(9); shape.output_pixels() * output_stride];
            let input = Image { values: &input, pixel_stride: stride };
            let values = ImageMut { values: &mut output, pixel_stride: output_stride };
            pooling.run(&mut Team::new(2), Images::new(input, values), &mut []);
            for (pixel, found) in output.chunks(output_stride.max(1)).enumerate() {
                let expected = &expected[pixel * shape.channels..][..shape.channels];
                assert_eq!(&found[..shape.channels], expected, "{set} {reduction:?} {shape:?}");
                assert!(found[shape.channels..].iter().all(|gap| *gap == T::nearest(9)));
            }
        }
    }
}

/// Gaps are what is between a pixel's channels and the next pixel, of input and output.
fn check(shape: &Shape, gaps: [usize; 2], seed: u64) {
    check_floats(shape, gaps, seed);
    check_bytes::<u8>(shape, gaps, seed);
    check_bytes::<i8>(shape, gaps, seed);
}

#[test]
fn windows_of_models() {
    check(&Shape::global(1, [7, 7], 1280), [0; 2], 1);
    check(&Shape::global(2, [20, 17], 5), [3; 2], 2);
    check(&Shape::global(1, [0, 0], 3), [0; 2], 2);
    let three = Shape {
        batch: 1,
        input: [17, 17],
        output: [17, 17],
        channels: 130,
        filter: [3, 3],
        stride: [1, 1],
        padding_before: [1, 1],
    };
    check(&three, [0; 2], 3);
    check(&Shape { output: [8, 8], stride: [2, 2], padding_before: [0, 0], ..three }, [30; 2], 4);
}

#[test]
fn long_rows_of_few_channels() {
    // Longer than what is worked on at a time, as windows are and what is between them.
    let row = Shape {
        batch: 2,
        input: [3, 700],
        output: [2, 700],
        channels: 3,
        filter: [2, 4],
        stride: [1, 1],
        padding_before: [0, 1],
    };
    check(&row, [0; 2], 1);
    check(&Shape { output: [2, 349], stride: [1, 2], ..row }, [2, 0], 2);
    check(&Shape { output: [2, 14], stride: [1, 50], filter: [2, 60], ..row }, [0; 2], 3);
    check(&Shape { output: [2, 3], filter: [2, 699], channels: 5, ..row }, [0; 2], 4);
    check(&Shape { channels: 63, stride: [1, 3], output: [2, 234], ..row }, [0; 2], 5);
    // Pixels of more than one copy, several of them in a block.
    check(&Shape { channels: 22, stride: [1, 2], output: [2, 349], ..row }, [0; 2], 6);
    check(&Shape { channels: 42, stride: [1, 3], output: [2, 234], ..row }, [1, 0], 7);
}

#[test]
fn windows_larger_than_what_floats_sum() {
    let shape = Shape::global(1, [257, 259], 2);
    check_bytes::<u8>(&shape, [0; 2], 1);
    check_bytes::<i8>(&shape, [1; 2], 2);
}

#[test]
fn means_round_away_from_the_zero_point() {
    for set in InstructionSet::available() {
        let pooling = QuantizedPooling::<i8>::prepare_mean(set, Shape::global(1, [1, 2], 2), -10);
        let mut output = [0; 2];
        // Means of -10.5 and -9.5.
        let input = Image::contiguous(&[-10, -10, -11, -9], 2);
        let images = Images::new(input, ImageMut::contiguous(&mut output, 2));
        pooling.run(&mut Team::alone(), images, &mut []);
        assert_eq!(output, [-11, -9]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_sizes(
        batch in 0..3_usize,
        input in proptest::array::uniform2(1..9_usize),
        output in proptest::array::uniform2(0..7_usize),
        channels in prop_oneof![0..5_usize, 14..60_usize, 60..140_usize],
        filter in proptest::array::uniform2(1..8_usize),
        stride in proptest::array::uniform2(1..4_usize),
        padding in proptest::array::uniform2(0..4_usize),
        gaps in [0..3_usize, 0..3_usize],
        seed: u64,
    ) {
        check(&Shape {
            batch, input, output, channels, filter, stride,
            padding_before: [padding[0].min(filter[0] - 1), padding[1].min(filter[1] - 1)],
        }, gaps, seed);
    }
}

#[test]
fn a_nan_is_no_maximum_of_numbers_beside_it() {
    let mut random = fastrand::Rng::with_seed(3);
    for channels in (1..=70).step_by(3) {
        for (filter, stride) in
            [([2, 2], [1, 1]), ([2, 1], [1, 1]), ([2, 2], [2, 2]), ([3, 3], [2, 1])]
        {
            let output = [0, 1].map(|axis| (6 - filter[axis]) / stride[axis] + 1);
            let shape = Shape {
                batch: 1,
                input: [6, 6],
                output,
                filter,
                stride,
                padding_before: [0, 0],
                channels,
            };
            let input: Vec<f32> = (0..36 * channels)
                .map(|_| if random.u8(..3) == 0 { f32::NAN } else { random.f32() })
                .collect();
            // `f32::max` takes a number before a NaN, and of NaNs alone the least of the range is left.
            let expected = expected(&shape, (&input, channels), |seen| {
                seen.iter().copied().fold(f32::NEG_INFINITY, f32::max).max(-9.0)
            });
            for set in InstructionSet::available() {
                let pooling =
                    FloatPooling::prepare(set, shape, Reduction::Max, (-9.0, f32::INFINITY));
                let mut output = vec![7.0; expected.len()];
                let input = Image { values: &input, pixel_stride: channels };
                let values = ImageMut { values: &mut output, pixel_stride: channels };
                pooling.run(&mut Team::new(2), Images::new(input, values), &mut []);
                assert_eq!(output, expected, "{set} {channels} channels, {filter:?} by {stride:?}");
            }
        }
    }
}
