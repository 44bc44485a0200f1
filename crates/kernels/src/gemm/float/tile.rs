//! [`Tile`]: what the innermost part of a matrix product computes at once, and the pieces that its
//! variants for instruction sets share.
#![allow(unsafe_code)]

use super::Epilogue;
use super::epilogue::for_sums;
use crate::Image;
use crate::unrolled::unrolled;
use crate::vector::Simd;
use crate::vector::pointers::{load, load_some, store, store_some};
use std::ops::Range;

/// A tile of the output, `ROWS` by as many columns as a panel has or fewer; or several of them, side by side, of whole
/// panels that follow each other, and below each other.
pub(crate) struct Tile<'a> {
    /// For each segment of the depth, where the `ROWS` rows of it are.
    pub(crate) segments: &'a [*const f32],
    /// To be added to all of them.
    pub(crate) offset: usize,
    /// How many tiles of `ROWS` rows are below each other.
    pub(crate) tiles: usize,
    /// How far behind the rows of one of them those of the next are.
    pub(crate) tile_distance: usize,
    /// How many values each of them has.
    pub(crate) segment_depth: usize,
    /// The biases, and then a row for each value of the depth.
    pub(crate) panel: *const f32,
    /// How many panels there are; of more than one each has all columns.
    pub(crate) panels: usize,
    /// How far behind the panel's even and odd rows is what will be read soon, to be brought near meanwhile: see
    /// [`ahead`]; 0 for nothing.
    pub(crate) ahead: [usize; 2],
    /// Where the values of the first panel's columns go.
    pub(crate) target: Target,
    pub(crate) epilogue: &'a Epilogue,
}

impl Tile<'_> {
    /// The single tiles of this many rows by one panel of this many values each, row by row of tiles.
    pub(super) fn singles(&self, rows: usize, values: usize) -> impl Iterator<Item = Self> {
        (0..self.tiles).flat_map(move |below| {
            (0..self.panels).map(move |beside| Self {
                offset: self.offset.wrapping_add(below.wrapping_mul(self.tile_distance)),
                tiles: 1,
                panel: self.panel.wrapping_add(beside.wrapping_mul(values)),
                panels: 1,
                target: self
                    .target
                    .at_row(below.wrapping_mul(rows))
                    .at_column(beside.wrapping_mul(self.target.columns)),
                ..*self
            })
        })
    }
}

/// What a tile asks for of the next panel, as [`Tile::ahead`]: the tile `index` of this number of tiles that are multiplied by
/// a panel of `values` values, `width` of which are a row.
///
/// Each of the first tiles asks for one line of each row, or of every second one if there are tiles enough: memory does not give
/// all lines while half of the tiles are computed, and who waits for it cannot ask for more.
pub(crate) fn ahead(index: usize, tiles: usize, values: usize, width: usize) -> [usize; 2] {
    let lines = width.div_ceil(LINE);
    let (row, line) = (index / lines, index % lines);
    let asked = values + row * width + line * LINE;
    match tiles >= 2 * lines {
        true if row < 2 => [asked, 0],
        false if row < 1 => [asked; 2],
        _ => [0; 2],
    }
}

/// Values of a cache line.
pub(super) const LINE: usize = 16;

/// Into the first cache, as a hint of [`prefetch`]: numbers as x86 has them.
pub(super) const FIRST_CACHE: i32 = 3;
/// Into the second cache.
pub(crate) const SECOND_CACHE: i32 = 2;
/// Into the first cache, to be written.
pub(super) const TO_WRITE: i32 = 7;

/// Asks for a cache line that will be needed before long; any address will do. NEON asks for the second cache only.
#[inline(always)]
pub(crate) fn prefetch<const HINT: i32>(address: *const f32) {
    // SAFETY: every processor of this architecture has the instruction, which touches nothing.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HINT>(address.cast());
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        if HINT == SECOND_CACHE {
            std::arch::asm!(
                "prfm pldl2keep, [{address}]",
                address = in(reg) address,
                options(nostack, preserves_flags, readonly),
            );
        }
    }
    #[cfg(not(any(all(target_arch = "x86_64", not(miri)), target_arch = "aarch64")))]
    let _ = address;
}

