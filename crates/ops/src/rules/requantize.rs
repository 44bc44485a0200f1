//! Requantization: multiplying an integer by a real number with integer arithmetic.
//!
//! The definition of the quantized operations is the arithmetic of TensorFlow Lite's reference
//! kernels, which is gemmlowp's: a real factor becomes a 32-bit mantissa and a power of two, and the
//! product is rounded twice. The first rounding, to the bits that the power of two will shift out,
//! sends halves up; the second one, to the result, sends them away from zero. So the result can be
//! up to 3/4 away from the exact product.

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
        let (left, right) = (self.exponent.max(0), -self.exponent.min(0));
        // 62 bits and 64 more: beyond that everything but 0 saturates.
        let product = (i128::from(value) * i128::from(self.mantissa)) << left.min(64);
        divide_by_power_of_two(upper_half(product), right)
    }
}

/// `product / 2^31`, rounded to nearest, halves up; saturated.
fn upper_half(product: i128) -> i32 {
    saturate((product + (1 << 30)) >> 31)
}

/// The upper half of `2 * a * b`, rounded to nearest, halves up; saturated in the only case that
/// overflows, both operands being the least number (gemmlowp's
/// `SaturatingRoundingDoublingHighMul`).
pub fn doubling_high_product(a: i32, b: i32) -> i32 {
    upper_half(i128::from(a) * i128::from(b))
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
pub fn saturate(value: impl Into<i128>) -> i32 {
    value.into().clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// The stored value nearest to a real number: `round(real / scale) + zero_point`, halves away from
/// zero, saturated to `range`. NaN gives the zero point.
#[allow(clippy::cast_possible_truncation)] // The float cast saturates.
pub fn quantize(real: f32, scale: f32, zero_point: i32, range: (i32, i32)) -> i32 {
    let steps = (real / scale).round() as i32;
    steps.saturating_add(zero_point).clamp(range.0, range.1)
}

/// The elements of an argument, quantized as another one is: what they stand for, stored anew. The
/// stored values of a type without quantization stay what they are.
///
/// # Errors
/// [`Fault::NotKnown`], or the argument is left out.
pub fn requantized(argument: &Argument<'_>, like: &Argument<'_>) -> Result<Vec<i32>, Fault> {
    let Some(range) = like.operand_type.quantized_range() else { return argument.integers() };
    let store = |real| quantize(real, like.scale, like.zero_point, range);
    argument.reals_as(store)
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
    fn halves_go_up_and_then_away_from_zero() {
        let half = Multiplier::from_real(0.5);
        assert_eq!([3, 1, -1, -3].map(|value| half.apply(value)), [2, 1, 0, -1]);
        assert_eq!([5, 6, 7, -5, -6].map(|it| divide_by_power_of_two(it, 2)), [1, 2, 2, -1, -2]);
        // 5/16 of 4: first 5/8 of it, 5/2, to 3; then half of that to 2. Of -4: -5/2 to -2 to -1.
        let both = Multiplier { mantissa: 5 << 28, exponent: -1 };
        assert_eq!([4, -4].map(|value| both.apply(value)), [2, -1]);
    }

    #[test]
    fn only_results_saturate() {
        assert_eq!(doubling_high_product(i32::MIN, i32::MIN), i32::MAX);
        assert_eq!(Multiplier::from_real(1000.0).apply(i32::MAX), i32::MAX);
        assert_eq!(Multiplier::from_real(1000.0).apply(i32::MIN), i32::MIN);
        assert_eq!(Multiplier::from_real(1e300).apply(-1), i32::MIN);
        assert_eq!(Multiplier::from_real(1e300).apply(0), 0);
        // The power of two alone would leave 32 bits.
        assert_eq!(Multiplier::from_real(1.5).apply(1 << 30), 3 << 29);
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
        fn the_product_is_as_near_as_two_roundings_can_be(
            value in -(1 << 24)..(1 << 24),
            real in 1e-6..8.0_f64,
        ) {
            let product = Multiplier::from_real(real).apply(value);
            prop_assert!((f64::from(product) - f64::from(value) * real).abs() <= 0.76);
        }

        /// As gemmlowp writes it, with masks and a truncating division.
        #[test]
        fn both_roundings_are_those_of_gemmlowp(a: i32, b: i32, exponent in 0..=31) {
            let product = i64::from(a) * i64::from(b);
            let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
            let high = (product + nudge) / (1 << 31);
            prop_assert_eq!(i64::from(doubling_high_product(a, b)), high.min(i32::MAX.into()));
            let mask = (1_i64 << exponent) - 1;
            let rest = i64::from(a) & mask;
            let threshold = (mask >> 1) + i64::from(a < 0);
            let quotient = (i64::from(a) >> exponent) + i64::from(rest > threshold);
            prop_assert_eq!(i64::from(divide_by_power_of_two(a, exponent)), quotient);
        }

        #[test]
        fn no_input_overflows(value: i32, mantissa in 0..=i32::MAX, exponent in -31..31) {
            Multiplier { mantissa, exponent }.apply(value);
        }
    }
}
