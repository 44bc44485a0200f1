//! [`QuantizedPooling`].
#![allow(unsafe_code)]

use super::{Reduction, Shape, Window};
use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::image::{Image, ImageMut};
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd};
use std::marker::PhantomData;
use std::ops::Range;

/// Channels that are worked on together.
const CHANNELS: usize = 64;

/// So many bytes' sum fits into 16 bits, signed or not.
const BYTES_OF_SUM: usize = 128;

/// Windows up to so many elements have sums below 2^24, which are exact in f32.
const LARGEST_WINDOW: usize = 1 << 16;

/// Prepared pooling of `u8` or `i8` images; input and output are quantised alike.
#[derive(Debug, Clone)]
pub struct QuantizedPooling<T> {
    isa: Isa,
    shape: Shape,
    reduction: Reduction,
    range: (i32, i32),
    stored: PhantomData<T>,
}

impl<T: Byte> QuantizedPooling<T> {
    /// Pooling whose results are clamped to stored values from `range.0` to `range.1`.
    ///
    /// # Panics
    /// If L2 is asked for.
    pub fn prepare(
        set: InstructionSet,
        shape: Shape,
        reduction: Reduction,
        range: (i32, i32),
    ) -> Self {
        assert!(reduction != Reduction::L2, "L2 is not defined for stored values");
        let range = (range.0.max(T::RANGE.0), range.1.min(T::RANGE.1));
        Self { isa: Isa::of(set), shape, reduction, range, stored: PhantomData }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If an image is smaller than what was prepared for.
    pub fn run(&self, team: &mut Team, input: Image<'_, T>, output: ImageMut<'_, T>) {
        let sizes = (input.values.len(), input.pixel_stride);
        let (stride, values) = (output.pixel_stride, DisjointOutput::new(output.values));
        self.shape.for_each_window(
            team,
            sizes,
            (values.len(), stride),
            |pixel, window, channels| {
                let start = pixel * stride + channels.start;
                // SAFETY: every call has its own pixel or its own channels of it.
                let output = unsafe { values.slice(start, channels.len()) };
                self.isa.run(Pixel { pooling: self, input, window, channels, output });
            },
        );
    }
}

/// One output pixel.
struct Pixel<'a, T> {
    pooling: &'a QuantizedPooling<T>,
    input: Image<'a, T>,
    window: Window,
    channels: Range<usize>,
    output: &'a mut [T],
}

impl<T: Byte> Kernel for Pixel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { pooling, input, window, channels, output } = self;
        let (low, high) = pooling.range;
        let count = window.count();
        let tap = |pixel: usize, channel: usize, length: usize| {
            let start = pixel * input.pixel_stride + channel;
            &input.values[start..start + length]
        };
        for (index, output) in output.chunks_mut(CHANNELS).enumerate() {
            let channel = channels.start + index * CHANNELS;
            let length = output.len();
            if pooling.reduction == Reduction::Max {
                let mut greatest = [T::nearest(low); CHANNELS];
                for pixel in window.pixels().flatten() {
                    maximum(&mut greatest, tap(pixel, channel, length));
                }
                for (output, greatest) in output.iter_mut().zip(greatest) {
                    *output = T::nearest(greatest.wide().min(high));
                }
            } else if count > LARGEST_WINDOW {
                for (offset, output) in output.iter_mut().enumerate() {
                    let elements = window.pixels().flatten();
                    let elements = elements.map(|pixel| tap(pixel, channel + offset, 1)[0].wide());
                    *output =
                        T::nearest(mean(elements.map(i64::from).sum(), count).max(low).min(high));
                }
            } else {
                let mut sums = [0_i32; CHANNELS];
                let mut part = [0_i16; CHANNELS];
                for (number, pixel) in window.pixels().flatten().enumerate() {
                    add(&mut part, tap(pixel, channel, length));
                    if number % BYTES_OF_SUM == BYTES_OF_SUM - 1 {
                        flush(&mut sums, &mut part);
                    }
                }
                flush(&mut sums, &mut part);
                divide(simd, &mut sums, count, (low, high));
                for (output, sum) in output.iter_mut().zip(sums) {
                    *output = T::nearest(sum);
                }
            }
        }
    }
}

/// The nearest integer to `sum / count`, halves away from zero.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // A mean of bytes.
fn mean(sum: i64, count: usize) -> i32 {
    let count = count.max(1) as i64;
    let half = if sum > 0 { count / 2 } else { -(count / 2) };
    ((sum + half) / count) as i32
}

// Loops over arrays of a known length are vector instructions.

#[inline(always)]
fn maximum<T: Byte>(greatest: &mut [T; CHANNELS], tap: &[T]) {
    let larger = |a: T, b: T| if a.wide() > b.wide() { a } else { b };
    if let Ok(tap) = <&[T; CHANNELS]>::try_from(tap) {
        for (greatest, tap) in greatest.iter_mut().zip(tap) {
            *greatest = larger(*greatest, *tap);
        }
    } else {
        for (greatest, tap) in greatest.iter_mut().zip(tap) {
            *greatest = larger(*greatest, *tap);
        }
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // Bytes.
fn add<T: Byte>(part: &mut [i16; CHANNELS], tap: &[T]) {
    if let Ok(tap) = <&[T; CHANNELS]>::try_from(tap) {
        for (part, tap) in part.iter_mut().zip(tap) {
            *part += tap.wide() as i16;
        }
    } else {
        for (part, tap) in part.iter_mut().zip(tap) {
            *part += tap.wide() as i16;
        }
    }
}

#[inline(always)]
fn flush(sums: &mut [i32; CHANNELS], part: &mut [i16; CHANNELS]) {
    for (sum, part) in sums.iter_mut().zip(part) {
        *sum += i32::from(*part);
        *part = 0;
    }
}

/// Means out of sums below 2^24 in magnitude. A quotient of such numbers that is no integer is
/// never rounded to the next one: it is further away than half a unit in the last place.
#[inline(always)]
fn divide<S: Simd>(simd: S, sums: &mut [i32; CHANNELS], count: usize, range: (i32, i32)) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // At most 2^16.
    let count = count.max(1) as i32;
    let divisor = simd.to_f32(simd.isplat(count));
    for sums in sums.chunks_exact_mut(S::LANES) {
        let sum = simd.iload(sums);
        let sign = simd.shift_right(sum, 31);
        let magnitude = simd.isub(simd.ixor(sum, sign), sign);
        let magnitude = simd.iadd(magnitude, simd.isplat(count / 2));
        let mean = simd.to_i32(simd.floor(simd.div(simd.to_f32(magnitude), divisor)));
        let mean = simd.isub(simd.ixor(mean, sign), sign);
        let mean = simd.imax(simd.isplat(range.0), simd.imin(simd.isplat(range.1), mean));
        simd.istore(mean, sums);
    }
}
