//! [`Convolution`] of 8-bit images.

mod packed;
mod portable;
mod stage;
pub(super) mod table;
#[cfg(test)]
mod tests;

use super::gemm::Variant;
use super::{Activations, Requantization, Weights};
use crate::convolution::Shape;
use crate::image::values_needed;
use crate::{Image, ImageMut, Line, Preparation, Team};
use packed::Packed;
use portable::Portable;

/// A convolution with constant weights, prepared for an instruction set. Also the product of a matrix
/// with constant weights: see [`Convolution::fully_connected`].
#[derive(Debug)]
pub struct Convolution {
    shape: Shape,
    kernel: Kernel,
}

#[derive(Debug)]
enum Kernel {
    Portable(Portable),
    Packed(Box<Packed>),
}

impl Convolution {
    /// Packs the weights `[output_channels, filter[0], filter[1], input_channels / groups]` and cuts
    /// the work. Input pixels in the padding are the zero point.
    ///
    /// # Panics
    /// If the shape is not valid; if there are not as many weights and biases as it says; if a number
    /// is out of its type's range; if this processor does not have the instruction set.
    pub fn prepare(
        shape: &Shape,
        weights: Weights<'_>,
        bias: &[i32],
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Self {
        shape.check();
        weights.check(shape.filter_values(), preparation);
        assert_eq!(bias.len(), shape.output_channels, "biases");
        activations.check();
        requantization.check(shape.output_channels, activations.signedness);
        let packed = Variant::of(preparation.set()).and_then(|variant| {
            Packed::new(shape, weights, bias, activations, &requantization, variant, preparation)
        });
        let kernel = match packed {
            Some(packed) => Kernel::Packed(Box::new(packed)),
            None => Kernel::Portable(Portable::new(
                shape,
                weights,
                bias,
                activations,
                requantization,
                preparation,
            )),
        };
        Self { shape: *shape, kernel }
    }

    /// The product of `rows` rows of `inputs` numbers with weights `[units, inputs]`, for
    /// FULLY_CONNECTED: a row is a pixel of the input and of the output.
    ///
    /// # Panics
    /// As of [`Self::prepare`].
    pub fn fully_connected(
        [rows, inputs, units]: [usize; 3],
        weights: Weights<'_>,
        bias: &[i32],
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Self {
        let shape = Shape {
            batch: 1,
            input: [rows, 1],
            input_channels: inputs,
            output: [rows, 1],
            output_channels: units,
            filter: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            padding_before: [0, 0],
            groups: 1,
        };
        Self::prepare(&shape, weights, bias, activations, requantization, preparation)
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Which kernel was chosen.
    pub fn kernel(&self) -> &'static str {
        match &self.kernel {
            Kernel::Portable(_) => "portable",
            Kernel::Packed(packed) => packed.name(),
        }
    }

    /// Bytes of scratch memory that a run wants.
    pub fn scratch_bytes(&self) -> usize {
        match &self.kernel {
            Kernel::Portable(_) => 0,
            Kernel::Packed(packed) => packed.scratch_bytes(),
        }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If an image or the scratch memory is too small.
    pub fn run(
        &self,
        team: &mut Team,
        input: Image<'_, u8>,
        output: ImageMut<'_, u8>,
        scratch: &mut [Line],
    ) {
        let shape = &self.shape;
        let needed = values_needed(shape.input_pixels(), shape.input_channels, input.pixel_stride);
        assert!(input.values.len() >= needed, "the input is too small");
        let needed =
            values_needed(shape.output_pixels(), shape.output_channels, output.pixel_stride);
        assert!(output.values.len() >= needed, "the output is too small");
        match &self.kernel {
            Kernel::Portable(portable) => portable.run(shape, team, input, output),
            Kernel::Packed(packed) => packed.run(shape, team, input, output, scratch),
        }
    }
}
