//! The words of the extension: what its client and its driver agree upon. A vendor ships this part
//! to the authors of applications.

use nnhal_hal::{
    Extension, ExtensionOperandType, ExtensionType, Model, OperandType, OperationType,
};

/// The extension's name: the vendor's domain in reverse, then what it is (contract: DEV-EXT-2).
pub const EXTENSION_NAME: &str = "com.example.fibonacci";

/// What a device that offers the extension says of it. Operations are not listed: whoever offers
/// the extension can do all of them (contract: DEV-EXT-1).
pub fn extension() -> Extension {
    let operand_type = |number, is_tensor| ExtensionOperandType { number, is_tensor, byte_size: 8 };
    Extension {
        name: EXTENSION_NAME.to_owned(),
        operand_types: vec![
            operand_type(Vocabulary::TENSOR_UINT64, true),
            operand_type(Vocabulary::UINT64, false),
        ],
    }
}

/// The extension's types and operations as one model writes them: every model chooses a prefix
/// for each extension that it uses, so the same type has another code in another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vocabulary {
    /// Any word with the model's prefix; its number does not matter.
    prefixed: ExtensionType,
}

impl Vocabulary {
    const TENSOR_UINT64: u16 = 0;
    const UINT64: u16 = 1;
    const FIBONACCI: u16 = 0;
    const TO_FLOAT32: u16 = 1;

    /// With this prefix; `None` for 0, which is the interface's own.
    pub fn with_prefix(prefix: u16) -> Option<Self> {
        ExtensionType::new(prefix, 0).map(|prefixed| Self { prefixed })
    }

    /// As a model has it; `None` if the model does not use the extension.
    pub fn of(model: &Model) -> Option<Self> {
        model.extension_named(EXTENSION_NAME).map(|prefixed| Self { prefixed })
    }

    /// What models say stands for the extension.
    pub fn prefix(self) -> u16 {
        self.prefixed.prefix()
    }

    /// Type 0: a tensor of unsigned integers of 64 bits.
    pub fn tensor_uint64(self) -> OperandType {
        OperandType::Extension(self.prefixed.with_number(Self::TENSOR_UINT64))
    }

    /// Type 1: an unsigned integer of 64 bits.
    pub fn uint64(self) -> OperandType {
        OperandType::Extension(self.prefixed.with_number(Self::UINT64))
    }

    /// Operation 0, see [`Fibonacci`](crate::operations::Fibonacci).
    pub fn fibonacci(self) -> OperationType {
        OperationType::Extension(self.prefixed.with_number(Self::FIBONACCI))
    }

    /// Operation 1, see [`ToFloat32`](crate::operations::ToFloat32).
    pub fn to_float32(self) -> OperationType {
        OperationType::Extension(self.prefixed.with_number(Self::TO_FLOAT32))
    }
}
