//! ATAN2, BITWISE_AND, BITWISE_XOR, LEFT_SHIFT, POW, RIGHT_SHIFT: functions of two elements, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two that broadcast | ATAN2: float32, float16, float64; others: integers, quantized as stored |
//! | output 0 | output | the common shape | as the inputs |

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::ExtensionOperation as E;
use crate::operation::Operation;
use crate::rules::double::{doubles, is_double, with_doubles};
use crate::rules::wide::{stored, wide};
use crate::rules::{broadcast, real};
use crate::shape::Shape;

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// ATAN2: the angle of the point with `input0` above and `input1` to the right.
    Atan2,
    /// BITWISE_AND
    And,
    /// BITWISE_XOR
    Xor,
    /// POW of integers.
    Pow,
    /// LEFT_SHIFT
    ShiftLeft,
    /// RIGHT_SHIFT
    ShiftRight,
}

impl Operation for Binary {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match E::of(call.operation()) {
            Some(E::BitwiseAnd) => Self::And,
            Some(E::BitwiseXor) => Self::Xor,
            Some(E::LeftShift) => Self::ShiftLeft,
            Some(E::Pow) => Self::Pow,
            Some(E::RightShift) => Self::ShiftRight,
            _ => Self::Atan2,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        Ok(vec![if is_double(output) {
            let (of_a, of_b) = (doubles(a)?, doubles(b)?);
            let angles = pairs.map(|(i, j)| of_a[i].atan2(of_b[j]));
            let elements = output.collect(&dimensions, angles)?;
            with_doubles(output, dimensions, &elements)?
        } else if output.is_float() {
            let (of_a, of_b) = (a.f32s()?, b.f32s()?);
            let angle =
                |(i, j): (usize, usize)| real::round(f64::from(of_a[i]).atan2(of_b[j].into()));
            let elements = output.collect(&dimensions, pairs.map(angle))?;
            output.with_f32s(dimensions, &elements)?
        } else {
            let (of_a, of_b) = (wide(a)?, wide(b)?);
            let bits =
                8 * i64::from(crate::extension::element_size(output.operand_type).unwrap_or(8));
            let results = pairs.map(|(i, j)| self.integers(of_a[i], of_b[j], bits));
            let elements = output.collect(&dimensions, results)?;
            stored(output, dimensions, &elements)?
        }])
    }
}

impl Binary {
    /// Of integers of a type with this many bits.
    fn integers(self, a: i64, b: i64, bits: i64) -> i64 {
        match self {
            Self::Pow => power(a, b),
            Self::ShiftLeft if (0..bits).contains(&b) => a << b,
            Self::ShiftLeft => 0,
            Self::ShiftRight => a >> b.clamp(0, bits - 1),
            Self::And => a & b,
            Self::Xor | Self::Atan2 => a ^ b,
        }
    }
}

/// A power modulo 2^64. With a negative exponent, the reciprocal rounded towards 0, which is 0 but for
/// the bases 1 and -1; of 0 it is 0 too.
fn power(mut base: i64, exponent: i64) -> i64 {
    let Ok(mut exponent) = u64::try_from(exponent) else {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    };
    let mut power: i64 = 1;
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent /= 2;
    }
    power
}
