//! [`SumConvolution`]: convolutions of unsigned bytes whose sums become something other than bytes.
#![allow(unsafe_code)]

use super::{Kernel, Output, Pass, Wanted};
use crate::convolution::Shape;
use crate::gemm::quantized::Variant;
use crate::quantization::{Signedness, Weights};
use crate::sharing::for_each_task;
use crate::{Image, Line, Preparation, Team, TooLarge};
use std::ops::Range;

/// A convolution with constant weights, which are signed bytes, without a bias, prepared for an instruction set. Also the
/// product of a matrix with constant weights, of the shape [`Shape::matrix_product`].
#[derive(Debug)]
pub(crate) struct SumConvolution {
    shape: Shape,
    kernel: Kernel,
}

/// Makes outputs of sums.
pub(crate) trait FromSums: Sync {
    /// The byte of an image's padding, which stands for 0.
    fn zero_point(&self, image: usize) -> u8;

    /// Makes outputs of a block of sums.
    ///
    /// # Safety
    /// No one else has blocks with any of these pixels' channels.
    unsafe fn store(&self, block: Block<'_>);
}

/// Sums of the products of some output pixels, counted through all images, in some channels.
pub(crate) struct Block<'a> {
    pub(crate) pixels: Range<usize>,
    pub(crate) channels: Range<usize>,
    /// Those of the first pixel's channels, whole vectors, of which the last may have more lanes than there are channels.
    pub(crate) sums: &'a [i32],
    /// From one pixel's sums to those of the next.
    pub(crate) step: usize,
    /// What had been subtracted from all inputs, also in the padding, when they were multiplied; if nothing is given, the zero
    /// point of their image.
    pub(crate) offset: Option<i32>,
}

impl SumConvolution {
    /// Bytes behind the input that are read.
    pub(crate) const SLACK: usize = 3;

    /// Packs the weights `[output_channels, filter[0], filter[1], input_channels / groups]` and cuts the work.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not valid; if there are not as many weights as it says; if this processor does not have the
    /// instruction set.
    pub(crate) fn prepare(
        shape: &Shape,
        weights: &[u8],
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        let weights = Weights { values: weights, signedness: Signedness::Signed, zero_point: 0 };
        weights.check(shape.filter_values(), preparation);
        let products = shape.taps().saturating_mul(shape.group_input_channels());
        let variant = Variant::of_rows(preparation.set(), products, shape.output_pixels());
        let kernel = Kernel::of_rows(shape, Wanted::Sums(weights), variant, preparation)?;
        Ok(Self { shape: *shape, kernel })
    }

    /// The instruction set of its kernel.
    pub(crate) fn kernel(&self) -> &'static str {
        self.kernel.method().name()
    }

    /// Lines of scratch memory that it wants.
    pub(crate) fn scratch_lines(&self) -> usize {
        self.kernel.method().tasks() * self.kernel.method().task_lines()
    }

    /// Computes the sums of contiguous images, behind which there are [`Self::SLACK`] more bytes.
    ///
    /// # Panics
    /// If the input or the scratch memory is too small.
    pub(crate) fn run(
        &self,
        team: &mut Team,
        input: &[u8],
        output: &dyn FromSums,
        scratch: &mut [Line],
    ) {
        let Self { shape, kernel } = self;
        let needed = shape.input_pixels() * shape.input_channels + Self::SLACK;
        assert!(input.len() >= needed, "the input is too small");
        let input = Image::contiguous(input, shape.input_channels);
        let method = kernel.method();
        let scratch = (scratch, method.task_lines());
        for_each_task(team, method.tasks(), scratch, |task, scratch, stop| {
            let pass = Pass { shape, input, output: Output::Sums(output), stop };
            // SAFETY: the images were checked, each task is run once, and there are no other ones.
            unsafe { method.task(&pass, task, scratch) };
        });
    }
}
