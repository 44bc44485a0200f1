//! [`Depthwise`] convolution of images of quantized values.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod columns;
#[cfg(target_arch = "aarch64")]
mod neon;
mod packed;
mod packing;
mod pixels;
mod prepared;
mod problem;
#[cfg(target_arch = "aarch64")]
mod sdot;
#[cfg(test)]
mod tests;
mod variant;

use crate::convolution::Shape;
use crate::convolution::quantized::Convolution;
use crate::quantization::{Activations, Signedness, Weights};
use crate::requantize::Requantization;
use crate::{Image, ImageMut, Line, Preparation, Team, TooLarge};
use packed::Packed;

/// A depthwise convolution with constant weights, prepared for an instruction set.
#[derive(Debug)]
pub struct Depthwise {
    shape: Shape,
    signedness: Signedness,
    kernel: Kernel,
}

#[derive(Debug)]
enum Kernel {
    General(Convolution),
    Packed(Packed),
}

impl Depthwise {
    /// Packs the weights `[1, filter[0], filter[1], output_channels]` and cuts the work. The shape has
    /// as many groups as input channels; several output channels of a group, one behind the other,
    /// see the same input. Input pixels in the padding are the zero point.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not valid or has not as many groups as input channels; if there are not as many
    /// weights and biases as it says; if a number is out of its type's range; if this processor does
    /// not have the instruction set.
    pub fn prepare(
        shape: &Shape,
        weights: Weights<'_>,
        bias: &[i32],
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        assert_eq!(shape.groups, shape.input_channels.max(1), "groups of a depthwise convolution");
        weights.check(shape.filter_values(), preparation);
        assert_eq!(bias.len(), shape.output_channels, "biases");
        activations.check();
        requantization.check(shape.output_channels, activations.signedness);
        let packed = Packed::new(shape, weights, bias, activations, &requantization, preparation)?;
        let kernel = match packed {
            Some(packed) => Kernel::Packed(packed),
            None => {
                let (taps, channels) = (shape.taps(), shape.output_channels);
                let count = weights.values.len();
                let mut by_channel = preparation.filled(0, count, "weights by channel")?;
                for at in preparation.pace().blocks(count, 4).flatten() {
                    by_channel[at] = weights.values[at % taps * channels + at / taps];
                }
                let weights = Weights { values: &by_channel, ..weights };
                Kernel::General(Convolution::prepare(
                    shape,
                    weights,
                    bias,
                    activations,
                    requantization,
                    preparation,
                )?)
            }
        };
        Ok(Self { shape: *shape, signedness: activations.signedness, kernel })
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether the numbers of the images are signed.
    fn signedness(&self) -> Signedness {
        self.signedness
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        match &self.kernel {
            Kernel::General(convolution) => convolution.kernel(),
            Kernel::Packed(packed) => packed.name(),
        }
    }

    /// Bytes of scratch memory that a run wants.
    pub fn scratch_bytes(&self) -> usize {
        match &self.kernel {
            Kernel::General(convolution) => convolution.scratch_bytes(),
            Kernel::Packed(_) => 0,
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
        match &self.kernel {
            Kernel::General(convolution) => convolution.run(team, input, output, scratch),
            Kernel::Packed(packed) => packed.run(shape, team, input, output),
        }
    }
}
