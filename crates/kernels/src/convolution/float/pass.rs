//! [`Pass`]: the images of a convolution that is being computed.

use crate::convolution::Shape;
use crate::disjoint::DisjointOutput;
use crate::gemm::float::Target;
use crate::{Image, Images};
use std::ops::Range;

/// A convolution that is being computed.
pub(crate) struct Pass<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) input: Image<'a, f32>,
    /// What is added, of the output's shape.
    pub(crate) residual: Option<Image<'a, f32>>,
    pub(crate) output: DisjointOutput<'a, f32>,
    pub(crate) output_stride: usize,
}

impl<'a> Pass<'a> {
    /// None if there is nothing to compute.
    ///
    /// # Panics
    /// If an image is smaller than the shape says, or the input's pixels have another stride.
    pub(crate) fn new(
        shape: &'a Shape,
        input_pixel_stride: usize,
        images: Images<'a, f32>,
    ) -> Option<Self> {
        let Images { input, residual, output, .. } = images;
        let channels = shape.output_channels;
        input.check("input", shape.input_pixels(), shape.input_channels);
        assert_eq!(input.pixel_stride, input_pixel_stride, "values from pixel to pixel");
        let needed = output.check("output", shape.output_pixels(), channels);
        if let Some(residual) = residual {
            residual.check("residual operand", shape.output_pixels(), channels);
        }
        let (output, output_stride) = (DisjointOutput::new(output.values), output.pixel_stride);
        (needed > 0).then_some(Self { shape, input, residual, output, output_stride })
    }

    /// The address of an input pixel's first channel.
    pub(crate) fn input(&self, pixel: [usize; 3]) -> *const f32 {
        let pixel = self.shape.input_pixel(pixel);
        debug_assert!(pixel < self.shape.input_pixels());
        self.input.values.as_ptr().wrapping_add(pixel * self.input.pixel_stride)
    }

    /// Where some output channels of pixels side by side go, from a pixel on.
    pub(crate) fn target(&self, pixel: usize, channels: Range<usize>) -> Target {
        let stride = self.output_stride;
        let output = self.output.pointer(pixel * stride + channels.start);
        Target::new((output, stride), self.residual, pixel, channels)
    }
}
