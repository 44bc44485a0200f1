//! Requantisation: multiplying an integer by a real number with integer arithmetic.
//!
//! The definition of the quantised operations is the arithmetic of TensorFlow Lite's reference
//! kernels, which is gemmlowp's: a real factor becomes a 32-bit mantissa and a power of two, the
//! product is rounded twice, and both roundings go to the nearest, halves away from zero.

use crate::call::Argument;
use crate::error::Fault;

/// A real factor as `mantissa * 2^(exponent - 31)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiplier {
    /// 0, or from 2^30 to 2^31 - 1.
    pub mantissa: i32,
    /// The power of two; positive shifts left.
    pub exponent: i32,
}

/// `fraction * 2^exponent == value` with the fraction in `[0.5, 1)`, or 0; for finite numbers that
/// are not negative.
fn split(value: f64) -> (f64, i32) {
    if value == 0.0 {
        return (0.0, 0);
    }
    // Subnormals are brought into the normal range first.
    let (value, already) =
        if value < f64::MIN_POSITIVE { (value * 2_f64.powi(64), -64) } else { (value, 0) };
    let bits = value.to_bits();
    let exponent = i32::from((bits >> 52) as u16 & 0x7FF) - 1022;
    let fraction = f64::from_bits((bits & !(0x7FF << 52)) | (1022 << 52));
    (fraction, exponent + already)
}

impl Multiplier {
    /// The factor nearest to a real number that is not negative. Numbers below about 2^-32 become
    /// 0, infinite ones and NaN as well.
    #[allow(clippy::cast_possible_truncation)] // At most 2^31, as the next lines see to.
    pub fn from_real(real: f64) -> Self {
        if !real.is_finite() || real <= 0.0 {
            return Self { mantissa: 0, exponent: 0 };
        }
        let (fraction, mut exponent) = split(real);
        let mut mantissa = (fraction * 2_f64.powi(31)).round() as i64;
        if mantissa == 1 << 31 {
            mantissa /= 2;
            exponent += 1;
        }
        if exponent < -31 {
            return Self { mantissa: 0, exponent: 0 };
        }
        Self { mantissa: mantissa as i32, exponent }
    }

    /// The product, rounded; saturated where it leaves 32 bits.
    pub fn apply(self, value: i32) -> i32 {
        let shifted = shift_left_saturating(value, self.exponent.max(0));
        divide_by_power_of_two(doubling_high_product(shifted, self.mantissa), -self.exponent.min(0))
    }
}

/// `value * 2^shift`, saturated.
pub fn shift_left_saturating(value: i32, shift: i32) -> i32 {
    let wide = i64::from(value) << shift.clamp(0, 31);
    saturate(if shift > 31 { i64::from(value.signum()) * i64::from(i32::MAX) } else { wide })
}

/// The upper half of `2 * a * b`, rounded to nearest, halves away from zero; saturated in the only
/// case that overflows, both operands being the least number (gemmlowp's
/// `SaturatingRoundingDoublingHighMul`).
pub fn doubling_high_product(a: i32, b: i32) -> i32 {
    let product = i64::from(a) * i64::from(b);
    let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
    saturate((product + nudge) / (1 << 31))
}

/// `value / 2^exponent`, rounded to nearest, halves away from zero (gemmlowp's
/// `RoundingDivideByPOT`).
pub fn divide_by_power_of_two(value: i32, exponent: i32) -> i32 {
    let exponent = exponent.clamp(0, 62);
    let value = i64::from(value);
    let half = if exponent == 0 { 0 } else { 1_i64 << (exponent - 1) };
    let magnitude = (value.abs() + half) >> exponent;
    saturate(if value < 0 { -magnitude } else { magnitude })
}

/// The nearest number that 32 bits hold.
#[allow(clippy::cast_possible_truncation)] // Clamped.
pub fn saturate(value: i64) -> i32 {
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// The stored value nearest to a real number: `round(real / scale) + zero_point`, halves away from
/// zero, saturated to `range`. NaN gives the zero point.
#[allow(clippy::cast_possible_truncation)] // The float cast saturates.
pub fn quantize(real: f32, scale: f32, zero_point: i32, range: (i32, i32)) -> i32 {
    let steps = (real / scale).round() as i32;
    steps.saturating_add(zero_point).clamp(range.0, range.1)
}

/// The elements of an argument, quantised as another one is: what they stand for, stored anew. The
/// stored values of a type without quantisation stay what they are.
///
/// # Errors
/// [`Fault::NotKnown`], or the argument is left out.
pub fn requantized(argument: &Argument<'_>, like: &Argument<'_>) -> Result<Vec<i32>, Fault> {
    let Some(range) = like.operand_type.quantized_range() else { return argument.integers() };
    let store = |real| quantize(real, like.scale, like.zero_point, range);
    Ok(argument.reals()?.into_iter().map(store).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn factors_by_hand() {
        assert_eq!(Multiplier::from_real(0.5), Multiplier { mantissa: 1 << 30, exponent: 0 });
        assert_eq!(Multiplier::from_real(1.0), Multiplier { mantissa: 1 << 30, exponent: 1 });
        assert_eq!(Multiplier::from_real(0.0).apply(1000), 0);
        assert_eq!(Multiplier::from_real(1e-12).apply(i32::MAX), 0);
        assert_eq!(Multiplier::from_real(f64::NAN).mantissa, 0);
    }

    #[test]
    fn halves_go_away_from_zero() {
        let half = Multiplier::from_real(0.5);
        assert_eq!([3, 1, -1, -3].map(|value| half.apply(value)), [2, 1, -1, -2]);
        assert_eq!([5, 6, 7, -5, -6].map(|it| divide_by_power_of_two(it, 2)), [1, 2, 2, -1, -2]);
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(doubling_high_product(i32::MIN, i32::MIN), i32::MAX);
        assert_eq!(Multiplier::from_real(1000.0).apply(i32::MAX), i32::MAX);
        assert_eq!(Multiplier::from_real(1000.0).apply(i32::MIN), i32::MIN);
        assert_eq!(shift_left_saturating(-1, 40), -i32::MAX);
    }

    #[test]
    fn quantizing_by_hand() {
        assert_eq!(quantize(1.25, 0.5, 10, (0, 255)), 13);
        assert_eq!(quantize(-1.25, 0.5, 10, (0, 255)), 7);
        assert_eq!(quantize(f32::INFINITY, 0.5, 10, (0, 255)), 255);
        assert_eq!(quantize(f32::NAN, 0.5, 10, (0, 255)), 10);
    }

    proptest! {
        #[test]
        fn the_product_is_within_one_of_the_real_one(
            value in -(1 << 24)..(1 << 24),
            real in 1e-6..8.0_f64,
        ) {
            let product = Multiplier::from_real(real).apply(value);
            prop_assert!((f64::from(product) - f64::from(value) * real).abs() <= 1.0);
        }

        #[test]
        fn no_input_overflows(value: i32, mantissa in 0..=i32::MAX, exponent in -31..31) {
            Multiplier { mantissa, exponent }.apply(value);
        }
    }
}
