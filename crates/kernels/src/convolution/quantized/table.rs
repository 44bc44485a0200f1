//! [`Table`]: where the taps of a number of output pixels are.

use crate::convolution::Shape;

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
    parts: [Part; PIXELS],
}

/// Output pixels next to each other in a row.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Row and column of the first pixel's first tap, which may be before the image.
    y: isize,
    x: isize,
    /// The distance of that tap from the image's beginning, in bytes.
    offset: isize,
    pixels: usize,
}

/// An image to take addresses from.
pub(crate) struct Pixels<'a> {
    /// All of its bytes.
    pub values: &'a [u8],
    /// From one pixel to the next.
    pub pixel_stride: usize,
    /// What is added to each address inside of the image, in bytes.
    pub channel: usize,
    /// What is in the padding: as many bytes as a run has.
    pub padding: &'a [u8],
}

/// A size as a signed number; sizes of shapes are below 2^31, distances are checked.
#[allow(clippy::cast_possible_wrap)]
fn signed(size: usize) -> isize {
    size as isize
}

/// How many steps of a length reach a distance; none if it is behind.
fn steps(distance: isize, length: usize) -> usize {
    let distance = distance.max(0).unsigned_abs();
    // Most lengths are 1 or 2, and a division takes long.
    match length {
        1 => distance,
        2 => distance.div_ceil(2),
        _ => distance.div_ceil(length),
    }
}

impl Table {
    pub(crate) fn new() -> Self {
        let none = Part { y: 0, x: 0, offset: 0, pixels: 0 };
        Self { addresses: [std::ptr::null(); ENTRIES], parts: [none; PIXELS] }
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

    /// Enters the taps of `count` output pixels from `first` on, one run each.
    pub(crate) fn fill(&mut self, shape: &Shape, image: &Pixels<'_>, first: usize, count: usize) {
        let base = image.values.as_ptr();
        if shape.is_matrix_product() {
            let begin = base.wrapping_add(first * image.pixel_stride + image.channel);
            // Pixels of the image, so that nothing wraps.
            for (index, address) in self.addresses[..count].iter_mut().enumerate() {
                *address = begin.wrapping_add(index.wrapping_mul(image.pixel_stride));
            }
            return;
        }
        let parts = self.enter_parts(shape, image, first, count);
        let [height, width] = shape.input.map(signed);
        let padding = image.padding.as_ptr();
        let step = shape.stride[1].wrapping_mul(image.pixel_stride);
        let mut addresses = &mut self.addresses[..];
        for i in 0..shape.filter[0] {
            for j in 0..shape.filter[1] {
                let (down, right) = (signed(i * shape.dilation[0]), signed(j * shape.dilation[1]));
                // Used if the row is in the image. Otherwise, with a large dilation, it may be beyond
                // what can be addressed; as may what is computed below for the pixels before or
                // behind the image.
                let further = down.wrapping_mul(width).wrapping_add(right);
                let further = further.wrapping_mul(signed(image.pixel_stride));
                let (mut run, rest) = addresses.split_at_mut(count);
                for &Part { y, x, offset, pixels } in &self.parts[..parts] {
                    let (part, others) = run.split_at_mut(pixels);
                    run = others;
                    if !(0..height).contains(&(y + down)) {
                        part.fill(padding);
                        continue;
                    }
                    // Pixels before the image's first column, and before the one behind its last.
                    let before = steps(-(x + right), shape.stride[1]).min(pixels);
                    let inside = steps(width - (x + right), shape.stride[1]).clamp(before, pixels);
                    part[..before].fill(padding);
                    part[inside..].fill(padding);
                    let begin = base.wrapping_offset(offset.wrapping_add(further));
                    for (index, address) in part[..inside].iter_mut().enumerate().skip(before) {
                        *address = begin.wrapping_add(index.wrapping_mul(step));
                    }
                }
                addresses = rest;
            }
        }
    }

    /// Enters the rows that this many output pixels are in; gives how many there are.
    fn enter_parts(
        &mut self,
        shape: &Shape,
        image: &Pixels<'_>,
        first: usize,
        count: usize,
    ) -> usize {
        let [out_height, out_width] = shape.output;
        let [height, width] = shape.input.map(signed);
        let mut x = first % out_width;
        let mut y = first / out_width % out_height;
        let mut batch = first / out_width / out_height;
        let (mut left, mut parts) = (count, 0);
        while left > 0 {
            let pixels = left.min(out_width - x);
            let in_y = signed(y * shape.stride[0]) - signed(shape.padding_before[0]);
            let in_x = signed(x * shape.stride[1]) - signed(shape.padding_before[1]);
            // In the padding it may be beyond what can be addressed; it is right for what is in the
            // image, wherever that begins.
            let row = (signed(batch) * height).wrapping_add(in_y);
            let offset = row.wrapping_mul(width).wrapping_add(in_x);
            let offset = offset.wrapping_mul(signed(image.pixel_stride));
            let offset = offset.wrapping_add(signed(image.channel));
            self.parts[parts] = Part { y: in_y, x: in_x, offset, pixels };
            parts += 1;
            left -= pixels;
            (x, y) = (0, y + 1);
            if y == out_height {
                (y, batch) = (0, batch + 1);
            }
        }
        parts
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
            let begin = start.as_ptr().wrapping_add(offset);
            // Whoever reads there has seen that nothing wraps.
            for (index, address) in run.iter_mut().enumerate() {
                *address = begin.wrapping_add(index.wrapping_mul(step));
            }
        }
    }
}
