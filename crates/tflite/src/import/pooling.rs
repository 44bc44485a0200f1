//! AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D.

use super::operand::{Activation, padding_scheme};
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::BuiltinOperator as B;
use nnhal_hal::{OperandSpec, OperationType as O};

impl GraphImporter<'_, '_> {
    pub(super) fn pooling(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::AveragePool2d => self.pool(operator, O::AveragePool2d),
            B::MaxPool2d => self.pool(operator, O::MaxPool2d),
            B::L2Pool2d => self.pool(operator, O::L2Pool2d),
            _ => return None,
        })
    }

    fn pool(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let options = options!(operator, Pool2DOptions);
        let output = self.output_tensor(operator, 0)?;
        let activation = Activation::of(options.fused_activation_function()?)?;
        // The HAL has no 16-bit form.
        let is_wide = self.element(output)? == Element::Int16;
        let input = self.input_tensor(operator, 0)?;
        let input = if is_wide { self.as_float32(input)? } else { self.operand(input)? };
        let inputs = [
            input,
            self.builder.scalar_i32(padding_scheme(options.padding()?)),
            self.builder.scalar_i32(options.stride_w()?),
            self.builder.scalar_i32(options.stride_h()?),
            self.builder.scalar_i32(options.filter_width()?),
            self.builder.scalar_i32(options.filter_height()?),
            self.activation_operand(activation),
        ];
        if is_wide && activation != Activation::Tanh {
            let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
            let result = self.builder.operation(operation, inputs, spec);
            return self.emit_float32(result, output);
        }
        self.emit_activated(operator, operation, &inputs, activation)
    }
}
