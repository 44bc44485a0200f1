//! [`Table`]: where the taps of a number of output pixels are.

use crate::convolution::{Pixels, Shape};
use std::ops::Range;

/// Addresses in a table.
pub(crate) const ENTRIES: usize = 1024;

/// Output pixels of a table, at most.
pub(crate) const PIXELS: usize = 112;

/// Inputs of the windows that are computed without a question whether to go on, unless a single one has more: with a block of
/// channels some milliseconds of products.
pub(super) const MOST_BYTES: usize = 1 << 23;

/// Addresses in a table for few of them, and output pixels, at most: filling one of [`ENTRIES`] with anything takes longer than
/// the smallest layers.
pub(super) const FEW_ENTRIES: usize = 32;
pub(super) const FEW_PIXELS: usize = 8;

/// Pixels of a copy of an image, of which those of a line are at equal distances.
#[derive(Debug, Clone, Copy)]
pub(super) struct PixelLines {
    /// Of a line.
    pub pixels: usize,
    /// From a line to the next one, in bytes.
    pub step: usize,
    /// From a pixel to the next one, in bytes.
    pub pixel_step: usize,
}

/// Addresses of runs: those of the first tap of all pixels, then of the second, and so on. There is room for `N`.
pub(crate) struct Table<const N: usize = ENTRIES> {
    addresses: [*const u8; N],
}

impl Table {
    /// Output pixels of a table if each has this many runs of this many bytes: no more than can be computed
    /// without a question whether to go on.
    pub(crate) fn pixels(runs: usize, run_bytes: usize) -> usize {
        let pixel = runs.saturating_mul(run_bytes).max(1);
        (ENTRIES / runs.max(1)).min(PIXELS).min((MOST_BYTES / pixel).max(1))
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn new() -> Self {
        Self { addresses: [std::ptr::null(); N] }
    }

    /// The first address.
    pub(crate) fn start(&self) -> *const *const u8 {
        self.addresses.as_ptr()
    }

    /// Enters the taps of some output pixels, one run each.
    pub(crate) fn fill(&mut self, shape: &Shape, image: &Pixels<'_, u8>, outputs: Range<usize>) {
        image.locate(shape, outputs, 0..shape.taps(), &mut self.addresses);
    }

    /// Moves the first addresses this many bytes on.
    pub(crate) fn advance(&mut self, addresses: usize, bytes: usize) {
        for address in &mut self.addresses[..addresses] {
            *address = address.wrapping_add(bytes);
        }
    }

    /// Enters `count` pixels of lines from a first one on: the first line's first run is at `start`, the other runs at
    /// `offsets` behind.
    pub(super) fn fill_lines(
        &mut self,
        start: &[u8],
        lines: PixelLines,
        (first, count): (usize, usize),
        offsets: &[usize],
    ) {
        assert!(count * offsets.len() <= N, "{} runs of {count} pixels", offsets.len());
        let PixelLines { pixels, step, pixel_step } = lines;
        let (line, x) = (first / pixels, first % pixels);
        for (run, offset) in self.addresses.chunks_exact_mut(count).zip(offsets) {
            let (mut at, mut x, mut left) = (line * step + offset, x, run);
            while !left.is_empty() {
                let (some, rest) = left.split_at_mut(left.len().min(pixels - x));
                let channel = at + x * pixel_step;
                let image =
                    Pixels { values: start, pixel_stride: pixel_step, channel, padding: &[] };
                image.locate_all(0, some);
                (at, x, left) = (at + step, 0, rest);
            }
        }
    }
}
