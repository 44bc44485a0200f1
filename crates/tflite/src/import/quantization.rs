//! QUANTIZE, DEQUANTIZE and FAKE_QUANT.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::BuiltinOperator as B;
use nnhal_hal::{OperandSpec, OperandType, OperationType as O};

impl GraphImporter<'_, '_> {
    pub(super) fn quantization(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Quantize => self.quantize(operator),
            B::Dequantize => self.dequantize(operator),
            B::FakeQuant => self.fake_quant(operator),
            B::Densify => self.densify(operator),
            _ => return None,
        })
    }

    fn quantize(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        // From one scale to another the HAL goes through floats.
        let float = self.as_float32(input)?;
        if self.is_stored_by_channel(output) {
            if !self.element(input)?.is_float() {
                return Err(Reason::new("integers are quantized again with one scale only"));
            }
            return self.store_by_channel(float, output);
        }
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
        if self.has_other_channels(input)? {
            let real = self.as_float32(input)?;
            let output = self.output_tensor(operator, 0)?;
            return self.emit_float32(real, output);
        }
        let operand = self.operand(input)?;
        match self.element(input)? {
            element if element.is_float() || element.becomes_float32() => {
                self.emit_for(operator, O::Cast, &[operand])
            }
            _ => self.emit_for(operator, O::Dequantize, &[operand]),
        }
    }

    /// Real numbers, each the nearest of those that a quantized tensor would hold, one of which is 0. A range without 0
    /// is moved until 0 is its nearer end.
    fn fake_quant(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, FakeQuantOptions);
        let (min, max, bits) = (options.min()?, options.max()?, options.num_bits()?);
        if !(2..=16).contains(&bits) {
            return Err(Reason::new(format!("it has {bits} bits, expected 2 to 16")));
        }
        if !(min < max && (max - min).is_finite()) {
            return Err(Reason::new(format!(
                "its range is {min} to {max}, expected one of numbers"
            )));
        }
        #[allow(clippy::cast_precision_loss)] // Of 16 bits there is none.
        let most = ((1_u32 << bits) - 1) as f32;
        // A narrow range is without its least number, as that of weights.
        let first = if options.narrow_range()? { 1.0 } else { 0.0 };
        let scale = (max - min) / (most - first);
        let zero_point = (first - min / scale).clamp(first, most).round();
        let (least, greatest) = ((first - zero_point) * scale, (most - zero_point) * scale);

        let output = self.output_tensor(operator, 0)?;
        let spec = self.spec(output)?;
        let none = self.builder.scalar_i32(0);
        let [least, greatest, inverse, scale, half] = [least, greatest, 1.0 / scale, scale, 0.5]
            .map(|number| self.builder.constant(OperandSpec::tensor_float32([1]), &[number]));
        let input = self.input(operator, 0)?;
        let build = &mut self.builder;
        let clamped = build.operation(O::Maximum, [input, least], spec.clone());
        let clamped = build.operation(O::Minimum, [clamped, greatest], spec.clone());
        let shifted = build.operation(O::Sub, [clamped, least, none], spec.clone());
        let steps = build.operation(O::Mul, [shifted, inverse, none], spec.clone());
        // The nearest integer, of halves the greater one: adding a half before would round twice.
        let whole = build.operation(O::Floor, [steps], spec.clone());
        let rest = build.operation(O::Sub, [steps, whole, none], spec.clone());
        let truth = OperandSpec::new(OperandType::TensorBool8, spec.dimensions.clone());
        let is_up = build.operation(O::GreaterEqual, [rest, half], truth);
        let up = build.operation(O::Cast, [is_up], spec.clone());
        let nearest = build.operation(O::Add, [whole, up, none], spec.clone());
        let scaled = build.operation(O::Mul, [nearest, scale, none], spec);
        self.emit(O::Add, &[scaled, least, none], output)
    }
}
