//! COMPLEX_ABS, IMAG, REAL: real numbers of complex ones, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | TENSOR_COMPLEX64 |
//! | output 0 | output | as the input | TENSOR_FLOAT32 |
//!
//! The magnitude is computed in double precision.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::ExtensionOperation as E;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OfComplex {
    /// COMPLEX_ABS
    Abs,
    /// IMAG
    Imag,
    /// REAL
    Real,
}

impl Operation for OfComplex {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match E::of(call.operation()) {
            Some(E::Imag) => Self::Imag,
            Some(E::Real) => Self::Real,
            _ => Self::Abs,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let numbers = input.elements(|[a, b, c, d, e, f, g, h]: [u8; 8]| {
            let (re, im) = (f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]));
            match self {
                Self::Abs => real::round(magnitude(re.into(), im.into())),
                Self::Imag => im,
                Self::Real => re,
            }
        })?;
        Ok(vec![output.with_f32s(input.dimensions()?, &numbers)?])
    }
}

/// Of numbers that come from single precision, whose squares are far from the ends of double precision. (The
/// standard library's `hypot` needs a newer C library than wheels should.)
fn magnitude(re: f64, im: f64) -> f64 {
    if re.is_infinite() || im.is_infinite() {
        return f64::INFINITY;
    }
    (re * re + im * im).sqrt()
}

#[cfg(test)]
mod tests {
    use super::magnitude;

    #[test]
    fn magnitudes_of_extremes() {
        let most = f64::from(f32::MAX);
        assert_eq!(magnitude(3.0, -4.0), 5.0);
        assert_eq!(magnitude(most, 0.0), most);
        assert_eq!(magnitude(0.0, f64::from(f32::MIN_POSITIVE)), f64::from(f32::MIN_POSITIVE));
        assert_eq!(magnitude(f64::NAN, f64::NEG_INFINITY), f64::INFINITY);
        assert!(magnitude(f64::NAN, 1.0).is_nan());
    }
}