/// Where the values of a tile go.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// The first value.
    pub(crate) output: *mut f32,
    /// From one row to the next.
    pub(crate) output_stride: usize,
    /// What is added, laid out as the output, if anything.
    pub(crate) residual: Option<*const f32>,
    /// From one row to the next.
    pub(crate) residual_stride: usize,
    /// How many columns of a panel are wanted; more than those of all vectors but the last.
    pub(crate) columns: usize,
}

impl Target {
    /// That of some columns of rows from one on: the first value and the stride of the output, and what is added.
    pub(crate) fn new(
        (output, output_stride): (*mut f32, usize),
        residual: Option<Image<'_, f32>>,
        row: usize,
        columns: Range<usize>,
    ) -> Self {
        let added = |residual: Image<'_, f32>| {
            residual.values[row * residual.pixel_stride + columns.start..].as_ptr()
        };
        Self {
            output,
            output_stride,
            residual: residual.map(added),
            residual_stride: residual.map_or(0, |residual| residual.pixel_stride),
            columns: columns.len(),
        }
    }

    /// That of rows from this one on.
    #[inline(always)]
    pub(crate) fn at_row(self, row: usize) -> Self {
        let residual = |it: *const f32| it.wrapping_add(row.wrapping_mul(self.residual_stride));
        Self {
            output: self.output.wrapping_add(row.wrapping_mul(self.output_stride)),
            residual: self.residual.map(residual),
            ..self
        }
    }

    /// That of a panel whose first column is this one.
    #[inline(always)]
    pub(crate) fn at_column(self, column: usize) -> Self {
        Self {
            output: self.output.wrapping_add(column),
            residual: self.residual.map(|residual| residual.wrapping_add(column)),
            ..self
        }
    }
}

/// Adds the residual, applies the epilogue, and stores the columns that are wanted.
///
/// # Safety
/// Output and residual have the columns that are wanted in each of `ROWS` rows, and no one else touches those of the output
/// meanwhile.
#[inline(always)]
pub(crate) unsafe fn finish<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    target: &Target,
    epilogue: &Epilogue,
    mut sums: [[S::F; VECTORS]; ROWS],
) {
    if target.columns != VECTORS * S::LANES {
        // SAFETY: as the caller promises.
        unsafe { finish_partial(simd, target, epilogue, &sums) };
        return;
    }
    // SAFETY: as the caller promises: all columns are wanted.
    unsafe {
        if let Some(residual) = target.residual {
            for_sums!({
                let from =
                    residual.add(target.residual_stride.wrapping_mul(ROW)).add(VECTOR * S::LANES);
                sums[ROW][VECTOR] = simd.add(sums[ROW][VECTOR], load(simd, from));
            });
        }
        epilogue.apply_to_tile(simd, &mut sums);
        for_sums!({
            let to =
                target.output.add(target.output_stride.wrapping_mul(ROW)).add(VECTOR * S::LANES);
            store(simd, sums[ROW][VECTOR], to);
        });
    }
}

/// As [`finish`], where the last vector is not wanted whole: through a copy in memory, so that this rare case takes little code;
/// indices that are not constant would keep the sums themselves there.
///
/// # Safety
/// As of [`finish`].
#[inline(always)]
unsafe fn finish_partial<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    target: &Target,
    epilogue: &Epilogue,
    sums: &[[S::F; VECTORS]; ROWS],
) {
    let mut copies = [[simd.splat(0.0); VECTORS]; ROWS];
    for_sums!({ copies[ROW][VECTOR] = sums[ROW][VECTOR] });
    for (row, copies) in copies.iter().enumerate() {
        for (vector, &copy) in copies.iter().enumerate() {
            let column = vector * S::LANES;
            let wanted = S::LANES.min(target.columns - column);
            let mut value = copy;
            // SAFETY: all columns of the residual and of the output are there, and those of the output no one else's.
            unsafe {
                if let Some(residual) = target.residual {
                    let from = residual.add(row * target.residual_stride + column);
                    value = simd.add(value, load_some::<S, false>(simd, from, wanted));
                }
                let to = target.output.add(row * target.output_stride + column);
                store_some::<S, false>(simd, epilogue.apply(simd, value), to, wanted);
            }
        }
    }
}
