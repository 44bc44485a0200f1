//! SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};
use half::f16;
use nnhal_hal::{OperandId, OperandSpec, OperandType, OperationType as O};

impl GraphImporter<'_, '_> {
    pub(super) fn normalization(
        &mut self,
        builtin: B,
        operator: &Operator<'_>,
    ) -> Option<Imported> {
        Some(match builtin {
            B::Softmax => self.softmax(operator),
            B::LogSoftmax => self.log_softmax(operator),
            B::L2Normalization => self.l2_normalization(operator),
            B::LocalResponseNormalization => self.local_response_normalization(operator),
            _ => return None,
        })
    }

    /// A float scalar in the type that goes with a tensor.
    fn scalar_beside(&mut self, tensor: usize, value: f32) -> Imported<OperandId> {
        Ok(match self.element(tensor)? {
            Element::Float16 => self
                .builder
                .constant(OperandSpec::scalar(OperandType::Float16), &[f16::from_f32(value)]),
            _ => self.builder.scalar_f32(value),
        })
    }

    fn softmax(&mut self, operator: &Operator<'_>) -> Imported {
        let beta = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::SoftmaxOptions(options)) => options.beta()?,
            _ => 1.0,
        };
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let spec = self.spec(output)?;
        let of_input = self.spec(input)?;
        let fixed = match spec.operand_type {
            OperandType::TensorQuant8Asymm => Some((1.0 / 256.0, 0)),
            OperandType::TensorQuant8AsymmSigned => Some((1.0 / 256.0, -128)),
            OperandType::TensorQuant16Symm => None,
            _ => Some((spec.scale, spec.zero_point)),
        };
        let beta_operand = self.scalar_beside(input, beta)?;
        let is_same_type = of_input.operand_type == spec.operand_type;
        if fixed == Some((spec.scale, spec.zero_point)) && is_same_type {
            let inputs = [self.operand(input)?, beta_operand];
            return self.emit(O::Softmax, &inputs, output);
        }
        let float = self.as_float32(input)?;
        let beta = self.builder.scalar_f32(beta);
        let result = OperandSpec::tensor_float32(spec.dimensions);
        let result = self.builder.operation(O::Softmax, [float, beta], result);
        self.emit_float32(result, output)
    }

    fn log_softmax(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let float = self.as_float32(input)?;
        let inputs = [float, self.builder.scalar_f32(1.0), self.builder.scalar_i32(-1)];
        let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
        let result = self.builder.operation(O::LogSoftmax, inputs, spec);
        self.emit_float32(result, output)
    }

    fn l2_normalization(&mut self, operator: &Operator<'_>) -> Imported {
        if let Some(BuiltinOptionsRef::L2NormOptions(options)) = operator.table.builtin_options()?
            && options.fused_activation_function()? != crate::schema::ActivationFunctionType::None
        {
            return Err(Reason::new("the HAL fuses no activation with it"));
        }
        let input = self.input(operator, 0)?;
        self.emit_for(operator, O::L2Normalization, &[input])
    }

    fn local_response_normalization(&mut self, operator: &Operator<'_>) -> Imported {
        let Some(BuiltinOptionsRef::LocalResponseNormalizationOptions(options)) =
            operator.table.builtin_options()?
        else {
            return Err(Reason::new("it has no options"));
        };
        let input = self.input_tensor(operator, 0)?;
        let inputs = [
            self.operand(input)?,
            self.builder.scalar_i32(options.radius()?),
            self.scalar_beside(input, options.bias()?)?,
            self.scalar_beside(input, options.alpha()?)?,
            self.scalar_beside(input, options.beta()?)?,
        ];
        self.emit_for(operator, O::LocalResponseNormalization, &inputs)
    }
}
