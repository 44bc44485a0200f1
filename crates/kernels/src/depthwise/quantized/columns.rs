//! [`Columns`]: where the input pixels are that a row of output pixels sees.

use crate::Image;
use crate::convolution::Shape;

/// Addresses in a table.
pub(super) const ENTRIES: usize = 1024;

/// Columns that may be entered for whatever number of pixels.
const MOST_COLUMNS: usize = 32;

/// By row of the filter, the addresses of the input pixels of one row, in order. Those in the padding
/// have the address of a pixel of padding. Tap `(i, j)` of output pixel `x` is column
/// `x * stride + j * dilation` of row `i`, counted from the first output pixel.
pub(super) struct Columns([*const u8; ENTRIES]);

impl Columns {
    pub(super) fn new() -> Self {
        Self([std::ptr::null(); ENTRIES])
    }

    /// The first address.
    pub(super) fn start(&self) -> *const *const u8 {
        self.0.as_ptr()
    }

    /// Columns that this many output pixels see.
    pub(super) fn needed(shape: &Shape, pixels: usize) -> usize {
        (pixels - 1) * shape.stride[1] + (shape.filter[1] - 1) * shape.dilation[1] + 1
    }

    /// Output pixels that a table is large enough for.
    pub(super) fn pixels(shape: &Shape) -> usize {
        let columns = ENTRIES / shape.filter[0];
        let reach = (shape.filter[1] - 1) * shape.dilation[1] + 1;
        columns.checked_sub(reach).map_or(0, |rest| rest / shape.stride[1] + 1)
    }

    /// Whether addresses are entered for few more columns than pixels see taps.
    pub(super) fn suit(shape: &Shape) -> bool {
        let pixels = Self::pixels(shape).min(shape.output[1]);
        pixels > 0 && Self::needed(shape, pixels) <= MOST_COLUMNS.max(4 * pixels * shape.filter[1])
    }

    /// Enters what output row `y` of an image sees from pixel `x` on.
    pub(super) fn fill(
        &mut self,
        shape: &Shape,
        input: Image<'_, u8>,
        padding: &[u8],
        [batch, y, x]: [usize; 3],
        columns: usize,
    ) {
        let [height, width] = shape.input;
        // Columns before the image, in it, and behind it.
        let (from, before) = (x * shape.stride[1], shape.padding_before[1]);
        let left = before.saturating_sub(from).min(columns);
        let first = (from + left).saturating_sub(before);
        let inside = width.saturating_sub(first).min(columns - left);
        for (i, row) in self.0.chunks_exact_mut(columns).take(shape.filter[0]).enumerate() {
            let position = shape.input_position(0, y, i);
            let Some(in_y) = position.filter(|&in_y| in_y < height && inside > 0) else {
                row.fill(padding.as_ptr());
                continue;
            };
            let (outside, rest) = row.split_at_mut(left);
            outside.fill(padding.as_ptr());
            let (pixels, outside) = rest.split_at_mut(inside);
            outside.fill(padding.as_ptr());
            let pixel = (batch * height + in_y) * width + first;
            let start = input.values.as_ptr().wrapping_add(pixel * input.pixel_stride);
            // Pixels of the image, so that nothing wraps.
            for (index, entry) in pixels.iter_mut().enumerate() {
                *entry = start.wrapping_add(index.wrapping_mul(input.pixel_stride));
            }
        }
    }
}
