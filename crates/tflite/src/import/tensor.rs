//! The file's tensors: types and shapes.

use crate::file::Tensor;
use crate::schema::TensorType;

/// The element types that the HAL or our extension knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Element {
    Float32,
    Float16,
    Int32,
    Int64,
    Uint8,
    Int8,
    /// Two to a byte, in constants and what moves them: they become int8.
    Int4,
    /// Four to a byte, in constants and what moves them: they become int8.
    Int2,
    /// Two to a byte, in constants and what moves them: they become uint8.
    Uint4,
    /// The upper half of a float32, within graphs only: operands are float32 and hold such numbers.
    Bfloat16,
    Int16,
    Bool,
    Uint32,
    Uint16,
    Uint64,
    Float64,
    /// Two floats of 32 bits.
    Complex64,
}

impl Element {
    /// `None` for a type that neither knows.
    pub(super) fn of(tensor: &Tensor<'_>) -> Option<Self> {
        Some(match TensorType::try_from(tensor.type_code).ok()? {
            TensorType::Float32 => Self::Float32,
            TensorType::Float16 => Self::Float16,
            TensorType::Int32 => Self::Int32,
            TensorType::Int64 => Self::Int64,
            TensorType::Uint8 => Self::Uint8,
            TensorType::Int8 => Self::Int8,
            TensorType::Int4 => Self::Int4,
            TensorType::Int2 => Self::Int2,
            TensorType::Uint4 => Self::Uint4,
            TensorType::Bfloat16 => Self::Bfloat16,
            TensorType::Int16 => Self::Int16,
            TensorType::Bool => Self::Bool,
            TensorType::Uint32 => Self::Uint32,
            TensorType::Uint16 => Self::Uint16,
            TensorType::Uint64 => Self::Uint64,
            TensorType::Float64 => Self::Float64,
            TensorType::Complex64 => Self::Complex64,
            _ => return None,
        })
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Int64 | Self::Uint64 | Self::Float64 | Self::Complex64 => 8,
            Self::Float32 | Self::Int32 | Self::Uint32 => 4,
            Self::Float16 | Self::Int16 | Self::Uint16 | Self::Bfloat16 => 2,
            Self::Uint8 | Self::Int8 | Self::Bool | Self::Int4 | Self::Uint4 | Self::Int2 => 1,
        }
    }

    /// How many elements are in a byte of the file.
    pub(super) fn per_byte(self) -> usize {
        match self {
            Self::Int4 | Self::Uint4 => 2,
            Self::Int2 => 4,
            _ => 1,
        }
    }

    /// Whether the file stores constants otherwise than an operand does.
    pub(super) fn is_unpacked(self) -> bool {
        matches!(self, Self::Int4 | Self::Int2 | Self::Uint4 | Self::Bfloat16)
    }

    /// Whether constants become integers of 8 bits with a sign.
    pub(super) fn becomes_int8(self) -> bool {
        matches!(self, Self::Int8 | Self::Int4 | Self::Int2)
    }

    /// Whether operands are float32.
    pub(super) fn becomes_float32(self) -> bool {
        matches!(self, Self::Float32 | Self::Bfloat16)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float16)
    }

    /// Whether it is one of integers that stand for nothing else.
    pub(super) fn is_integer(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64 | Self::Uint32 | Self::Uint16 | Self::Uint64)
    }

    pub(super) fn is_quantized(self) -> bool {
        self.becomes_int8() || matches!(self, Self::Uint8 | Self::Uint4 | Self::Int16)
    }
}

/// A list of tensors of one shape, which a tensor of type VARIANT holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct List {
    pub(super) element: Element,
    /// How many elements it has.
    pub(super) count: u32,
}
