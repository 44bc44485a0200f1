//! What executions and devices answer.

use super::{ConversionError, Convert, all_from_canonical, all_to_canonical};
use crate::v1_2;

impl Convert for v1_2::OutputShape {
    type Canonical = hal::OutputShape;

    fn to_canonical(&self) -> Result<hal::OutputShape, ConversionError> {
        let Self { dimensions, is_sufficient } = self.clone();
        Ok(hal::OutputShape { dimensions, is_sufficient })
    }

    fn from_canonical(shape: &hal::OutputShape) -> Result<Self, ConversionError> {
        let hal::OutputShape { dimensions, is_sufficient } = shape.clone();
        Ok(Self { dimensions, is_sufficient })
    }
}

/// Fractions of microseconds are rounded up (contract: TIME-2).
impl Convert for v1_2::Timing {
    type Canonical = hal::Timing;

    fn to_canonical(&self) -> Result<hal::Timing, ConversionError> {
        Ok(hal::Timing::from_microseconds(self.time_on_device, self.time_in_driver))
    }

    fn from_canonical(timing: &hal::Timing) -> Result<Self, ConversionError> {
        let (time_on_device, time_in_driver) = timing.to_microseconds();
        Ok(Self { time_on_device, time_in_driver })
    }
}

impl Convert for v1_2::OperandTypeInformation {
    type Canonical = hal::ExtensionOperandType;

    fn to_canonical(&self) -> Result<hal::ExtensionOperandType, ConversionError> {
        let Self { operand_type: number, is_tensor, byte_size } = *self;
        Ok(hal::ExtensionOperandType { number, is_tensor, byte_size })
    }

    fn from_canonical(row: &hal::ExtensionOperandType) -> Result<Self, ConversionError> {
        let hal::ExtensionOperandType { number: operand_type, is_tensor, byte_size } = *row;
        Ok(Self { operand_type, is_tensor, byte_size })
    }
}

impl Convert for v1_2::Extension {
    type Canonical = hal::Extension;

    fn to_canonical(&self) -> Result<hal::Extension, ConversionError> {
        let operand_types = all_to_canonical(&self.operand_types)?;
        Ok(hal::Extension { name: self.name.clone(), operand_types })
    }

    fn from_canonical(extension: &hal::Extension) -> Result<Self, ConversionError> {
        let operand_types = all_from_canonical(&extension.operand_types)?;
        Ok(Self { name: extension.name.clone(), operand_types })
    }
}
