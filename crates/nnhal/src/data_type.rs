//! [`DataType`]: element types, and [`Element`]: the types of Rust that they are.

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use nnhal_hal::OperandType;
use nnhal_ops::extension::{
    TENSOR_COMPLEX64, TENSOR_FLOAT64, TENSOR_INT64, TENSOR_UINT16, TENSOR_UINT32, TENSOR_UINT64,
};
use num_complex::Complex32;
use std::fmt;

/// The element type of a tensor, as model files name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// `f32`
    Float32,
    /// `half::f16`
    Float16,
    /// `half::bf16`: the upper half of an `f32`
    Bfloat16,
    /// `f64`
    Float64,
    /// `i8`
    Int8,
    /// `i16`
    Int16,
    /// `i32`
    Int32,
    /// `i64`
    Int64,
    /// `u8`
    Uint8,
    /// `u16`
    Uint16,
    /// `u32`
    Uint32,
    /// `u64`
    Uint64,
    /// `bool`, a byte each.
    Bool,
    /// `num_complex::Complex32`: two `f32`, the real part first.
    Complex64,
    /// Two signed integers in a byte; only constants of files have it.
    Int4,
    /// Another type of the file format, by its code there; no tensor that runs has it.
    Other(i8),
}

/// By code in the file format.
const OF_FORMAT: [(i8, DataType); 15] = [
    (0, DataType::Float32),
    (1, DataType::Float16),
    (2, DataType::Int32),
    (3, DataType::Uint8),
    (4, DataType::Int64),
    (6, DataType::Bool),
    (7, DataType::Int16),
    (8, DataType::Complex64),
    (9, DataType::Int8),
    (10, DataType::Float64),
    (12, DataType::Uint64),
    (15, DataType::Uint32),
    (16, DataType::Uint16),
    (17, DataType::Int4),
    (18, DataType::Bfloat16),
];

impl DataType {
    /// Bytes that an element takes; `None` where it is no whole number of them, or not known.
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Int8 | Self::Uint8 | Self::Bool => Some(1),
            Self::Float16 | Self::Bfloat16 | Self::Int16 | Self::Uint16 => Some(2),
            Self::Float32 | Self::Int32 | Self::Uint32 => Some(4),
            Self::Float64 | Self::Int64 | Self::Uint64 | Self::Complex64 => Some(8),
            Self::Int4 | Self::Other(_) => None,
        }
    }

    /// Bytes of a value of this shape; `None` if they are more than can be addressed, or
    /// [`Self::size`] is not known.
    pub fn byte_length(self, shape: &[usize]) -> Option<usize> {
        shape.iter().try_fold(self.size()?, |size, length| size.checked_mul(*length))
    }

    /// Whether it is one of floating point.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float16 | Self::Bfloat16 | Self::Float64)
    }

    /// The type with this code in the `.tflite` format.
    pub fn from_tflite_code(code: i8) -> Self {
        let known = OF_FORMAT.iter().find(|(known, _)| *known == code);
        known.map_or(Self::Other(code), |(_, data_type)| *data_type)
    }

    /// Its code in the `.tflite` format.
    pub fn tflite_code(self) -> i8 {
        match self {
            Self::Other(code) => code,
            _ => OF_FORMAT.iter().find(|(_, known)| *known == self).map_or(0, |(code, _)| *code),
        }
    }

    /// What NumPy calls it (`float32`), and so does Python's interpreter of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
            Self::Float64 => "float64",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Bool => "bool",
            Self::Complex64 => "complex64",
            Self::Int4 => "int4",
            Self::Other(_) => "another type",
        }
    }

    /// The type of what an operand of a device stores; `None` for that of an extension other than
    /// [`nnhal_ops::extension`].
    pub fn of_operand(operand_type: OperandType) -> Option<Self> {
        Some(match operand_type {
            OperandType::TensorFloat32 | OperandType::Float32 => Self::Float32,
            OperandType::TensorFloat16 | OperandType::Float16 => Self::Float16,
            OperandType::TensorInt32 | OperandType::Int32 => Self::Int32,
            OperandType::Uint32 => Self::Uint32,
            OperandType::TensorQuant8Asymm | OperandType::TensorOemByte => Self::Uint8,
            OperandType::TensorQuant8AsymmSigned
            | OperandType::TensorQuant8Symm
            | OperandType::TensorQuant8SymmPerChannel => Self::Int8,
            OperandType::TensorQuant16Symm => Self::Int16,
            OperandType::TensorQuant16Asymm => Self::Uint16,
            OperandType::TensorBool8 | OperandType::Bool => Self::Bool,
            TENSOR_INT64 => Self::Int64,
            TENSOR_UINT64 => Self::Uint64,
            TENSOR_UINT32 => Self::Uint32,
            TENSOR_UINT16 => Self::Uint16,
            TENSOR_FLOAT64 => Self::Float64,
            TENSOR_COMPLEX64 => Self::Complex64,
            OperandType::Subgraph | OperandType::Oem | OperandType::Extension(_) => return None,
        })
    }

    /// The least and greatest integer that it holds, if it is one of integers of at most 32 bits.
    pub(crate) const fn integer_range(self) -> Option<(i64, i64)> {
        Some(match self {
            Self::Int8 => (i8::MIN as i64, i8::MAX as i64),
            Self::Int16 => (i16::MIN as i64, i16::MAX as i64),
            Self::Int32 => (i32::MIN as i64, i32::MAX as i64),
            Self::Uint8 => (0, u8::MAX as i64),
            Self::Uint16 => (0, u16::MAX as i64),
            Self::Uint32 => (0, u32::MAX as i64),
            _ => return None,
        })
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(code) => write!(formatter, "type {code} of the format"),
            known => formatter.write_str(known.name()),
        }
    }
}

