//! [`Binary`]: functions of two real numbers.

use super::unary::for_each_vector;
use crate::broadcast::Operand;
use crate::vector::Simd;

/// A function of the value `x` of a chain and an operand `y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `y - x`
    SubFrom,
    /// `x * y`
    Mul,
    /// `x / y`
    Div,
    /// `y / x`
    DivFrom,
    /// The greater one; NaN if one is
    Maximum,
    /// The lesser one; NaN if one is
    Minimum,
    /// `x`, or `x * y` where x is below 0
    Prelu,
    /// `x` to the power of `y`; one number at a time, in double precision
    Pow,
    /// `y` to the power of `x`; one number at a time, in double precision
    PowFrom,
}

/// Writes `$value` for each vector `$x`, of an input or in place, and `$y` of an operand.
macro_rules! for_each_pair {
    ($simd:ident, $input:ident, $operand:ident, $output:ident, |$x:ident, $y:ident| $value:expr) => {
        match ($input, $operand) {
            (_, Operand::Same(operand)) => {
                let $y = $simd.splat(operand);
                for_each_vector!($simd, $input, $output, |$x| $value);
            }
            (Some(input), Operand::Elements(operand)) => {
                let mut inputs = input.chunks_exact(S::LANES);
                let mut operands = operand.chunks_exact(S::LANES);
                let mut outputs = $output.chunks_exact_mut(S::LANES);
                let pairs = inputs.by_ref().zip(operands.by_ref());
                for ((input, operand), output) in pairs.zip(outputs.by_ref()) {
                    let ($x, $y) = ($simd.load(input), $simd.load(operand));
                    $simd.store($value, output);
                }
                let $x = $simd.load_partial(inputs.remainder(), 1.0);
                let $y = $simd.load_partial(operands.remainder(), 1.0);
                $simd.store_partial($value, outputs.into_remainder());
            }
            (None, Operand::Elements(operand)) => {
                let mut operands = operand.chunks_exact(S::LANES);
                let mut outputs = $output.chunks_exact_mut(S::LANES);
                for (operand, output) in operands.by_ref().zip(outputs.by_ref()) {
                    let ($x, $y) = ($simd.load(output), $simd.load(operand));
                    $simd.store($value, output);
                }
                let rest = outputs.into_remainder();
                let $x = $simd.load_partial(rest, 1.0);
                let $y = $simd.load_partial(operands.remainder(), 1.0);
                $simd.store_partial($value, rest);
            }
        }
    };
}

impl Binary {
    /// Of an input, or in place, and an operand.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(
        self,
        simd: S,
        input: Option<&[f32]>,
        operand: Operand<'_, f32>,
        output: &mut [f32],
    ) {
        match self {
            Self::Add => for_each_pair!(simd, input, operand, output, |x, y| simd.add(x, y)),
            Self::Sub => for_each_pair!(simd, input, operand, output, |x, y| simd.sub(x, y)),
            Self::SubFrom => for_each_pair!(simd, input, operand, output, |x, y| simd.sub(y, x)),
            Self::Mul => for_each_pair!(simd, input, operand, output, |x, y| simd.mul(x, y)),
            Self::Div => for_each_pair!(simd, input, operand, output, |x, y| simd.div(x, y)),
            Self::DivFrom => for_each_pair!(simd, input, operand, output, |x, y| simd.div(y, x)),
            // With a NaN these give the second operand; a NaN that comes first is chosen afterwards.
            Self::Maximum => for_each_pair!(simd, input, operand, output, |x, y| {
                simd.select(simd.eq(x, x), simd.max(x, y), x)
            }),
            Self::Minimum => for_each_pair!(simd, input, operand, output, |x, y| {
                simd.select(simd.eq(x, x), simd.min(x, y), x)
            }),
            Self::Prelu => {
                let zero = simd.splat(0.0);
                for_each_pair!(simd, input, operand, output, |x, y| {
                    simd.select(simd.lt(x, zero), simd.mul(x, y), x)
                });
            }
            Self::Pow => one_by_one(input, operand, output, f64::powf),
            Self::PowFrom => one_by_one(input, operand, output, |x, y| y.powf(x)),
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // Rounded once.
#[inline(always)]
fn one_by_one(
    input: Option<&[f32]>,
    operand: Operand<'_, f32>,
    output: &mut [f32],
    function: impl Fn(f64, f64) -> f64,
) {
    if let Some(input) = input {
        output.copy_from_slice(input);
    }
    match operand {
        Operand::Elements(operand) => {
            for (x, y) in output.iter_mut().zip(operand) {
                *x = function((*x).into(), (*y).into()) as f32;
            }
        }
        Operand::Same(y) => {
            output.iter_mut().for_each(|x| *x = function((*x).into(), y.into()) as f32);
        }
    }
}
