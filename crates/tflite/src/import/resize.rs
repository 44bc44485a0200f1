//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};
use nnhal_hal::OperationType as O;

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
        let mut inputs = vec![
            self.input(operator, 0)?,
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
        self.emit_for(operator, operation, &inputs)
    }
}
