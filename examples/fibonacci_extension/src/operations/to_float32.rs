//! TO_FLOAT32: the extension's numbers as the interface's, so that ordinary operations can go on
//! with them.
//!
//! | | | type | shape | |
//! |---|---|---|---|---|
//! | input 0 | numbers | TENSOR_UINT64 (the extension's) | any | |
//! | output 0 | | TENSOR_FLOAT32 | as the input | rounded to the nearest, ties to even |

use super::expect_types;
use crate::vocabulary::Vocabulary;
use nnhal_hal::OperandType;
use nnhal_ops::{Call, Fault, Output, Shape};

/// TO_FLOAT32, which has no arguments but its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToFloat32;

impl ToFloat32 {
    pub(super) fn expect_types(call: &Call<'_>, words: Vocabulary) -> Result<(), Fault> {
        expect_types(call, &[&[words.tensor_uint64()]], OperandType::TensorFloat32)
    }

    pub(super) fn output_shape(call: &Call<'_>) -> Shape {
        call.input(0).shape.clone()
    }

    pub(super) fn compute(call: &Call<'_>) -> Result<Output, Fault> {
        let (dimensions, bytes) = (call.input(0).dimensions()?, call.input(0).bytes()?);
        let mut elements = call.output(0).allocate(&dimensions)?;
        elements.extend(bytes.as_chunks().0.iter().map(|bytes| to_float32(*bytes)));
        call.output(0).with_f32s(dimensions, &elements)
    }
}

// The loss is what the operation is defined to do.
#[allow(clippy::cast_precision_loss)]
fn to_float32(bytes: [u8; 8]) -> f32 {
    u64::from_le_bytes(bytes) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        // Above 2^24 float32 has every other number, above 2^63 every 2^40th.
        let cases = [
            (0, 0.0),
            (16_777_217, 16_777_216.0),
            (16_777_219, 16_777_220.0),
            (u64::MAX, 18_446_744_073_709_551_616.0),
        ];
        for (number, expected) in cases {
            assert_eq!(to_float32(number.to_le_bytes()), expected, "{number}");
        }
    }
}
