//! The rows of the matrix product that a convolution is: for each output pixel, the input pixels
//! that it sees.
#![allow(unsafe_code)]

use crate::convolution::{Pixels, Shape};
use crate::gemm::float::{MOST_SEGMENTS, Rows, RowsPlan};
use crate::image::values_needed;
use crate::preparation::product;
use crate::{Image, Preparation, TooLarge};
use std::ops::Range;

/// How the input pixels that an output pixel sees become segments of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// One segment, the channels of the only pixel that is seen, which has the output pixel's number: the convolution is a
    /// matrix product of the pixels.
    Plain,
    /// A segment for each tap, the channels of one pixel, read in place.
    Pixels,
    /// A segment for each row of the filter, pixels that are side by side, read in place where none
    /// of them is padding, otherwise copied. For images of few channels.
    Spans,
    /// One segment, into which all is copied. For filters of very many taps.
    Copies,
}

/// Images with up to this many channels are read by [`Access::Spans`]: shorter segments would make the
/// loop over the depth too short.
const FEW_CHANNELS: usize = 16;

impl Access {
    /// The one that suits a shape. `contiguous` says whether pixels are side by side without gaps.
    pub(crate) fn of(shape: &Shape, contiguous: bool) -> Self {
        if shape.is_matrix_product() {
            return Self::Plain;
        }
        let spans = shape.groups == 1
            && contiguous
            && shape.input_channels <= FEW_CHANNELS
            && (shape.dilation[1] == 1 || shape.filter[1] == 1);
        if spans && shape.filter[0] <= MOST_SEGMENTS {
            Self::Spans
        } else if shape.taps() <= MOST_SEGMENTS {
            Self::Pixels
        } else {
            Self::Copies
        }
    }

    /// How many segments a row has, and how many values of a group each of them.
    pub(crate) fn segments(self, shape: &Shape) -> [usize; 2] {
        let channels = shape.group_input_channels();
        match self {
            Self::Plain => [1, channels],
            Self::Pixels => [shape.taps(), channels],
            Self::Spans => [shape.filter[0], channels * shape.filter[1]],
            Self::Copies => [1, channels * shape.taps()],
        }
    }

    /// What is known of the rows before there is an image, of which this many are located together.
    ///
    /// # Errors
    /// If they want more scratch memory than can be addressed.
    pub(crate) fn plan(
        self,
        shape: &Shape,
        input_pixel_stride: usize,
        rows: usize,
    ) -> Result<RowsPlan, TooLarge> {
        let values = values_needed(shape.input_pixels(), shape.input_channels, input_pixel_stride);
        let scratch_values = self.scratch_values(shape, rows);
        let row_values = match self {
            Self::Plain | Self::Pixels => shape.stride[1].saturating_mul(input_pixel_stride),
            Self::Copies => shape.taps().saturating_mul(shape.input_channels),
            Self::Spans => 0,
        };
        Ok(RowsPlan {
            count: shape.output_pixels(),
            line: shape.output_pixels(),
            bytes: values.saturating_mul(size_of::<f32>()),
            row_bytes: row_values.saturating_mul(size_of::<f32>()),
            scratch_values: scratch_values.ok_or(TooLarge::beyond_addresses("scratch memory"))?,
        })
    }

    /// Scratch values for `rows` output pixels, if they can be addressed.
    fn scratch_values(self, shape: &Shape, rows: usize) -> Option<usize> {
        match self {
            Self::Plain | Self::Pixels => Some(0),
            Self::Spans | Self::Copies => {
                let [height, width] = shape.filter;
                product(&[rows, height, width, shape.input_channels])
            }
        }
    }

    /// The zeros that [`Taps::new`] wants.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(crate) fn zeros(
        self,
        shape: &Shape,
        preparation: &mut Preparation,
    ) -> Result<Vec<f32>, TooLarge> {
        preparation.filled(0.0, self.zeros_needed(shape)?, "zeros")
    }

    /// How many there are.
    ///
    /// # Errors
    /// If they are beyond what can be addressed.
    pub(crate) fn zeros_needed(self, shape: &Shape) -> Result<usize, TooLarge> {
        let zeros = match self {
            Self::Plain => Some(0),
            Self::Spans => shape.input_channels.checked_mul(shape.filter[1]),
            Self::Pixels | Self::Copies => Some(shape.input_channels),
        };
        zeros.ok_or(TooLarge::beyond_addresses("zeros"))
    }
}

/// The input of a convolution.
pub(crate) struct Taps<'a> {
    shape: &'a Shape,
    access: Access,
    /// See [`Access::segments`]: it is asked for each tile.
    segments: [usize; 2],
    /// With as many zeros as the input has channels, or a row of the filter sees values.
    pixels: Pixels<'a, f32>,
}

impl<'a> Taps<'a> {
    /// # Panics
    /// If there are fewer values or zeros than needed.
    pub(crate) fn new(
        shape: &'a Shape,
        access: Access,
        input: Image<'a, f32>,
        zeros: &'a [f32],
    ) -> Self {
        input.check("input", shape.input_pixels(), shape.input_channels);
        let wanted = access.zeros_needed(shape);
        assert!(wanted.is_ok_and(|wanted| zeros.len() >= wanted), "too few zeros");
        let is_contiguous = input.pixel_stride == shape.input_channels;
        assert!(access != Access::Spans || is_contiguous, "gaps in a span");
        let Image { values, pixel_stride } = input;
        let pixels = Pixels { values, pixel_stride, channel: 0, padding: zeros };
        Self { shape, access, segments: access.segments(shape), pixels }
    }

