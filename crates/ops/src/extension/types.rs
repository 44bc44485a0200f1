//! The extension's operand types: number, name and size of each.

use super::PREFIX;
use nnhal_hal::{ExtensionOperandType, ExtensionType, OperandType};

/// An operand type of the extension. All of them are tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRow {
    /// The number within the extension.
    pub number: u16,
    /// What documentation and messages call it.
    pub name: &'static str,
    /// Bytes of an element, which is stored little endian.
    pub byte_size: u32,
    /// What an element is.
    pub meaning: &'static str,
}

const fn tensor(number: u16) -> OperandType {
    match ExtensionType::new(PREFIX, number) {
        Some(extension) => OperandType::Extension(extension),
        None => unreachable!(),
    }
}

/// Integers of 64 bits with a sign.
pub const TENSOR_INT64: OperandType = tensor(0);
/// Integers of 32 bits without a sign.
pub const TENSOR_UINT32: OperandType = tensor(1);
/// Complex numbers: two `float32`, the real part first.
pub const TENSOR_COMPLEX64: OperandType = tensor(2);
/// Integers of 64 bits without a sign.
pub const TENSOR_UINT64: OperandType = tensor(3);
/// Integers of 16 bits without a sign.
pub const TENSOR_UINT16: OperandType = tensor(4);
/// Floats of 64 bits.
pub const TENSOR_FLOAT64: OperandType = tensor(5);

/// All types, in the order of their numbers.
pub const TYPES: [TypeRow; 6] = [
    row(0, "TENSOR_INT64", 8, "an integer of 64 bits with a sign"),
    row(1, "TENSOR_UINT32", 4, "an integer of 32 bits without a sign"),
    row(2, "TENSOR_COMPLEX64", 8, "a complex number: two float32, the real part first"),
    row(3, "TENSOR_UINT64", 8, "an integer of 64 bits without a sign"),
    row(4, "TENSOR_UINT16", 2, "an integer of 16 bits without a sign"),
    row(5, "TENSOR_FLOAT64", 8, "a float of 64 bits"),
];

const fn row(number: u16, name: &'static str, byte_size: u32, meaning: &'static str) -> TypeRow {
    TypeRow { number, name, byte_size, meaning }
}

/// What the extension says of a type; `None` if it is not one of its types.
///
/// Only meaningful for types of a [`ValidModel`](crate::ValidModel), in which [`PREFIX`] stands for
/// the extension.
pub fn type_row(operand_type: OperandType) -> Option<&'static TypeRow> {
    match operand_type {
        OperandType::Extension(extension) if extension.prefix() == PREFIX => {
            TYPES.iter().find(|row| row.number == extension.number())
        }
        _ => None,
    }
}

/// Bytes that one element takes; `None` for the types of other extensions.
pub fn element_size(operand_type: OperandType) -> Option<u32> {
    operand_type.element_size().or_else(|| type_row(operand_type).map(|row| row.byte_size))
}

/// The name of a type, as messages show it.
pub fn type_name(operand_type: OperandType) -> String {
    type_row(operand_type).map_or_else(|| operand_type.to_string(), |row| row.name.to_owned())
}

/// The types as a device offers them.
pub(super) fn offered() -> Vec<ExtensionOperandType> {
    let offered = |row: &TypeRow| ExtensionOperandType {
        number: row.number,
        is_tensor: true,
        byte_size: row.byte_size,
    };
    TYPES.iter().map(offered).collect()
}
