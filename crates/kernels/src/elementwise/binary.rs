//! [`Binary`]: functions of two real numbers.

use super::unary::{fma, for_each_vector, polynomial};
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
    /// `x` to the power of `y`, within 0.51 ULP
    Pow,
    /// `y` to the power of `x`, within 0.51 ULP
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
            Self::Pow => powers::<S, false>(input, operand, output),
            Self::PowFrom => powers::<S, true>(input, operand, output),
        }
    }
}

/// Powers that are computed side by side.
const GROUP: usize = 16;

/// Powers of the values, or of the operand (`IS_FROM`).
#[inline(always)]
fn powers<S: Simd, const IS_FROM: bool>(
    input: Option<&[f32]>,
    operand: Operand<'_, f32>,
    output: &mut [f32],
) {
    if let Some(input) = input {
        output.copy_from_slice(input);
    }
    let (groups, rest) = output.as_chunks_mut();
    let others = match operand {
        Operand::Same(_) => (&[][..], &[][..]),
        Operand::Elements(operand) => operand.as_chunks(),
    };
    for (number, group) in groups.iter_mut().enumerate() {
        let other = match operand {
            Operand::Same(other) => [other; GROUP],
            Operand::Elements(_) => others.0[number],
        };
        *group = powers_of_group::<S, IS_FROM>(group, &other);
    }
    let (mut last, mut other) = ([1.0; GROUP], [1.0; GROUP]);
    last[..rest.len()].copy_from_slice(rest);
    match operand {
        Operand::Same(same) => other = [same; GROUP],
        Operand::Elements(_) => other[..rest.len()].copy_from_slice(others.1),
    }
    let last = powers_of_group::<S, IS_FROM>(&last, &other);
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Loops of plain numbers without closures, which become vector instructions of the set that they are inlined for.
#[allow(clippy::cast_possible_truncation)] // Rounded once.
#[inline(always)]
fn powers_of_group<S: Simd, const IS_FROM: bool>(
    x: &[f32; GROUP],
    y: &[f32; GROUP],
) -> [f32; GROUP] {
    let (bases, exponents) = if IS_FROM { (y, x) } else { (x, y) };
    let mut is_plain = true;
    for (base, exponent) in bases.iter().zip(exponents) {
        is_plain &= (base.abs() <= f32::INFINITY) & (exponent.abs() < f32::INFINITY);
    }
    let mut powers = [0.0; GROUP];
    let all = powers.iter_mut().zip(bases.iter().zip(exponents));
    if is_plain {
        for (power, (base, exponent)) in all {
            *power = power_of::<S>((*base).into(), (*exponent).into()) as f32;
        }
    } else {
        for (power, (base, exponent)) in all {
            *power = f64::from(*base).powf((*exponent).into()) as f32;
        }
    }
    powers
}

/// `x` to the power of `y`, of a number and a finite number of float32, for a result of float32: within 2^-34 of itself, or beyond
/// the range where it is. The polynomials have the least relative error.
#[inline(always)]
fn power_of<S: Simd>(x: f64, y: f64) -> f64 {
    /// Its lowest bits are an integer.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    /// The bits of `2^52`, whose lowest bits are an integer above 0, and what is taken from the sum: 1023 too.
    const WHOLE_ABOVE: (u64, f64) = (0x4330_0000_0000_0000, 4_503_599_627_370_496.0 + 1023.0);
    const SQRT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    // |x| = 2^n * m with m from sqrt(1/2) to sqrt(2).
    let magnitude = x.abs();
    let offset = magnitude.to_bits().wrapping_add(1.0_f64.to_bits().wrapping_sub(SQRT_HALF));
    let n = f64::from_bits(WHOLE_ABOVE.0 | offset >> 52) - WHOLE_ABOVE.1;
    let m = f64::from_bits((offset & (u64::MAX >> 12)).wrapping_add(SQRT_HALF));
    let f = (m - 1.0) / (m + 1.0);
    // The logarithm of (1 + f) / (1 - f) over f, in powers of f^2.
    let square = f * f;
    let log = polynomial!(
        S,
        square,
        2.885_390_081_777_847_7,
        0.961_796_694_114_295_6,
        0.577_077_942_134_933,
        0.412_209_273_673_080_9,
        0.319_904_879_456_401_8,
        0.282_911_135_253_242_4,
    );
    let log = fma::<S>(f, log, n);
    // So great that no exponent makes the product small, but 0.
    let log = if magnitude == 0.0 { -1e300 } else { log };
    let log = if magnitude == f64::INFINITY { 1e300 } else { log };
    // Beyond these the result is 0 or infinite anyway.
    let product = (y * log).clamp(-1000.0, 1000.0);
    let sum = product + WHOLE;
    let scale = f64::from_bits(sum.to_bits().wrapping_add(1023) << 52);
    // 2^r for r from -1/2 to 1/2.
    let r = product - (sum - WHOLE);
    let power = polynomial!(
        S,
        r,
        0.999_999_999_961_682_5,
        0.693_147_180_728_449_9,
        0.240_226_511_981_576_02,
        0.055_504_103_534_451_92,
        0.009_618_027_253_659_664,
        0.001_333_392_256_602_186_6,
        0.000_154_692_911_467_552_15,
        0.000_015_201_920_968_362_613,
    );
    let value = power * scale;
    // Greater exponents are even, as the bounds are.
    let exponent = y.clamp(-2_147_483_648.0, 2_147_483_648.0);
    let integer = exponent + WHOLE;
    let is_integer = integer - WHOLE == exponent;
    let parity = if is_integer { integer.to_bits() << 63 } else { 0 };
    let value = f64::from_bits(value.to_bits() ^ (parity & x.to_bits()));
    if (x < 0.0) & (x > f64::NEG_INFINITY) & !is_integer { f64::NAN } else { value }
}
