//! The innermost part of the depthwise convolutions that [`super::sliding`] does in the order of memory: some pixels side by side,
//! cache line by cache line of their channels. Each line of the input is loaded once for these pixels, and is not needed any more when
//! others take its place in the first cache. Offsets are multiplied without a check of overflow, for they are those of memory
//! that is promised to be there.
#![allow(unsafe_code)]

use super::sliding_microkernel::Strip;
use crate::unrolled::unrolled;
use crate::vector::pointers::{load, load_some, store_some};
use crate::vector::{Isa, Kernel, Simd};

/// Rows and columns of the filter.
const FILTER: usize = 3;

/// Vectors of a cache line.
const VECTORS: usize = 2;

/// The most pixels that are computed together: their sums fit in sixteen registers, with the weights of a row of the filter and a
/// value for each vector.
const MOST_PIXELS: usize = 3;

/// Whether strips can be computed in this order: filters of 3x3 where two vectors are a line. That is so for NEON too, with which it has
/// not been measured.
pub(super) fn suits(isa: Isa, filter: usize) -> bool {
    filter == FILTER && has_kernel(isa.lanes(), isa.registers())
}

/// Whether there is a kernel for vectors of this many lanes, and this many registers.
const fn has_kernel(lanes: usize, registers: usize) -> bool {
    lanes == 8 && registers == 16 && cfg!(target_arch = "x86_64")
}

struct Microkernel<'a, const STRIDE: usize>(&'a Strip<'a>);

impl<const STRIDE: usize> Kernel for Microkernel<'_, STRIDE> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // What is never run need not be compiled.
        if const { !has_kernel(S::LANES, S::REGISTERS) } {
            unreachable!("no such strip");
        }
        let strip = self.0;
        let mut pixel = 0;
        // SAFETY: as `run_row` was promised, for these pixels.
        unsafe {
            while pixel + MOST_PIXELS <= strip.width {
                channels::<S, STRIDE, MOST_PIXELS>(simd, strip, pixel);
                pixel += MOST_PIXELS;
            }
            match strip.width - pixel {
                1 => channels::<S, STRIDE, 1>(simd, strip, pixel),
                2 => channels::<S, STRIDE, 2>(simd, strip, pixel),
                _ => {}
            }
        }
    }
}

/// Some pixels, which see some columns of the input.
#[derive(Clone, Copy)]
struct Pixels {
    /// Where the first pixel's first tap would see the first channel.
    input: *const f32,
    /// By column from there on: whether it is in the image and not padding.
    columns_seen: u32,
    /// The first channel of the first of them.
    output: *mut f32,
    residual: Option<*const f32>,
}

/// Computes all channels of `PIXELS` pixels from `first` on.
///
/// # Safety
/// As of [`run_row`].
#[inline(always)]
unsafe fn channels<S: Simd, const STRIDE: usize, const PIXELS: usize>(
    simd: S,
    strip: &Strip<'_>,
    first: usize,
) {
    // Of the columns that are in the image; before it there are as many as padding.
    let column = first.wrapping_mul(STRIDE).wrapping_sub(strip.padding);
    let mut columns_seen = 0;
    for index in 0..(PIXELS - 1) * STRIDE + FILTER {
        columns_seen |= u32::from(column.wrapping_add(index) < strip.columns) << index;
    }
    let mut pixels = Pixels {
        input: strip.input.wrapping_add(column.wrapping_mul(strip.column_step)),
        columns_seen,
        output: strip.output.wrapping_add(first.wrapping_mul(strip.output_column_step)),
        residual: strip
            .residual
            .map(|it| it.wrapping_add(first.wrapping_mul(strip.residual_column_step))),
    };
    let mut panel = strip.panels;
    let mut left = strip.channels;
    // SAFETY: as the caller promises, for these channels.
    unsafe {
        while left >= VECTORS * S::LANES {
            line::<S, true, VECTORS, STRIDE, PIXELS>(simd, strip, pixels, panel, S::LANES);
            pixels.advance(VECTORS * S::LANES);
            panel = panel.wrapping_add(VECTORS * S::LANES * (1 + FILTER * FILTER));
            left -= VECTORS * S::LANES;
        }
        if left >= S::LANES {
            line::<S, true, 1, STRIDE, PIXELS>(simd, strip, pixels, panel, S::LANES);
            pixels.advance(S::LANES);
            panel = panel.wrapping_add(S::LANES * (1 + FILTER * FILTER));
            left -= S::LANES;
        }
        if left > 0 {
            line::<S, false, 1, STRIDE, PIXELS>(simd, strip, pixels, panel, left);
        }
    }
}

