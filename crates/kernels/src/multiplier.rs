//! [`Multiplier`]: a real factor in integer arithmetic.

use crate::vector::Simd;
use bytemuck::Zeroable;

/// A real factor as `mantissa * 2^(exponent - 31)`, by which integers are multiplied as gemmlowp
/// does it: first the upper half of the doubled product, halves up; then the power of two, halves
/// away from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable)]
pub struct Multiplier {
    /// 0, or from 2^30 to 2^31 - 1.
    pub mantissa: i32,
    /// The power of two; positive shifts left.
    pub exponent: i32,
}

impl Multiplier {
    /// The factor nearest to a real number. Numbers below about 2^-32 become 0, infinite ones and
    /// NaN as well.
    #[allow(clippy::cast_possible_truncation)] // At most 2^31, as the next lines see to.
    pub fn from_real(real: f64) -> Self {
        let zero = Self { mantissa: 0, exponent: 0 };
        // Subnormal numbers are far below 2^-32.
        if !real.is_finite() || real < f64::MIN_POSITIVE {
            return zero;
        }
        let bits = real.to_bits().cast_signed();
        let exponent = (bits >> 52) as i32 - 1022;
        if exponent < -32 {
            return zero;
        }
        let fraction = real * 2_f64.powi(-exponent);
        let mantissa = (fraction * 2_f64.powi(31)).round() as i64;
        let (mantissa, exponent) =
            if mantissa == 1 << 31 { (1 << 30, exponent + 1) } else { (mantissa, exponent) };
        if exponent < -31 { zero } else { Self { mantissa: mantissa as i32, exponent } }
    }

    /// `1 / sqrt(number)`; numbers below 2 count as 1, for which it is the greatest factor below 1. The
    /// number is brought to a fraction from 1/4 to 1 by a power of four, of which five steps of Newton's
    /// method find the root, with 28 bits behind the point.
    #[allow(clippy::cast_possible_truncation)] // Clamped.
    pub(crate) fn inverse_square_root(number: i64) -> Self {
        const THREE_HALVES: i32 = 3 << 27;
        /// The square root of 1/2, with 31 bits behind the point.
        const ROOT_OF_HALF: i32 = 1_518_500_250;
        if number <= 1 {
            return Self { mantissa: i32::MAX, exponent: 0 };
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
            return Self { mantissa: mantissa << -right_shift, exponent: 0 };
        }
        Self { mantissa, exponent: -right_shift }
    }

    /// The product, rounded twice; saturated where it leaves 32 bits.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // Clamped.
    pub fn apply(self, value: i32) -> i32 {
        let product = i64::from(value) * i64::from(self.mantissa);
        let upper_half = if self.exponent <= 0 {
            ((product + (1 << 30)) >> 31).clamp(i32::MIN.into(), i32::MAX.into()) as i32
        } else {
            // 62 bits and 64 more: beyond that everything but 0 saturates.
            let product = i128::from(product) << self.exponent.min(64);
            ((product + (1 << 30)) >> 31).clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        divide_by_power_of_two(upper_half, -self.exponent.min(0))
    }

    /// Whether [`Self::apply_to_vector`] may be used.
    pub(crate) fn never_shifts_left(self) -> bool {
        (-31..=0).contains(&self.exponent)
    }

    /// [`Self::apply`] where the factor is below 1; nothing saturates then. The magnitudes of the
    /// values are at most 2^30.
    #[inline(always)]
    pub(crate) fn apply_to_vector<S: Simd>(self, simd: S, value: S::I) -> S::I {
        let product = simd.doubling_high(value, simd.isplat(self.mantissa));
        divide_vector_by_power_of_two(simd, product, self.exponent.unsigned_abs())
    }
}

/// Rounded to nearest, halves away from zero.
#[allow(clippy::cast_possible_truncation)] // The divisor is 1 at least.
fn divide_by_power_of_two(value: i32, exponent: i32) -> i32 {
    let exponent = exponent.clamp(0, 62);
    let magnitude = (i64::from(value).abs() + ((1 << exponent) >> 1)) >> exponent;
    if value < 0 { (-magnitude) as i32 } else { magnitude.min(i32::MAX.into()) as i32 }
}

/// Rounded to nearest, halves away from zero; magnitudes up to 2^30, exponents up to 31.
#[inline(always)]
pub(crate) fn divide_vector_by_power_of_two<S: Simd>(simd: S, value: S::I, exponent: u32) -> S::I {
    if exponent == 0 {
        return value;
    }
    // Halves of negative numbers must go down: they are moved just below the half.
    let below_zero = simd.shift_right(value, 31);
    let sum = simd.iadd(simd.iadd(value, simd.isplat(1 << (exponent - 1))), below_zero);
    simd.shift_right(sum, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;
    use crate::vector::{Isa, Kernel};
    use proptest::prelude::*;

    struct Apply<'a>(Multiplier, &'a [i32; 16], &'a mut [i32; 16]);

    impl Kernel for Apply<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let Self(multiplier, from, to) = self;
            for start in (0..16).step_by(S::LANES) {
                let values = simd.iload(&from[start..]);
                simd.istore(multiplier.apply_to_vector(simd, values), &mut to[start..]);
            }
        }
    }

