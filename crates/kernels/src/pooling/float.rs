//! [`FloatPooling`].
#![allow(unsafe_code)]

use super::few_channels::{self, Fold};
use super::{Pixels, Reduction, Shape, Window};
use crate::InstructionSet;
use crate::image_kernel::{ImageKernel, Images};
use crate::lines::Line;
use crate::team::{Pace, Team};
use crate::unrolled::unrolled;
use crate::vector::pointers::{load_some, store_some};
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

/// Windows of more pixels that overlap are cheaper by the sums they share.
const MOST_PIXELS: usize = 30;

/// Columns of windows that share the sums of columns with those side by side.
const SHARED: usize = 3;

/// Pixels of a row of a window that are looked at without a question whether to go on.
const MOST_COLUMNS: usize = 1024;

/// The reduction of a row of windows.
struct Reduce<'a> {
    pooling: &'a FloatPooling,
    pixels: Pixels<'a, f32>,
}

impl Kernel for Reduce<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Shape { channels, stride, .. } = *self.pixels.shape;
        let are_shared = stride[1] == 1 && self.pixels.shape.taps() > MOST_PIXELS;
        let are_few = (channels < S::LANES || are_shared) && few_channels::are_few(&self.pixels);
        match self.pooling.reduction {
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
        let share = simd.splat(1.0 / count.max(1) as f32);
        let value = match WHAT {
            0 => simd.mul(sum, share),
            1 => sum,
            _ => simd.sqrt(simd.mul(sum, share)),
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

    /// 0: the average, 1: the greatest, 2: L2.
    #[inline(always)]
    fn reduce<S: Simd, const WHAT: u8>(self, simd: S) {
        let Pixels { shape, ref input, ref channels, output, stride, stop, .. } = self.pixels;
        let mut pace = Pace::new(stop);
        for run in self.pixels.runs() {
            run.check(&self.pixels);
            let pixel = run.window.first.wrapping_mul(input.pixel_stride);
            let mut first = input.values.as_ptr().wrapping_add(pixel).wrapping_add(channels.start);
            let mut to = output.pointer(run.start);
            if run.count > 1 && run.window.columns == SHARED && shape.stride[1] < SHARED {
                let seen = Seen { first, window: run.window, pixel_stride: input.pixel_stride };
                let room = (to, stride, channels.len());
                // SAFETY: as below.
                unsafe { self.side_by_side::<S, WHAT>(simd, seen, run.count, room, &mut pace) };
                continue;
            }
            for _ in 0..run.count {
                if pace.is_over(run.window.count()) {
                    return;
                }
                let seen = Seen { first, window: run.window, pixel_stride: input.pixel_stride };
                // SAFETY: the values reach to the last channel of the last pixel that is seen, as was just checked. These channels
                // of the row's pixels are no one else's, and `for_each_row` has seen that they are there.
                unsafe { self.channels::<S, WHAT>(simd, seen, (to, channels.len()), &mut pace) };
                first = first.wrapping_add(shape.stride[1] * input.pixel_stride);
                to = to.wrapping_add(stride);
            }
        }
    }

    /// The results of this many windows of [`SHARED`] columns. There is room for them, with a distance from one to the next, and
    /// this many channels.
    ///
    /// # Safety
    /// As of [`Self::channels`], for all windows.
    #[inline(always)]
    unsafe fn side_by_side<S: Simd, const WHAT: u8>(
        &self,
        simd: S,
        seen: Seen,
        count: usize,
        (to, stride, all): (*mut f32, usize, usize),
        pace: &mut Pace<'_>,
    ) {
        let work = seen.window.count().saturating_mul(2 * S::LANES).saturating_mul(count);
        let mut done = 0;
        while done < all && !pace.is_over(work) {
            let (seen, room, left) =
                (seen.behind(done), (to.wrapping_add(done), stride), all - done);
            // SAFETY: as the caller promises.
            done += unsafe {
                if left >= 2 * S::LANES {
                    self.along::<S, WHAT, true, 2>(simd, (seen, 2 * S::LANES), count, room)
                } else if left >= S::LANES {
                    self.along::<S, WHAT, true, 1>(simd, (seen, S::LANES), count, room)
                } else {
                    self.along::<S, WHAT, false, 1>(simd, (seen, left), count, room)
                }
            };
        }
    }

    /// [`Self::side_by_side`] of the next channels: as many as there are lanes in `N` vectors, or the `wanted` ones of a single
    /// one. The sum of a column is that of all windows that see it. Gives the number of channels.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn along<S: Simd, const WHAT: u8, const FULL: bool, const N: usize>(
        &self,
        simd: S,
        (mut seen, wanted): (Seen, usize),
        count: usize,
        (mut to, stride): (*mut f32, usize),
    ) -> usize {
        let (pixels, step) = (seen.window.count(), self.pooling.shape.stride[1]);
        let clamped = Clamped::<WHAT>(self.pooling.range);
        // SAFETY: as the caller promises; no column is behind the last window's last one.
        unsafe {
            let mut columns = [seen.column::<S, WHAT, FULL, N>(simd, 0, wanted); SHARED];
            for index in 0..count {
                if index == 0 || step == 2 {
                    columns[1] = seen.column::<S, WHAT, FULL, N>(simd, 1, wanted);
                }
                columns[2] = seen.column::<S, WHAT, FULL, N>(simd, 2, wanted);
                unrolled! { VECTOR < N, 0 1 => {
                    let [a, b, c] = [columns[0][VECTOR], columns[1][VECTOR], columns[2][VECTOR]];
                    let sum = match WHAT {
                        1 => simd.max(simd.max(a, b), c),
                        _ => simd.add(simd.add(a, b), c),
                    };
                    let result = clamped.result(simd, sum, pixels);
                    store_some::<S, FULL>(simd, result, to.add(VECTOR * S::LANES), wanted);
                } }
                let [_, second, third] = columns;
                columns = [if step == 1 { second } else { third }, third, third];
                seen = seen.behind(step * seen.pixel_stride);
                to = to.wrapping_add(stride);
            }
        }
        wanted
    }

    /// The results of one window.
    ///
    /// # Safety
    /// For all of these channels, the pixels that are seen are there, and there is room for the results, which no one else touches.
    #[inline(always)]
    unsafe fn channels<S: Simd, const WHAT: u8>(
        &self,
        simd: S,
        seen: Seen,
        (to, all): (*mut f32, usize),
        pace: &mut Pace<'_>,
    ) {
        let work = seen.window.count().saturating_mul(4 * S::LANES);
        let mut done = 0;
        // SAFETY: as the caller promises.
        unsafe {
            while all - done >= 4 * S::LANES {
                if pace.is_over(work) {
                    return;
                }
                let channels = (seen.behind(done), 4 * S::LANES);
                self.vectors::<S, WHAT, true, 4>(simd, channels, to.add(done), pace);
                done += 4 * S::LANES;
            }
            if all - done >= 2 * S::LANES {
                let channels = (seen.behind(done), 2 * S::LANES);
                self.vectors::<S, WHAT, true, 2>(simd, channels, to.add(done), pace);
                done += 2 * S::LANES;
            }
            if all - done >= S::LANES {
                let channels = (seen.behind(done), S::LANES);
                self.vectors::<S, WHAT, true, 1>(simd, channels, to.add(done), pace);
                done += S::LANES;
            }
            if all > done {
                let channels = (seen.behind(done), all - done);
                self.vectors::<S, WHAT, false, 1>(simd, channels, to.add(done), pace);
            }
        }
    }

    /// The results for the next channels: as many as there are lanes in `N` vectors, or the `wanted` ones of a single one.
    ///
    /// # Safety
    /// All pixels that are seen have them, and there is room for the results.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const WHAT: u8, const FULL: bool, const N: usize>(
        &self,
        simd: S,
        (seen, wanted): (Seen, usize),
        to: *mut f32,
        pace: &mut Pace<'_>,
    ) {
        let count = seen.window.count();
        let clamped = Clamped::<WHAT>(self.pooling.range);
        // SAFETY: as the caller promises.
        unsafe {
            let sums = seen.fold::<S, WHAT, FULL, N>(simd, wanted, pace);
            unrolled! { VECTOR < N, 0 1 2 3 => {
                let result = clamped.result(simd, sums[VECTOR], count);
                store_some::<S, FULL>(simd, result, to.add(VECTOR * S::LANES), wanted);
            } }
        }
    }
}

