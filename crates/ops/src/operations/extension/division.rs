//! DIV, FLOOR_DIV, FLOOR_MOD: quotients and remainders, element by element, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two that broadcast | floats, integers; quantized: the stored integers |
//! | output 0 | output | the common shape | as the inputs |
//!
//! Integers: a divisor of 0 gives 0, as the interface's DIV does, so that a quotient which a SELECT throws
//! away does no harm; the one quotient that the type cannot hold wraps. Floats: as IEEE 754 says;
//! FLOOR_MOD is the exact remainder, computed from `fmod`, with the sign of the divisor.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::ExtensionOperation;
use crate::operation::Operation;
use crate::rules::broadcast;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Division {
    /// DIV
    Div,
    /// FLOOR_DIV
    FloorDiv,
    /// FLOOR_MOD
    FloorMod,
}

impl Operation for Division {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match ExtensionOperation::of(call.operation()) {
            Some(ExtensionOperation::FloorDiv) => Self::FloorDiv,
            Some(ExtensionOperation::FloorMod) => Self::FloorMod,
            _ => Self::Div,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        Ok(vec![if output.is_float() {
            let (of_a, of_b) = (a.f32s()?, b.f32s()?);
            let results = pairs.map(|(i, j)| self.reals(of_a[i], of_b[j]));
            let elements = output.collect(&dimensions, results)?;
            output.with_f32s(dimensions, &elements)?
        } else {
            let (of_a, of_b) = (wide(a)?, wide(b)?);
            let results = pairs.map(|(i, j)| self.integers(of_a[i], of_b[j]));
            let elements = output.collect(&dimensions, results)?;
            stored(output, dimensions, &elements)?
        }])
    }
}

impl Division {
    fn reals(self, a: f32, b: f32) -> f32 {
        match self {
            Self::Div => a / b,
            Self::FloorDiv => (a / b).floor(),
            Self::FloorMod => {
                let rest = a % b;
                if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
            }
        }
    }

    fn integers(self, a: i64, b: i64) -> i64 {
        if b == 0 {
            return 0;
        }
        let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
        let is_above = rest != 0 && (rest < 0) != (b < 0);
        match self {
            Self::Div => quotient,
            Self::FloorDiv => quotient.wrapping_sub(i64::from(is_above)),
            Self::FloorMod if is_above => rest.wrapping_add(b),
            Self::FloorMod => rest,
        }
    }
}
