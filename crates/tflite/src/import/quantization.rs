//! QUANTIZE and DEQUANTIZE.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::file::Operator;
use crate::schema::BuiltinOperator as B;
use nnhal_hal::OperationType as O;

impl GraphImporter<'_, '_> {
    pub(super) fn quantization(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Quantize => self.quantize(operator),
            B::Dequantize => self.dequantize(operator),
            B::Densify => self.densify(operator),
            _ => return None,
        })
    }

    fn quantize(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        // From one scale to another the HAL goes through floats.
        let float = self.as_float32(input)?;
        self.emit_float32(float, output)
    }

    /// Sparse constants are made dense where they are read, so there is nothing left to do.
    fn densify(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let operand = self.operand(input)?;
        self.set(output, operand);
        Ok(())
    }

    fn dequantize(&mut self, operator: &Operator<'_>) -> Imported {
        let input = self.input_tensor(operator, 0)?;
        let operand = self.operand(input)?;
        match self.element(input)? {
            Element::Float16 => self.emit_for(operator, O::Cast, &[operand]),
            _ => self.emit_for(operator, O::Dequantize, &[operand]),
        }
    }
}
