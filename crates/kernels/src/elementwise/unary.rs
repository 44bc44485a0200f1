//! [`Unary`]: functions of one real number.

use crate::vector::{Abreast, MOST_LANES, Simd, functions};

/// A function of one real number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unary {
    /// The number, or the nearest bound; RELU, RELU1 and RELU6. NaN stays NaN.
    Clamp {
        /// The least result.
        low: f32,
        /// The greatest result.
        high: f32,
    },
    /// `x * x`
    Square,
    /// `x * x * x`
    Cube,
    /// `1 / (1 + e^-x)`, within 3 ULP
    Logistic,
    /// The hyperbolic tangent, within 3 ULP
    Tanh,
    /// `e^x`, within 2 ULP
    Exp,
    /// The natural logarithm, within 2 ULP
    Log,
    /// The square root
    Sqrt,
    /// `1 / sqrt(x)`, within 1.5 ULP
    Rsqrt,
    /// The magnitude
    Abs,
    /// `-x`
    Neg,
    /// The greatest integer that is not above
    Floor,
    /// The nearest integer, halves to the even one
    Round,
    /// 1, 0 or -1; NaN stays NaN
    Sign,
    /// The sine, within 1.5 ULP
    Sin,
    /// The cosine, within 1.5 ULP
    Cos,
    /// `x * relu6(x + 3) / 6`
    HardSwish,
    /// `x / (1 + e^-x)`, also called SiLU
    Swish,
    /// `x`, or `alpha * (e^x - 1)` for what is below 0
    Elu {
        /// The distance of the least result from 0.
        alpha: f32,
    },
    /// `x / 2 * (1 + erf(x / sqrt(2)))`, within 8 ULP
    Gelu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`
    GeluTanh,
}

/// Writes `$value` for each vector `$x`, of an input or in place.
macro_rules! for_each_vector {
    ($simd:ident, $input:ident, $output:ident, |$x:ident| $value:expr) => {
        match $input {
            Some(input) => {
                let mut inputs = input.chunks_exact(S::LANES);
                let mut outputs = $output.chunks_exact_mut(S::LANES);
                for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
                    let $x = $simd.load(input);
                    $simd.store($value, output);
                }
                let $x = $simd.load_partial(inputs.remainder(), 1.0);
                $simd.store_partial($value, outputs.into_remainder());
            }
            None => {
                let mut outputs = $output.chunks_exact_mut(S::LANES);
                for output in outputs.by_ref() {
                    let $x = $simd.load(output);
                    $simd.store($value, output);
                }
                let rest = outputs.into_remainder();
                let $x = $simd.load_partial(rest, 1.0);
                $simd.store_partial($value, rest);
            }
        }
    };
}

pub(super) use for_each_vector;

/// The value of a polynomial of a variable whose coefficients are given from the lowest power on. Not a loop, which would be unrolled
/// too late for the loop around it to become vector instructions.
macro_rules! polynomial {
    ($S:ident, $x:ident, $last:expr) => {
        $last
    };
    ($S:ident, $x:ident, $first:expr, $($rest:expr),+ $(,)?) => {
        fma::<$S>(polynomial!($S, $x, $($rest),+), $x, $first)
    };
}

pub(super) use polynomial;

impl Unary {
    /// Of an input, or in place.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(self, simd: S, input: Option<&[f32]>, output: &mut [f32]) {
        let zero = simd.splat(0.0);
        match self {
            Self::Clamp { low, high } => {
                let (low, high) = (simd.splat(low), simd.splat(high));
                for_each_vector!(simd, input, output, |x| functions::clamp(simd, x, low, high));
            }
            Self::Square => for_each_vector!(simd, input, output, |x| simd.mul(x, x)),
            Self::Cube => {
                for_each_vector!(simd, input, output, |x| simd.mul(simd.mul(x, x), x));
            }
            Self::Sqrt => for_each_vector!(simd, input, output, |x| simd.sqrt(x)),
            Self::Rsqrt => {
                let one = simd.splat(1.0);
                for_each_vector!(simd, input, output, |x| simd.div(one, simd.sqrt(x)));
            }
            Self::Abs => for_each_vector!(simd, input, output, |x| simd.abs(x)),
            Self::Neg => {
                let sign = simd.isplat(i32::MIN);
                for_each_vector!(simd, input, output, |x| {
                    simd.of_bits(simd.ixor(simd.bits(x), sign))
                });
            }
            Self::Floor => for_each_vector!(simd, input, output, |x| simd.floor(x)),
            Self::Round => {
                // From here on there is no room for a fraction.
                let whole = simd.splat(8_388_608.0);
                for_each_vector!(simd, input, output, |x| {
                    let magnitude = simd.abs(x);
                    let sign = simd.ixor(simd.bits(x), simd.bits(magnitude));
                    let rounded = simd.sub(simd.add(magnitude, whole), whole);
                    let rounded = simd.of_bits(simd.ixor(simd.bits(rounded), sign));
                    simd.select(simd.lt(magnitude, whole), rounded, x)
                });
            }
            Self::Sign => {
                let (one, minus_one) = (simd.splat(1.0), simd.splat(-1.0));
                for_each_vector!(simd, input, output, |x| {
                    // Of zeros that without a sign.
                    let other = simd.select(simd.lt(x, zero), minus_one, simd.add(x, zero));
                    simd.select(simd.lt(zero, x), one, other)
                });
            }
            Self::HardSwish => {
                for_each_vector!(simd, input, output, |x| functions::hard_swish(simd, x));
            }
            Self::Logistic
            | Self::Tanh
            | Self::Exp
            | Self::Log
            | Self::Sin
            | Self::Cos
            | Self::Swish
            | Self::Elu { .. }
            | Self::Gelu
            | Self::GeluTanh => {
                let whole = output.len() - output.len() % Abreast::<S>::LANES;
                let (together, rest) = output.split_at_mut(whole);
                let input = input.map(|input| input.split_at(whole));
                self.of_many_steps(Abreast(simd), input.map(|input| input.0), together);
                self.of_many_steps(simd, input.map(|input| input.1), rest);
            }
        }
    }

    /// The functions that take many steps, each of which waits for the one before.
    #[inline(always)]
    fn of_many_steps<S: Simd>(self, simd: S, input: Option<&[f32]>, output: &mut [f32]) {
        match self {
            Self::Logistic => {
                for_each_vector!(simd, input, output, |x| functions::logistic(simd, x));
            }
            Self::Tanh => for_each_vector!(simd, input, output, |x| functions::tanh(simd, x)),
            Self::Exp => for_each_vector!(simd, input, output, |x| functions::exp(simd, x)),
            Self::Log => for_each_vector!(simd, input, output, |x| functions::log(simd, x)),
            Self::Sin => for_each_vector!(simd, input, output, |x| circular(simd, x, 0)),
            Self::Cos => for_each_vector!(simd, input, output, |x| circular(simd, x, 1)),
            Self::Swish => for_each_vector!(simd, input, output, |x| {
                simd.mul(x, functions::logistic(simd, x))
            }),
            Self::Elu { alpha } => {
                let (alpha, zero) = (simd.splat(alpha), simd.splat(0.0));
                for_each_vector!(simd, input, output, |x| {
                    let below = functions::exp_minus_1_of_negative(simd, simd.min(zero, x));
                    simd.select(simd.lt(zero, x), x, simd.mul(alpha, below))
                });
            }
            Self::Gelu => for_each_vector!(simd, input, output, |x| functions::gelu(simd, x)),
            Self::GeluTanh => {
                // (1 + tanh u) / 2 is the logistic function of 2u, which loses nothing below 0.
                let (inner, outer) = (simd.splat(0.044_715), simd.splat(1.595_769));
                for_each_vector!(simd, input, output, |x| {
                    let polynomial = simd.fma(simd.mul(inner, simd.mul(x, x)), x, x);
                    simd.mul(x, functions::logistic(simd, simd.mul(outer, polynomial)))
                });
            }
            _ => unreachable!("a function of few steps"),
        }
    }
}

/// The sines of numbers and this many right angles.
#[inline(always)]
fn circular<S: Simd>(simd: S, x: S::F, angles: u8) -> S::F {
    if S::FUSED {
        // The greatest number of a NaN, which is its own sine.
        let magnitude = simd.min(simd.abs(x), simd.splat(f32::MAX));
        if simd.greatest(magnitude) <= functions::GREATEST_ANGLE {
            return functions::sine(simd, x, angles.into());
        }
    }
    let mut values = [0.0; 4 * MOST_LANES];
    simd.store(x, &mut values);
    sines::<S>(&mut values[..S::LANES], angles);
    simd.load(&values)
}

/// The same in double precision; loops of plain numbers without closures, which become vector instructions of the set that they
/// are inlined for.
#[allow(clippy::cast_possible_truncation)] // Rounded once.
#[inline(always)]
fn sines<S: Simd>(values: &mut [f32], angles: u8) {
    // Of larger ones the part of a turn is not exact below; neither is there one of infinity and NaN.
    let mut is_near = true;
    for x in &*values {
        is_near &= x.abs() < 1e6;
    }
    if is_near {
        for x in values {
            *x = sine::<S>((*x).into(), angles.into()) as f32;
        }
    } else if angles == 0 {
        for x in values {
            *x = f64::from(*x).sin() as f32;
        }
    } else {
        for x in values {
            *x = f64::from(*x).cos() as f32;
        }
    }
}

/// The sine of a number, whose magnitude is below 10^6, and this many right angles: a polynomial of what is left of the nearest
/// right angle, those of fdlibm (`k_sin.c`, `k_cos.c`).
#[inline(always)]
fn sine<S: Simd>(x: f64, angles: u64) -> f64 {
    // Its lowest bits are an integer.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    // A right angle in two parts; products of the first one with 20 bits are exact.
    const ANGLE: [f64; 2] = [1.570_796_326_734_125_6, 6.077_100_506_506_192e-11];
    let nearest = x * std::f64::consts::FRAC_2_PI + WHOLE;
    let angles = nearest.to_bits().wrapping_add(angles);
    let nearest = nearest - WHOLE;
    let rest = (x - nearest * ANGLE[0]) - nearest * ANGLE[1];
    let square = rest * rest;
    let sine = polynomial!(
        S,
        square,
        -1.666_666_666_666_663_2e-1,
        8.333_333_333_322_49e-3,
        -1.984_126_982_985_795e-4,
        2.755_731_370_707_006_8e-6,
        -2.505_076_025_340_686_3e-8,
    );
    let cosine = polynomial!(
        S,
        square,
        4.166_666_666_666_66e-2,
        -1.388_888_888_887_411e-3,
        2.480_158_728_947_673e-5,
        -2.755_731_435_139_066_3e-7,
        2.087_572_321_298_175e-9,
    );
    // A product, so that zeros keep their sign.
    let sine = rest * (1.0 + square * sine);
    let cosine = 1.0 - 0.5 * square + square * square * cosine;
    let value = if angles % 2 == 1 { cosine } else { sine };
    f64::from_bits(value.to_bits() ^ (angles & 2) << 62)
}

/// `a * b + c`, rounded once where that is one instruction.
#[inline(always)]
pub(super) fn fma<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::FUSED { a.mul_add(b, c) } else { a * b + c }
}
