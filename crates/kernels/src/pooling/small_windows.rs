//! Windows of a few stored values, many channels at a time, in numbers of 8 and 16 bits: plain loops
//! over arrays, which become vectors of the instruction set that they are inlined into.

#![allow(unsafe_code)]

use super::Window;
use crate::vector::Byte;

/// Pixels whose elements are looked at together, at most.
const TOGETHER: usize = 9;

/// Pixels of a window, at most.
const MOST: usize = 4 * TOGETHER;

/// Where the elements of a window are.
#[derive(Clone, Copy)]
pub(super) struct Taps {
    /// Of the first channel, in values; behind the last one the first again.
    starts: [usize; MOST],
    count: usize,
    /// The greatest start.
    last: usize,
}

impl Taps {
    /// Nothing if there are none or too many.
    #[inline(always)]
    pub(super) fn of(window: Window, pixel_stride: usize) -> Option<Self> {
        let count = window.count();
        if !(1..=MOST).contains(&count) {
            return None;
        }
        let mut starts = [window.first * pixel_stride; MOST];
        for (start, pixel) in starts.iter_mut().zip(window.pixels().flatten()) {
            *start = pixel * pixel_stride;
        }
        let last = starts.into_iter().fold(0, usize::max);
        Some(Self { starts, count, last })
    }

    /// `N` elements, from one on, of a block of channels that begins `further` values behind the first one.
    #[inline(always)]
    fn blocks<T, const B: usize, const N: usize>(
        &self,
        values: &[T],
        from: usize,
        further: usize,
    ) -> [&[T; B]; N] {
        assert!(self.last + further + B <= values.len(), "an image smaller than was checked");
        let starts: &[usize; N] = self.starts[from..].first_chunk().expect("taps of a window");
        // SAFETY: the block of the last of the starts is within the values, as was just checked, and no start is
        // behind that one, as `of` has made sure. A block is aligned as its elements.
        starts.map(|start| unsafe { &*values.as_ptr().add(start.wrapping_add(further)).cast() })
    }
}

/// What is done with a window's elements.
#[derive(Clone, Copy)]
pub(super) struct Means {
    /// Halves are rounded away from it.
    pub center: i32,
    /// The least and the greatest result.
    pub range: (i32, i32),
}

/// The greatest elements of a block of channels, within a range.
#[inline(always)]
pub(super) fn greatest<T: Byte, const B: usize>(
    taps: &Taps,
    values: &[T],
    further: usize,
    range: (i32, i32),
    output: &mut [T; B],
) {
    let (low, high) = (T::nearest(range.0), T::nearest(range.1));
    let all = [low; B];
    let mut all = match taps.count {
        ..=2 => greatest_of::<T, B, 2>(taps, values, 0, further, all),
        3..=4 => greatest_of::<T, B, 4>(taps, values, 0, further, all),
        5..=6 => greatest_of::<T, B, 6>(taps, values, 0, further, all),
        7..=TOGETHER => greatest_of::<T, B, TOGETHER>(taps, values, 0, further, all),
        count => {
            let mut all = all;
            for from in (0..count).step_by(TOGETHER) {
                all = greatest_of::<T, B, TOGETHER>(taps, values, from, further, all);
            }
            all
        }
    };
    for greatest in &mut all {
        *greatest = (*greatest).min(high);
    }
    *output = all;
}

/// The greatest of those and of `N` elements each. Values and not places, so that it is clear that nothing overlaps.
#[inline(always)]
fn greatest_of<T: Byte, const B: usize, const N: usize>(
    taps: &Taps,
    values: &[T],
    from: usize,
    further: usize,
    all: [T; B],
) -> [T; B] {
    let blocks = taps.blocks::<T, B, N>(values, from, further);
    let mut result = [T::zeroed(); B];
    for (index, result) in result.iter_mut().enumerate() {
        let mut greatest = all[index];
        for block in blocks {
            greatest = greatest.max(block[index]);
        }
        *result = greatest;
    }
    result
}

/// Whether [`means`] takes windows of this size.
pub(super) fn has_means(taps: &Taps) -> bool {
    matches!(taps.count, 4 | 6 | 9)
}

/// The means of the elements of a block of channels.
///
/// # Panics
/// If there are none of [windows of this size](has_means).
#[inline(always)]
pub(super) fn means<T: Byte, const B: usize>(
    taps: &Taps,
    values: &[T],
    further: usize,
    means: Means,
    output: &mut [T; B],
) {
    match taps.count {
        4 => means_of::<T, B, 4>(taps, values, further, means, output),
        6 => means_of::<T, B, 6>(taps, values, further, means, output),
        9 => means_of::<T, B, 9>(taps, values, further, means, output),
        count => unreachable!("means of {count} pixels"),
    }
}

/// The means of `N` elements each: a product with the reciprocal in 16 more bits, rounded up, which has
/// the right integer part up to 15 elements.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
fn means_of<T: Byte, const B: usize, const N: usize>(
    taps: &Taps,
    values: &[T],
    further: usize,
    Means { center, range: (low, high) }: Means,
    output: &mut [T; B],
) {
    let reciprocal = (1_u32 << 16).div_ceil(N as u32);
    let (center, low, high) = (center as i16, low as i16, high as i16);
    let blocks = taps.blocks::<T, B, N>(values, 0, further);
    let mut all = [T::zeroed(); B];
    let first = -(center * N as i16);
    for (index, output) in all.iter_mut().enumerate() {
        // None of this wraps, but compilers cannot know how small the centre is, and a check of each
        // sum would keep them from computing many side by side.
        let mut sum = first;
        for block in blocks {
            sum = sum.wrapping_add(block[index].wide() as i16);
        }
        let magnitude = sum.unsigned_abs().wrapping_add((N / 2) as u16);
        let mean = (u32::from(magnitude).wrapping_mul(reciprocal) >> 16) as i16;
        let mean = if sum < 0 { mean.wrapping_neg() } else { mean }.wrapping_add(center);
        *output = T::nearest(mean.clamp(low, high).into());
    }
    *output = all;
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 64;

    #[test]
    fn means_of_all_sums() {
        for (count, columns) in [(4_i32, 2), (6, 3), (9, 3)] {
            for center in [-128, -3, 0, 127] {
                for sum in -128 * count..=127 * count {
                    // As even as it can be.
                    let element = |tap: i32| {
                        let (each, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
                        i8::try_from(each + i32::from(tap < rest)).unwrap()
                    };
                    let values: Vec<i8> =
                        (0..count).flat_map(|tap| [element(tap); BLOCK]).collect();
                    let rows = usize::try_from(count).unwrap() / columns;
                    let window = Window { first: 0, rows, columns, width: columns };
                    let taps = Taps::of(window, BLOCK).unwrap();
                    let mut output = [0; BLOCK];
                    let range = (-100, 100);
                    means(&taps, &values, 0, Means { center, range }, &mut output);
                    let offset = sum - center * count;
                    let half = if offset > 0 { count / 2 } else { -(count / 2) };
                    let expected = ((offset + half) / count + center).clamp(-100, 100);
                    assert_eq!(output.map(i32::from), [expected; BLOCK], "{sum} {count} {center}");
                }
            }
        }
    }
}