impl Pixels {
    /// Goes to later channels.
    #[inline(always)]
    fn advance(&mut self, channels: usize) {
        self.input = self.input.wrapping_add(channels);
        self.output = self.output.wrapping_add(channels);
        self.residual = self.residual.map(|residual| residual.wrapping_add(channels));
    }
}

/// Computes the channels of `COUNT` vectors, of the last of which `wanted` are there if they are not `FULL`.
///
/// # Safety
/// As of [`run_row`], for these channels, whose panels are at `panel`.
#[inline(always)]
unsafe fn line<
    S: Simd,
    const FULL: bool,
    const COUNT: usize,
    const STRIDE: usize,
    const PIXELS: usize,
>(
    simd: S,
    strip: &Strip<'_>,
    pixels: Pixels,
    panel: *const f32,
    wanted: usize,
) {
    // A copy, which no store to the output can be thought to change.
    let epilogue = *strip.epilogue;
    let panel_step = S::LANES * (1 + FILTER * FILTER);
    // SAFETY: as the caller promises; rows and columns are read that are in the image.
    unsafe {
        let mut sums = [[simd.splat(0.0); VECTORS]; MOST_PIXELS];
        unrolled! { VECTOR < COUNT, 0 1 => {
            let bias = load(simd, panel.add(VECTOR * panel_step));
            unrolled! { PIXEL < PIXELS, 0 1 2 => { sums[PIXEL][VECTOR] = bias; }}
        }}
        unrolled! { ROW < FILTER, 0 1 2 => {
            if strip.rows_seen & (1 << ROW) != 0 {
                let mut weights = [[simd.splat(0.0); VECTORS]; FILTER];
                unrolled! { TAP < FILTER, 0 1 2 => {
                    unrolled! { VECTOR < COUNT, 0 1 => {
                        let at = VECTOR * panel_step + (1 + ROW * FILTER + TAP) * S::LANES;
                        weights[TAP][VECTOR] = load(simd, panel.add(at));
                    }}
                }}
                let row = pixels.input.wrapping_add(strip.row_step.wrapping_mul(ROW));
                unrolled! { COLUMN < (PIXELS - 1) * STRIDE + FILTER, 0 1 2 3 4 5 6 => {
                    if pixels.columns_seen & (1 << COLUMN) != 0 {
                        let at = row.wrapping_add(strip.column_step.wrapping_mul(COLUMN));
                        unrolled! { VECTOR < COUNT, 0 1 => {
                            let at = at.wrapping_add(VECTOR * S::LANES);
                            let value = load_some::<S, FULL>(simd, at, wanted);
                            unrolled! { PIXEL < PIXELS, 0 1 2 => {
                                if const { sees(COLUMN, PIXEL * STRIDE) } {
                                    let weight = weights[COLUMN.wrapping_sub(PIXEL * STRIDE)][VECTOR];
                                    sums[PIXEL][VECTOR] =
                                        simd.fma(value, weight, sums[PIXEL][VECTOR]);
                                }
                            }}
                        }}
                    }
                }}
            }
        }}
        unrolled! { PIXEL < PIXELS, 0 1 2 => {
            unrolled! { VECTOR < COUNT, 0 1 => {
                let mut value = sums[PIXEL][VECTOR];
                if let Some(residual) = pixels.residual {
                    let from = residual
                        .wrapping_add(strip.residual_column_step.wrapping_mul(PIXEL))
                        .wrapping_add(VECTOR * S::LANES);
                    value = simd.add(value, load_some::<S, FULL>(simd, from, wanted));
                }
                let to = pixels
                    .output
                    .wrapping_add(strip.output_column_step.wrapping_mul(PIXEL))
                    .wrapping_add(VECTOR * S::LANES);
                store_some::<S, FULL>(simd, epilogue.apply(simd, value), to, wanted);
            }}
        }}
    }
}

/// Whether a pixel whose first tap sees the column `first` sees this one.
const fn sees(column: usize, first: usize) -> bool {
    column >= first && column - first < FILTER
}

/// Computes a strip of one row.
///
/// # Safety
/// As of [`run_strip`](super::sliding_microkernel::run_strip).
pub(super) unsafe fn run_row(isa: Isa, stride: usize, strip: &Strip<'_>) {
    match stride {
        1 => isa.run(Microkernel::<1>(strip)),
        2 => isa.run(Microkernel::<2>(strip)),
        _ => unreachable!("no row of stride {stride}"),
    }
}
