//! What the C API says of operands: their types as numbers, and how many bytes their values take.

use crate::devices::Devices;
use crate::error::{Error, Result};
use nnhal_hal::{DataLocation, ExtraParams, Operand, OperandLifeTime, OperandType};

/// The type of an operand as the C API writes it (`ANeuralNetworksOperandType`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperandDescription {
    /// The number of the element type, `OperandCode` or one of an extension.
    pub code: i32,
    /// Of a tensor: the length of each axis, 0 where unknown; empty if the rank is unknown too. Of a
    /// scalar: empty.
    pub dimensions: Vec<u32>,
    /// The step of a quantized type; 0 where the type has none.
    pub scale: f32,
    /// The stored value that stands for 0; 0 where the type has none.
    pub zero_point: i32,
}

impl OperandDescription {
    /// A tensor of a type without quantization.
    pub fn tensor(operand_type: OperandType, dimensions: impl Into<Vec<u32>>) -> Self {
        Self::quantized(operand_type, dimensions, 0.0, 0)
    }

    /// A tensor of float32 numbers.
    pub fn tensor_float32(dimensions: impl Into<Vec<u32>>) -> Self {
        Self::tensor(OperandType::TensorFloat32, dimensions)
    }

    /// A scalar.
    pub fn scalar(operand_type: OperandType) -> Self {
        Self::tensor(operand_type, [])
    }

    /// A tensor of a quantized type.
    pub fn quantized(
        operand_type: OperandType,
        dimensions: impl Into<Vec<u32>>,
        scale: f32,
        zero_point: i32,
    ) -> Self {
        let code = operand_type.code().cast_signed();
        Self { code, dimensions: dimensions.into(), scale, zero_point }
    }

    /// The operand so described, if there can be one; nothing else refers to it yet. Scale and zero point of a
    /// `TENSOR_INT32` are not looked at before its model is finished, as Android does it.
    ///
    /// # Errors
    /// `BAD_DATA`: the number is no type, or of an extension that no device describes; dimensions,
    /// scale or zero point do not go with the type.
    pub(crate) fn to_operand(&self, devices: &Devices) -> Result<Operand> {
        let operand_type = OperandType::from_code(self.code.cast_unsigned())
            .map_err(|error| Error::bad_data(error.to_string()))?;
        let operand = Operand {
            operand_type,
            dimensions: self.dimensions.clone(),
            number_of_consumers: 0,
            scale: self.scale,
            zero_point: self.zero_point,
            lifetime: OperandLifeTime::TemporaryVariable,
            location: DataLocation::default(),
            extra_params: ExtraParams::None,
        };
        let wrong = |what: &dyn std::fmt::Display| {
            Err(Error::bad_data(format!("an operand of type {operand_type}: {what}")))
        };
        if let OperandType::Extension(extension) = operand_type {
            let Some(known) = devices.extensions().operand_type(extension) else {
                return wrong(&"no device describes this type of an extension");
            };
            if !known.is_tensor && !self.dimensions.is_empty() {
                return wrong(&format!("it is a scalar, but has dimensions {:?}", self.dimensions));
            }
            let known_lengths = self.dimensions.iter().filter(|length| **length != 0);
            let size = known_lengths.copied().try_fold(known.byte_size, u32::checked_mul);
            if size.is_none() {
                return wrong(&format!("dimensions {:?} are too large", self.dimensions));
            }
        }
        let mut checked = operand.clone();
        if operand_type == OperandType::TensorInt32 {
            (checked.scale, checked.zero_point) = (0.0, 0);
        }
        match nnhal_ops::validate::check_type(&checked) {
            Ok(()) => Ok(operand),
            Err(error) => wrong(&error),
        }
    }
}

/// Whether a type is a tensor type. Of types of extensions their devices say so; what no device
/// describes is taken for a tensor.
pub(crate) fn is_tensor(devices: &Devices, operand_type: OperandType) -> bool {
    match operand_type {
        OperandType::Extension(extension) => {
            devices.extensions().operand_type(extension).is_none_or(|known| known.is_tensor)
        }
        known => !known.is_scalar(),
    }
}

