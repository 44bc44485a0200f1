//! Elements of any integer type as integers of 64 bits.

use crate::call::{Argument, Output};
use crate::error::Fault;
use crate::extension::{TENSOR_INT64, TENSOR_UINT16, TENSOR_UINT32, TENSOR_UINT64, element_size};
use nnhal_hal::OperandType;

/// Whether the elements are integers of one of the extension's types, which 32 bits do not hold.
pub fn is_wide(argument: &Argument<'_>) -> bool {
    matches!(argument.operand_type, TENSOR_INT64 | TENSOR_UINT64 | TENSOR_UINT32 | TENSOR_UINT16)
}

/// The stored integers of a tensor of integers, truth values or quantized values. Integers of 64 bits
/// without a sign are taken modulo 2^64.
///
/// # Errors
/// As [`Argument::i32s`].
pub fn wide(argument: &Argument<'_>) -> Result<Vec<i64>, Fault> {
    match argument.operand_type {
        TENSOR_INT64 => argument.elements(i64::from_le_bytes),
        TENSOR_UINT64 => argument.elements(|it| u64::from_le_bytes(it).cast_signed()),
        TENSOR_UINT32 => argument.elements(|it| u32::from_le_bytes(it).into()),
        TENSOR_UINT16 => argument.elements(|it| u16::from_le_bytes(it).into()),
        _ => argument.integers_as(i64::from),
    }
}

/// An output of integers, each modulo 2 to the number of bits of its type; truth values as 0 and 1.
///
/// # Errors
/// As [`Argument::with_f32s`].
///
/// # Panics
/// If there are not as many elements as the dimensions say: a kernel is wrong.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // What is meant.
pub fn stored(
    output: &Argument<'_>,
    dimensions: Vec<u32>,
    elements: &[i64],
) -> Result<Output, Fault> {
    let elements = elements.iter();
    let bytes = match (output.operand_type, element_size(output.operand_type)) {
        (OperandType::TensorBool8, _) => {
            output.flattened(elements.map(|it| [u8::from(*it != 0)]))?
        }
        (_, Some(8)) => output.flattened(elements.map(|it| it.to_le_bytes()))?,
        (_, Some(4)) => output.flattened(elements.map(|it| (*it as u32).to_le_bytes()))?,
        (_, Some(2)) => output.flattened(elements.map(|it| (*it as u16).to_le_bytes()))?,
        _ => output.flattened(elements.map(|it| [*it as u8]))?,
    };
    Ok(output.with_bytes(dimensions, bytes))
}

/// The least and the greatest integer of a type, as far as 64 bits with a sign hold them.
pub fn integer_range(operand_type: OperandType) -> (i64, i64) {
    match operand_type {
        TENSOR_INT64 | TENSOR_UINT64 => (i64::MIN, i64::MAX),
        TENSOR_UINT32 => (0, u32::MAX.into()),
        TENSOR_UINT16 => (0, u16::MAX.into()),
        _ => match operand_type.quantized_range() {
            Some((least, greatest)) => (least.into(), greatest.into()),
            None => (i32::MIN.into(), i32::MAX.into()),
        },
    }
}
