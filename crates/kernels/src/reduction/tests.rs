//! Reductions and normalizations against their definitions in double precision.

use super::vectors::{Combination, Vectors};
use super::*;
use crate::InstructionSet;
use crate::prepared::OneInput;
use crate::team::Team;
use crate::vector::Byte;
use proptest::prelude::*;

/// The elements that belong to each output element.
fn groups<T: Copy>(input: &[T], lengths: &[usize], reduced: &[usize]) -> Vec<Vec<T>> {
    let kept: usize = (0..lengths.len())
        .filter(|axis| !reduced.contains(axis))
        .map(|axis| lengths[axis])
        .product();
    let mut groups = vec![Vec::new(); kept];
    for (place, element) in input.iter().enumerate() {
        let (mut left, mut at, mut stride) = (place, 0, 1);
        for axis in (0..lengths.len()).rev() {
            if !reduced.contains(&axis) {
                at += left % lengths[axis] * stride;
                stride *= lengths[axis];
            }
            left /= lengths[axis];
        }
        groups[at].push(*element);
    }
    groups
}

fn check(lengths: &[usize], reduced: &[usize], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let input: Vec<f32> = (0..lengths.iter().product()).map(|_| random.f32() * 8.0 - 3.0).collect();
    let groups = groups(&input, lengths, reduced);
    use Reduction::{Max, Mean, Min, Product, Sum};
    for reduction in [Sum, Mean, Max, Min, Product] {
        for set in InstructionSet::available() {
            let reduce = Reduce::prepare(set, reduction, lengths, reduced);
            let mut output = vec![7.0; groups.len()];
            reduce.run(&mut Team::new(2), &input, &mut output);
            for (found, group) in output.into_iter().zip(&groups) {
                let wide = group.iter().copied().map(f64::from);
                #[allow(clippy::cast_precision_loss)]
                let count = group.len() as f64;
                let magnitude: f64 = wide.clone().map(f64::abs).sum();
                let (expected, bound) = match reduction {
                    Sum => (wide.sum(), 2e-6 * magnitude),
                    Mean => (wide.sum::<f64>() / count, 2e-6 * magnitude / count),
                    Max => (wide.fold(f64::NEG_INFINITY, f64::max), 0.0),
                    Min => (wide.fold(f64::INFINITY, f64::min), 0.0),
                    #[allow(clippy::cast_possible_truncation)] // Rounded once.
                    Product => (f64::from(wide.product::<f64>() as f32), 0.0),
                };
                let found = f64::from(found);
                let is_equal = found == expected || (found.is_nan() && expected.is_nan());
                let is_near = (found - expected).abs() <= bound;
                assert!(is_equal || is_near, "{set} {reduction:?} {lengths:?} {reduced:?}");
            }
        }
    }
    let axes = Axes::new(lengths, reduced);
    let mut output = vec![0.0; groups.len()];
    axes.fold(&mut Team::new(2), &input, &mut output, 1.0, |all, x| all * f64::from(x), |all| all);
    let expected: Vec<f64> =
        groups.iter().map(|group| group.iter().map(|x| f64::from(*x)).product()).collect();
    assert_eq!(output, expected);
}

fn check_bytes<T: Byte>(lengths: &[usize], reduced: &[usize], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let input: Vec<T> = (0..lengths.iter().product())
        .map(|_| T::nearest(random.i32(T::RANGE.0..=T::RANGE.1)))
        .collect();
    type Step = fn(i32, i32) -> i32;
    let steps: [(Combination, Step, i32); 3] = [
        (Combination::Sum, |a, b| a + b, 0),
        (Combination::Max, i32::max, T::RANGE.0),
        (Combination::Min, i32::min, T::RANGE.1),
    ];
    for (combination, step, nothing) in steps {
        let groups = groups(&input, lengths, reduced).into_iter();
        let expected: Vec<i32> =
            groups.map(|group| group.into_iter().map(T::wide).fold(nothing, step)).collect();
        for set in InstructionSet::available() {
            let kernel = Vectors::prepare(set, combination, lengths, reduced);
            let mut found = vec![7; expected.len()];
            kernel.run(&mut Team::new(2), &input, &mut found, |it| it);
            assert_eq!(found, expected, "{set} {combination:?} {lengths:?} {reduced:?}");
        }
    }
}

