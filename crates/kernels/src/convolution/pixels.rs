//! [`Pixels`]: where the pixels of an image are that a filter sees.

use super::Shape;
use std::ops::Range;

/// An image to take addresses from.
pub(crate) struct Pixels<'a, T> {
    /// All of its values.
    pub(crate) values: &'a [T],
    /// From one pixel to the next.
    pub(crate) pixel_stride: usize,
    /// What is added to each address inside of the image.
    pub(crate) channel: usize,
    /// What is in the padding: as many values as are read at an address.
    pub(crate) padding: &'a [T],
}

/// How many steps of a length reach a distance.
fn steps(distance: usize, length: usize) -> usize {
    // Most lengths are 1 or 2, and a division takes long.
    match length {
        1 => distance,
        2 => distance.div_ceil(2),
        _ => distance.div_ceil(length),
    }
}

/// The row and column of the input that this output pixel sees through its first tap, if neither it nor those side by side with
/// it see any padding.
#[inline(always)]
fn inside(shape: &Shape, output: [usize; 2], pixels: usize) -> Option<[usize; 2]> {
    let first = |axis: usize, outputs: usize| {
        let first = (output[axis] * shape.stride[axis]).checked_sub(shape.padding_before[axis])?;
        let end = first.checked_add(shape.reach(axis, outputs))?;
        (end <= shape.input[axis]).then_some(first)
    };
    Some([first(0, 1)?, first(1, pixels)?])
}

impl<T> Pixels<'_, T> {
    /// Writes where the pixels are that some output pixels see through some taps: those that all see through the first tap, then
    /// those through the second, and so on.
    pub(crate) fn locate(
        &self,
        shape: &Shape,
        outputs: Range<usize>,
        taps: Range<usize>,
        to: &mut [*const T],
    ) {
        let count = outputs.len();
        let to = &mut to[..taps.len() * count];
        if shape.is_matrix_product() {
            return self.locate_all(outputs.start, to);
        }
        let [height, width] = shape.output;
        let filter_width = shape.filter[1].max(1);
        let first_tap = [taps.start / filter_width, taps.start % filter_width];
        let (line, mut x) = (outputs.start / width, outputs.start % width);
        let [mut n, mut y] = [line / height, line % height];
        let mut done = 0;
        while done < count {
            let pixels = (count - done).min(width - x);
            let seen =
                if taps.len() == shape.taps() { inside(shape, [y, x], pixels) } else { None };
            if let Some([top, left]) = seen {
                let first = shape.input_pixel([n, top, left]);
                self.locate_inside(shape, first, [done, pixels, count], to);
            } else {
                let [mut i, mut j] = first_tap;
                for tap in 0..taps.len() {
                    let column = x * shape.stride[1] + j * shape.dilation[1];
                    let (row, to) =
                        (shape.input_position(0, y, i), &mut to[tap * count + done..][..pixels]);
                    self.locate_row(shape, [n, column, shape.stride[1]], row, to);
                    j += 1;
                    if j == filter_width {
                        [i, j] = [i + 1, 0];
                    }
                }
            }
            done += pixels;
            [y, x] = [y + 1, 0];
            if y == height {
                [n, y] = [n + 1, 0];
            }
        }
    }

    /// Writes where all pixels are that output pixels side by side see, of which `first` is the first and none is padding: of each
    /// `count` addresses those from `done` on.
    #[inline(always)]
    fn locate_inside(
        &self,
        shape: &Shape,
        first: usize,
        [done, pixels, count]: [usize; 3],
        to: &mut [*const T],
    ) {
        // All of them are pixels of the image, so that nothing wraps.
        let begin = self.values.as_ptr().wrapping_add(self.channel);
        let begin = begin.wrapping_add(first.wrapping_mul(self.pixel_stride));
        let step = shape.stride[1].wrapping_mul(self.pixel_stride);
        let right = shape.dilation[1].wrapping_mul(self.pixel_stride);
        let down = shape.dilation[0].wrapping_mul(shape.input[1]).wrapping_mul(self.pixel_stride);
        let mut taps = to.chunks_exact_mut(count);
        for i in 0..shape.filter[0] {
            let row = begin.wrapping_add(i.wrapping_mul(down));
            for (j, to) in taps.by_ref().take(shape.filter[1]).enumerate() {
                let at = row.wrapping_add(j.wrapping_mul(right));
                for (index, to) in to[done..done + pixels].iter_mut().enumerate() {
                    *to = at.wrapping_add(index.wrapping_mul(step));
                }
            }
        }
    }

    /// Writes where pixels side by side are, from a first one on.
    #[inline(always)]
    pub(crate) fn locate_all(&self, first: usize, to: &mut [*const T]) {
        let begin = self.values.as_ptr().wrapping_add(self.channel + first * self.pixel_stride);
        // Pixels of the image, so that nothing wraps; with a check they would not be located side by side.
        for (index, to) in to.iter_mut().enumerate() {
            *to = begin.wrapping_add(index.wrapping_mul(self.pixel_stride));
        }
    }

    /// Writes where pixels of an image's row are, or of the padding above and below it: that of a column, counted from the first one
    /// of the padding, and others, each some columns farther on.
    #[inline(always)]
    pub(crate) fn locate_row(
        &self,
        shape: &Shape,
        [n, column, step]: [usize; 3],
        y: Option<usize>,
        to: &mut [*const T],
    ) {
        let padding = self.padding.as_ptr();
        let Some(y) = y else {
            to.fill(padding);
            return;
        };
        // How many are before the image, and before its end.
        let before = shape.padding_before[1];
        let first = steps(before.saturating_sub(column), step).min(to.len());
        let end = steps((before + shape.input[1]).saturating_sub(column), step);
        let end = end.clamp(first, to.len());
        to[..first].fill(padding);
        to[end..].fill(padding);
        // Where the first one is, it may be beyond what can be addressed.
        let pixel = shape.input_pixel([n, y, 0]).wrapping_add(column).wrapping_sub(before);
        let begin = self.values.as_ptr().wrapping_add(self.channel);
        let begin = begin.wrapping_add(pixel.wrapping_mul(self.pixel_stride));
        let step = step.wrapping_mul(self.pixel_stride);
        for (index, to) in to[..end].iter_mut().enumerate().skip(first) {
            *to = begin.wrapping_add(index.wrapping_mul(step));
        }
    }
}
