//! Functions of real numbers on vectors, each with the greatest error that its test allows, in units
//! in the last place (ULP) of the result.
//!
//! The polynomials are those that meet the function at Chebyshev nodes of the reduced range, or have the
//! least relative error there, their coefficients rounded to f32.

use super::Simd;

const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// The value of a polynomial whose coefficients are given from the lowest power on.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::F, coefficients: [f32; N]) -> S::F {
    let mut value = simd.splat(coefficients[N - 1]);
    for coefficient in coefficients.into_iter().rev().skip(1) {
        value = simd.fma(value, x, simd.splat(coefficient));
    }
    value
}

/// Of an integer from -127 to 128 that is added to it, the lowest bits are the exponent in `2^n`.
const EXPONENTS: f32 = 12_582_912.0 + 127.0;

/// `x = n * ln 2 + r`: the integer `n`, which may not be a great one, added to [`EXPONENTS`], and `e^r - 1`.
#[inline(always)]
fn reduced_exp<S: Simd>(simd: S, x: S::F) -> (S::I, S::F) {
    const TAIL: [f32; 5] = [0.499_999_97, 0.166_665_38, 0.041_667_58, 0.008_367_29, 0.001_386];
    // The sum has no bits for a fraction.
    let sum = simd.fma(x, simd.splat(std::f32::consts::LOG2_E), simd.splat(EXPONENTS));
    let n = simd.sub(sum, simd.splat(EXPONENTS));
    let r = simd.fma(n, simd.splat(-LN2_HIGH), x);
    let r = simd.fma(n, simd.splat(-LN2_LOW), r);
    let tail = polynomial(simd, r, TAIL);
    (simd.bits(sum), simd.fma(simd.mul(r, r), tail, r))
}

/// `2^n` for integers from -126 to 127 that were added to [`EXPONENTS`], and 0 for -127.
#[inline(always)]
fn power_of_two<S: Simd>(simd: S, sum: S::I) -> S::F {
    simd.of_bits(simd.shift_left(sum, 23))
}

/// `e^x`, 2 ULP; also where the result is subnormal, 0 or infinite. NaN gives NaN.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::F) -> S::F {
    // Beyond these the result is 0 or infinite anyway. NaN passes, being the second operand.
    let x = simd.max(simd.splat(-105.0), simd.min(simd.splat(90.0), x));
    let (sum, rest) = reduced_exp(simd, x);
    // In two steps, each of which is a normal number.
    let n = simd.isub(sum, simd.isplat(EXPONENTS.to_bits().cast_signed()));
    let half = simd.shift_right(n, 1);
    let value = simd.add(rest, simd.splat(1.0));
    let value = simd.mul(value, power_of_two(simd, simd.iadd(half, simd.isplat(127))));
    simd.mul(value, power_of_two(simd, simd.isub(sum, half)))
}

/// `e^x`, 2 ULP, for x that is 0 or less, or NaN; 0 below about -87.
#[inline(always)]
pub(crate) fn exp_of_negative<S: Simd>(simd: S, x: S::F) -> S::F {
    // There the power is 0.
    let (sum, rest) = reduced_exp(simd, simd.max(simd.splat(-88.0), x));
    simd.mul(simd.add(rest, simd.splat(1.0)), power_of_two(simd, sum))
}

/// `e^x - 1` for x that is 0 or less, or NaN; 3 ULP.
#[inline(always)]
pub(crate) fn exp_minus_1_of_negative<S: Simd>(simd: S, x: S::F) -> S::F {
    // Below about -17 the result is -1.
    let (sum, rest) = reduced_exp(simd, simd.max(simd.splat(-40.0), x));
    let scale = power_of_two(simd, sum);
    simd.fma(rest, scale, simd.sub(scale, simd.splat(1.0)))
}

/// `1 / (1 + e^-x)`, 3 ULP; 0 below about -87.
#[inline(always)]
pub(crate) fn logistic<S: Simd>(simd: S, x: S::F) -> S::F {
    let one = simd.splat(1.0);
    let e = exp_of_negative(simd, simd.sub(simd.splat(0.0), simd.abs(x)));
    let above = simd.select(simd.lt(x, simd.splat(0.0)), e, one);
    simd.div(above, simd.add(one, e))
}

