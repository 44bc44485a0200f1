//! Layer normalization of integers: TensorFlow Lite's, to the bit.

use super::{ACTIVATION, saturate_16};
use crate::Multiplier;
use crate::team::Pace;

/// Of the mean 10 more bits are kept, and of the normalized numbers. The variance is in whole steps,
/// at least 1. Weights are multiplied and biases added in steps of 2^-10 of the weights' scale, which
/// is the factor.
#[allow(clippy::cast_possible_truncation)] // Clamped.
pub(super) fn normalize(
    pace: &mut Pace<'_>,
    sums: &mut [i32],
    weights: &[i16],
    bias: &[i32],
    factor: Multiplier,
) {
    let saturate = |wide: i64| wide.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let length = sums.len();
    let count = i64::try_from(length).unwrap_or(i64::MAX).max(1);
    let (mut sum, mut squares) = (0, 0);
    for block in pace.blocks(length, 1) {
        let numbers = || sums[block.clone()].iter().map(|sum| i64::from(*sum));
        sum += numbers().sum::<i64>();
        squares += numbers().map(|number| number * number).sum::<i64>();
    }
    let mean = sum * 1024 / count;
    let variance = (squares.wrapping_mul((1 << 20) / count) - mean * mean) / (1 << 20);
    let inverse_deviation = inverse_square_root(variance);
    // To steps of 2^-12, after 10 bits are rounded off.
    let factor = Multiplier { exponent: factor.exponent + 12, ..factor };
    for block in pace.blocks(length, ACTIVATION) {
        let sums = sums[block.clone()].iter_mut();
        for ((sum, weight), bias) in sums.zip(&weights[block.clone()]).zip(&bias[block]) {
            let normalized = inverse_deviation.apply(saturate(i64::from(*sum) * 1024 - mean));
            let weighted = i64::from(normalized) * i64::from(*weight) + i64::from(*bias);
            let half = if weighted > 0 { 512 } else { -512 };
            *sum = saturate_16(factor.apply(saturate((weighted + half) / 1024)));
        }
    }
}

/// `1 / sqrt(number)`; numbers below 2 count as 1, for which it is the greatest factor below 1. The
/// number is brought to a fraction from 1/4 to 1 by a power of four, of which five steps of Newton's
/// method find the root, with 28 bits behind the point.
#[allow(clippy::cast_possible_truncation)] // Clamped.
fn inverse_square_root(number: i64) -> Multiplier {
    const THREE_HALVES: i32 = 3 << 27;
    /// The square root of 1/2, with 31 bits behind the point.
    const ROOT_OF_HALF: i32 = 1_518_500_250;
    if number <= 1 {
        return Multiplier { mantissa: i32::MAX, exponent: 0 };
    }
    let (mut fraction, mut right_shift) = (number, 11);
    while fraction >= 1 << 29 {
        fraction /= 4;
        right_shift += 1;
    }
    while fraction < 1 << 27 {
        fraction *= 4;
        right_shift -= 1;
    }
    let saturate = |wide: i64| wide.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let product = |a: i32, b: i32| saturate((i64::from(a) * i64::from(b) + (1 << 30)) >> 31);
    let shifted = |value: i32, bits: u32| saturate(i64::from(value) << bits);
    // Half of the fraction with 3 bits before the point, rounded.
    let half = (fraction as i32 / 2 + 1) / 2;
    let mut x = 1 << 28;
    for _ in 0..5 {
        let cube = shifted(product(product(x, x), x), 6);
        x = shifted(product(THREE_HALVES, x) - product(half, cube), 3);
    }
    // The shift has counted half a power of two too many.
    let mantissa = product(x, ROOT_OF_HALF);
    if right_shift < 0 {
        return Multiplier { mantissa: mantissa << -right_shift, exponent: 0 };
    }
    Multiplier { mantissa, exponent: -right_shift }
}
