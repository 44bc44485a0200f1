//! Pooling of images of few channels. A window's channels would fill a small part of a vector, so rows of
//! whole pixels are what vectors are filled with: first the image's rows that a row of windows sees become
//! one, then that row's columns, which are the row itself at the distance of a pixel. All of it is
//! plain loops over slices, which become vectors of the instruction set that they are inlined into.
#![allow(unsafe_code)]

use super::{Pixels, Shape};
use crate::team::Pace;
use crate::vector::Simd;

/// How elements of a window become one.
pub(super) trait Fold<T>: Copy {
    /// Of some elements.
    type Sum: Copy;
    /// Whether it matters how many elements there are.
    const COUNTS: bool;

    /// The sum of no elements.
    fn nothing(self) -> Self::Sum;
    /// Of a single element.
    fn of(value: T) -> Self::Sum;
    /// The same, as it stands where others are joined with it.
    #[inline(always)]
    fn first(value: T) -> Self::Sum {
        Self::of(value)
    }
    fn join(sum: Self::Sum, other: Self::Sum) -> Self::Sum;
    /// What windows of `count` elements each become; behind their sums there are [`COPIED`] others.
    fn finish<S: Simd>(self, simd: S, sums: &[Self::Sum], count: usize, output: &mut [T]);
}

/// Channels of an image, at most, for which this is faster than vectors of channels.
const MOST_CHANNELS: usize = 63;

/// Elements of a row that are worked on at a time.
const BLOCK: usize = 1024;

/// Elements that are copied at a time, also where fewer are wanted: not less than a vector has.
pub(super) const COPIED: usize = 16;

/// Elements from one output pixel's to the next one's in the input, at most, for what is between them to be computed
/// as well.
const MOST_BETWEEN: usize = 128;

/// Elements of a row, and what is copied with the last.
type Row<S> = [S; BLOCK + COPIED];

/// Whether [`reduce`] takes such images, and is faster.
#[inline(always)]
pub(super) fn are_few<T>(pixels: &Pixels<'_, T>) -> bool {
    let channels = pixels.shape.channels;
    (1..=MOST_CHANNELS).contains(&channels)
        && pixels.channels.len() == channels
        && pixels.input.pixel_stride <= 2 * channels
        && pixels.stride == channels
}

/// The results of a row of windows, of images for which [`are_few`] says so.
#[inline(always)]
pub(super) fn reduce<T: Copy, S: Simd>(simd: S, pixels: &Pixels<'_, T>, fold: impl Fold<T>) {
    let Pixels { shape, input, .. } = *pixels;
    let (start, length) = (pixels.first * shape.channels, shape.output[1] * shape.channels);
    // SAFETY: the row's pixels are no one else's, and these are all of their channels.
    let output = unsafe { pixels.output.slice(start, length) };
    let (stride, step) = (input.pixel_stride, shape.stride[1]);
    let of_block = if step.saturating_mul(stride) > MOST_BETWEEN {
        1
    } else {
        (BLOCK / stride - 1) / step + 1
    };
    let mut pace = Pace::new(pixels.stop);
    let (mut sums, mut compact) =
        ([fold.nothing(); BLOCK + COPIED], [fold.nothing(); BLOCK + COPIED]);
    for (index, output) in output.chunks_mut(of_block * shape.channels).enumerate() {
        let first = index * of_block;
        let count = output.len() / shape.channels;
        // Of all windows that begin at a pixel from the first window's to the last one's.
        let all = (count - 1) * step + 1;
        sums_of_windows(pixels, (first, count), &mut sums[..all * stride], fold, &mut pace);
        if pace.is_over(0) {
            return;
        }
        let sums = if step == 1 && stride == shape.channels {
            &sums
        } else {
            copy_some(&sums, step * stride, &mut compact, (count, shape.channels));
            &compact
        };
        finish(simd, shape, (first, pixels.rows.len()), sums, output, fold);
    }
}

/// The sums of all windows that begin at a pixel from that of window `first` on to that of the last of `count`.
#[inline(always)]
fn sums_of_windows<T: Copy, F: Fold<T>>(
    pixels: &Pixels<'_, T>,
    (first, count): (usize, usize),
    sums: &mut [F::Sum],
    fold: F,
    pace: &mut Pace<'_>,
) {
    let Pixels { shape, input, .. } = *pixels;
    let (stride, channels) = (input.pixel_stride, shape.channels);
    let (all, length) = (sums.len() / stride, |pixels: usize| (pixels - 1) * stride + channels);
    sums.fill(fold.nothing());
    let seen = shape.seen(1, first).start..shape.seen(1, first + count - 1).end;
    if pixels.rows.is_empty() {
        return;
    }
    let mut columns: Row<F::Sum> = [fold.nothing(); BLOCK + COPIED];
    for start in seen.clone().step_by(BLOCK / stride) {
        let end = seen.end.min(start + BLOCK / stride);
        let columns = &mut columns[..length(end - start)];
        for row in pixels.rows.clone() {
            if pace.is_over(columns.len()) {
                return;
            }
            let values = &input.values[(row * shape.input[1] + start) * stride..][..columns.len()];
            if row == pixels.rows.start {
                for (column, value) in columns.iter_mut().zip(values) {
                    *column = F::first(*value);
                }
            } else {
                for (column, value) in columns.iter_mut().zip(values) {
                    *column = F::join(F::of(*value), *column);
                }
            }
        }
        // Counted from the first column of the first window, which may be one of the padding.
        let origin = first * shape.stride[1];
        let (start, end) =
            (start + shape.padding_before[1] - origin, end + shape.padding_before[1] - origin);
        for tap in (start + 1).saturating_sub(all)..end.min(shape.filter[1]) {
            let windows = start.saturating_sub(tap)..all.min(end - tap);
            let length = length(windows.len());
            if pace.is_over(length) {
                return;
            }
            let columns = &columns[(windows.start + tap - start) * stride..][..length];
            for (sum, column) in sums[windows.start * stride..].iter_mut().zip(columns) {
                *sum = F::join(*column, *sum);
            }
        }
    }
}

/// Copies `count` pixels that are at a distance from each other, so that they are not.
#[inline(always)]
fn copy_some<S: Copy>(
    from: &Row<S>,
    distance: usize,
    to: &mut Row<S>,
    (count, channels): (usize, usize),
) {
    for pixel in 0..count {
        for channel in (0..channels).step_by(COPIED) {
            // Those that are too many are the next pixel's, which overwrites them, or behind the last one's.
            let from: &[S; COPIED] =
                from[pixel * distance + channel..].first_chunk().expect("in the row");
            to[pixel * channels + channel..][..COPIED].copy_from_slice(from);
        }
    }
}

/// The results of the windows from `first` on.
#[inline(always)]
fn finish<T: Copy, S: Simd, F: Fold<T>>(
    simd: S,
    shape: &Shape,
    (first, rows): (usize, usize),
    sums: &Row<F::Sum>,
    output: &mut [T],
    fold: F,
) {
    let whole = shape.whole();
    let mut done = 0;
    while done < output.len() {
        let window = first + done / shape.channels;
        let alike = if !F::COUNTS {
            output.len()
        } else if whole.contains(&window) {
            (whole.end - window).saturating_mul(shape.channels)
        } else {
            shape.channels
        };
        let end = output.len().min(done.saturating_add(alike));
        let count = rows * shape.seen(1, window).len();
        fold.finish(simd, &sums[done..], count, &mut output[done..end]);
        done = end;
    }
}
