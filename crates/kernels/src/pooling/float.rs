//! [`FloatPooling`].
#![allow(unsafe_code)]

use super::few_channels::{self, Fold};
use super::{Pixels, Reduction, Shape, Window};
use crate::InstructionSet;
use crate::image_kernel::{ImageKernel, Images};
use crate::lines::Line;
use crate::team::{BLOCK, Pace, Team};
use crate::vector::{Isa, Kernel, Simd, functions};

/// Prepared pooling of float32 images.
#[derive(Debug, Clone)]
pub struct FloatPooling {
    isa: Isa,
    shape: Shape,
    reduction: Reduction,
    range: (f32, f32),
}

impl FloatPooling {
    /// Pooling whose results are clamped to a range.
    pub fn prepare(
        set: InstructionSet,
        shape: Shape,
        reduction: Reduction,
        range: (f32, f32),
    ) -> Self {
        Self { isa: Isa::of(set), shape, reduction, range }
    }
}

impl ImageKernel for FloatPooling {
    type Element = f32;

    fn name(&self) -> String {
        self.shape.name(self.reduction, "f32")
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, _: &mut [Line]) {
        let Images { input, output, .. } = images;
        self.shape.along_rows(team.threads()).for_each_row(team, input, output, |pixels| {
            self.isa.run(Reduce { pooling: self, pixels });
        });
    }
}

/// Pixels of a small window, at most.
const FEW_PIXELS: usize = 9;

/// The reduction of a row of windows.
struct Reduce<'a> {
    pooling: &'a FloatPooling,
    pixels: Pixels<'a, f32>,
}

impl Kernel for Reduce<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let are_few = few_channels::are_few(&self.pixels);
        let Shape { channels, stride, .. } = *self.pixels.shape;
        // Windows that share pixels share sums, where channels are few.
        let are_alone = are_few && stride[1] > 1 && channels >= S::LANES;
        let are_small = are_alone && self.pixels.shape.taps() <= FEW_PIXELS;
        match self.pooling.reduction {
            Reduction::Average if are_small => self.reduce_small::<S, 0>(simd),
            Reduction::Max if are_small => self.reduce_small::<S, 1>(simd),
            Reduction::L2 if are_small => self.reduce_small::<S, 2>(simd),
            Reduction::Average if are_few => self.reduce_few::<S, 0>(simd),
            Reduction::Max if are_few => self.reduce_few::<S, 1>(simd),
            Reduction::L2 if are_few => self.reduce_few::<S, 2>(simd),
            Reduction::Average => self.reduce::<S, 0>(simd),
            Reduction::Max => self.reduce::<S, 1>(simd),
            Reduction::L2 => self.reduce::<S, 2>(simd),
        }
    }
}

/// As `WHAT` of [`Reduce::reduce`], clamped to a range.
#[derive(Clone, Copy)]
struct Clamped<const WHAT: u8>((f32, f32));

impl<const WHAT: u8> Fold<f32> for Clamped<WHAT> {
    type Sum = f32;
    const COUNTS: bool = WHAT != 1;

    #[inline(always)]
    fn nothing(self) -> f32 {
        if WHAT == 1 { f32::NEG_INFINITY } else { 0.0 }
    }

    #[inline(always)]
    fn of(value: f32) -> f32 {
        if WHAT == 2 { value * value } else { value }
    }

    #[inline(always)]
    fn first(value: f32) -> f32 {
        // A NaN counts for nothing, also where it comes first: it would stay, as nothing exceeds it.
        if WHAT == 1 { Self::join(value, f32::NEG_INFINITY) } else { Self::of(value) }
    }

    #[inline(always)]
    fn join(value: f32, sum: f32) -> f32 {
        match WHAT {
            1 if value > sum => value,
            1 => sum,
            _ => value + sum,
        }
    }

    #[inline(always)]
    fn finish<S: Simd>(self, simd: S, sums: &[f32], count: usize, output: &mut [f32]) {
        for (sums, output) in sums.chunks(S::LANES).zip(output.chunks_mut(S::LANES)) {
            if output.len() == S::LANES {
                simd.store(self.result(simd, simd.load(sums), count), output);
            } else {
                let sums = simd.load_partial(&sums[..output.len()], 0.0);
                simd.store_partial(self.result(simd, sums, count), output);
            }
        }
    }
}

impl<const WHAT: u8> Clamped<WHAT> {
    /// What sums of this many elements become.
    #[inline(always)]
    fn result<S: Simd>(self, simd: S, sum: S::F, count: usize) -> S::F {
        #[allow(clippy::cast_precision_loss)] // Counts of pixels; the rounding does not matter.
        let count = simd.splat(count.max(1) as f32);
        let value = match WHAT {
            0 => simd.div(sum, count),
            1 => sum,
            _ => simd.sqrt(simd.div(sum, count)),
        };
        let (low, high) = self.0;
        functions::clamp(simd, value, simd.splat(low), simd.splat(high))
    }
}

/// Adds elements to sums.
#[inline(always)]
fn add<S: Simd, const WHAT: u8>(simd: S, sum: S::F, value: S::F) -> S::F {
    match WHAT {
        0 => simd.add(sum, value),
        1 => simd.max(value, sum),
        _ => simd.fma(value, value, sum),
    }
}

