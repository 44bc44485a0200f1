//! Fixed-point numbers of 16 bits, and functions of them: gemmlowp's, to the bit, which the integer
//! LSTM operations are defined by.
//!
//! A format has some integer bits, from 0 to 7: a number with `n` of them is `raw * 2^(n - 15)`, from
//! `-2^n` to just below `2^n`. A product of numbers with `m` and `n` integer bits has `m + n` of them.
//! With none, 1 is not among the numbers and the greatest one, `1 - 2^-15`, stands for it.

use crate::rules::requantize::{divide_by_power_of_two, saturate};

/// 1/8 without integer bits.
const EIGHTH: i16 = 1 << 12;
/// 1/3 without integer bits.
const THIRD: i16 = 10_923;
/// `exp(-1/8)` without integer bits.
const EXP_OF_EIGHTH: i16 = 28_918;
/// By powers of two `p` from -2 to 4: `exp(-2^p)` without integer bits. The last one is 0.
const EXP_OF_POWERS: [i16; 7] = [25_520, 19_875, 12_055, 4_435, 600, 11, 0];
/// 1 with 2 integer bits.
const ONE: i16 = 1 << 13;
/// 48/17 with 2 integer bits.
const FORTY_EIGHT_17THS: i16 = 23_130;
/// -32/17 with 2 integer bits.
const MINUS_THIRTY_TWO_17THS: i16 = -15_420;

/// The nearest number that 16 bits hold.
#[allow(clippy::cast_possible_truncation)] // Clamped.
pub fn saturate_16(value: i32) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// The product, rounded to nearest, halves up; saturated in the only case that overflows.
pub fn product(a: i16, b: i16) -> i16 {
    saturate_16((i32::from(a) * i32::from(b) + (1 << 14)) >> 15)
}

/// `value * 2^exponent`, saturated, or rounded to nearest with halves away from zero.
pub fn scale_by_power_of_two(value: i16, exponent: i32) -> i16 {
    let value = i32::from(value);
    if exponent < 0 {
        return saturate_16(divide_by_power_of_two(value, -exponent));
    }
    saturate_16(saturate(i64::from(value) << exponent.min(16)))
}

/// `exp(value)`, without integer bits, of a number that is not above 0 and has `integer_bits`, up
/// to 7.
///
/// The number is split into multiples of 1/4 and a rest from -1/4 to just below 0. Of the rest the
/// exponential is taken by four terms of its series around -1/8; each bit of the multiple is a
/// factor.
pub fn exp_of_negative(value: i16, integer_bits: u32) -> i16 {
    if value == 0 {
        return i16::MAX;
    }
    let fraction_bits = 15 - integer_bits;
    if integer_bits > 5 && i32::from(value) < -(32 << fraction_bits) {
        return 0;
    }
    let quarter = 1_i16 << (fraction_bits - 2);
    let rest = (value & (quarter - 1)) - quarter;
    let x = (rest << integer_bits) + EIGHTH;
    let x_2 = product(x, x);
    let (x_3, x_4) = (product(x_2, x), product(x_2, x_2));
    let thirds = product(scale_by_power_of_two(x_4, -2) + x_3, THIRD);
    let series = x + scale_by_power_of_two(thirds + x_2, -1);
    let mut result = EXP_OF_EIGHTH.saturating_add(product(EXP_OF_EIGHTH, series));
    let multiple = rest.wrapping_sub(value);
    // The bit of 1/4 is the first one above the rest's.
    for (bit, factor) in (fraction_bits - 2..15).zip(EXP_OF_POWERS) {
        if multiple & (1 << bit) != 0 {
            result = product(result, factor);
        }
    }
    result
}

/// `1 / denominator`, with 2 integer bits, of a denominator from 1 to 2, given by its half without
/// integer bits: three steps of Newton's method.
fn reciprocal_of_double(half: i16) -> i16 {
    let mut x = FORTY_EIGHT_17THS.wrapping_add(product(half, MINUS_THIRTY_TWO_17THS));
    for _ in 0..3 {
        let error = ONE.wrapping_sub(product(half, x));
        x = x.wrapping_add(scale_by_power_of_two(product(x, error), 2));
    }
    x
}

/// Half of `1 + x` for a number from 0 to 1; no number has integer bits.
#[allow(clippy::cast_possible_truncation)] // At most 2^15 - 1, as the argument is.
fn half_of_one_and(x: i16) -> i16 {
    ((i32::from(x) + i32::from(i16::MAX) + 1) / 2) as i16
}

/// The number with the same magnitude that is not above 0.
fn negative(value: i16) -> i16 {
    if value > 0 { -value } else { value }
}

/// The hyperbolic tangent, without integer bits, of a number that has `integer_bits`, up to 6:
/// `(1 - e) / (1 + e)` with `e = exp(-2 x)`.
pub fn tanh(value: i16, integer_bits: u32) -> i16 {
    if value == 0 {
        return 0;
    }
    // One more integer bit doubles the number.
    let e = exp_of_negative(negative(value), integer_bits + 1);
    // 2 / (1 + e) - 1
    let reciprocal = reciprocal_of_double(half_of_one_and(e));
    let magnitude = scale_by_power_of_two(reciprocal.wrapping_sub(ONE), 2);
    if value < 0 { -magnitude } else { magnitude }
}

