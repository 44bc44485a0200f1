//! [`Stage`]: a copy of some rows of an image with the padding around them, for inputs whose channels
//! are few or not a multiple of four. There a whole row of the window is one run, and reading past the
//! end of a run stays within the copy.

use crate::Image;
use crate::convolution::Shape;
use crate::convolution::row::copy_row;
use crate::team::Pace;

/// Bytes that may be read behind the last run.
const SLACK: usize = 64;

/// Output pixels of a row from which on it is computed by itself.
const SHORT_ROW: usize = 32;

/// How rows are copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage {
    /// Bytes of a copied row.
    pub row_bytes: usize,
    /// Output rows that a copy serves.
    pub output_rows: usize,
    /// Bytes of a copy.
    pub bytes: usize,
}

impl Stage {
    /// With rows for as many of the output as a copy of `most` bytes serves, at least one. None if there is nothing to copy,
    /// or copies would be large beside the operands: with padding, steps or dilations that are larger than the image
    /// they hold little of it.
    pub(super) fn new(shape: &Shape, most: usize) -> Option<Self> {
        if shape.output_pixels() == 0 || shape.taps() == 0 {
            return None;
        }
        let row_bytes = shape.reach(1, shape.output[1]).checked_mul(shape.input_channels)?;
        let in_budget = most / row_bytes.max(1);
        let fitting = in_budget.saturating_sub(shape.reach(0, 1)) / shape.stride[0] + 1;
        let output_rows = fitting.min(shape.output[0]).max(1);
        let bytes = shape.reach(0, output_rows).checked_mul(row_bytes)?.checked_add(SLACK)?;
        let copies = shape.batch.checked_mul(shape.output[0].div_ceil(output_rows))?;
        let all = copies.checked_mul(bytes)?;
        shape.is_copy_small(all).then_some(Self { row_bytes, output_rows, bytes })
    }

    /// Output pixels of this many rows that are at equal distances in a copy: those of a row, or of a matrix product all.
    pub(super) fn pixels_together(self, shape: &Shape, rows: usize) -> usize {
        shape.output[1] * if shape.is_matrix_product() { rows } else { 1 }
    }

    /// Pixels of this many rows that are computed one after the other: of several rows, if each has few.
    pub(super) fn pixels_in_turn(self, shape: &Shape, rows: usize) -> usize {
        let together = self.pixels_together(shape, rows);
        if together < SHORT_ROW { shape.output[1] * rows } else { together }
    }

    /// How many bytes of a copy may be read for `rows` output rows, by the last run of the last pixel's
    /// last group: runs begin at these offsets from a pixel and have this many bytes, rounded up to a
    /// multiple of four. In numbers that hold any such sum.
    pub(super) fn end(&self, shape: &Shape, rows: usize, offsets: &[usize], run: usize) -> u128 {
        let product = |factors: [usize; 3]| factors.iter().map(|it| *it as u128).product::<u128>();
        let row = product([rows.saturating_sub(1), shape.stride[0], self.row_bytes]);
        let x = shape.output[1].saturating_sub(1);
        let pixel = product([x, shape.stride[1], shape.input_channels]);
        let group = shape.input_channels - shape.group_input_channels();
        let offset = offsets.iter().max().copied().unwrap_or(0);
        row + pixel + group as u128 + offset as u128 + (run as u128).next_multiple_of(4)
    }

    /// Copies what `count` output rows from row `y` of image `batch` on see, with the bits of `flip` inverted, also
    /// in the padding.
    pub(super) fn copy(
        &self,
        shape: &Shape,
        input: Image<'_, u8>,
        (padding, flip): (u8, u8),
        [batch, y, count]: [usize; 3],
        to: &mut [u8],
        pace: &mut Pace<'_>,
    ) {
        let rows = shape.reach(0, count);
        // Rows that are one behind the other are copied as one.
        if shape.is_matrix_product() && input.pixel_stride == shape.input_channels {
            let to = &mut to[..rows * self.row_bytes];
            let from = &input.values[(batch * shape.input[0] + y) * self.row_bytes..][..to.len()];
            for block in pace.blocks(to.len(), 1) {
                for (to, from) in to[block.clone()].iter_mut().zip(&from[block]) {
                    *to = from ^ flip;
                }
            }
            return;
        }
        for (index, copy) in
            to[..rows * self.row_bytes].chunks_exact_mut(self.row_bytes).enumerate()
        {
            copy_row(shape, input, padding, [batch, y * shape.stride[0] + index], copy, pace);
            if flip != 0 {
                for block in pace.blocks(copy.len(), 1) {
                    copy[block].iter_mut().for_each(|byte| *byte ^= flip);
                }
            }
        }
    }
}
