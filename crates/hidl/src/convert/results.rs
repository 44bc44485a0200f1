//! What executions and devices answer.

use super::{ConversionError, Convert, all_from_canonical, all_to_canonical};
use crate::v1_2;

impl Convert for v1_2::OutputShape {
    type Canonical = nnhal_hal::OutputShape;

    fn to_canonical(&self) -> Result<nnhal_hal::OutputShape, ConversionError> {
        let Self { dimensions, is_sufficient } = self.clone();
        Ok(nnhal_hal::OutputShape { dimensions, is_sufficient })
    }

    fn from_canonical(shape: &nnhal_hal::OutputShape) -> Result<Self, ConversionError> {
        let nnhal_hal::OutputShape { dimensions, is_sufficient } = shape.clone();
        Ok(Self { dimensions, is_sufficient })
    }
}

/// Fractions of microseconds are rounded up (contract: TIME-2).
impl Convert for v1_2::Timing {
    type Canonical = nnhal_hal::Timing;

    fn to_canonical(&self) -> Result<nnhal_hal::Timing, ConversionError> {
        Ok(nnhal_hal::Timing::from_microseconds(self.time_on_device, self.time_in_driver))
    }

    fn from_canonical(timing: &nnhal_hal::Timing) -> Result<Self, ConversionError> {
        let (time_on_device, time_in_driver) = timing.to_microseconds();
        Ok(Self { time_on_device, time_in_driver })
    }
}

impl Convert for v1_2::OperandTypeInformation {
    type Canonical = nnhal_hal::ExtensionOperandType;

    fn to_canonical(&self) -> Result<nnhal_hal::ExtensionOperandType, ConversionError> {
        let Self { operand_type: number, is_tensor, byte_size } = *self;
        Ok(nnhal_hal::ExtensionOperandType { number, is_tensor, byte_size })
    }

    fn from_canonical(row: &nnhal_hal::ExtensionOperandType) -> Result<Self, ConversionError> {
        let nnhal_hal::ExtensionOperandType { number: operand_type, is_tensor, byte_size } = *row;
        Ok(Self { operand_type, is_tensor, byte_size })
    }
}

impl Convert for v1_2::Extension {
    type Canonical = nnhal_hal::Extension;

    fn to_canonical(&self) -> Result<nnhal_hal::Extension, ConversionError> {
        let operand_types = all_to_canonical(&self.operand_types)?;
        Ok(nnhal_hal::Extension { name: self.name.clone(), operand_types })
    }

    fn from_canonical(extension: &nnhal_hal::Extension) -> Result<Self, ConversionError> {
        let operand_types = all_from_canonical(&extension.operand_types)?;
        Ok(Self { name: extension.name.clone(), operand_types })
    }
}
