//! The inverse square root of an integer, with integer arithmetic: TensorFlow Lite's, to the bit,
//! which quantized normalizations are defined by.
//!
//! The number is brought to a fraction `a` from 1/4 to 1 by a power of four. Five steps of Newton's
//! method from 1, `x = x * (3 - a * x * x) / 2`, find `1 / sqrt(a)` between 1 and 2, in fixed point
//! with 3 bits before the point and 28 behind. The result is within 2^-16 of the real one.

use crate::rules::requantize::{
    Multiplier, divide_by_power_of_two, doubling_high_product, saturate,
};

/// 1 with 28 bits behind the point.
const ONE: i32 = 1 << 28;
/// 3/2 with 28 bits behind the point.
const THREE_HALVES: i32 = ONE + ONE / 2;
/// The square root of 1/2, with 31 bits behind the point.
const ROOT_OF_HALF: i32 = 1_518_500_250;

/// The factor `1 / sqrt(number)`. Numbers below 2 count as 1, for which the factor is the greatest
/// below 1.
pub fn inverse_square_root(number: i64) -> Multiplier {
    if number <= 1 {
        return Multiplier { mantissa: i32::MAX, exponent: 0 };
    }
    // `number` becomes `fraction`, from 2^27 to 2^29 - 1, by factors of 4; each is one of 2 in the
    // result.
    let mut fraction = number;
    let mut right_shift = 11;
    while fraction >= 1 << 29 {
        fraction /= 4;
        right_shift += 1;
    }
    while fraction < 1 << 27 {
        fraction *= 4;
        right_shift -= 1;
    }
    let fraction = i32::try_from(fraction).unwrap_or(i32::MAX) / 2;
    let half = divide_by_power_of_two(fraction, 1);
    // A product of numbers with m and n bits before the point has m + n of them; shifts bring it
    // back to 3.
    let product = doubling_high_product;
    let shifted = |value: i32, bits: u32| saturate(i64::from(value) << bits);
    let mut x = ONE;
    for _ in 0..5 {
        let cube = shifted(product(product(x, x), x), 6);
        x = shifted(product(THREE_HALVES, x) - product(half, cube), 3);
    }
    // The result is wanted with 31 bits behind the point, 3 more than `x` has. The shift has counted
    // that and half a power of two too many, which the last factor takes back.
    let mantissa = product(x, ROOT_OF_HALF);
    if right_shift < 0 {
        return Multiplier { mantissa: mantissa << -right_shift, exponent: 0 };
    }
    Multiplier { mantissa, exponent: -right_shift }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn real(multiplier: Multiplier) -> f64 {
        f64::from(multiplier.mantissa) * 2_f64.powi(multiplier.exponent - 31)
    }

    #[test]
    fn squares_by_hand() {
        for (number, root) in [(4, 0.5), (16, 0.25), (1 << 20, 2_f64.powi(-10)), (10_000, 0.01)] {
            assert!((real(inverse_square_root(number)) / root - 1.0).abs() < 2_f64.powi(-16));
        }
        for number in [1, 0, -5, i64::MIN] {
            let almost_one = Multiplier { mantissa: i32::MAX, exponent: 0 };
            assert_eq!(inverse_square_root(number), almost_one);
        }
    }

    proptest! {
        #[test]
        fn it_is_close_to_the_real_one(number in 2..i64::MAX, shift in 0..62_u32) {
            let number = (number >> shift).max(2);
            #[allow(clippy::cast_precision_loss)]
            let expected = 1.0 / (number as f64).sqrt();
            let found = real(inverse_square_root(number));
            prop_assert!((found / expected - 1.0).abs() < 2_f64.powi(-16), "{found} {expected}");
        }
    }
}