    /// The values of a pixel that some tap sees.
    fn seen(&self, [n, y, x]: [usize; 3], [i, j]: [usize; 2]) -> &[f32] {
        let channels = self.shape.input_channels;
        let position = self.shape.input_position(0, y, i).zip(self.shape.input_position(1, x, j));
        let Pixels { values, pixel_stride, padding, .. } = self.pixels;
        let Some((y, x)) = position else { return &padding[..channels] };
        &values[self.shape.input_pixel([n, y, x]) * pixel_stride..][..channels]
    }

    /// Addresses for a run of output pixels of one output row.
    fn locate_run(
        &self,
        [n, y, x]: [usize; 3],
        scratch: &mut [f32],
        to: &mut [*const f32],
        [first, length, rows]: [usize; 3],
    ) {
        let shape = self.shape;
        let [filter_height, filter_width] = shape.filter;
        let channels = shape.input_channels;
        match self.access {
            Access::Plain | Access::Pixels => unreachable!("`locate` has found them"),
            Access::Spans => {
                let span = filter_width * channels;
                // Those that see no padding. What is located of others is the pixel that their first tap sees.
                let (start, end) = shape.interior(1);
                let inside = start.clamp(x, x + length)..end.clamp(x, x + length);
                let outside = (x..inside.start).chain(inside.end.max(inside.start)..x + length);
                for i in 0..filter_height {
                    let to = &mut to[i * rows + first..][..length];
                    let row = shape.input_position(0, y, i);
                    let places = [n, x * shape.stride[1], shape.stride[1]];
                    self.pixels.locate_row(shape, places, row, to);
                    if row.is_none() {
                        continue;
                    }
                    for index in outside.clone().map(|outside| outside - x) {
                        let start = ((first + index) * filter_height + i) * span;
                        let copy = &mut scratch[start..start + span];
                        for (j, copy) in copy.chunks_exact_mut(channels.max(1)).enumerate() {
                            copy.copy_from_slice(self.seen([n, y, x + index], [i, j]));
                        }
                        to[index] = copy.as_ptr();
                    }
                }
            }
            Access::Copies => {
                let depth = shape.taps() * channels;
                for (index, to) in to[first..first + length].iter_mut().enumerate() {
                    let start = (first + index) * depth;
                    let copy = &mut scratch[start..start + depth];
                    // Group by group, so that a group's values of all taps are one segment.
                    let of_group = shape.group_input_channels();
                    let mut at = 0;
                    for group in 0..shape.groups {
                        for i in 0..filter_height {
                            for j in 0..filter_width {
                                let seen = self.seen([n, y, x + index], [i, j]);
                                copy[at..at + of_group]
                                    .copy_from_slice(&seen[group * of_group..][..of_group]);
                                at += of_group;
                            }
                        }
                    }
                    *to = copy.as_ptr();
                }
            }
        }
    }
}

// SAFETY: the values of all groups are the channels of a pixel (`Plain`, `Pixels`), of the pixels that a row of the
// filter sees (`Spans`), or of those that all taps see (`Copies`). An address is that of a pixel within
// the input ([`Pixels`] and `input_position` give no other, and `locate` has checked that the output pixels exist), all
// of whose channels exist, as `new` has checked; or of the zeros, whose number `new` has checked; or of a
// part of the scratch memory that was taken as a slice, a different one for each. A span begins at a
// pixel of `Shape::interior`: all taps of the filter's row see the same row of the input, the last one
// `filter[1] - 1` pixels on or more; and there are no gaps between pixels.
unsafe impl Rows for Taps<'_> {
    fn segments(&self) -> usize {
        self.segments[0]
    }

    fn segment_depth(&self) -> usize {
        self.segments[1]
    }

    fn groups(&self) -> usize {
        self.shape.groups
    }

    fn scratch_values(&self, rows: usize) -> usize {
        // Compared with what was planned, by the same formula.
        self.access.scratch_values(self.shape, rows).unwrap_or(usize::MAX)
    }

    fn locate(&self, rows: Range<usize>, scratch: &mut [f32], to: &mut [*const f32]) {
        assert!(rows.end <= self.shape.output_pixels(), "pixels that are not there");
        match self.access {
            Access::Plain => return self.pixels.locate_all(rows.start, to),
            Access::Pixels => {
                return self.pixels.locate(self.shape, rows, 0..self.shape.taps(), to);
            }
            Access::Spans | Access::Copies => {}
        }
        let [height, width] = self.shape.output;
        let (mut line, mut x) = (rows.start / width, rows.start % width);
        let mut done = 0;
        while done < rows.len() {
            let length = (rows.len() - done).min(width - x);
            let at = [line / height, line % height, x];
            self.locate_run(at, scratch, to, [done, length, rows.len()]);
            done += length;
            (line, x) = (line + 1, 0);
        }
    }
}
