//! [`Stage`]: a copy of some rows of an image with the padding around them, for inputs whose channels
//! are few or not a multiple of four. There a whole row of the window is one run, and reading past the
//! end of a run stays within the copy.

use crate::Image;
use crate::convolution::Shape;

/// Bytes that may be read behind the last run.
const SLACK: usize = 64;

/// A copy should stay in the first cache.
const BUDGET: usize = 24 << 10;

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
    pub(super) fn new(shape: &Shape) -> Self {
        let reach = |axis: usize| shape.filter[axis].saturating_sub(1) * shape.dilation[axis] + 1;
        let pixels = shape.output[1].saturating_sub(1) * shape.stride[1] + reach(1);
        let row_bytes = pixels * shape.input_channels;
        let fitting = (BUDGET / row_bytes.max(1)).saturating_sub(reach(0)) / shape.stride[0] + 1;
        let output_rows = fitting.min(shape.output[0]).max(1);
        let rows = (output_rows - 1) * shape.stride[0] + reach(0);
        Self { row_bytes, output_rows, bytes: rows * row_bytes + SLACK }
    }

    /// Copies what `count` output rows from row `y` of image `batch` on see.
    pub(super) fn copy(
        &self,
        shape: &Shape,
        input: Image<'_, u8>,
        padding: u8,
        [batch, y, count]: [usize; 3],
        to: &mut [u8],
    ) {
        let (channels, [height, width]) = (shape.input_channels, shape.input);
        let rows = (count - 1) * shape.stride[0] + (shape.filter[0] - 1) * shape.dilation[0] + 1;
        for (index, to) in to[..rows * self.row_bytes].chunks_exact_mut(self.row_bytes).enumerate()
        {
            let row = (y * shape.stride[0] + index).checked_sub(shape.padding_before[0]);
            let Some(row) = row.filter(|&row| row < height) else {
                to.fill(padding);
                continue;
            };
            let before = (shape.padding_before[1] * channels).min(to.len());
            let (left, to) = to.split_at_mut(before);
            left.fill(padding);
            let (to, right) = to.split_at_mut((width * channels).min(to.len()));
            right.fill(padding);
            let from = &input.values[(batch * height + row) * width * input.pixel_stride..];
            if input.pixel_stride == channels {
                to.copy_from_slice(&from[..to.len()]);
            } else {
                let pixels = from.chunks(input.pixel_stride);
                for (to, from) in to.chunks_exact_mut(channels).zip(pixels) {
                    to.copy_from_slice(&from[..channels]);
                }
            }
        }
    }
}
