//! [`OfImages`]: kernels of images as prepared kernels.

use crate::image::{Image, ImageMut};
use crate::lines::Line;
use crate::prepared::{Inputs, Operands, PreparedKernel, WrongValue};
use crate::team::Team;
use bytemuck::{AnyBitPattern, Pod};
use std::fmt;

/// A kernel that makes an image of an image, whatever the distances of their pixels.
pub trait ImageKernel: fmt::Debug + Send + Sync {
    /// Of both images.
    type Element: Pod;

    /// See [`PreparedKernel::name`].
    fn name(&self) -> String;

    /// Computes the output.
    ///
    /// # Panics
    /// If an image is smaller than what was prepared for, or there is too little scratch memory.
    fn run_on_images(
        &self,
        team: &mut Team,
        images: Images<'_, Self::Element>,
        scratch: &mut [Line],
    );

    /// See [`PreparedKernel::scratch_bytes`].
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// See [`PreparedKernel::arithmetic`].
    fn arithmetic(&self) -> u64 {
        0
    }
}

/// What a kernel of images reads and writes.
#[derive(Debug)]
pub struct Images<'run, T> {
    /// The image that is read.
    pub input: Image<'run, T>,
    /// The image that is written.
    pub output: ImageMut<'run, T>,
    /// What else is read.
    pub others: Others<'run>,
}

/// The inputs behind the image.
#[derive(Debug)]
pub struct Others<'run> {
    inputs: Inputs<'run>,
    residual_pixel_stride: usize,
}

impl<'run> Others<'run> {
    /// The elements of an input that is not left out. The image has the number 0.
    pub fn of<T: AnyBitPattern>(&self, index: usize) -> &'run [T] {
        self.inputs.of(index)
    }

    /// The image that is added, if it is there.
    pub fn residual<T: AnyBitPattern>(&self, index: usize) -> Option<Image<'run, T>> {
        let pixel_stride = self.residual_pixel_stride;
        self.inputs.optional(index).map(|values| Image { values, pixel_stride })
    }
}

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

/// A kernel of images as a [`PreparedKernel`], for images whose pixels are at these distances. Its first input
/// is an image, and its output.
#[derive(Debug)]
pub struct OfImages<K> {
    /// The kernel.
    pub kernel: K,
    /// Those that it was prepared for, where it was.
    pub strides: PixelStrides,
}

impl<K: ImageKernel> PreparedKernel for OfImages<K> {
    fn name(&self) -> String {
        self.kernel.name()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let PixelStrides { input, residual, output: output_pixel_stride } = self.strides;
        let images = Images {
            input: Image { values: inputs.of(0), pixel_stride: input },
            output: ImageMut {
                values: bytemuck::cast_slice_mut(output),
                pixel_stride: output_pixel_stride,
            },
            others: Others { inputs, residual_pixel_stride: residual },
        };
        self.kernel.run_on_images(team, images, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.arithmetic()
    }

    fn is_8_bit(&self) -> bool {
        size_of::<K::Element>() == 1
    }
}
