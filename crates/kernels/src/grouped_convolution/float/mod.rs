//! [`GroupedConvolution`] of float32 images.

mod long_filters;
#[cfg(test)]
mod tests;

use crate::convolution::Shape;
use crate::convolution::float::{Convolution, Layer};
use crate::depthwise::float::SmallGroups;
use crate::image_kernel::{ImageKernel, Images};
use crate::{InstructionSet, Line, Preparation, Team, TooLarge};
use long_filters::LongFilters;

/// A convolution of several groups with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub struct GroupedConvolution {
    shape: Shape,
    set: InstructionSet,
    method: Method,
}

#[derive(Debug)]
enum Method {
    /// As a depthwise convolution of more taps.
    Small(SmallGroups),
    /// As products of rows that overlap.
    Long(LongFilters),
    /// As any convolution.
    General(Convolution),
}

impl GroupedConvolution {
    /// As [`Convolution::prepare`].
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not [valid](Shape::is_valid) or the filter or the bias is not as large as it says.
    pub fn prepare(
        shape: &Shape,
        input_pixel_stride: usize,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        layer.check(shape.filter_values(), shape.output_channels, preparation);
        let (set, stride) = (preparation.set(), input_pixel_stride);
        let method = if SmallGroups::suits(shape, set) {
            Method::Small(SmallGroups::new(shape, stride, layer, preparation)?)
        } else if LongFilters::suits(shape) {
            Method::Long(LongFilters::new(shape, layer, preparation)?)
        } else {
            Method::General(Convolution::prepare(shape, stride, layer, preparation)?)
        };
        Ok(Self { shape: *shape, set, method })
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        match &self.method {
            Method::Small(_) => format!("direct f32 {}", self.set),
            Method::Long(_) => format!("padded copy gemm f32 {}", self.set),
            Method::General(convolution) => convolution.kernel(),
        }
    }
}

/// Inputs: the image, and the residual operand if there is one.
impl ImageKernel for GroupedConvolution {
    type Element = f32;
    const RESIDUAL: Option<usize> = Some(1);

    fn name(&self) -> String {
        format!("{} {}", self.shape.name(false), self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        match &self.method {
            Method::Small(small) => small.run(team, images, scratch),
            Method::Long(long) => long.run(team, images, scratch),
            Method::General(convolution) => convolution.run(team, images, scratch),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match &self.method {
            Method::Small(small) => small.scratch_bytes(),
            Method::Long(long) => long.scratch_bytes(),
            Method::General(convolution) => convolution.scratch_bytes(),
        }
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}
