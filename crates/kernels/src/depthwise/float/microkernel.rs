//! The innermost part of a depthwise convolution: some output pixels of one line, vector by vector of
//! channels.
#![allow(unsafe_code)]

use crate::gemm::float::{Epilogue, Target, finish};
use crate::unrolled::unrolled;
use crate::vector::pointers::{load, load_some};
use crate::vector::{Isa, Kernel, Simd};

/// The most pixels of a tile.
pub(crate) const MOST_PIXELS: usize = 8;

/// Where the input pixels of a tile's taps are.
#[derive(Clone, Copy)]
pub(crate) enum Taps<'a> {
    /// For each tap, the distance of what the first pixel sees from `origin`, which itself may be
    /// outside of the image; the next pixel sees the values `step` behind these.
    Regular { origin: *const f32, distances: &'a [isize], step: usize },
    /// For each tap, an address for each pixel.
    Table(&'a [*const f32]),
}

/// A tile: pixels side by side and all channels of some panels.
pub(crate) struct Tile<'a> {
    pub(crate) taps: Taps<'a>,
    /// The first channel of the output.
    pub(crate) channel: usize,
    /// Channels of the output side by side that see the same one of the input: 1, or a multiple of the lanes.
    pub(crate) multiplier: usize,
    /// The panels of these channels: the biases, and a row for each tap of the filter.
    pub(crate) panel: *const f32,
    /// From one panel to the next, in values.
    pub(crate) panel_stride: usize,
    /// Taps of the filter before the first one of `taps`.
    pub(crate) skipped: usize,
    /// Of all channels; in the last vector of the last panel there may be fewer than lanes.
    pub(crate) target: Target,
    pub(crate) epilogue: &'a Epilogue,
}

macro_rules! for_pixels {
    ($body:block) => {
        unrolled! { PIXEL < PIXELS, 0 1 2 3 4 5 6 7 => $body }
    };
}

macro_rules! for_vectors {
    ($body:block) => {
        unrolled! { VECTOR < VECTORS, 0 1 => $body }
    };
}

struct Microkernel<'a, const PIXELS: usize, const VECTORS: usize>(&'a Tile<'a>);

impl<const PIXELS: usize, const VECTORS: usize> Kernel for Microkernel<'_, PIXELS, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Nothing asks for wider tiles, and what is never run need not be compiled.
        if const { VECTORS > most_vectors(S::REGISTERS) } {
            unreachable!("no such tile");
        }
        let tile = self.0;
        // Copies, which no store to the output can be thought to change.
        let (epilogue, all) = (*tile.epilogue, tile.target);
        let width = VECTORS * S::LANES;
        // SAFETY: `run_tile` was promised all that is read and written here.
        unsafe {
            for index in 0..all.columns.div_ceil(width) {
                let first = index * width;
                let panel = tile.panel.add(index * tile.panel_stride);
                let wanted = width.min(all.columns - first);
                let mut sums = [[simd.splat(0.0); VECTORS]; PIXELS];
                for_vectors!({
                    let bias = load(simd, panel.add(VECTOR * S::LANES));
                    for_pixels!({ sums[PIXEL][VECTOR] = bias });
                });
                let panel = panel.add((1 + tile.skipped) * width);
                let channel = tile.channel + first;
                if tile.multiplier > 1 {
                    add_taps::<S, true, true, PIXELS, VECTORS>(
                        simd, tile, channel, wanted, panel, &mut sums,
                    );
                } else if wanted == width {
                    add_taps::<S, true, false, PIXELS, VECTORS>(
                        simd, tile, channel, wanted, panel, &mut sums,
                    );
                } else {
                    add_taps::<S, false, false, PIXELS, VECTORS>(
                        simd, tile, channel, wanted, panel, &mut sums,
                    );
                }
                let target = Target { columns: wanted, ..all.at_column(first) };
                finish(simd, &target, &epilogue, sums);
            }
        }
    }
}

/// Adds the products of all taps for one panel. Channels of a vector are `SHARED` if they see the same channel of the input.
///
/// # Safety
/// As [`run_tile`], for the channels from `channel` on, `wanted` of them.
#[inline(always)]
unsafe fn add_taps<
    S: Simd,
    const FULL: bool,
    const SHARED: bool,
    const PIXELS: usize,
    const VECTORS: usize,