    #[test]
    fn by_hand() {
        assert_eq!(Multiplier::from_real(0.5), Multiplier { mantissa: 1 << 30, exponent: 0 });
        assert_eq!(Multiplier::from_real(1.0), Multiplier { mantissa: 1 << 30, exponent: 1 });
        assert_eq!(Multiplier::from_real(1.0 - 1e-15).exponent, 1);
        let least = Multiplier::from_real(2_f64.powi(-32));
        assert_eq!(least, Multiplier { mantissa: 1 << 30, exponent: -31 });
        assert_eq!(Multiplier::from_real(2_f64.powi(-32) * 0.999).mantissa, 0);
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
            assert_eq!(Multiplier::from_real(nothing).mantissa, 0);
        }
        let half = Multiplier::from_real(0.5);
        assert_eq!([3, 1, -1, -3].map(|value| half.apply(value)), [2, 1, 0, -1]);
        let both = Multiplier { mantissa: 5 << 28, exponent: -1 };
        assert_eq!([4, -4].map(|value| both.apply(value)), [2, -1]);
        assert_eq!(Multiplier::from_real(1000.0).apply(i32::MIN), i32::MIN);
        assert_eq!(Multiplier::from_real(1e300).apply(1), i32::MAX);
    }

    proptest! {
        #[test]
        fn products_are_those_of_wide_integers(
            value in prop_oneof![any::<i32>(), Just(i32::MIN), Just(i32::MAX)],
            mantissa in prop_oneof![Just(0), 1 << 30..=i32::MAX],
            exponent in -40..80_i32,
        ) {
            let wide = (i128::from(value) * i128::from(mantissa)) << exponent.clamp(0, 64);
            let upper = (wide + (1 << 30)) >> 31;
            let upper = upper.clamp(i32::MIN.into(), i32::MAX.into());
            let divisor = 1_i128 << (-exponent).clamp(0, 62);
            let magnitude = (upper.abs() + divisor / 2) / divisor;
            let expected = (magnitude * upper.signum()).min(i32::MAX.into());
            prop_assert_eq!(i128::from(Multiplier { mantissa, exponent }.apply(value)), expected);
        }

        #[test]
        fn vectors_round_the_same_way(
            values in proptest::array::uniform16(-(1 << 30)..=1 << 30),
            real in prop_oneof![0.0..0.999_f64, Just(0.5), Just(0.25), (1..31).prop_map(|it| 0.75 * 0.5_f64.powi(it))],
        ) {
            let multiplier = Multiplier::from_real(real);
            for set in InstructionSet::available() {
                let mut found = [0; 16];
                Isa::of(set).run(Apply(multiplier, &values, &mut found));
                prop_assert_eq!(found, values.map(|value| multiplier.apply(value)));
            }
        }
    }
}