/// What a window sees, of some channels.
#[derive(Clone, Copy)]
struct Seen {
    /// The first of the channels of the first pixel.
    first: *const f32,
    window: Window,
    /// From a pixel to the next one.
    pixel_stride: usize,
}

impl Seen {
    /// Those this number of channels farther on.
    #[inline(always)]
    fn behind(self, channels: usize) -> Self {
        Self { first: self.first.wrapping_add(channels), ..self }
    }

    /// The sums of a single column.
    ///
    /// # Safety
    /// As of [`Self::fold`].
    #[inline(always)]
    unsafe fn column<S: Simd, const WHAT: u8, const FULL: bool, const N: usize>(
        self,
        simd: S,
        column: usize,
        wanted: usize,
    ) -> [S::F; N] {
        let Self { first, window, pixel_stride } = self;
        let mut sums = [simd.splat(if WHAT == 1 { f32::NEG_INFINITY } else { 0.0 }); N];
        let mut at = first.wrapping_add(column.wrapping_mul(pixel_stride));
        for _ in 0..window.rows {
            unrolled! { VECTOR < N, 0 1 => {
                // SAFETY: as the caller promises.
                let value =
                    unsafe { load_some::<S, FULL>(simd, at.add(VECTOR * S::LANES), wanted) };
                sums[VECTOR] = add::<S, WHAT>(simd, sums[VECTOR], value);
            } }
            at = at.wrapping_add(window.width.wrapping_mul(pixel_stride));
        }
        sums
    }

