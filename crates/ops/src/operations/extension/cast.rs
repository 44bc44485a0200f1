//! CAST: the same numbers as another type, between all types.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | any |
//! | input 1 | saturate | scalar | BOOL; left out: false |
//! | output 0 | output | as the input | any |
//!
//! Scales and zero points do not count: a quantized element is its stored integer. Integers become
//! integers modulo the size of the type, or, if they saturate, the nearest that it holds. Floats lose
//! their fraction and become the nearest integer that the type holds; NaN becomes 0. Of a complex number
//! the real part is taken. Everything but 0 is true; true is 1.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::extension::{TENSOR_COMPLEX64, TENSOR_FLOAT64, TENSOR_UINT64};
use crate::operation::Operation;
use crate::rules::movement;
use crate::rules::wide::{integer_range, stored, wide};
use crate::shape::Shape;
use nnhal_hal::OperandType;

/// CAST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Convert {
    /// Whether integers that the type does not hold become the nearest that it does.
    pub saturates: bool,
}

/// Elements on the way from one type to another.
enum Numbers {
    Integers(Vec<i64>),
    /// Of integers of 64 bits without a sign.
    Unsigned(Vec<u64>),
    Reals(Vec<f64>),
}

impl Operation for Convert {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { saturates: call.optional_bool(1)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        if input.operand_type == output.operand_type {
            return Ok(vec![movement::copied(input.bytes()?, output, dimensions)?]);
        }
        Ok(vec![self.converted(&numbers(input)?, output, dimensions)?])
    }
}

fn is_real(argument: &Argument<'_>) -> bool {
    argument.is_float() || matches!(argument.operand_type, TENSOR_FLOAT64 | TENSOR_COMPLEX64)
}

fn numbers(input: &Argument<'_>) -> Result<Numbers, Fault> {
    Ok(match input.operand_type {
        TENSOR_UINT64 => Numbers::Unsigned(input.elements(u64::from_le_bytes)?),
        TENSOR_FLOAT64 => Numbers::Reals(input.elements(f64::from_le_bytes)?),
        TENSOR_COMPLEX64 => Numbers::Reals(
            input.elements(|[a, b, c, d, ..]: [u8; 8]| f32::from_le_bytes([a, b, c, d]).into())?,
        ),
        _ if input.is_float() => Numbers::Reals(input.reals_as(f64::from)?),
        _ => Numbers::Integers(wide(input)?),
    })
}

impl Convert {
    // Each cast is to the nearest number, or modulo the size, as the operation is defined.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn converted(
        self,
        numbers: &Numbers,
        output: &Argument<'_>,
        dimensions: Vec<u32>,
    ) -> Result<Output, Fault> {
        if output.operand_type == OperandType::TensorBool8 {
            let elements = match numbers {
                Numbers::Integers(it) => output.collect(&dimensions, it.iter().map(|it| *it != 0)),
                Numbers::Unsigned(it) => output.collect(&dimensions, it.iter().map(|it| *it != 0)),
                Numbers::Reals(it) => output.collect(&dimensions, it.iter().map(|it| *it != 0.0)),
            };
            return output.with_bools(dimensions, &elements?);
        }
        if is_real(output) {
            if output.operand_type == TENSOR_FLOAT64 {
                let bytes = match numbers {
                    Numbers::Integers(it) => {
                        output.flattened(it.iter().map(|it| (*it as f64).to_le_bytes()))
                    }
                    Numbers::Unsigned(it) => {
                        output.flattened(it.iter().map(|it| (*it as f64).to_le_bytes()))
                    }
                    Numbers::Reals(it) => output.flattened(it.iter().map(|it| it.to_le_bytes())),
                };
                return Ok(output.with_bytes(dimensions, bytes?));
            }
            let floats = match numbers {
                Numbers::Integers(it) => {
                    output.collect(&dimensions, it.iter().map(|it| *it as f32))
                }
                Numbers::Unsigned(it) => {
                    output.collect(&dimensions, it.iter().map(|it| *it as f32))
                }
                Numbers::Reals(it) => output.collect(&dimensions, it.iter().map(|it| *it as f32)),
            }?;
            if output.operand_type == TENSOR_COMPLEX64 {
                let both = |real: &f32| {
                    let [a, b, c, d] = real.to_le_bytes();
                    [a, b, c, d, 0, 0, 0, 0]
                };
                let bytes = output.flattened(floats.iter().map(both))?;
                return Ok(output.with_bytes(dimensions, bytes));
            }
            return output.with_f32s(dimensions, &floats);
        }
        let (least, greatest) = integer_range(output.operand_type);
        let is_unsigned = output.operand_type == TENSOR_UINT64;
        let elements: Vec<i64> = match numbers {
            Numbers::Integers(it) if self.saturates => {
                let floor = if is_unsigned { 0 } else { least };
                output.collect(&dimensions, it.iter().map(|it| *it.clamp(&floor, &greatest)))
            }
            Numbers::Integers(it) => output.collect(&dimensions, it.iter().copied()),
            Numbers::Unsigned(it) if self.saturates => {
                let greatest = greatest.cast_unsigned();
                output.collect(&dimensions, it.iter().map(|it| (*it).min(greatest).cast_signed()))
            }
            Numbers::Unsigned(it) => {
                output.collect(&dimensions, it.iter().map(|it| it.cast_signed()))
            }
            Numbers::Reals(it) if is_unsigned => {
                output.collect(&dimensions, it.iter().map(|it| (*it as u64).cast_signed()))
            }
            Numbers::Reals(it) => {
                output.collect(&dimensions, it.iter().map(|it| (*it as i64).clamp(least, greatest)))
            }
        }?;
        stored(output, dimensions, &elements)
    }
}
