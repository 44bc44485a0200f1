//! [`OfImages`]: kernels of images as prepared kernels.

use crate::image::{Image, ImageMut};
use crate::lines::Line;
use crate::prepared::{Inputs, Operands, PreparedKernel, WrongValue};
use crate::team::Team;
use bytemuck::Pod;
use std::fmt;

/// A kernel that makes an image of an image, whatever the distances of their pixels.
pub trait ImageKernel: fmt::Debug + Send + Sync {
    /// Of all images.
    type Element: Pod;
    /// The number of the input that is the residual operand, where a kernel takes one: the image is 0.
    const RESIDUAL: Option<usize> = None;

    /// See [`PreparedKernel::name`].
    fn name(&self) -> String;

    /// Computes the output.
    ///
    /// # Panics
    /// If an image, another input or the scratch memory is smaller than what was prepared for, or pixels are not at the distances
    /// that were prepared for, where they were.
    fn run(&self, team: &mut Team, images: Images<'_, Self::Element>, scratch: &mut [Line]);

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
    /// The residual operand of a kernel that takes one, if there is one: an image of the output's shape that is added before
    /// the epilogue.
    pub residual: Option<Image<'run, T>>,
    /// The image that is written.
    pub output: ImageMut<'run, T>,
    /// All inputs, of which the image has the number 0, for kernels that read others.
    pub others: Inputs<'run>,
}

impl<'run, T> Images<'run, T> {
    /// An image to read and one to write, and nothing else.
    pub fn new(input: Image<'run, T>, output: ImageMut<'run, T>) -> Self {
        Self { input, residual: None, output, others: Inputs::default() }
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
        let residual = K::RESIDUAL.and_then(|index| inputs.optional(index));
        let images = Images {
            input: Image { values: inputs.of(0), pixel_stride: self.strides.input },
            residual: residual.map(|values| Image { values, pixel_stride: self.strides.residual }),
            output: ImageMut {
                values: bytemuck::cast_slice_mut(output),
                pixel_stride: self.strides.output,
            },
            others: inputs,
        };
        self.kernel.run(team, images, bytemuck::cast_slice_mut(scratch));
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
