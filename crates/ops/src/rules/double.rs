//! Elements of `TENSOR_FLOAT64`.

use crate::call::{Argument, Output};
use crate::error::Fault;
use crate::extension::TENSOR_FLOAT64;

/// Whether the elements are floats of 64 bits.
pub fn is_double(argument: &Argument<'_>) -> bool {
    argument.operand_type == TENSOR_FLOAT64
}

/// The elements of a tensor of floats of 64 bits.
///
/// # Errors
/// As [`Argument::i32s`].
pub fn doubles(argument: &Argument<'_>) -> Result<Vec<f64>, Fault> {
    argument.elements(f64::from_le_bytes)
}

/// An output of floats of 64 bits.
///
/// # Errors
/// As [`Argument::with_f32s`].
///
/// # Panics
/// If there are not as many elements as the dimensions say: a kernel is wrong.
pub fn with_doubles(
    output: &Argument<'_>,
    dimensions: Vec<u32>,
    elements: &[f64],
) -> Result<Output, Fault> {
    let bytes = output.flattened(elements.iter().map(|it| it.to_le_bytes()))?;
    Ok(output.with_bytes(dimensions, bytes))
}
