//! [`OfImages`]: kernels of images as prepared kernels.

use crate::image::{Image, ImageMut};
use crate::prepared::Inputs;
use bytemuck::{AnyBitPattern, Pod};

/// From one pixel to the next, in values, of the images that a kernel works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelStrides {
    /// Of the input.
    pub input: usize,
    /// Of the residual operand; anything, if there is none.
    pub residual: usize,
    /// Of the output.
    pub output: usize,
}

/// A prepared kernel for images whose pixels are at these distances. Its first input is an image, and its
/// output.
#[derive(Debug)]
pub struct OfImages<K> {
    /// The kernel.
    pub kernel: K,
    /// Those that it was prepared for, where it was.
    pub strides: PixelStrides,
}

impl<K> OfImages<K> {
    /// The image that is read.
    pub(crate) fn input<'run, T: AnyBitPattern>(&self, inputs: Inputs<'run>) -> Image<'run, T> {
        Image { values: inputs.of(0), pixel_stride: self.strides.input }
    }

    /// The image that is added, if it is there.
    pub(crate) fn residual<'run>(
        &self,
        inputs: Inputs<'run>,
        index: usize,
    ) -> Option<Image<'run, f32>> {
        let pixel_stride = self.strides.residual;
        inputs.optional(index).map(|values| Image { values, pixel_stride })
    }

    /// The image that is written.
    pub(crate) fn output<'run, T: Pod>(&self, output: &'run mut [u8]) -> ImageMut<'run, T> {
        ImageMut { values: bytemuck::cast_slice_mut(output), pixel_stride: self.strides.output }
    }
}
