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
mod problem;
mod repeated;
#[cfg(target_arch = "aarch64")]
mod sdot;
#[cfg(test)]
mod tests;
mod variant;

use crate::convolution::Shape;
use crate::convolution::quantized::{Convolution, Layer};
use crate::depthwise::by_channel;
use crate::image_kernel::{ImageKernel, Images};
use crate::quantization::{Signedness, Weights};
use crate::{Line, Preparation, Team, TooLarge};
use packed::Packed;
use repeated::Repeated;

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
    Repeated(Repeated),
}

impl Depthwise {
    /// Packs the weights `[1, filter[0], filter[1], output_channels]` and cuts the work. The shape has
    /// as many groups as input channels; several output channels of a group, one behind the other,
    /// see the same input.
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
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        assert_eq!(shape.groups, shape.input_channels.max(1), "groups of a depthwise convolution");
        layer.check(shape.filter_values(), shape.output_channels, preparation);
        let signedness = layer.activations.signedness;
        let kernel = if let Some(packed) = Packed::new(shape, &layer, preparation)? {
            Kernel::Packed(packed)
        } else if let Some(repeated) = Repeated::new(shape, &layer, preparation)? {
            Kernel::Repeated(repeated)
        } else {
            let values = by_channel(layer.weights.values, shape, preparation)?;
            let weights = Weights { values: &values, ..layer.weights };
            let layer = Layer { weights, ..layer };
            Kernel::General(Convolution::prepare(shape, layer, preparation)?)
        };
        Ok(Self { shape: *shape, signedness, kernel })
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        match &self.kernel {
            Kernel::General(convolution) => convolution.kernel(),
            Kernel::Packed(packed) => packed.name(),
            Kernel::Repeated(repeated) => repeated.packed.name(),
        }
    }
}

/// Input: the image.
impl ImageKernel for Depthwise {
    type Element = u8;

    fn name(&self) -> String {
        let operation = self.shape.name(true);
        format!("{operation} direct {} {}", self.signedness.name(), self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        match &self.kernel {
            Kernel::General(convolution) => convolution.run(team, images, scratch),
            Kernel::Packed(packed) => packed.run(team, images),
            Kernel::Repeated(repeated) => repeated.run(team, images, scratch),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match &self.kernel {
            Kernel::General(convolution) => convolution.scratch_bytes(),
            Kernel::Packed(_) => 0,
            Kernel::Repeated(repeated) => repeated.scratch_bytes(),
        }
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}
