//! [`Tensor`]: a value with its type and shape, as files and tables show it.

use hal::OperandType;
use half::f16;

/// A value of an input or output.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// The element type.
    pub operand_type: OperandType,
    /// The exact dimensions.
    pub dimensions: Vec<u32>,
    /// The step of a quantised type, else 0.
    pub scale: f32,
    /// The stored value that stands for 0.
    pub zero_point: i32,
    /// Little-endian elements.
    pub bytes: Vec<u8>,
}

/// The numbers that a table shows of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Summary {
    /// The least element.
    pub min: f64,
    /// The greatest element.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

impl Tensor {
    /// The real numbers that the elements stand for.
    pub fn reals(&self) -> Vec<f64> {
        let stored = conformance::compare::elements(self.operand_type, &self.bytes);
        if self.operand_type.quantized_range().is_none() || self.scale == 0.0 {
            return stored;
        }
        let (scale, zero_point) = (f64::from(self.scale), f64::from(self.zero_point));
        stored.into_iter().map(|stored| (stored - zero_point) * scale).collect()
    }

    /// `None` for a tensor without elements.
    pub fn summary(&self) -> Option<Summary> {
        let reals = self.reals();
        let count = u32::try_from(reals.len()).ok().filter(|count| *count > 0)?;
        let fold = |pick: fn(f64, f64) -> f64| reals.iter().copied().reduce(pick);
        Some(Summary {
            min: fold(f64::min)?,
            max: fold(f64::max)?,
            mean: reals.iter().sum::<f64>() / f64::from(count),
        })
    }

    /// Stores real numbers: floats as they are, quantised types rounded to the nearest step.
    pub fn from_reals(
        operand_type: OperandType,
        dimensions: Vec<u32>,
        (scale, zero_point): (f32, i32),
        reals: impl IntoIterator<Item = f32>,
    ) -> Self {
        let mut bytes = Vec::new();
        for real in reals {
            store(operand_type, scale, zero_point, real, &mut bytes);
        }
        Self { operand_type, dimensions, scale, zero_point, bytes }
    }
}

/// Appends one real number as an element. Casts of floats to integers saturate.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn store(operand_type: OperandType, scale: f32, zero_point: i32, real: f32, bytes: &mut Vec<u8>) {
    match operand_type {
        OperandType::TensorFloat32 | OperandType::Float32 => {
            bytes.extend_from_slice(&real.to_le_bytes());
        }
        OperandType::TensorFloat16 | OperandType::Float16 => {
            bytes.extend_from_slice(&f16::from_f32(real).to_le_bytes());
        }
        OperandType::TensorInt32 | OperandType::Int32 | OperandType::Uint32 => {
            bytes.extend_from_slice(&(real as i32).to_le_bytes());
        }
        OperandType::TensorBool8 | OperandType::Bool => bytes.push(u8::from(real != 0.0)),
        quantized => {
            let range = quantized.quantized_range().unwrap_or((0, 255));
            let scale = if scale == 0.0 { 1.0 } else { scale };
            let stored = ops::rules::requantize::quantize(real, scale, zero_point, range);
            match quantized.element_size() {
                Some(2) => bytes.extend_from_slice(&(stored as u16).to_le_bytes()),
                _ => bytes.push(stored as u8),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantised_tensors_are_shown_as_real_numbers() {
        let tensor = Tensor::from_reals(
            OperandType::TensorQuant8AsymmSigned,
            vec![3],
            (0.5, -10),
            [0.0, 1.0, -100.0],
        );
        assert_eq!(tensor.bytes, [(-10_i8).cast_unsigned(), (-8_i8).cast_unsigned(), 0x80]);
        assert_eq!(tensor.reals(), [0.0, 1.0, -59.0]);
        let summary = tensor.summary().unwrap();
        assert!((summary.max - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_empty_tensor_has_no_summary() {
        let tensor =
            Tensor::from_reals(OperandType::TensorFloat32, vec![0], (0.0, 0), std::iter::empty());
        assert_eq!(tensor.summary(), None);
    }
}
