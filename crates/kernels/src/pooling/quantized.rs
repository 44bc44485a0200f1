//! [`QuantizedPooling`].
#![allow(unsafe_code)]

use super::few_channels::{self, Fold};
use super::small_windows::{self, Means, Taps};
use super::{Pixels, Reduction, Run, Shape, Window};
use crate::InstructionSet;
use crate::image_kernel::{ImageKernel, Images};
use crate::lines::Line;
use crate::team::{Pace, Team};
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial, store_bytes_partial};
use std::marker::PhantomData;

/// Windows of fewer pixels are cheaper one by one than by the sums that they share.
const SHARED_PIXELS: usize = 16;

/// Windows up to this many elements have sums below 2^24, which are exact in f32.
const LARGEST_WINDOW: usize = 1 << 16;

/// Channels of the smallest block that is computed together.
const LEAST_BLOCK: usize = 16;

/// Prepared pooling of `u8` or `i8` images; input and output are quantized alike.
#[derive(Debug, Clone)]
pub struct QuantizedPooling<T> {
    isa: Isa,
    shape: Shape,
    reduction: Reduction,
    range: (i32, i32),
    /// Halves are rounded away from it.
    center: i32,
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
        Self { isa: Isa::of(set), shape, reduction, range, center: 0, stored: PhantomData }
    }

    /// The MEAN operation over windows: halves are rounded away from the zero point, which is where
    /// it differs from AVERAGE_POOL_2D.
    pub fn prepare_mean(set: InstructionSet, shape: Shape, zero_point: i32) -> Self {
        let center = zero_point.clamp(T::RANGE.0, T::RANGE.1);
        Self { center, ..Self::prepare(set, shape, Reduction::Average, T::RANGE) }
    }
}

impl<T: Byte> ImageKernel for QuantizedPooling<T> {
    type Element = T;

    fn name(&self) -> String {
        self.shape.name(self.reduction, T::NAME)
    }

    fn run(&self, team: &mut Team, images: Images<'_, T>, _: &mut [Line]) {
        let Images { input, output, .. } = images;
        self.shape.along_rows(team.threads()).for_each_row(team, input, output, |pixels| {
            self.isa.run(Reduce { pooling: self, pixels });
        });
    }
}

/// The reduction of a row of windows.
struct Reduce<'a, T> {
    pooling: &'a QuantizedPooling<T>,
    pixels: Pixels<'a, T>,
}

impl<T: Byte> Kernel for Reduce<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let QuantizedPooling { range, center, reduction, .. } = *self.pooling;
        let Shape { channels, stride, .. } = *self.pixels.shape;
        let are_few = few_channels::are_few(&self.pixels);
        let are_shared = stride[1] == 1 && self.pixels.shape.taps() >= SHARED_PIXELS;
        match reduction {
            Reduction::Max if are_few && (channels < LEAST_BLOCK || are_shared) => {
                let range = (T::nearest(range.0), T::nearest(range.1));
                few_channels::reduce(simd, &self.pixels, Greatest(range));
            }
            Reduction::Max => self.reduce::<S, true>(simd),
            _ if are_few && self.pixels.shape.taps() <= LARGEST_WINDOW => {
                few_channels::reduce(simd, &self.pixels, Means { center, range });
            }
            _ => self.reduce::<S, false>(simd),
        }
    }
}

/// The greatest element, clamped to a range.
#[derive(Clone, Copy)]
struct Greatest<T>((T, T));

impl<T: Byte> Fold<T> for Greatest<T> {
    type Sum = T;
    const COUNTS: bool = false;

    /// Less is not a result.
    #[inline(always)]
    fn nothing(self) -> T {
        self.0.0
    }

    #[inline(always)]
    fn of(value: T) -> T {
        value
    }

    #[inline(always)]
    fn join(value: T, sum: T) -> T {
        value.max(sum)
    }

    #[inline(always)]
    fn finish<S: Simd>(self, _: S, sums: &[T], _: usize, output: &mut [T]) {
        for (output, greatest) in output.iter_mut().zip(sums) {
            *output = (*greatest).min(self.0.1).max(self.0.0);
        }
    }
}

