//! SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION.

use super::movement::{MOST_RANK, elements};
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
            _ => 0.0,
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
        let is_same_type = of_input.operand_type == spec.operand_type;
        let is_wide = self.rank(input) > MOST_RANK;
        if fixed == Some((spec.scale, spec.zero_point)) && is_same_type && beta != 0.0 {
            let beta_operand = self.scalar_beside(input, beta)?;
            let operand = self.operand(input)?;
            if !is_wide {
                return self.emit(O::Softmax, &[operand, beta_operand], output);
            }
            let rows = self.rows_along_last(operand)?;
            let result = OperandSpec { dimensions: self.builder.spec(rows).dimensions, ..spec };
            let result = self.builder.operation(O::Softmax, [rows, beta_operand], result);
            return self.reshape_to(result, output);
        }
        let mut float = self.as_float32(input)?;
        let is_flat = beta == 0.0;
        if is_flat {
            // Files without a beta have one of 0, which the HAL does not take: it makes numbers 0, and others NaN.
            let spec = self.builder.spec(float);
            let zero = self.builder.constant(OperandSpec::tensor_float32([1]), &[0.0_f32]);
            let none = self.builder.scalar_i32(0);
            float = self.builder.operation(O::Mul, [float, zero, none], spec);
        }
        let beta = self.builder.scalar_f32(if is_flat { 1.0 } else { beta });
        if spec.operand_type == OperandType::TensorQuant16Symm && spec.zero_point != 0 {
            return self.softmax_with_zero_point(float, beta, output, spec);
        }
        self.of_rows(O::Softmax, float, [beta], output)
    }

    /// A SOFTMAX whose result has 16 bits and a zero point, which the HAL has not: the same bits are those of numbers that
    /// are less by what the zero point stands for. They are right for callers only, who know the zero point.
    fn softmax_with_zero_point(
        &mut self,
        float: OperandId,
        beta: OperandId,
        output: usize,
        spec: OperandSpec,
    ) -> Imported {
        let mut readers = self.graph.operators.iter().flat_map(|it| &it.inputs);
        if readers.any(|input| *input == Some(output)) || !self.is_main() {
            return Err(Reason::new(format!(
                "its result is INT16 with zero point {}, which the HAL has as an output only",
                spec.zero_point
            )));
        }
        let rows = self.rows_along_last(float)?;
        let of_rows = self.builder.spec(rows);
        let result = self.builder.operation(O::Softmax, [rows, beta], of_rows.clone());
        #[allow(clippy::cast_precision_loss)] // Numbers of 16 bits, or it is refused below.
        let zero = spec.scale * spec.zero_point as f32;
        let zero = self.builder.constant(OperandSpec::tensor_float32([1]), &[zero]);
        let none = self.builder.scalar_i32(0);
        let moved = self.builder.operation(O::Add, [result, zero, none], of_rows);
        let moved = self.reshape(moved, OperandSpec::tensor_float32(spec.dimensions.clone()))?;
        let stored = OperandSpec { zero_point: 0, ..spec };
        let stored = self.builder.operation(O::Quantize, [moved], stored);
        self.set(output, stored);
        Ok(())
    }

    fn log_softmax(&mut self, operator: &Operator<'_>) -> Imported {
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let arguments = [self.builder.scalar_f32(1.0), self.builder.scalar_i32(-1)];
        let float = self.as_float32(input)?;
        self.of_rows(O::LogSoftmax, float, arguments, output)
    }

    /// An operation along the last axis of floats, whatever the result's type is.
    fn of_rows<const N: usize>(
        &mut self,
        operation: O,
        float: OperandId,
        arguments: [OperandId; N],
        output: usize,
    ) -> Imported {
        let rows = self.rows_along_last(float)?;
        let of_output = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
        let is_wide = rows != float;
        let result = if is_wide { self.builder.spec(rows) } else { of_output.clone() };
        let inputs: Vec<OperandId> = std::iter::once(rows).chain(arguments).collect();
        let mut result = self.builder.operation(operation, inputs, result);
        if is_wide {
            result = self.reshape(result, of_output)?;
        }
        self.emit_float32(result, output)
    }

    /// A tensor, or a matrix of its rows if it has more axes than most operations take.
    fn rows_along_last(&mut self, operand: OperandId) -> Imported<OperandId> {
        let spec = self.builder.spec(operand);
        let Some((columns, outer)) =
            spec.dimensions.split_last().filter(|it| it.1.len() >= MOST_RANK)
        else {
            return Ok(operand);
        };
        let count = if outer.contains(&0) { 0 } else { elements(outer)? };
        let rows = OperandSpec { dimensions: vec![count, *columns], ..spec };
        self.reshape(operand, rows)
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
        let options = options!(operator, LocalResponseNormalizationOptions);
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
