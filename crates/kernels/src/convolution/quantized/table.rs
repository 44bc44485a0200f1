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

/// Addresses of runs: those of the first tap of all pixels, then of the second, and so on.
pub(crate) struct Table {
    addresses: [*const u8; ENTRIES],
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { addresses: [std::ptr::null(); ENTRIES] }
    }

    /// The first address.
    pub(crate) fn start(&self) -> *const *const u8 {
        self.addresses.as_ptr()
    }

    /// Output pixels of a table if each has this many runs of this many bytes: no more than can be computed
    /// without a question whether to go on.
    pub(crate) fn pixels(runs: usize, run_bytes: usize) -> usize {
        let pixel = runs.saturating_mul(run_bytes).max(1);
        (ENTRIES / runs.max(1)).min(PIXELS).min((MOST_BYTES / pixel).max(1))
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

    /// Enters `count` output pixels whose first run is at `start` and `step` bytes farther on for
    /// each pixel; the other runs at `offsets` behind.
    pub(crate) fn fill_regular(
        &mut self,
        start: &[u8],
        step: usize,
        count: usize,
        offsets: impl ExactSizeIterator<Item = usize>,
    ) {
        assert!(count * offsets.len() <= ENTRIES, "{} runs of {count} pixels", offsets.len());
        for (run, offset) in self.addresses.chunks_exact_mut(count).zip(offsets) {
            let image = Pixels { values: start, pixel_stride: step, channel: offset, padding: &[] };
            image.locate_all(0, run);
        }
    }
}