/// A type of Rust that tensors can hold.
pub trait Element: Copy + sealed::Sealed {
    /// The element type that it is.
    const DATA_TYPE: DataType;
}

pub(crate) mod sealed {
    /// Elements as bytes and back.
    pub trait Sealed: Sized + 'static {
        fn bytes(elements: &[Self]) -> &[u8];
        /// `None` for bytes that are no such elements: not aligned, not whole, no `bool`.
        fn elements(bytes: &[u8]) -> Option<&[Self]>;
        fn elements_mut(bytes: &mut [u8]) -> Option<&mut [Self]>;
    }
}

macro_rules! elements {
    ($($Type:ty: $name:ident),*) => {$(
        impl sealed::Sealed for $Type {
            fn bytes(elements: &[Self]) -> &[u8] {
                bytemuck::cast_slice(elements)
            }

            fn elements(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::checked::try_cast_slice(bytes).ok()
            }

            fn elements_mut(bytes: &mut [u8]) -> Option<&mut [Self]> {
                bytemuck::checked::try_cast_slice_mut(bytes).ok()
            }
        }

        impl Element for $Type {
            const DATA_TYPE: DataType = DataType::$name;
        }
    )*};
}

elements!(
    f32: Float32,
    f64: Float64,
    i8: Int8,
    i16: Int16,
    i32: Int32,
    i64: Int64,
    u8: Uint8,
    u16: Uint16,
    u32: Uint32,
    u64: Uint64,
    bool: Bool,
    Complex32: Complex64
);

/// Types of `half`, which are their bits.
macro_rules! halves {
    ($($Type:ty: $name:ident),*) => {$(
        impl sealed::Sealed for $Type {
            fn bytes(elements: &[Self]) -> &[u8] {
                bytemuck::cast_slice::<u16, u8>(elements.reinterpret_cast())
            }

            fn elements(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice::<u8, u16>(bytes).ok().map(HalfBitsSliceExt::reinterpret_cast)
            }

            fn elements_mut(bytes: &mut [u8]) -> Option<&mut [Self]> {
                let bits = bytemuck::try_cast_slice_mut::<u8, u16>(bytes).ok();
                bits.map(HalfBitsSliceExt::reinterpret_cast_mut)
            }
        }

        impl Element for $Type {
            const DATA_TYPE: DataType = DataType::$name;
        }
    )*};
}

halves!(f16: Float16, bf16: Bfloat16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_format_go_there_and_back() {
        for code in i8::MIN..=i8::MAX {
            assert_eq!(DataType::from_tflite_code(code).tflite_code(), code);
        }
        assert_eq!(DataType::from_tflite_code(9), DataType::Int8);
    }

    #[test]
    fn sizes_are_those_of_the_types_of_rust() {
        fn check<T: Element>() {
            assert_eq!(T::DATA_TYPE.size(), Some(size_of::<T>()));
        }
        check::<f32>();
        check::<f16>();
        check::<bf16>();
        check::<bool>();
        check::<u64>();
        check::<i16>();
        check::<Complex32>();
    }
}