impl Reduce<'_> {
    #[inline(always)]
    fn reduce_few<S: Simd, const WHAT: u8>(self, simd: S) {
        few_channels::reduce(simd, &self.pixels, Clamped::<WHAT>(self.pooling.range));
    }

    /// As [`Self::reduce`], of windows of at most [`FEW_PIXELS`], and few channels.
    #[inline(always)]
    fn reduce_small<S: Simd, const WHAT: u8>(self, simd: S) {
        let Pixels { input, ref channels, .. } = self.pixels;
        let clamped = Clamped::<WHAT>(self.pooling.range);
        let nothing = simd.splat(clamped.nothing());
        for (window, start) in self.pixels.windows() {
            // SAFETY: these channels of the row's pixels are no one else's.
            let output = unsafe { self.pixels.output.slice(start, channels.len()) };
            let mut starts = [0; FEW_PIXELS];
            for (start, pixel) in starts.iter_mut().zip(window.pixels().flatten()) {
                *start = pixel * input.pixel_stride + channels.start;
            }
            for (index, output) in output.chunks_mut(S::LANES).enumerate() {
                let mut all = nothing;
                let mut pixel = 0;
                for _ in 0..window.rows {
                    // As there.
                    let mut row = nothing;
                    for _ in 0..window.columns {
                        let values = &input.values[starts[pixel] + index * S::LANES..];
                        pixel += 1;
                        row = if output.len() == S::LANES {
                            add::<S, WHAT>(simd, row, simd.load(values))
                        } else {
                            let values = &values[..output.len()];
                            add::<S, WHAT>(simd, row, simd.load_partial(values, 0.0))
                        };
                    }
                    all = if WHAT == 1 { simd.max(row, all) } else { simd.add(all, row) };
                }
                let result = clamped.result(simd, all, window.count());
                if output.len() == S::LANES {
                    simd.store(result, output);
                } else {
                    simd.store_partial(result, output);
                }
            }
        }
    }

    /// 0: the average, 1: the greatest, 2: L2.
    #[inline(always)]
    fn reduce<S: Simd, const WHAT: u8>(self, simd: S) {
        let mut pace = Pace::new(self.pixels.stop);
        for (window, start) in self.pixels.windows() {
            // SAFETY: these channels of the row's pixels are no one else's.
            let output = unsafe { self.pixels.output.slice(start, self.pixels.channels.len()) };
            let mut channel = self.pixels.channels.start;
            // Mostly all channels.
            for output in output.chunks_mut(BLOCK) {
                if output.len() == BLOCK && pace.is_over(window.count().saturating_mul(BLOCK)) {
                    return;
                }
                let mut groups = output.chunks_exact_mut(4 * S::LANES);
                for group in groups.by_ref() {
                    let values =
                        self.reduce_vectors::<S, WHAT, 4>(simd, window, channel, &mut pace);
                    for (index, value) in values.into_iter().enumerate() {
                        simd.store(value, &mut group[index * S::LANES..]);
                    }
                    channel += 4 * S::LANES;
                }
                for rest in groups.into_remainder().chunks_mut(S::LANES) {
                    let [value] =
                        self.reduce_vectors::<S, WHAT, 1>(simd, window, channel, &mut pace);
                    simd.store_partial(value, rest);
                    channel += rest.len();
                }
            }
        }
    }

    /// The results for the next channels: as many as there are lanes, or as are left.
    #[inline(always)]
    fn reduce_vectors<S: Simd, const WHAT: u8, const N: usize>(
        &self,
        simd: S,
        window: Window,
        channel: usize,
        pace: &mut Pace<'_>,
    ) -> [S::F; N] {
        let count = (self.pixels.channels.end - channel).min(N * S::LANES);
        let first = if WHAT == 1 { f32::NEG_INFINITY } else { 0.0 };
        let mut all = [simd.splat(first); N];
        let is_large = window.is_large();
        for pixels in window.pixels() {
            // A row's sum of its own keeps the error of long sums small.
            let mut row = [simd.splat(first); N];
            for pixel in pixels {
                if is_large && pace.is_over(N * S::LANES) {
                    return all;
                }
                let start = pixel * self.pixels.input.pixel_stride + channel;
                let values = &self.pixels.input.values[start..start + count];
                for (index, sum) in row.iter_mut().enumerate() {
                    let value = if values.len() < N * S::LANES {
                        simd.load_partial(values, 0.0)
                    } else {
                        simd.load(&values[index * S::LANES..])
                    };
                    *sum = add::<S, WHAT>(simd, *sum, value);
                }
            }
            for (all, row) in all.iter_mut().zip(row) {
                *all = if WHAT == 1 { simd.max(row, *all) } else { simd.add(*all, row) };
            }
        }
        let clamped = Clamped::<WHAT>(self.pooling.range);
        // No `map`, which would call a closure that is compiled without the instruction set.
        for value in &mut all {
            *value = clamped.result(simd, *value, window.count());
        }
        all
    }
}
