//! MEAN, SUM, REDUCE_*, ARG_MAX, ARG_MIN, TOPK_V2.

use super::movement::non_negative_axis;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;

impl GraphImporter<'_, '_> {
    pub(super) fn reduction(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Mean => self.mean(operator),
            B::Sum => self.reduce(operator, O::ReduceSum, true),
            B::ReduceProd => self.reduce(operator, O::ReduceProd, true),
            B::ReduceMax => self.reduce(operator, O::ReduceMax, false),
            B::ReduceMin => self.reduce(operator, O::ReduceMin, false),
            B::ReduceAny => self.reduce(operator, O::ReduceAny, false),
            B::ReduceAll => self.reduce(operator, O::ReduceAll, false),
            B::ArgMax => self.arg(operator, O::Argmax),
            B::ArgMin => self.arg(operator, O::Argmin),
            B::TopkV2 => self.top_k(operator),
            _ => return None,
        })
    }

    fn keeps_axes(operator: &Operator<'_>) -> Imported<bool> {
        Ok(match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::ReducerOptions(options)) => options.keep_dims()?,
            _ => false,
        })
    }

    fn mean(&mut self, operator: &Operator<'_>) -> Imported {
        let keep = Self::keeps_axes(operator)?;
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let axes = self.input(operator, 1)?;
        let keep = self.builder.scalar_i32(i32::from(keep));
        let (of_input, of_output) = (self.spec(input)?, self.spec(output)?);
        #[allow(clippy::float_cmp)] // Either the file repeats the number or it does not.
        let is_same = of_input.scale == of_output.scale
            && of_input.zero_point == of_output.zero_point
            && of_input.operand_type == of_output.operand_type;
        if is_same {
            let inputs = [self.operand(input)?, axes, keep];
            return self.emit(O::Mean, &inputs, output);
        }
        let float = self.as_float32(input)?;
        let spec = OperandSpec::tensor_float32(of_output.dimensions);
        let result = self.builder.operation(O::Mean, [float, axes, keep], spec);
        self.emit_float32(result, output)
    }

    /// A reduction; sums and products the HAL has for floats only.
    fn reduce(&mut self, operator: &Operator<'_>, operation: O, float_only: bool) -> Imported {
        let keep = Self::keeps_axes(operator)?;
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let axes = self.input(operator, 1)?;
        let keep = self.builder.scalar_bool(keep);
        let element = self.element(input)?;
        match element {
            _ if float_only && element.is_quantized() => {
                let float = self.as_float32(input)?;
                let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
                let result = self.builder.operation(operation, [float, axes, keep], spec);
                self.emit_float32(result, output)
            }
            _ => {
                let inputs = [self.operand(input)?, axes, keep];
                self.emit(operation, &inputs, output)
            }
        }
    }

    fn arg(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let input = self.input_tensor(operator, 0)?;
        let axis = self.constant_integer(operator, 1)?;
        let axis = non_negative_axis(axis, self.rank(input))?;
        let inputs = [self.operand(input)?, self.builder.scalar_i32(axis)];
        let output = self.output_tensor(operator, 0)?;
        if self.element(output)? == Element::Int32 {
            return self.emit(operation, &inputs, output);
        }
        // The HAL counts with 32 bits.
        let spec = OperandSpec::tensor_int32(self.spec(output)?.dimensions);
        let index = self.builder.operation(operation, inputs, spec);
        self.emit(O::Cast, &[index], output)
    }

    fn top_k(&mut self, operator: &Operator<'_>) -> Imported {
        let input = self.input(operator, 0)?;
        // Of equal elements the HAL gives the last first, the format the first.
        let (operation, count) = match self.constant_integer(operator, 1) {
            Ok(count @ 1..) => (E::TopkV2, self.builder.scalar_i32(count)),
            // The HAL's count is a scalar above 0, which nothing computes: our extension's is a tensor.
            _ => (E::TopK, self.computed_count(operator)?),
        };
        let (values, indices) =
            (self.output_tensor(operator, 0)?, self.output_tensor(operator, 1)?);
        let [mut of_values, mut of_indices] = [self.spec(values)?, self.spec(indices)?];
        if operation == E::TopK
            && let Some([others @ .., _]) = self.shapes[self.input_tensor(operator, 0)?].as_deref()
        {
            // Only how many there are is open.
            of_values.dimensions = [others, &[0]].concat();
            of_indices.dimensions.clone_from(&of_values.dimensions);
        }
        let counted = OperandSpec::tensor_int32(of_indices.dimensions.clone());
        let specs = [of_values, counted.clone()];
        let results =
            self.builder.operation_with_outputs(operation.operation_type(), [input, count], specs);
        self.set(values, results[0]);
        if of_indices == counted {
            self.set(indices, results[1]);
            return Ok(());
        }
        self.emit(O::Cast, &[results[1]], indices)
    }

    /// The number of elements that TOPK_V2 takes, as a tensor of 32 bits.
    fn computed_count(&mut self, operator: &Operator<'_>) -> Imported<OperandId> {
        let tensor = self.input_tensor(operator, 1)?;
        let count = self.operand(tensor)?;
        if self.element(tensor)? != Element::Int16 {
            return Ok(count);
        }
        let spec = OperandSpec::tensor_int32(self.builder.spec(count).dimensions);
        Ok(self.builder.operation(O::Cast, [count], spec))
    }
}
