//! [`Unary`]: functions of one real number.

use crate::vector::{Simd, functions};

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
    /// `x * factor + offset`
    Affine {
        /// What is multiplied with.
        factor: f32,
        /// What is added.
        offset: f32,
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
    /// The sine; one number at a time, in double precision
    Sin,
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
            Self::Affine { factor, offset } => {
                let (factor, offset) = (simd.splat(factor), simd.splat(offset));
                for_each_vector!(simd, input, output, |x| simd.fma(x, factor, offset));
            }
            Self::Square => for_each_vector!(simd, input, output, |x| simd.mul(x, x)),
            Self::Cube => {
                for_each_vector!(simd, input, output, |x| simd.mul(simd.mul(x, x), x));
            }
            Self::Logistic => {
                for_each_vector!(simd, input, output, |x| functions::logistic(simd, x));
            }
            Self::Tanh => for_each_vector!(simd, input, output, |x| functions::tanh(simd, x)),
            Self::Exp => for_each_vector!(simd, input, output, |x| functions::exp(simd, x)),
            Self::Log => for_each_vector!(simd, input, output, |x| functions::log(simd, x)),
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
            Self::Sin => {
                if let Some(input) = input {
                    output.copy_from_slice(input);
                }
                #[allow(clippy::cast_possible_truncation)] // Rounded once.
                output.iter_mut().for_each(|x| *x = f64::from(*x).sin() as f32);
            }
            Self::HardSwish => {
                for_each_vector!(simd, input, output, |x| functions::hard_swish(simd, x));
            }
            Self::Swish => for_each_vector!(simd, input, output, |x| {
                simd.mul(x, functions::logistic(simd, x))
            }),
            Self::Elu { alpha } => {
                let alpha = simd.splat(alpha);
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
        }
    }
}
