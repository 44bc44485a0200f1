//! Softmax against its formula in double precision.

use super::*;
use crate::prepared::OneInput;
use crate::vector::Byte;
use proptest::prelude::*;

fn expected(input: &[f64], [outer, length, inner]: [usize; 3], beta: f64, log: bool) -> Vec<f64> {
    let mut output = vec![0.0; input.len()];
    for slice in 0..outer * inner {
        let at = |k: usize| (slice / inner * length + k) * inner + slice % inner;
        let greatest = (0..length).map(|k| input[at(k)]).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..length).map(|k| (beta * (input[at(k)] - greatest)).exp()).sum();
        for k in 0..length {
            let below = beta * (input[at(k)] - greatest);
            output[at(k)] = if log { below - sum.ln() } else { below.exp() / sum };
        }
    }
    output
}

fn check(sizes: [usize; 3], beta: f32, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let input: Vec<f32> = (0..sizes.iter().product()).map(|_| random.f32() * 20.0 - 10.0).collect();
    let wide: Vec<f64> = input.iter().copied().map(f64::from).collect();
    for log in [false, true] {
        let expected = expected(&wide, sizes, beta.into(), log);
        for set in InstructionSet::available() {
            // A rounding for each element of the sum, some for the functions, and those of the
            // exponents, which are up to 20 times beta.
            #[allow(clippy::cast_precision_loss)]
            let roundings = (sizes[1] + 16) as f64 + 40.0 * f64::from(beta);
            let bound = roundings * f64::from(f32::EPSILON) / 2.0;
            // The logarithm of a sum has an error even where it is 0.
            let least = if log { 1.0 } else { 1e-6 };
            let mut output = vec![9.0; input.len()];
            Softmax::prepare(set, sizes, beta, log).run(
                &mut Team::new(2),
                &input,
                &[],
                &mut output,
            );
            for (found, expected) in output.iter().zip(&expected) {
                let error = (f64::from(*found) - expected).abs();
                assert!(error <= bound * (expected.abs() + least), "{set}: {found} not {expected}");
            }
        }
    }
    check_bytes::<u8>(sizes, beta, &mut random);
    check_bytes::<i8>(sizes, beta, &mut random);
}

fn check_bytes<T: Byte>(sizes: [usize; 3], beta: f32, random: &mut fastrand::Rng) {
    let input: Vec<T> = (0..sizes.iter().product())
        .map(|_| T::nearest(random.i32(T::RANGE.0..=T::RANGE.1)))
        .collect();
    let wide: Vec<f64> = input.iter().map(|it| f64::from(it.wide()) * 0.05).collect();
    let expected = expected(&wide, sizes, beta.into(), false);
    let mut output = vec![T::nearest(0); input.len()];
    for set in InstructionSet::available() {
        let kernel = QuantizedSoftmax::prepare(set, sizes, 0.05, beta);
        kernel.run(&mut Team::new(2), &input, &mut output);
        for (found, expected) in output.iter().zip(&expected) {
            let steps = f64::from(found.wide() - T::RANGE.0);
            let error = (steps - (expected * 256.0).min(255.0)).abs();
            assert!(error <= 0.5001, "{found:?} for {expected}, {set}");
        }
    }
}

#[test]
fn sizes_of_models() {
    check([1, 1001, 1], 1.0, 1);
    check([512, 128, 1], 1.0, 2);
    check([33, 21, 1], 0.5, 3);
    check([2, 5, 40], 2.0, 4);
    check([3, 0, 1], 1.0, 5);
}

#[test]
fn many_short_rows() {
    for (seed, sizes) in
        (0..).zip([[64, 1, 1], [200, 2, 1], [131, 21, 1], [129, 48, 1], [65, 49, 1], [130, 0, 1]])
    {
        check(sizes, 1.0, seed);
    }
    // Not a number stays in its row there too.
    for set in InstructionSet::available() {
        let mut input = vec![0.5; 64 * 3];
        input[3..6].copy_from_slice(&[f32::NAN, 1.0, f32::NEG_INFINITY]);
        let mut output = vec![9.0; input.len()];
        Softmax::prepare(set, [64, 3, 1], 1.0, false).run(
            &mut Team::alone(),
            &input,
            &[],
            &mut output,
        );
        let is_nan: Vec<bool> = output.iter().map(|it| it.is_nan()).collect();
        assert_eq!(is_nan[..9], [false, false, false, true, true, true, false, false, false]);
        assert!(!is_nan[9..].contains(&true));
    }
}

/// A mask for each of `[batch, 1, rows]` rows, of `[batch, heads, rows]` in all.
fn check_masked([batch, heads, rows, length]: [usize; 4], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut draw =
        |count: usize| -> Vec<f32> { (0..count).map(|_| random.f32() * 20.0 - 10.0).collect() };
    let outer = batch * heads * rows;
    let (input, mask) = (draw(outer * length), draw(batch * rows * length));
    let axes = vec![(batch, rows * length), (heads, 0), (rows, length)];
    for (factor, axes) in [(0.3, Some(axes)), (-0.7, None)] {
        let wide: Vec<f64> = (0..input.len())
            .map(|at| {
                let (row, column) = (at / length, at % length);
                let of_mask = row / (heads * rows) * rows + row % rows;
                let mask = axes.as_ref().map_or(0.0, |_| mask[of_mask * length + column]);
                f64::from(input[at] * factor + mask)
            })
            .collect();
        let expected = expected(&wide, [outer, length, 1], 1.0, false);
        for set in InstructionSet::available() {
            let softmax = Softmax::prepare(set, [outer, length, 1], 1.0, false)
                .adjusted(Adjustment { factor, mask: axes.clone() });
            let mut output = vec![9.0; input.len()];
            softmax.run(&mut Team::new(2), &input, &mask, &mut output);
            for (found, expected) in output.iter().zip(&expected) {
                let error = (f64::from(*found) - expected).abs();
                assert!(error <= 1e-5 * expected + 1e-11, "{set}: {found} not {expected}");
            }
        }
    }
}

#[test]
fn infinities_and_nan_stay_in_their_slice() {
    for set in InstructionSet::available() {
        let input = [f32::NEG_INFINITY, 0.0, 1.0, f32::NAN, 0.0, 0.0];
        let mut output = [9.0; 6];
        Softmax::prepare(set, [2, 3, 1], 1.0, false).run(
            &mut Team::alone(),
            &input,
            &[],
            &mut output,
        );
        assert_eq!(output[0], 0.0);
        assert!((output[1] + output[2] - 1.0).abs() < 1e-6);
        assert!(output[3..].iter().all(|it| it.is_nan()), "{output:?}");
    }
}

proptest! {
    #[test]
    fn all_sizes(
        outer in 0..4_usize,
        length in prop_oneof![0..5_usize, 10..80_usize],
        inner in prop_oneof![Just(1), 1..40_usize],
        beta in 0.1..3.0_f32,
        seed: u64,
    ) {
        check([outer, length, inner], beta, seed);
    }

    #[test]
    fn all_masks(
        batch in 1..3_usize,
        heads in 1..4_usize,
        rows in 1..6_usize,
        length in 0..70_usize,
        seed: u64,
    ) {
        check_masked([batch, heads, rows, length], seed);
    }
}
