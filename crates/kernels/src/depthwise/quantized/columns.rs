//! [`Columns`]: where the input pixels are that a row of output pixels sees.

use crate::Image;
use crate::convolution::{Pixels, Shape};

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

    /// Output pixels that a table is large enough for.
    pub(super) fn pixels(shape: &Shape) -> usize {
        let columns = ENTRIES / shape.filter[0];
        columns.checked_sub(shape.reach(1, 1)).map_or(0, |rest| rest / shape.stride[1] + 1)
    }

    /// Whether addresses are entered for few more columns than pixels see taps.
    pub(super) fn suit(shape: &Shape) -> bool {
        let pixels = Self::pixels(shape).min(shape.output[1]);
        pixels > 0 && shape.reach(1, pixels) <= MOST_COLUMNS.max(4 * pixels * shape.filter[1])
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
        let Image { values, pixel_stride, .. } = input;
        let image = Pixels { values, pixel_stride, channel: 0, padding };
        for (i, row) in self.0.chunks_exact_mut(columns).take(shape.filter[0]).enumerate() {
            let position = shape.input_position(0, y, i);
            image.locate_row(shape, [batch, x * shape.stride[1], 1], position, row);
        }
    }
}