/// The hyperbolic tangent, 3 ULP.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(simd: S, x: S::F) -> S::F {
    // tanh |x| = -m / (m + 2) with m = e^(-2|x|) - 1.
    let m = exp_minus_1_of_negative(simd, simd.mul(simd.abs(x), simd.splat(-2.0)));
    let magnitude = simd.div(simd.sub(simd.splat(0.0), m), simd.add(m, simd.splat(2.0)));
    let sign = simd.iand(simd.bits(x), simd.isplat(i32::MIN));
    simd.of_bits(simd.ior(simd.bits(magnitude), sign))
}

/// The natural logarithm, 2 ULP; minus infinity of 0, NaN of negative numbers.
#[inline(always)]
pub(crate) fn log<S: Simd>(simd: S, x: S::F) -> S::F {
    const TAIL: [f32; 9] = [
        0.333_333_3,
        -0.249_999_97,
        0.200_007_3,
        -0.166_678_5,
        0.142_485_51,
        -0.124_240_376,
        0.116_890_71,
        -0.114_945_464,
        0.069_807_02,
    ];
    // x = 2^n * m with m from sqrt(1/2) to sqrt(2); subnormal numbers are brought up first.
    let is_small = simd.lt(x, simd.splat(f32::MIN_POSITIVE));
    let normal = simd.select(is_small, simd.mul(x, simd.splat(8_388_608.0)), x);
    let already = simd.select(is_small, simd.splat(-23.0), simd.splat(0.0));
    let sqrt_half = simd.isplat(0x3F35_04F3);
    let offset = simd.isub(simd.bits(normal), sqrt_half);
    let n = simd.add(simd.to_f32(simd.shift_right(offset, 23)), already);
    let m = simd.of_bits(simd.iadd(simd.iand(offset, simd.isplat(0x007F_FFFF)), sqrt_half));
    let f = simd.sub(m, simd.splat(1.0));
    let tail = polynomial(simd, f, TAIL);
    let square = simd.mul(f, f);
    let rest = simd.fma(simd.mul(square, f), tail, simd.mul(n, simd.splat(LN2_LOW)));
    let rest = simd.fma(square, simd.splat(-0.5), rest);
    let value = simd.fma(n, simd.splat(LN2_HIGH), simd.add(f, rest));
    let zero = simd.splat(0.0);
    let value = simd.select(simd.lt(x, zero), simd.splat(f32::NAN), value);
    let value = simd.select(simd.eq(x, zero), simd.splat(f32::NEG_INFINITY), value);
    // Infinity and NaN are their own logarithms.
    simd.select(simd.lt(x, simd.splat(f32::INFINITY)), value, simd.add(x, zero))
}

/// Numbers whose magnitude is no greater are near enough for [`sine`].
pub(crate) const GREATEST_ANGLE: f32 = 256.0;

/// The sine of `x` and this many right angles, 1.5 ULP, where products are added with one rounding ([`Simd::FUSED`]) and the magnitude
/// of `x` is up to [`GREATEST_ANGLE`]; NaN of infinity.
#[inline(always)]
pub(crate) fn sine<S: Simd>(simd: S, x: S::F, angles: i32) -> S::F {
    /// Its lowest bits are an integer.
    const WHOLE: f32 = 12_582_912.0;
    /// A right angle in three parts, all above 0, so that zeros keep their sign. What the first one leaves of `x` is
    /// exact: it is less than 1, and a multiple of 2^-24.
    const ANGLE: [f32; 3] = [f32::from_bits(0x3FC9_0FDA), 7.549_789_4e-8, 5.390_303e-15];
    const SINE: [f32; 3] = [-0.166_666_54, 0.008_332_139, -0.000_195_122_9];
    const COSINE: [f32; 5] = [1.0, -0.5, 0.041_666_646, -0.001_388_728_7, 0.000_024_429_739];
    let sum = simd.fma(x, simd.splat(std::f32::consts::FRAC_2_PI), simd.splat(WHOLE));
    let angles = simd.iadd(simd.bits(sum), simd.isplat(angles));
    let nearest = simd.sub(sum, simd.splat(WHOLE));
    let mut rest = x;
    for part in ANGLE {
        rest = simd.fma(nearest, simd.splat(-part), rest);
    }
    let square = simd.mul(rest, rest);
    let sine = simd.fma(simd.mul(rest, square), polynomial(simd, square, SINE), rest);
    // That of -0 would be 0.
    let sign = simd.iand(simd.bits(rest), simd.isplat(i32::MIN));
    let sine = simd.of_bits(simd.ior(simd.bits(sine), sign));
    let cosine = polynomial(simd, square, COSINE);
    // -1 where the number of right angles is odd, otherwise 1.
    let one = simd.isplat(1.0_f32.to_bits().cast_signed());
    let parity = simd.of_bits(simd.ior(simd.shift_left(angles, 31), one));
    let value = simd.select(simd.lt(parity, simd.splat(0.0)), cosine, sine);
    let sign = simd.shift_left(simd.iand(angles, simd.isplat(2)), 30);
    simd.of_bits(simd.ixor(simd.bits(value), sign))
}