#[test]
fn shapes_of_models_in_bytes() {
    check_bytes::<u8>(&[1, 7, 7, 576], &[1, 2], 1);
    check_bytes::<i8>(&[2, 300, 77], &[2], 2);
    check_bytes::<u8>(&[300, 700], &[0, 1], 3);
    check_bytes::<i8>(&[5, 3, 2, 40], &[0, 2], 4);
}

#[test]
fn shapes_of_models() {
    check(&[1, 7, 7, 1280], &[1, 2], 1);
    check(&[128, 512], &[1], 2);
    check(&[512, 128], &[0], 3);
    check(&[3, 40, 5, 70], &[0, 2], 4);
    check(&[3, 40, 5, 70], &[1, 3], 5);
    check(&[10_000], &[0], 6);
    check(&[], &[], 7);
    check(&[0, 3], &[0], 8);
    check(&[0, 3], &[1], 9);
}

#[test]
fn a_nan_is_the_greatest_and_the_least() {
    for set in InstructionSet::available() {
        for position in 0..70 {
            let mut input = vec![1.0; 70];
            input[position] = f32::NAN;
            for reduction in [Reduction::Max, Reduction::Min] {
                let mut output = [0.0];
                let reduce = Reduce::prepare(set, reduction, &[70], &[0]);
                reduce.run(&mut Team::alone(), &input, &mut output);
                assert!(output[0].is_nan());
                let mut output = [0.0; 7];
                let reduce = Reduce::prepare(set, reduction, &[10, 7], &[0]);
                reduce.run(&mut Team::alone(), &input, &mut output);
                assert!(output[position % 7].is_nan());
            }
        }
    }
}

#[test]
fn a_zero_makes_a_product_of_finite_elements_0() {
    let product = |elements: &[f32]| {
        let lengths = [elements.len()];
        let reduce = Reduce::prepare(InstructionSet::best(), Reduction::Product, &lengths, &[0]);
        let mut output = [7.0];
        reduce.run(&mut Team::new(2), elements, &mut output);
        output[0]
    };
    assert_eq!(product(&[3.0, -2.5]), -7.5);
    assert_eq!(product(&[2.0, 0.0, 3.0]), 0.0);
    // Beyond the range of double precision.
    let large = [-f32::MAX; 9];
    assert_eq!(product(&large), f32::NEG_INFINITY);
    assert_eq!(product(&[&large[..], &[0.5, -1e-30]].concat()), f32::INFINITY);
    assert_eq!(product(&[&large[..], &[0.0]].concat()), 0.0);
    assert_eq!(product(&[&large[..], &[f32::INFINITY]].concat()), f32::NEG_INFINITY);
    for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        assert!(product(&[0.0, special, 2.0]).is_nan());
        assert!(product(&[special, 2.0, 0.0]).is_nan());
    }
}

#[test]
fn a_nan_in_a_row_of_any_length_is_in_all_that_is_normalized_with_it() {
    for set in InstructionSet::available() {
        for length in [1, 5, 16, 70] {
            let mut input = vec![0.5; 2 * length];
            input[length / 2] = f32::NAN;
            let mut output = vec![0.0; input.len()];
            let prepared =
                RowNormalization::prepare(set, Normalization::L2 { least: 1e-6 }, 2, length);
            prepared.run(&mut Team::alone(), &input, None, None, &mut output);
            assert!(output[..length].iter().all(|it| it.is_nan()), "{set} {output:?}");
            assert!(output[length..].iter().all(|it| it.is_finite()), "{set} {output:?}");
        }
    }
}

#[test]
fn the_first_of_equals_is_found() {
    let input = [1, 5, 5, 0, 3, 0, 2, 2, 1];
    let mut output = [9; 3];
    let (set, mut team) = (InstructionSet::best(), Team::alone());
    arg_extreme(set, &mut team, ArgExtreme::Max, [3, 3, 1], &input, &mut output);
    assert_eq!(output, [1, 1, 0]);
    arg_extreme(set, &mut team, ArgExtreme::Min, [1, 3, 3], &input, &mut output);
    assert_eq!(output, [1, 2, 1]);
    arg_extreme(set, &mut team, ArgExtreme::Min, [1, 0, 3], &[0; 0], &mut output);
    assert_eq!(output, [0, 0, 0]);
}

