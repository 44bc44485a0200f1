//! Real functions of elements: computed in double precision and rounded once, so that the result is
//! the float nearest to the definition's.

use crate::call::{Argument, Output};
use crate::error::Fault;
use crate::rules::requantize::quantize;

/// A function of every element: of the element itself if it is a float, otherwise of the real
/// number that it stands for, the result quantized as the output is.
///
/// # Errors
/// [`Fault::NotKnown`], [`Fault::OutOfMemory`]
pub fn map(
    input: &Argument<'_>,
    output: &Argument<'_>,
    function: impl Fn(f32) -> f32,
) -> Result<Output, Fault> {
    let dimensions = input.dimensions()?;
    store(output, dimensions, input.reals()?.into_iter().map(function))
}

/// An output of real numbers: rounded to its type, quantized as it is.
///
/// # Errors
/// [`Fault::OutOfMemory`], or there are more than 2^32 - 1 bytes of them.
///
/// # Panics
/// If there are not as many numbers as the dimensions say: a kernel is wrong.
pub fn store(
    output: &Argument<'_>,
    dimensions: Vec<u32>,
    values: impl IntoIterator<Item = f32>,
) -> Result<Output, Fault> {
    Ok(match output.operand_type.quantized_range() {
        None => {
            let elements = output.collect(&dimensions, values)?;
            output.with_f32s(dimensions, &elements)?
        }
        Some(range) => {
            let store = |real| quantize(real, output.scale, output.zero_point, range);
            let elements = output.collect(&dimensions, values.into_iter().map(store))?;
            output.with_integers(dimensions, &elements)?
        }
    })
}

/// The nearest `f32`; beyond its range, infinity.
#[allow(clippy::cast_possible_truncation)] // The rounding that is wanted.
pub fn round(value: f64) -> f32 {
    value as f32
}

/// The greater of two numbers; NaN if either is.
pub fn maximum(a: f32, b: f32) -> f32 {
    if a.is_nan() || a > b { a } else { b }
}

/// The lesser of two numbers; NaN if either is.
pub fn minimum(a: f32, b: f32) -> f32 {
    if a.is_nan() || a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_to_the_nearest() {
        assert_eq!(round(0.1), 0.1_f32);
        assert_eq!(round(1e300), f32::INFINITY);
        assert_eq!(round(-1e-300), 0.0);
    }

    #[test]
    fn nan_on_either_side_stays() {
        for extreme in [maximum, minimum] {
            assert!(extreme(f32::NAN, 1.0).is_nan());
            assert!(extreme(1.0, f32::NAN).is_nan());
        }
        assert_eq!((maximum(1.0, -2.0), maximum(-2.0, 1.0)), (1.0, 1.0));
        assert_eq!((minimum(1.0, -2.0), minimum(-2.0, 1.0)), (-2.0, -2.0));
    }
}
