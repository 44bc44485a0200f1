//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::{Operator, type_name};
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef};
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;

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
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let Ok(size) = self.constant_integers(operator, 1) else {
            let size = self.input(operator, 1)?;
            return self.resize_to(
                input,
                size,
                [align_corners, half_pixel_centers],
                operation,
                output,
            );
        };
        let [height, width] = *size else {
            return Err(Reason::new("its size is not height and width"));
        };
        if operation == O::ResizeNearestNeighbor && !self.has_resizing(output)? {
            let rule = Nearest { align_corners, half_pixel_centers };
            return self.gather_nearest(input, output, [height, width], rule);
        }
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

    /// The HAL's sizes are scalars, which nothing computes: our extension's is a tensor.
    fn resize_to(
        &mut self,
        input: usize,
        size: OperandId,
        [align_corners, half_pixel_centers]: [bool; 2],
        method: O,
        output: usize,
    ) -> Imported {
        if !self.has_resizing(output)? {
            let element = type_name(self.tensor(output).type_code);
            return Err(Reason::new(format!(
                "{element} is not resized to a size that is computed"
            )));
        }
        // LiteRT's bilinear form of 16 bits is computed by floats here, as with a size that is known.
        let is_wide = self.element(output)? == Element::Int16 && method == O::ResizeBilinear;
        let image = if is_wide { self.as_float32(input)? } else { self.operand(input)? };
        let inputs = [
            image,
            size,
            self.builder.scalar_i32(i32::from(method == O::ResizeNearestNeighbor)),
            self.builder.scalar_bool(align_corners),
            self.builder.scalar_bool(half_pixel_centers),
        ];
        if is_wide {
            let spec = OperandSpec::tensor_float32(self.spec(output)?.dimensions);
            let result = self.builder.extended(E::ResizeTo, inputs, spec);
            return self.emit_float32(result, output);
        }
        self.emit(E::ResizeTo.operation_type(), &inputs, output)
    }

    /// Whether the HAL resizes images of a tensor's type.
    fn has_resizing(&self, tensor: usize) -> Imported<bool> {
        let element = self.element(tensor)?;
        Ok(element.is_float() || element.is_quantized())
    }

    /// Pixels are taken row by row and column by column, as they are stored.
    fn gather_nearest(
        &mut self,
        input: usize,
        output: usize,
        lengths: [i32; 2],
        rule: Nearest,
    ) -> Imported {
        let [_, rows, columns, _] = *self.shape(input)? else {
            return Err(Reason::new("it is no image of 4 axes"));
        };
        let mut image = self.operand(input)?;
        let batch = self.builder.scalar_i32(0);
        for (axis, from, to) in [(1, rows, lengths[0]), (2_u8, columns, lengths[1])] {
            let to = u32::try_from(to).ok().filter(|to| *to > 0);
            let to = to.ok_or_else(|| Reason::new("its size is not above 0"))?;
            self.file.allow((to as usize).saturating_mul(4))?;
            let places = rule.places(from, to);
            let places = self.integer_vector(&places);
            let mut spec = self.builder.spec(image);
            spec.dimensions[usize::from(axis)] = to;
            let axis = self.builder.scalar_i32(axis.into());
            image = self.builder.extended(E::Gather, [image, axis, places, batch], spec);
        }
        self.set(output, image);
        Ok(())
    }
}

/// How a pixel becomes the nearest one of another size.
#[derive(Debug, Clone, Copy)]
struct Nearest {
    align_corners: bool,
    half_pixel_centers: bool,
}

impl Nearest {
    /// By place along an axis of the result: the place along that of the image.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // As LiteRT computes it.
    fn places(self, from: u32, to: u32) -> Vec<i32> {
        let scale = match self.align_corners && to > 1 {
            true => (from - 1) as f32 / (to - 1) as f32,
            false => from as f32 / to as f32,
        };
        let offset = if self.half_pixel_centers { 0.5 } else { 0.0 };
        let last = i32::try_from(from).unwrap_or(i32::MAX) - 1;
        let place = |at: u32| {
            let place = (at as f32 + offset) * scale;
            let whole = if self.align_corners { place.round() } else { place.floor() };
            (whole as i32).clamp(0, last)
        };
        (0..to).map(place).collect()
    }
}