fn normalized(row: &[f64], epsilon: f64) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss)]
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    row.iter().map(|x| (x - mean) / (variance + epsilon).sqrt()).collect()
}

#[test]
fn rows_are_normalized() {
    let mut random = fastrand::Rng::with_seed(4);
    for length in [1, 3, 16, 37, 256, 513] {
        let mut any = |count: usize, offset: f32| -> Vec<f32> {
            (0..count).map(|_| random.f32() * 2.0 + offset).collect()
        };
        let (input, scale, offset) = (any(3 * length, 5.0), any(length, 0.0), any(length, -1.0));
        for set in InstructionSet::available() {
            let mut team = Team::new(2);
            let mut output = vec![0.0; input.len()];
            let layer = Normalization::Layer { epsilon: 1e-3 };
            let prepared = RowNormalization::prepare(set, layer, 3, length);
            prepared.run(&mut team, &input, Some(&scale), Some(&offset), &mut output);
            let rows = input.chunks(length).flat_map(|row| {
                normalized(&row.iter().copied().map(f64::from).collect::<Vec<_>>(), 1e-3)
            });
            for (place, (found, expected)) in output.iter().zip(rows).enumerate() {
                let column = place % length;
                let expected = expected * f64::from(scale[column]) + f64::from(offset[column]);
                assert!((f64::from(*found) - expected).abs() < 1e-5, "{set} {found} {expected}");
            }
            let prepared =
                RowNormalization::prepare(set, Normalization::L2 { least: 1e-6 }, 3, length);
            prepared.run(&mut team, &input, None, None, &mut output);
            for (row, found) in input.chunks(length).zip(output.chunks(length)) {
                let norm = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                for (x, found) in row.iter().zip(found) {
                    assert!((f64::from(*found) - f64::from(*x) / norm).abs() < 1e-6);
                }
            }
        }
    }
}

