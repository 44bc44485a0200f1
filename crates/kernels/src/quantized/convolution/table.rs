//! [`Table`]: where the taps of a number of output pixels lie.

use crate::convolution::Shape;

/// Addresses in a table.
pub(in crate::quantized) const ENTRIES: usize = 1024;

/// Output pixels of a table, at most.
pub(in crate::quantized) const PIXELS: usize = 96;

/// Addresses of runs: those of the first tap of all pixels, then of the second, and so on.
pub(in crate::quantized) struct Table {
    addresses: [*const u8; ENTRIES],
    /// By pixel: its first tap's row and column, and the distance of that from the image's beginning,
    /// in bytes. All may lie before the image.
    first: [[isize; 3]; PIXELS],
}

/// An image to take addresses from.
pub(in crate::quantized) struct Pixels<'a> {
    /// All of its bytes.
    pub values: &'a [u8],
    /// From one pixel to the next.
    pub pixel_stride: usize,
    /// What is added to each address inside of the image, in bytes.
    pub channel: usize,
    /// What lies in the padding: as many bytes as a run has.
    pub padding: &'a [u8],
}

/// A size as a signed number; sizes of shapes are below 2^31, distances are checked.
#[allow(clippy::cast_possible_wrap)]
fn signed(size: usize) -> isize {
    size as isize
}

impl Table {
    pub(in crate::quantized) fn new() -> Self {
        Self { addresses: [std::ptr::null(); ENTRIES], first: [[0; 3]; PIXELS] }
    }

    /// The first address.
    pub(in crate::quantized) fn start(&self) -> *const *const u8 {
        self.addresses.as_ptr()
    }

    /// Output pixels of a table if each has so many runs.
    pub(in crate::quantized) fn pixels(runs: usize) -> usize {
        (ENTRIES / runs.max(1)).min(PIXELS)
    }

    /// Enters the taps of `count` output pixels from `first` on, one run each.
    pub(in crate::quantized) fn fill(
        &mut self,
        shape: &Shape,
        image: &Pixels<'_>,
        first: usize,
        count: usize,
    ) {
        let base = image.values.as_ptr();
        if shape.is_matrix_product() {
            let mut offset = first * image.pixel_stride + image.channel;
            for address in &mut self.addresses[..count] {
                *address = base.wrapping_add(offset);
                offset += image.pixel_stride;
            }
            return;
        }
        let [height, width] = shape.input.map(signed);
        let stride = signed(image.pixel_stride);
        let mut x = first % shape.output[1];
        let mut y = first / shape.output[1] % shape.output[0];
        let mut batch = first / shape.output[1] / shape.output[0];
        for place in &mut self.first[..count] {
            let in_y = signed(y * shape.stride[0]) - signed(shape.padding_before[0]);
            let in_x = signed(x * shape.stride[1]) - signed(shape.padding_before[1]);
            let offset = ((signed(batch) * height + in_y) * width + in_x) * stride;
            *place = [in_y, in_x, offset + signed(image.channel)];
            x += 1;
            if x == shape.output[1] {
                (x, y) = (0, y + 1);
                if y == shape.output[0] {
                    (y, batch) = (0, batch + 1);
                }
            }
        }
        let padding = image.padding.as_ptr();
        let mut addresses = &mut self.addresses[..];
        for i in 0..shape.filter[0] {
            for j in 0..shape.filter[1] {
                let (down, right) = (signed(i * shape.dilation[0]), signed(j * shape.dilation[1]));
                let further = (down * width + right) * stride;
                let (run, rest) = addresses.split_at_mut(count);
                for (address, &[y, x, offset]) in run.iter_mut().zip(&self.first[..count]) {
                    // Negative positions are beyond any size.
                    let is_inside = (y + down).cast_unsigned() < height.cast_unsigned()
                        && (x + right).cast_unsigned() < width.cast_unsigned();
                    let inside = base.wrapping_offset(offset.wrapping_add(further));
                    *address = if is_inside { inside } else { padding };
                }
                addresses = rest;
            }
        }
    }

    /// Enters `count` output pixels whose first run lies at `start` and `step` bytes farther on for
    /// each pixel; the other runs at `offsets` behind.
    pub(in crate::quantized) fn fill_regular(
        &mut self,
        start: &[u8],
        step: usize,
        count: usize,
        offsets: impl Iterator<Item = usize>,
    ) {
        for (run, offset) in self.addresses.chunks_exact_mut(count).zip(offsets) {
            for (index, address) in run.iter_mut().enumerate() {
                *address = start.as_ptr().wrapping_add(offset + index * step);
            }
        }
    }
}
