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
    let inverse_deviation = Multiplier::inverse_square_root(variance);
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
