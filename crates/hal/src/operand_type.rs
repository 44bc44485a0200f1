//! [`OperandType`]: the element types of tensors and scalars.

use crate::codes::extensible;

extensible! {
    /// The type of an operand: one of the interface's own, or one of an extension.
    ///
    /// Quantized values stand for `real = scale * (stored - zero_point)`.
    OperandType, "OperandType" {
        ///
        Float32 = 0, "FLOAT32", V1_0;
        ///
        Int32 = 1, "INT32", V1_0;
        ///
        Uint32 = 2, "UINT32", V1_0;
        ///
        TensorFloat32 = 3, "TENSOR_FLOAT32", V1_0;
        ///
        TensorInt32 = 4, "TENSOR_INT32", V1_0;
        ///
        TensorQuant8Asymm = 5, "TENSOR_QUANT8_ASYMM", V1_0;
        ///
        Bool = 6, "BOOL", V1_2;
        ///
        TensorQuant16Symm = 7, "TENSOR_QUANT16_SYMM", V1_2;
        ///
        TensorFloat16 = 8, "TENSOR_FLOAT16", V1_2;
        ///
        TensorBool8 = 9, "TENSOR_BOOL8", V1_2;
        ///
        Float16 = 10, "FLOAT16", V1_2;
        ///
        TensorQuant8SymmPerChannel = 11, "TENSOR_QUANT8_SYMM_PER_CHANNEL", V1_2;
        ///
        TensorQuant16Asymm = 12, "TENSOR_QUANT16_ASYMM", V1_2;
        ///
        TensorQuant8Symm = 13, "TENSOR_QUANT8_SYMM", V1_2;
        ///
        TensorQuant8AsymmSigned = 14, "TENSOR_QUANT8_ASYMM_SIGNED", V1_3;
        ///
        Subgraph = 15, "SUBGRAPH", V1_3;
        ///
        Oem = 10000, "OEM", V1_0;
        ///
        TensorOemByte = 10001, "TENSOR_OEM_BYTE", V1_0;
    }
}

impl OperandType {
    /// Whether it is a tensor type; `None` for an extension's type, which only the extension knows.
    pub const fn is_tensor(self) -> Option<bool> {
        match self {
            Self::Extension(_) => None,
            Self::Float32
            | Self::Int32
            | Self::Uint32
            | Self::Bool
            | Self::Float16
            | Self::Subgraph
            | Self::Oem => Some(false),
            _ => Some(true),
        }
    }

    /// Whether it is certainly a scalar type.
    pub const fn is_scalar(self) -> bool {
        matches!(self.is_tensor(), Some(false))
    }

    /// Bytes that one element takes; 0 for `SUBGRAPH` and `OEM`, `None` for an extension's type.
    pub const fn element_size(self) -> Option<u32> {
        Some(match self {
            Self::Float32
            | Self::Int32
            | Self::Uint32
            | Self::TensorFloat32
            | Self::TensorInt32 => 4,
            Self::TensorQuant16Symm
            | Self::TensorFloat16
            | Self::Float16
            | Self::TensorQuant16Asymm => 2,
            Self::TensorQuant8Asymm
            | Self::Bool
            | Self::TensorBool8
            | Self::TensorQuant8SymmPerChannel
            | Self::TensorQuant8Symm
            | Self::TensorQuant8AsymmSigned
            | Self::TensorOemByte => 1,
            Self::Subgraph | Self::Oem => 0,
            Self::Extension(_) => return None,
        })
    }

    /// Whether it is one of the two types that only a vendor can judge.
    pub const fn is_oem(self) -> bool {
        matches!(self, Self::Oem | Self::TensorOemByte)
    }

    /// The least and greatest stored value of a quantized tensor type.
    pub const fn quantized_range(self) -> Option<(i32, i32)> {
        match self {
            Self::TensorQuant8Asymm => Some((0, 255)),
            Self::TensorQuant8AsymmSigned
            | Self::TensorQuant8Symm
            | Self::TensorQuant8SymmPerChannel => Some((-128, 127)),
            Self::TensorQuant16Symm => Some((-32768, 32767)),
            Self::TensorQuant16Asymm => Some((0, 65535)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExtensionType;

    #[test]
    fn model_3_codes_just_outside_the_ranges_are_no_types() {
        for code in [16, 9999, 10002, 0xFFFF] {
            assert!(OperandType::from_code(code).is_err(), "{code}");
        }
    }

    #[test]
    fn ext_1_high_bits_make_an_extension_type() {
        let ty = OperandType::from_code(0x0002_0007).unwrap();
        assert_eq!(ty, OperandType::Extension(ExtensionType::new(2, 7).unwrap()));
        assert_eq!(ty.code(), 0x0002_0007);
        assert_eq!(ty.element_size(), None);
    }

    #[test]
    fn every_type_goes_there_and_back() {
        for ty in OperandType::FUNDAMENTAL.iter().copied() {
            assert_eq!(OperandType::from_code(ty.code()), Ok(ty));
            assert_eq!(OperandType::from_name(&ty.to_string()), Some(ty));
        }
        assert_eq!(OperandType::FUNDAMENTAL.iter().copied().count(), 18);
    }

    #[test]
    fn sizes_follow_section_1_of_the_contract() {
        let sizes: Vec<_> =
            OperandType::FUNDAMENTAL.iter().copied().map(|ty| ty.element_size().unwrap()).collect();
        assert_eq!(sizes, [4, 4, 4, 4, 4, 1, 1, 2, 2, 1, 2, 1, 2, 1, 1, 0, 0, 1]);
        let scalars: Vec<_> =
            OperandType::FUNDAMENTAL.iter().copied().filter(|ty| ty.is_scalar()).collect();
        assert_eq!(scalars.len(), 7);
    }
}