/// `x` times the share of a standard normal distribution that is below it, `x / 2 * (1 + erf(x / sqrt(2)))`; 8 ULP, and
/// 0 below about -13.
#[inline(always)]
pub(crate) fn gelu<S: Simd>(simd: S, x: S::F) -> S::F {
    /// Of `(t + 3.3) * e^(t^2 / 2)` times the share above `t`; in powers of `3.3 / (t + 3.3)`, which are well conditioned
    /// where `t` is large and where it is small.
    const SCALED_TAIL: [f32; 8] = [
        0.398_784_85,
        0.402_115_17,
        0.335_428_4,
        0.413_727_16,
        -0.154_813_78,
        0.650_430_86,
        -0.517_155_4,
        0.121_482_84,
    ];
    /// `e^(-r / 2)` for r from -ln 2 to ln 2.
    const EXP: [f32; 6] =
        [1.0, -0.499_999_85, 0.124_997_87, -0.020_834_548, 0.002_618_635, -0.000_259_071];
    /// Of a number from -127 to 0 that is added to it, the lowest nine bits are those above the fraction in `-2^n`.
    const NEGATIVE_POWER: f32 = 12_582_912.0 + 256.0 + 127.0;
    // From here on the power is 0: 2^-127 is no normal number, and has the bits of a zero.
    let t = simd.min(simd.splat(13.27), simd.abs(x));
    let ratio = simd.div(t, simd.add(t, simd.splat(3.3)));
    let scaled = polynomial(simd, simd.sub(simd.splat(1.0), ratio), SCALED_TAIL);
    // -t^2 / 2 = n * ln 2 - r / 2. The square is not rounded before what is near to it is taken from it.
    let square = simd.mul(t, t);
    let half_log2_e = simd.splat(-0.5 * std::f32::consts::LOG2_E);
    let n = simd.fma(square, half_log2_e, simd.splat(NEGATIVE_POWER));
    let power = simd.of_bits(simd.shift_left(simd.bits(n), 23));
    let n = simd.sub(n, simd.splat(NEGATIVE_POWER));
    let nearest = simd.mul(n, simd.splat(2.0 * LN2_HIGH));
    let r = if S::FUSED {
        simd.fma(t, t, nearest)
    } else {
        // Of a number of 12 bits, whose square is exact, and of what is left.
        let rounded = simd.iadd(simd.bits(t), simd.isplat(0x800));
        let rounded = simd.of_bits(simd.iand(rounded, simd.isplat(!0xFFF)));
        let exact = simd.fma(rounded, rounded, nearest);
        simd.fma(simd.sub(t, rounded), simd.add(t, rounded), exact)
    };
    let r = simd.fma(n, simd.splat(2.0 * LN2_LOW), r);
    // |x| times the share above |x|: what x is too much above 0, and below 0 all there is.
    let tail = simd.mul(simd.mul(ratio, scaled), polynomial(simd, r, EXP));
    simd.fma(tail, power, simd.max(simd.splat(0.0), x))
}

/// `x * relu6(x + 3) / 6`; NaN at minus infinity, a product of 0 and infinity.
#[inline(always)]
pub(crate) fn hard_swish<S: Simd>(simd: S, x: S::F) -> S::F {
    let gate = simd.add(x, simd.splat(3.0));
    let gate = simd.max(simd.splat(0.0), simd.min(simd.splat(6.0), gate));
    simd.mul(x, simd.mul(gate, simd.splat(1.0 / 6.0)))
}

/// NaN stays NaN.
#[inline(always)]
pub(crate) fn clamp<S: Simd>(simd: S, x: S::F, low: S::F, high: S::F) -> S::F {
    simd.max(low, simd.min(high, x))
}