    /// The sums of the next channels: as many as there are lanes in `N` vectors, or the `wanted` ones of a single one.
    ///
    /// # Safety
    /// All pixels have them.
    #[inline(always)]
    unsafe fn fold<S: Simd, const WHAT: u8, const FULL: bool, const N: usize>(
        self,
        simd: S,
        wanted: usize,
        pace: &mut Pace<'_>,
    ) -> [S::F; N] {
        let nothing = simd.splat(if WHAT == 1 { f32::NEG_INFINITY } else { 0.0 });
        let mut all = [nothing; N];
        let is_large = self.window.is_large();
        let mut row = self;
        for _ in 0..self.window.rows {
            // A row's sum of its own keeps the error of long sums small.
            let mut sums = if WHAT == 1 { all } else { [nothing; N] };
            if is_large {
                let mut piece = row;
                while piece.window.columns > 0 {
                    let columns = piece.window.columns.min(MOST_COLUMNS);
                    if pace.is_over(columns * N * S::LANES) {
                        return all;
                    }
                    // SAFETY: as the caller promises.
                    sums =
                        unsafe { piece.columns::<S, WHAT, FULL, N>(simd, sums, columns, wanted) };
                    piece.first = piece.first.wrapping_add(columns.wrapping_mul(self.pixel_stride));
                    piece.window.columns -= columns;
                }
            } else {
                let columns = row.window.columns;
                // SAFETY: as the caller promises.
                sums = unsafe { row.columns::<S, WHAT, FULL, N>(simd, sums, columns, wanted) };
            }
            unrolled! { VECTOR < N, 0 1 2 3 => {
                all[VECTOR] = match WHAT {
                    1 => sums[VECTOR],
                    _ => simd.add(all[VECTOR], sums[VECTOR]),
                };
            } }
            row = row.behind(self.window.width.wrapping_mul(self.pixel_stride));
        }
        all
    }

    /// The sums of this many pixels of the first row, and of what was summed before. Loops that may end early keep sums in memory,
    /// from step to step: this one does not.
    ///
    /// # Safety
    /// As of [`Self::fold`].
    #[inline(always)]
    unsafe fn columns<S: Simd, const WHAT: u8, const FULL: bool, const N: usize>(
        self,
        simd: S,
        mut sums: [S::F; N],
        columns: usize,
        wanted: usize,
    ) -> [S::F; N] {
        let mut at = self.first;
        for _ in 0..columns {
            unrolled! { VECTOR < N, 0 1 2 3 => {
                // SAFETY: as the caller promises.
                let value =
                    unsafe { load_some::<S, FULL>(simd, at.add(VECTOR * S::LANES), wanted) };
                sums[VECTOR] = add::<S, WHAT>(simd, sums[VECTOR], value);
            } }
            at = at.wrapping_add(self.pixel_stride);
        }
        sums
    }
}