>(
    simd: S,
    tile: &Tile<'_>,
    channel: usize,
    wanted: usize,
    mut panel: *const f32,
    sums: &mut [[S::F; VECTORS]; PIXELS],
) {
    // What the first vector sees, and how far behind it what the others see is.
    let seen = if SHARED { channel / tile.multiplier } else { channel };
    let mut behind = [0; VECTORS];
    for_vectors!({
        behind[VECTOR] = match SHARED {
            true => (channel + VECTOR * S::LANES) / tile.multiplier - seen,
            false => VECTOR * S::LANES,
        };
    });
    // SAFETY: as the caller promises.
    unsafe {
        match tile.taps {
            Taps::Regular { origin, distances, step } => {
                // The origin may be before the image: what the first taps would see may be padding.
                let origin = origin.wrapping_add(seen);
                for &distance in distances {
                    let first = origin.wrapping_offset(distance);
                    let mut weights = [simd.splat(0.0); VECTORS];
                    for_vectors!({ weights[VECTOR] = load(simd, panel.add(VECTOR * S::LANES)) });
                    for_pixels!({
                        for_vectors!({
                            let at = first.add(PIXEL * step + behind[VECTOR]);
                            let value = match SHARED {
                                true => simd.splat(*at),
                                false => load_some::<S, FULL>(simd, at, lanes::<S>(wanted, VECTOR)),
                            };
                            sums[PIXEL][VECTOR] =
                                simd.fma(value, weights[VECTOR], sums[PIXEL][VECTOR]);
                        });
                    });
                    panel = panel.add(VECTORS * S::LANES);
                }
            }
            Taps::Table(table) => {
                for pixels in table.chunks_exact(PIXELS) {
                    let mut weights = [simd.splat(0.0); VECTORS];
                    for_vectors!({ weights[VECTOR] = load(simd, panel.add(VECTOR * S::LANES)) });
                    for_pixels!({
                        for_vectors!({
                            let at = pixels[PIXEL].add(seen + behind[VECTOR]);
                            let value = match SHARED {
                                true => simd.splat(*at),
                                false => load_some::<S, FULL>(simd, at, lanes::<S>(wanted, VECTOR)),
                            };
                            sums[PIXEL][VECTOR] =
                                simd.fma(value, weights[VECTOR], sums[PIXEL][VECTOR]);
                        });
                    });
                    panel = panel.add(VECTORS * S::LANES);
                }
            }
        }
    }
}

/// How many lanes of a vector there are values for, of `wanted` from the first vector on.
#[inline(always)]
fn lanes<S: Simd>(wanted: usize, vector: usize) -> usize {
    wanted.saturating_sub(vector * S::LANES).min(S::LANES)
}

/// Vectors of a tile: as many sums as registers allow, besides the weights.
pub(crate) const fn most_vectors(registers: usize) -> usize {
    if registers >= 32 { 2 } else { 1 }
}

/// Computes a tile of `pixels`.
///
/// # Safety
/// At the address of each tap and pixel there are values for all channels that are seen. The channels are whole vectors if several
/// see the same one of the input. The panels are `vectors` vectors wide, `panel_stride` from one to the next, as many as the channels fill or begin, and each has
/// a row for the biases and for each tap of the filter, the skipped ones among them. Output and
/// residual have them for each pixel, and those of the output no one else touches.
pub(crate) unsafe fn run_tile(isa: Isa, pixels: usize, vectors: usize, tile: &Tile<'_>) {
    macro_rules! choose {
        ($(($pixels:literal, $vectors:literal))*) => {
            match (pixels, vectors) {
                $(($pixels, $vectors) => isa.run(Microkernel::<$pixels, $vectors>(tile)),)*
                _ => unreachable!("no tile of {pixels} pixels and {vectors} vectors"),
            }
        };
    }
    choose! {
        (1, 1) (2, 1) (3, 1) (4, 1) (5, 1) (6, 1) (7, 1) (8, 1)
        (1, 2) (2, 2) (3, 2) (4, 2) (5, 2) (6, 2) (7, 2) (8, 2)
    }
}
