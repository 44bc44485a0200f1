//! [`Repeated`]: depthwise convolutions in which several output channels see the same input channel, as such of a copy that has
//! that channel for each of them.

use super::packed::Packed;
use crate::convolution::Shape;
use crate::convolution::quantized::Layer;
use crate::image::Image;
use crate::sharing::{Cut, for_each_rows};
use crate::team::Pace;
use crate::{Images, LINE_BYTES, Line, Preparation, Team, TooLarge};
use std::ops::Range;

/// The convolution of the copy.
#[derive(Debug)]
pub(super) struct Repeated {
    pub(super) packed: Packed,
    /// Of the image.
    pixels: usize,
    channels: usize,
    /// How often each channel is repeated.
    multiplier: usize,
}

/// Bytes of a copy that are worth a task of their own.
const BYTES_OF_TASK: usize = 64 * 1024;

impl Repeated {
    /// None if there is no fast kernel for the shape, or the copy would be large.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    pub(super) fn new(
        shape: &Shape,
        layer: &Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        let [channels, copies] = [shape.input_channels, shape.output_channels];
        let bytes = shape.input_pixels().checked_mul(copies);
        // A single channel is seen by all outputs, as in any other convolution.
        if channels < 2
            || shape.group_output_channels() < 2
            || !bytes.is_some_and(|it| shape.is_copy_small(it))
        {
            return Ok(None);
        }
        let of_copy = Shape { input_channels: copies, groups: copies, ..*shape };
        let Some(packed) = Packed::new(&of_copy, layer, preparation)? else { return Ok(None) };
        preparation.check_scratch::<u8>(&[shape.input_pixels(), copies])?;
        let (pixels, multiplier) = (shape.input_pixels(), shape.group_output_channels());
        Ok(Some(Self { packed, pixels, channels, multiplier }))
    }

    /// Bytes of the copy.
    fn bytes(&self) -> usize {
        self.pixels * self.channels * self.multiplier
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        self.bytes().next_multiple_of(LINE_BYTES)
    }

    /// # Panics
    /// If an image or the scratch memory is too small.
    pub(super) fn run(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        let Images { input, residual, output, others } = images;
        input.check("input", self.pixels, self.channels);
        let copy: &mut [u8] = &mut bytemuck::cast_slice_mut(scratch)[..self.bytes()];
        let of_pixel = self.channels * self.multiplier;
        let cut = Cut { each: of_pixel, least: BYTES_OF_TASK, multiple: 1 };
        for_each_rows(team, (&mut *copy, of_pixel), cut, |pixels, copy, pace| {
            match self.multiplier {
                2 => self.repeat::<2>(input, pixels, copy, pace),
                4 => self.repeat::<4>(input, pixels, copy, pace),
                8 => self.repeat::<8>(input, pixels, copy, pace),
                16 => self.repeat::<16>(input, pixels, copy, pace),
                _ => self.repeat::<0>(input, pixels, copy, pace),
            }
        });
        let input = Image::contiguous(copy, of_pixel);
        self.packed.run(team, Images { input, residual, output, others });
    }

    /// Copies some pixels, each channel `N` times, or any number of times if that is 0.
    fn repeat<const N: usize>(
        &self,
        input: Image<'_, u8>,
        pixels: Range<usize>,
        copy: &mut [u8],
        mut pace: Pace<'_>,
    ) {
        let of_pixel = self.channels * self.multiplier;
        for (pixel, copy) in pixels.zip(copy.chunks_exact_mut(of_pixel)) {
            if pace.is_over(of_pixel) {
                return;
            }
            let values = &input.values[pixel * input.pixel_stride..][..self.channels];
            if N == 0 {
                for (value, copies) in values.iter().zip(copy.chunks_exact_mut(self.multiplier)) {
                    copies.fill(*value);
                }
            } else {
                for (value, copies) in values.iter().zip(copy.chunks_exact_mut(N)) {
                    copies.copy_from_slice(&[*value; N]);
                }
            }
        }
    }
}
