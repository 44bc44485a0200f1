//! CEIL, COS, ERF, GELU, ROUND, SIGN: functions of one number, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16; SIGN also int32, int64 |
//! | output 0 | output | as the input | as the input |

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::ExtensionOperation as E;
use crate::operation::Operation;
use crate::rules::double::{doubles, is_double, with_doubles};
use crate::rules::real;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// CEIL
    Ceil,
    /// COS
    Cos,
    /// ERF, the error function.
    Erf,
    /// GELU, with the error function.
    Gelu,
    /// ROUND: halves to the even neighbour.
    Round,
    /// SIGN
    Sign,
}

impl Operation for Unary {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match E::of(call.operation()) {
            Some(E::Ceil) => Self::Ceil,
            Some(E::Erf) => Self::Erf,
            Some(E::Gelu) => Self::Gelu,
            Some(E::Round) => Self::Round,
            Some(E::Sign) => Self::Sign,
            _ => Self::Cos,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        Ok(vec![if is_double(output) {
            let dimensions = input.dimensions()?;
            let sign = |x: f64| if x.is_nan() || x == 0.0 { x + 0.0 } else { x.signum() };
            let signs = doubles(input)?.into_iter().map(sign);
            let signs = output.collect(&dimensions, signs)?;
            with_doubles(output, dimensions, &signs)?
        } else if output.is_float() {
            real::map(input, output, |x| self.real(x))?
        } else {
            let dimensions = input.dimensions()?;
            let signs = wide(input)?.into_iter().map(i64::signum);
            let signs = output.collect(&dimensions, signs)?;
            stored(output, dimensions, &signs)?
        }])
    }
}

impl Unary {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        let wide = f64::from(x);
        match self {
            Self::Ceil => x.ceil(),
            Self::Cos => real::round(wide.cos()),
            Self::Erf => real::round(libm::erf(wide)),
            Self::Gelu => {
                let half = 0.5 * (1.0 + libm::erf(wide * std::f64::consts::FRAC_1_SQRT_2));
                // The function is 0 there; without this the product would be none.
                if x == f32::NEG_INFINITY { -0.0 } else { real::round(wide * half) }
            }
            Self::Round => x.round_ties_even(),
            // Zeros and NaN are neither positive nor negative.
            Self::Sign if x > 0.0 => 1.0,
            Self::Sign if x < 0.0 => -1.0,
            Self::Sign if x.is_nan() => x,
            Self::Sign => 0.0,
        }
    }
}
