//! Functions of fixed-point numbers of 16 bits, in vectors of 32: gemmlowp's, to the bit.
//!
//! A number with `n` integer bits is `raw * 2^(n - 15)`. A product of numbers with `m` and `n` of
//! them has `m + n`.

use crate::multiplier::divide_vector_by_power_of_two;
use crate::vector::Simd;

/// 1/8 without integer bits.
const EIGHTH: i32 = 1 << 12;
/// 1/3 without integer bits.
const THIRD: i32 = 10_923;
/// `exp(-1/8)` without integer bits.
const EXP_OF_EIGHTH: i32 = 28_918;
/// By powers of two `p` from -2 to 4: `exp(-2^p)` without integer bits. The last one is 0.
const EXP_OF_POWERS: [i32; 7] = [25_520, 19_875, 12_055, 4_435, 600, 11, 0];
/// 1 with 2 integer bits.
const ONE: i32 = 1 << 13;
/// 48/17 with 2 integer bits.
const FORTY_EIGHT_17THS: i32 = 23_130;
/// -32/17 with 2 integer bits.
const MINUS_THIRTY_TWO_17THS: i32 = -15_420;
/// The greatest number.
const GREATEST: i32 = i16::MAX as i32;

#[inline(always)]
pub(super) fn saturate<S: Simd>(simd: S, value: S::I) -> S::I {
    let value = simd.imax(value, simd.isplat(i16::MIN.into()));
    simd.imin(value, simd.isplat(GREATEST))
}

/// The product, rounded to nearest, halves up; saturated in the only case that overflows.
#[inline(always)]
pub(super) fn product<S: Simd>(simd: S, a: S::I, b: S::I) -> S::I {
    let doubled = simd.iadd(simd.imul(a, b), simd.isplat(1 << 14));
    simd.imin(simd.shift_right(doubled, 15), simd.isplat(GREATEST))
}

/// All bits where a number is below 0, none elsewhere.
#[inline(always)]
fn is_negative<S: Simd>(simd: S, value: S::I) -> S::I {
    simd.shift_right(value, 31)
}

/// `yes` where all bits are, `no` where none are.
#[inline(always)]
fn choose<S: Simd>(simd: S, mask: S::I, yes: S::I, no: S::I) -> S::I {
    simd.ixor(no, simd.iand(mask, simd.ixor(yes, no)))
}

/// `exp(value)`, without integer bits, of numbers that are not above 0 and have `integer_bits`, up to
/// 7: of the rest to a multiple of 1/4 by four terms of the series around -1/8, times a factor for
/// each bit of the multiple.
#[inline(always)]
fn exp_of_negative<S: Simd>(simd: S, value: S::I, integer_bits: u32) -> S::I {
    let fraction_bits = 15 - integer_bits;
    let quarter = 1 << (fraction_bits - 2);
    let rest = simd.isub(simd.iand(value, simd.isplat(quarter - 1)), simd.isplat(quarter));
    let x = simd.iadd(simd.shift_left(rest, integer_bits), simd.isplat(EIGHTH));
    let x_2 = product(simd, x, x);
    let (x_3, x_4) = (product(simd, x_2, x), product(simd, x_2, x_2));
    let fourth = divide_vector_by_power_of_two(simd, x_4, 2);
    let thirds = product(simd, simd.iadd(fourth, x_3), simd.isplat(THIRD));
    let half = divide_vector_by_power_of_two(simd, simd.iadd(thirds, x_2), 1);
    let around = simd.isplat(EXP_OF_EIGHTH);
    let series = product(simd, around, simd.iadd(x, half));
    let mut result = simd.imin(simd.iadd(around, series), simd.isplat(GREATEST));
    let multiple = simd.isub(rest, value);
    // The bit of 1/4 is the first one above the rest's.
    for (bit, factor) in (fraction_bits - 2..15).zip(EXP_OF_POWERS) {
        let is_set = is_negative(simd, simd.shift_left(multiple, 31 - bit));
        result = choose(simd, is_set, product(simd, result, simd.isplat(factor)), result);
    }
    if integer_bits > 5 {
        let above = simd.iadd(value, simd.isplat(32 << fraction_bits));
        result = choose(simd, is_negative(simd, above), simd.isplat(0), result);
    }
    choose(simd, is_negative(simd, value), result, simd.isplat(GREATEST))
}

/// `1 / (1 + x)` with 1 integer bit fewer than it is given out with, 2: of numbers from 0 to 1
/// without integer bits; three steps of Newton's method.
#[inline(always)]
fn reciprocal_of_one_and<S: Simd>(simd: S, x: S::I) -> S::I {
    let half = simd.shift_right(simd.iadd(x, simd.isplat(GREATEST + 1)), 1);
    let slope = simd.isplat(MINUS_THIRTY_TWO_17THS);
    let mut x = simd.iadd(simd.isplat(FORTY_EIGHT_17THS), product(simd, half, slope));
    for _ in 0..3 {
        let error = simd.isub(simd.isplat(ONE), product(simd, half, x));
        let step = saturate(simd, simd.shift_left(product(simd, x, error), 2));
        x = simd.iadd(x, step);
    }
    x
}

/// The number with the same magnitude that is not above 0.
#[inline(always)]
fn negative<S: Simd>(simd: S, value: S::I) -> S::I {
    simd.imin(value, simd.isub(simd.isplat(0), value))
}

/// The hyperbolic tangent, without integer bits, of numbers that have `integer_bits`, up to 6.
#[inline(always)]
pub(super) fn tanh<S: Simd>(simd: S, value: S::I, integer_bits: u32) -> S::I {
    let magnitude = negative(simd, value);
    // One more integer bit doubles the number.
    let e = exp_of_negative(simd, magnitude, integer_bits + 1);
    let above = simd.isub(reciprocal_of_one_and(simd, e), simd.isplat(ONE));
    let result = saturate(simd, simd.shift_left(above, 2));
    let result = choose(simd, is_negative(simd, magnitude), result, simd.isplat(0));
    choose(simd, is_negative(simd, value), simd.isub(simd.isplat(0), result), result)
}

/// `1 / (1 + exp(-x))`, without integer bits, of numbers that have `integer_bits`, up to 7.
#[inline(always)]
pub(super) fn logistic<S: Simd>(simd: S, value: S::I, integer_bits: u32) -> S::I {
    let magnitude = negative(simd, value);
    let e = exp_of_negative(simd, magnitude, integer_bits);
    // The reciprocal is twice what is wanted: that leaves it one integer bit, not two.
    let result = saturate(simd, simd.shift_left(reciprocal_of_one_and(simd, e), 1));
    let below = simd.isub(simd.isplat(GREATEST), result);
    let result = choose(simd, is_negative(simd, value), below, result);
    choose(simd, is_negative(simd, magnitude), result, simd.isplat(1 << 14))
}
