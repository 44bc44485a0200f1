//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};
use nnhal_hal::{OperandSpec, OperationType as O};

impl GraphImporter<'_, '_> {
    pub(super) fn resize(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::ResizeBilinear => self.resize_image(operator, O::ResizeBilinear),
            B::ResizeNearestNeighbor => self.resize_image(operator, O::ResizeNearestNeighbor),
            _ => return None,
        })
    }

    fn resize_image(&mut self, operator: &Operator<'_>, operation: O) -> Imported {
        let (align_corners, half_pixel_centers) = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::ResizeBilinearOptions(options)) => {
                (options.align_corners()?, options.half_pixel_centers()?)
            }
            Some(BuiltinOptionsRef::ResizeNearestNeighborOptions(options)) => {
                (options.align_corners()?, options.half_pixel_centers()?)
            }
            _ => (false, false),
        };
        let [height, width] = *self.constant_integers(operator, 1)? else {
            return Err(Reason::new("its size is not height and width"));
        };
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        // The HAL has no 16-bit form.
        let is_wide = self.element(output)? == Element::Int16;
        let mut inputs = vec![
            if is_wide { self.as_float32(input)? } else { self.operand(input)? },
            self.builder.scalar_i32(width),
            self.builder.scalar_i32(height),
        ];
        // The layout flag is optional in one of the two only.
        if align_corners || half_pixel_centers || operation == O::ResizeNearestNeighbor {
            inputs.push(self.builder.scalar_bool(false));
        }
        if align_corners || half_pixel_centers {
            inputs.push(self.builder.scalar_bool(align_corners));
            inputs.push(self.builder.scalar_bool(half_pixel_centers));
        }
        if is_wide {
            let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
            let result = self.builder.operation(operation, inputs, spec);
            return self.emit_float32(result, output);
        }
        self.emit(operation, &inputs, output)
    }
}