/// `1 / (1 + exp(-x))`, without integer bits, of a number that has `integer_bits`, up to 7.
pub fn logistic(value: i16, integer_bits: u32) -> i16 {
    if value == 0 {
        return 1 << 14;
    }
    let e = exp_of_negative(negative(value), integer_bits);
    // The reciprocal is twice what is wanted: that leaves it one integer bit, not two.
    let result = scale_by_power_of_two(reciprocal_of_double(half_of_one_and(e)), 1);
    if value > 0 { result } else { i16::MAX - result }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(raw: i16, integer_bits: u32) -> f64 {
        f64::from(raw) * f64::from(1_u32 << integer_bits) / 32768.0
    }

    fn all() -> impl Iterator<Item = i16> {
        i16::MIN..=i16::MAX
    }

    /// The greatest error over all numbers, in steps of 2^-15.
    fn greatest_error(
        integer_bits: u32,
        found: impl Fn(i16, u32) -> i16,
        expected: impl Fn(f64) -> f64,
    ) -> f64 {
        let error =
            |raw| f64::from(found(raw, integer_bits)) - expected(real(raw, integer_bits)) * 32768.0;
        all().map(|raw| error(raw).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn constants_are_the_nearest() {
        let nearest = |real: f64, integer_bits: i32| (real * 2_f64.powi(15 - integer_bits)).round();
        assert_eq!(f64::from(EXP_OF_EIGHTH), nearest((-0.125_f64).exp(), 0));
        for (power, factor) in (-2..).zip(EXP_OF_POWERS) {
            assert_eq!(f64::from(factor), nearest((-2_f64.powi(power)).exp(), 0));
        }
        assert_eq!(f64::from(THIRD), nearest(1.0 / 3.0, 0));
        assert_eq!(f64::from(EIGHTH), nearest(1.0 / 8.0, 0));
        assert_eq!(f64::from(ONE), nearest(1.0, 2));
        assert_eq!(f64::from(FORTY_EIGHT_17THS), nearest(48.0 / 17.0, 2));
        assert_eq!(f64::from(MINUS_THIRTY_TWO_17THS), nearest(-32.0 / 17.0, 2));
    }

    #[test]
    fn products_and_scaling_by_hand() {
        // Halves go up in products, and away from zero in divisions.
        assert_eq!([product(1 << 14, 3), product(1 << 14, -3)], [2, -1]);
        assert_eq!(product(i16::MIN, i16::MIN), i16::MAX);
        assert_eq!([3, -3].map(|value| scale_by_power_of_two(value, -1)), [2, -2]);
        assert_eq!(
            [9000, -9000].map(|value| scale_by_power_of_two(value, 2)),
            [i16::MAX, i16::MIN]
        );
    }

    #[test]
    fn functions_are_close_to_the_real_ones() {
        let logistic_of = |x: f64| 1.0 / (1.0 + (-x).exp());
        let exp = |raw, bits| exp_of_negative(negative(raw), bits);
        for bits in 0..=6 {
            assert!(greatest_error(bits, tanh, f64::tanh) < 12.1, "{bits}");
            assert!(greatest_error(bits, logistic, logistic_of) < 6.8, "{bits}");
        }
        for bits in 0..=7 {
            assert!(greatest_error(bits, exp, |x| (-x.abs()).exp()) < 2.0, "{bits}");
        }
    }

    /// The results for all numbers as FNV-1a hashes bytes, but 16 bits at a time.
    fn fingerprint(function: impl Fn(i16) -> i16) -> u64 {
        all().fold(0xCBF2_9CE4_8422_2325_u64, |hash, raw| {
            (hash ^ u64::from(function(raw).cast_unsigned())).wrapping_mul(0x0100_0000_01B3)
        })
    }

    /// Integer bits, and the fingerprints of `tanh` and `logistic` in gemmlowp's
    /// `fixedpoint/fixedpoint.h`, compiled and run over all numbers.
    #[test]
    fn functions_are_those_of_gemmlowp_to_the_bit() {
        let table: [(u32, u64, u64); 7] = [
            (0, 0xD64E_676A_C4E5_3441, 0x241F_FAA0_C068_3A89),
            (1, 0xA033_4181_05D0_E549, 0x0E4F_7686_CDF3_16AB),
            (2, 0x9332_2A15_44EF_BAD5, 0xA0C7_D234_B525_35C3),
            (3, 0x97E7_5728_C8C7_E89C, 0xCC77_AB66_29A9_14A1),
            (4, 0x4C01_5A11_7C7C_D9AA, 0xC910_F733_B1DE_932E),
            (5, 0x2DFE_481D_ED76_3B06, 0xBBB7_33C6_81C7_86D2),
            (6, 0x76DE_8D3A_2908_8E4C, 0x10A0_3F71_4191_E7C2),
        ];
        for (bits, of_tanh, of_logistic) in table {
            assert_eq!(fingerprint(|raw| tanh(raw, bits)), of_tanh, "{bits}");
            assert_eq!(fingerprint(|raw| logistic(raw, bits)), of_logistic, "{bits}");
        }
    }

    #[test]
    fn symmetries_are_exact() {
        for raw in 1..=i16::MAX {
            assert_eq!(tanh(-raw, 3), -tanh(raw, 3));
            assert_eq!(logistic(-raw, 3), i16::MAX - logistic(raw, 3));
        }
        assert_eq!((tanh(0, 3), logistic(0, 3), exp_of_negative(0, 3)), (0, 1 << 14, i16::MAX));
    }
}