#[test]
fn channels_and_neighbourhoods_are_normalized() {
    let mut random = fastrand::Rng::with_seed(4);
    let input: Vec<f32> = (0..2 * 9 * 21).map(|_| random.f32() * 2.0).collect();
    let mut output = vec![0.0; input.len()];
    let mut team = Team::new(2);
    instance_normalization(&mut team, [2, 9, 21], [2.0, 0.5, 1e-4], &input, &mut output);
    for (image, channel) in [(0, 0), (1, 20), (1, 3)] {
        let places: Vec<usize> = (0..9).map(|pixel| (image * 9 + pixel) * 21 + channel).collect();
        let values: Vec<f64> = places.iter().map(|at| input[*at].into()).collect();
        for (at, expected) in places.iter().zip(normalized(&values, 1e-4)) {
            assert!((f64::from(output[*at]) - (2.0 * expected + 0.5)).abs() < 1e-6);
        }
    }
    let mut output = [0.0; 4];
    let sizes = [1.0, 0.5, 1.0];
    local_response_normalization(&mut team, 2, 1, sizes, &[1.0, 2.0, 4.0, 0.0], &mut output);
    assert_eq!(output, [1.0 / 3.5, 2.0 / 3.5, 4.0 / 9.0, 0.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn extremes_are_where_comparisons_say(
        (outer, length, inner) in prop_oneof![
            (1..4_usize, prop_oneof![0..40_usize, 1000..3000_usize], 1..4_usize),
            (60..140_usize, 0..70_usize, Just(1)),
            (1..3_usize, prop_oneof![0..40_usize, 250..600_usize], 60..150_usize),
        ],
        values in prop_oneof![Just(3_u8), Just(255)], seed: u64,
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..outer * length * inner).map(|_| random.u8(0..values)).collect();
        let number = |it: &u8| match it % 50 {
            7 => f32::NAN,
            8 => -0.0,
            9 => f32::NEG_INFINITY,
            _ => f32::from(*it) - 100.0,
        };
        let floats: Vec<f32> = bytes.iter().map(number).collect();
        let whiches = [ArgExtreme::Max, ArgExtreme::Min];
        for (set, which) in InstructionSet::available().flat_map(|set| whiches.map(|it| (set, it))) {
            let expected: Vec<i32> = (0..outer * inner).map(|slice| {
                let element = |at: usize| floats[(slice / inner * length + at) * inner + slice % inner];
                let mut best = 0;
                for at in 1..length {
                    let [new, old] = [element(at), element(best)];
                    if if which == ArgExtreme::Max { new > old } else { new < old } {
                        best = at;
                    }
                }
                i32::try_from(best).unwrap()
            }).collect();
            let mut found = vec![9; outer * inner];
            arg_extreme(set, &mut Team::alone(), which, [outer, length, inner], &floats, &mut found);
            prop_assert_eq!(&found, &expected, "{:?}", which);
            let signed: Vec<i8> = bytes.iter().map(|it| it.cast_signed()).collect();
            let as_floats: Vec<f32> = signed.iter().map(|it| f32::from(*it)).collect();
            let mut of_floats = found.clone();
            arg_extreme(set, &mut Team::alone(), which, [outer, length, inner], &signed, &mut found);
            arg_extreme(set, &mut Team::alone(), which, [outer, length, inner], &as_floats, &mut of_floats);
            prop_assert_eq!(&found, &of_floats, "{:?}", which);
        }
    }

    #[test]
    fn responses_are_divided_by_powers(
        length in prop_oneof![1..20_usize, 200..300_usize], radius in prop_oneof![0..5_usize, 0..400_usize],
        beta in prop_oneof![Just(0.5_f32), Just(0.75), Just(1.0), Just(0.3)], seed: u64,
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let input: Vec<f32> = (0..2 * length).map(|_| random.f32() * 4.0 - 2.0).collect();
        let mut output = vec![0.0; input.len()];
        let numbers = [1.5, 0.25, beta];
        local_response_normalization(&mut Team::alone(), length, radius, numbers, &input, &mut output);
        for (at, found) in output.iter().enumerate() {
            let (row, column) = (at / length * length, at % length);
            let near = &input[row + column.saturating_sub(radius)..row + length.min(column + radius + 1)];
            let squares: f64 = near.iter().map(|x| f64::from(*x).powi(2)).sum();
            let expected = f64::from(input[at]) / (1.5 + 0.25 * squares).powf(beta.into());
            prop_assert!((f64::from(*found) - expected).abs() <= 1e-6 * expected.abs(), "{} not {}", found, expected);
        }
    }

    #[test]
    fn any_axes(
        lengths in prop::collection::vec(prop_oneof![1..4_usize, 10..30_usize], 0..5),
        mask: u8,
        seed: u64,
    ) {
        let reduced: Vec<usize> = (0..lengths.len()).filter(|axis| mask >> axis & 1 == 1).collect();
        check(&lengths, &reduced, seed);
    }
}

proptest! {
    #[test]
    fn any_axes_of_bytes(
        lengths in prop::collection::vec(prop_oneof![0..6_usize, 60..70_usize], 1..4),
        mask in 0..16_usize,
        seed: u64,
    ) {
        let reduced: Vec<usize> = (0..lengths.len()).filter(|axis| mask >> axis & 1 == 1).collect();
        check_bytes::<u8>(&lengths, &reduced, seed);
        check_bytes::<i8>(&lengths, &reduced, seed);
    }
}

/// Sums of millions, of rows of a few elements and of columns side by side, whose partial sums are many.
#[test]
#[cfg_attr(miri, ignore)]
fn long_sums_are_near_the_exact_ones() {
    for (lengths, reduced) in [
        (&[1 << 18, 2, 4][..], &[0, 2][..]),
        (&[1 << 15, 2, 4, 8], &[0, 2]),
        (&[1 << 21], &[0]),
        (&[1 << 18, 8], &[0]),
    ] {
        let mut random = fastrand::Rng::with_seed(5);
        let input: Vec<f32> = (0..1 << 21).map(|_| random.f32() * 7.0).collect();
        for set in InstructionSet::available() {
            let reduce = Reduce::prepare(set, Reduction::Mean, lengths, reduced);
            let groups = groups(&input, lengths, reduced);
            let mut output = vec![0.0; groups.len()];
            reduce.run(&mut Team::new(1), &input, &mut output);
            for (found, group) in output.iter().zip(&groups) {
                #[allow(clippy::cast_precision_loss)]
                let mean = group.iter().copied().map(f64::from).sum::<f64>() / group.len() as f64;
                let error = (f64::from(*found) - mean).abs() / mean;
                assert!(error < 2e-6, "{set} {lengths:?}: {found}, not {mean}, {error:e} away");
            }
        }
    }
}