impl<T: Byte> Fold<T> for Means {
    type Sum = i32;
    const COUNTS: bool = true;

    #[inline(always)]
    fn nothing(self) -> i32 {
        0
    }

    #[inline(always)]
    fn of(value: T) -> i32 {
        value.wide()
    }

    #[inline(always)]
    fn join(value: i32, sum: i32) -> i32 {
        value.wrapping_add(sum)
    }

    #[inline(always)]
    fn finish<S: Simd>(self, simd: S, sums: &[i32], count: usize, output: &mut [T]) {
        let Self { center, range: (low, high) } = self;
        for (index, output) in output.chunks_mut(S::LANES).enumerate() {
            let mean = mean(simd, simd.iload(&sums[index * S::LANES..]), count, center);
            let mean = simd.imax(simd.isplat(low), simd.imin(simd.isplat(high), mean));
            if output.len() == S::LANES {
                T::store(simd, mean, output);
            } else {
                store_bytes_partial(simd, mean, output);
            }
        }
    }
}

impl<T: Byte> Reduce<'_, T> {
    #[inline(always)]
    fn reduce<S: Simd, const IS_MAX: bool>(self, simd: S) {
        let Pixels { shape, ref channels, output, stride, stop, .. } = self.pixels;
        let mut pace = Pace::new(stop);
        for run in self.pixels.runs() {
            run.check(&self.pixels);
            let is_done = match channels.len() {
                ..LEAST_BLOCK => false,
                LEAST_BLOCK..32 => self.blocks::<IS_MAX, LEAST_BLOCK>(run, &mut pace),
                32..64 => self.blocks::<IS_MAX, 32>(run, &mut pace),
                _ => self.blocks::<IS_MAX, 64>(run, &mut pace),
            };
            if is_done {
                continue;
            }
            for index in 0..run.count {
                if pace.is_over(run.window.count().saturating_mul(channels.len())) {
                    return;
                }
                // SAFETY: these channels of the row's pixels are no one else's.
                let output = unsafe { output.slice(run.start + index * stride, channels.len()) };
                let first = run.window.first + index * shape.stride[1];
                self.window::<S, IS_MAX>(simd, Window { first, ..run.window }, output, &mut pace);
            }
        }
    }

    /// The results of a window of any size.
    #[inline(always)]
    fn window<S: Simd, const IS_MAX: bool>(
        &self,
        simd: S,
        window: Window,
        output: &mut [T],
        pace: &mut Pace<'_>,
    ) {
        let mut channel = self.pixels.channels.start;
        if !IS_MAX && window.count() > LARGEST_WINDOW {
            for output in output {
                *output = self.mean_of_many(window, channel, pace);
                channel += 1;
            }
            return;
        }
        let mut groups = output.chunks_exact_mut(4 * S::LANES);
        let work = window.count().saturating_mul(4 * S::LANES);
        for group in groups.by_ref() {
            if pace.is_over(work) {
                return;
            }
            let values = self.reduce_vectors::<S, IS_MAX, 4>(simd, window, channel, pace);
            for (index, value) in values.into_iter().enumerate() {
                T::store(simd, value, &mut group[index * S::LANES..]);
            }
            channel += 4 * S::LANES;
        }
        for rest in groups.into_remainder().chunks_mut(S::LANES) {
            let [value] = self.reduce_vectors::<S, IS_MAX, 1>(simd, window, channel, pace);
            store_bytes_partial(simd, value, rest);
            channel += rest.len();
        }
    }

    /// The results of all channels, of which there is a block at least, if the windows have a size for
    /// that.
    #[inline(always)]
    fn blocks<const IS_MAX: bool, const B: usize>(&self, run: Run, pace: &mut Pace<'_>) -> bool {
        let QuantizedPooling { center, range, .. } = *self.pooling;
        let Pixels { shape, ref input, ref channels, output, stride, .. } = self.pixels;
        let Some(taps) = Taps::of(run.window, input.pixel_stride) else { return false };
        if !IS_MAX && !small_windows::has_means(&taps) {
            return false;
        }
        let step = shape.stride[1] * input.pixel_stride;
        let last = channels.len() - B;
        for index in 0..run.count {
            if pace.is_over(run.window.count()) {
                return true;
            }
            // SAFETY: these channels of the row's pixels are no one else's.
            let output = unsafe { output.slice(run.start + index * stride, channels.len()) };
            let further = index * step + channels.start;
            let mut first = 0;
            loop {
                let block = output[first..].first_chunk_mut::<B>().expect("a block begins in time");
                let further = further + first;
                if IS_MAX {
                    small_windows::greatest(&taps, input.values, further, range, block);
                } else {
                    let means = Means { center, range };
                    small_windows::means(&taps, input.values, further, means, block);
                }
                // Of a window of some pixels.
                if first == last || pace.is_over(16 * B) {
                    break;
                }
                // The last block together with some channels that are computed again.
                first = (first + B).min(last);
            }
        }
        true
    }

    /// The results for the next channels: as many as there are lanes, or as are left.
    #[inline(always)]
    fn reduce_vectors<S: Simd, const IS_MAX: bool, const N: usize>(
        &self,
        simd: S,
        window: Window,
        channel: usize,
        pace: &mut Pace<'_>,
    ) -> [S::I; N] {
        let count = (self.pixels.channels.end - channel).min(N * S::LANES);
        let first = if IS_MAX { T::RANGE.0 } else { 0 };
        let mut all = [simd.isplat(first); N];
        let is_large = window.is_large();
        for pixels in window.pixels() {
            for pixel in pixels {
                if is_large && pace.is_over(N * S::LANES) {
                    return all;
                }
                let start = pixel * self.pixels.input.pixel_stride + channel;
                let values = &self.pixels.input.values[start..start + count];
                for (index, all) in all.iter_mut().enumerate() {
                    let value = if N == 1 && count < S::LANES {
                        load_bytes_partial(simd, values)
                    } else {
                        T::load(simd, &values[index * S::LANES..])
                    };
                    *all = if IS_MAX { simd.imax(*all, value) } else { simd.iadd(*all, value) };
                }
            }
        }
        let (low, high) = self.pooling.range;
        for value in &mut all {
            if !IS_MAX {
                *value = mean(simd, *value, window.count(), self.pooling.center);
            }
            *value = simd.imax(simd.isplat(low), simd.imin(simd.isplat(high), *value));
        }
        all
    }

    /// The mean of a window that is too large for [`mean`].
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // A mean of bytes.
    fn mean_of_many(&self, window: Window, channel: usize, pace: &mut Pace<'_>) -> T {
        let (low, high) = self.pooling.range;
        let center = i64::from(self.pooling.center);
        let element = |pixel: usize| {
            self.pixels.input.values[pixel * self.pixels.input.pixel_stride + channel]
        };
        let offset = |pixel: usize| i64::from(element(pixel).wide()) - center;
        let mut sum = 0;
        for pixels in window.pixels() {
            for block in pace.blocks(pixels.len(), 1) {
                sum += block.map(|at| offset(pixels.start + at)).sum::<i64>();
            }
        }
        let count = window.count() as i64;
        let half = if sum > 0 { count / 2 } else { -(count / 2) };
        T::nearest(((((sum + half) / count) + center) as i32).max(low).min(high))
    }
}

/// Means out of sums of up to [`LARGEST_WINDOW`] bytes. A quotient of numbers below 2^24 that is no
/// integer is never rounded to the next one: it is further away than half a unit in the last place.
#[inline(always)]
fn mean<S: Simd>(simd: S, sum: S::I, count: usize, center: i32) -> S::I {
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // At most 2^16.
    let count = count.max(1) as i32;
    let sum = simd.isub(sum, simd.isplat(center * count));
    let sign = simd.shift_right(sum, 31);
    let magnitude = simd.isub(simd.ixor(sum, sign), sign);
    let magnitude = simd.to_f32(simd.iadd(magnitude, simd.isplat(count / 2)));
    let divisor = simd.to_f32(simd.isplat(count));
    let mean = simd.to_i32(simd.floor(simd.div(magnitude, divisor)));
    simd.iadd(simd.isub(simd.ixor(mean, sign), sign), simd.isplat(center))
}