/// Bytes of a value, if its dimensions are all known and not 0, and it has no more than 32 bits can
/// count; `None` also for types whose values only a vendor can measure.
pub(crate) fn byte_size(
    devices: &Devices,
    operand_type: OperandType,
    dimensions: &[u32],
) -> Option<u32> {
    let (element, is_tensor) = match operand_type {
        OperandType::Extension(extension) => {
            let known = devices.extensions().operand_type(extension)?;
            (known.byte_size, known.is_tensor)
        }
        known => (known.element_size()?, !known.is_scalar()),
    };
    if element == 0 {
        return None;
    }
    if !is_tensor {
        return Some(element);
    }
    if !is_fully_specified(dimensions) {
        return None;
    }
    dimensions.iter().copied().try_fold(element, u32::checked_mul)
}

/// Whether rank and all lengths of a tensor are known.
pub(crate) fn is_fully_specified(dimensions: &[u32]) -> bool {
    !dimensions.is_empty() && !dimensions.contains(&0)
}

/// What two partial shapes say together; `None` if they contradict each other.
pub(crate) fn combine_dimensions(one: &[u32], other: &[u32]) -> Option<Vec<u32>> {
    if one.is_empty() {
        return Some(other.to_vec());
    }
    if other.is_empty() {
        return Some(one.to_vec());
    }
    if one.len() != other.len() {
        return None;
    }
    let combine = |(one, other): (&u32, &u32)| match (*one, *other) {
        (0, length) | (length, 0) => Some(length),
        (one, other) if one == other => Some(one),
        _ => None,
    };
    one.iter().zip(other).map(combine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_shapes_combine() {
        assert_eq!(combine_dimensions(&[], &[2, 0]), Some(vec![2, 0]));
        assert_eq!(combine_dimensions(&[2, 0], &[]), Some(vec![2, 0]));
        assert_eq!(combine_dimensions(&[2, 0], &[0, 3]), Some(vec![2, 3]));
        assert_eq!(combine_dimensions(&[2], &[3]), None);
        assert_eq!(combine_dimensions(&[2], &[2, 1]), None);
    }

    #[test]
    fn sizes_are_known_with_the_dimensions() {
        let devices = Devices::new([]);
        let size = |operand_type, dimensions: &[u32]| byte_size(&devices, operand_type, dimensions);
        assert_eq!(size(OperandType::TensorFloat32, &[2, 3]), Some(24));
        assert_eq!(size(OperandType::TensorFloat32, &[2, 0]), None);
        assert_eq!(size(OperandType::TensorFloat32, &[]), None);
        assert_eq!(size(OperandType::Float16, &[]), Some(2));
        assert_eq!(size(OperandType::Oem, &[]), None);
        assert_eq!(size(OperandType::TensorInt32, &[1 << 31]), None);
    }

    #[test]
    fn wrong_descriptions_are_refused() {
        let devices = Devices::new([]);
        let refused = [
            OperandDescription { code: 16, ..OperandDescription::default() },
            OperandDescription { code: -1, ..OperandDescription::default() },
            OperandDescription { code: 0x1_0000, ..OperandDescription::default() },
            OperandDescription::tensor(OperandType::Float32, [1]),
            OperandDescription::quantized(OperandType::TensorFloat32, [1], 1.0, 0),
            OperandDescription::quantized(OperandType::TensorQuant8Asymm, [1], 0.0, 0),
            OperandDescription::quantized(OperandType::TensorQuant8Asymm, [1], 1.0, 256),
            OperandDescription::tensor_float32([1 << 30]),
        ];
        for description in refused {
            let error = description.to_operand(&devices).unwrap_err();
            assert_eq!(error.code(), crate::ResultCode::BadData, "{description:?}");
        }
        assert!(OperandDescription::tensor_float32([0, 2]).to_operand(&devices).is_ok());
    }
}
