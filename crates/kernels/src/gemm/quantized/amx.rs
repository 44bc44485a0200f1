//! Products of tiles with AMX: an instruction multiplies 16 rows of 64 bytes by the signed weights of 16
//! channels, 16,384 products.
//!
//! Two tiles of rows times two vectors of channels are four tiles of sums, which with two of inputs and two of weights
//! take all eight registers. Sums go through memory, where vectors requantize them as those of [`Vnni`], which also
//! computes what has too few rows for a tile. Weights are packed as for that; their steps are filled up with zeros,
//! so that it does not matter what inputs are beside the last ones of a run.
//!
//! The rows of a tile are at equal distances in memory: those of a [`Grid`], or copies of rows that are anywhere.
#![allow(unsafe_code)]

use super::avx512::Vnni;
use super::block::Block;
use super::problem::Problem;
use super::tiles::{self, Arithmetic, Sums, Target, Work, add_terms};
use super::{Ahead, DEPTH, Grid, Tile};
use crate::amx::{ROW_BYTES, TILE_ROWS};
use crate::requantize::LANES;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::{MaybeUninit, offset_of};

/// Steps of four inputs that are multiplied together.
pub(super) const STEPS: usize = ROW_BYTES / DEPTH;

/// Rows of a tile, by the number of its block's vectors.
pub(super) const ROWS_OF_TILES: [usize; 5] = [0, TILE_ROWS, TILE_ROWS, 0, TILE_ROWS];

/// Rows that are computed together.
const ROWS: usize = 2 * TILE_ROWS;

/// Rows that are requantized together.
const FINISHED_ROWS: usize = 4;

/// Vectors of a block, at most.
const MOST_VECTORS: usize = 4;

/// Bytes that are fetched ahead with each product of tiles.
const FETCHED: usize = 1024;

/// By row and vector.
#[repr(align(64))]
struct Buffer {
    _sums: [i32; ROWS * MOST_VECTORS * LANES],
}

/// Computes rows, whatever tiles they are said to be.
///
/// # Safety
/// As of [`tiles::compute`]; the rows are copies, one behind the other, and this thread's tiles are
/// [set up](crate::amx::TileRegisters).
pub(super) unsafe fn compute(Work { problem, block, tile, tiles, ahead }: Work<'_>) {
    let rows = tile.rows * tiles;
    let all = Tile { rows, ..*tile };
    // SAFETY: the caller's promises; who has AMX's tiles has AVX-512. The table has an address for each row, and each
    // copy begins behind the one before it.
    unsafe {
        if rows < TILE_ROWS {
            for (part, tiles) in all.parts(Vnni::ROWS[block.vectors]) {
                tiles::compute::<Vnni>(Work { problem, block, tile: &part, tiles, ahead });
            }
            return;
        }
        let run_bytes = problem.row_bytes().next_multiple_of(ROW_BYTES);
        let grid = Grid {
            inputs: *all.table,
            are_inputs_signed: false,
            row_step: run_bytes,
            runs: &[0],
            run_bytes,
            readable_before: 0,
            readable: rows,
            wanted: rows,
            line: rows,
            lines: 1,
            row_terms: all.row_terms,
            weights: all.weights,
            lanes: all.lanes,
            output: all.output,
            output_step: all.output_step,
        };
        compute_grid(problem, block, &grid, ahead);
    }
}

/// Computes the rows of a grid.
///
/// # Safety
/// All runs of all readable rows can be read. There are weights for the block's vectors and all runs. The outputs of the block's
/// channels of the wanted rows can be written, and no one else accesses them. This thread's tiles are
/// [set up](crate::amx::TileRegisters).
pub(super) unsafe fn compute_grid(
    problem: &Problem,
    block: &Block,
    grid: &Grid<'_>,
    ahead: &mut Ahead,
) {
    // SAFETY: the caller's promises; who has AMX's tiles has AVX-512.
    unsafe {
        match block.vectors {
            1 => all_rows::<1>(problem, block, grid, ahead),
            2 => all_rows::<2>(problem, block, grid, ahead),
            4 => all_rows::<4>(problem, block, grid, ahead),
            vectors => unreachable!("no kernel for {vectors} vectors"),
        }
    }
}

/// A place among the wanted rows of a grid.
#[derive(Clone, Copy)]
struct Cursor {
    line: usize,
    /// In the line.
    row: usize,
}

impl Cursor {
    /// Which row of all, wanted or not.
    fn row_of(self, grid: &Grid<'_>) -> usize {
        self.line * grid.line + self.row
    }

    fn is_behind(self, grid: &Grid<'_>) -> bool {
        self.line >= grid.lines
    }

    /// Goes through a tile that begins `before` this place, and gives `each` the wanted rows from here on: those side by
    /// side from a row of the tile, how many, and the first one's number among all wanted ones. Returns the place
    /// behind.
    #[inline(always)]
    fn walk(
        mut self,
        grid: &Grid<'_>,
        before: usize,
        mut each: impl FnMut(usize, usize, usize),
    ) -> Self {
        let mut of_tile = before;
        while of_tile < TILE_ROWS && !self.is_behind(grid) {
            let count = (grid.wanted - self.row).min(TILE_ROWS - of_tile);
            each(of_tile, count, self.line * grid.wanted + self.row);
            of_tile += count;
            self.row += count;
            if self.row == grid.wanted {
                of_tile += grid.line - grid.wanted;
                self = Self { line: self.line + 1, row: 0 };
            }
        }
        self
    }
}

/// Computes the rows of a grid, of a block of `W` vectors.
///
/// # Safety
/// As of [`compute_grid`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn all_rows<const W: usize>(
    problem: &Problem,
    block: &Block,
    grid: &Grid<'_>,
    ahead: &mut Ahead,
) {
    let lanes: &[_; W] = grid.lanes.try_into().expect("one for each vector");
    let all = Target { problem, block, lanes, output: grid.output, step: grid.output_step };
    // Without a product no sums would be written.
    assert!(grid.run_bytes > 0 && !grid.runs.is_empty(), "nothing to multiply");
    assert!(grid.wanted > 0 && grid.wanted <= grid.line, "{grid:?}");
    let last = Cursor { line: grid.lines.saturating_sub(1), row: grid.wanted - 1 };
    assert!(grid.readable_before + grid.readable >= TILE_ROWS, "{grid:?}");
    assert!(last.row_of(grid) < grid.readable, "{grid:?}");
    let mut sums = MaybeUninit::<Buffer>::uninit();
    let sums = sums.as_mut_ptr().cast::<i32>();
    let mut next = Cursor { line: 0, row: 0 };
    while !next.is_behind(grid) {
        // The last tile has the last rows that can be read, though some of them were computed before, or are before all.
        let before =
            |cursor: Cursor| (cursor.row_of(grid) + TILE_ROWS).saturating_sub(grid.readable);
        let second = next.walk(grid, before(next), |_, _, _| ());
        let count = if second.is_behind(grid) { 1 } else { 2 };
        let tiles = [next, second];
        // SAFETY: what both tiles read are readable rows. There is room for the sums of two tiles of rows and `W` vectors,
        // all of which are written before they are read. The rest is the caller's promise.
        unsafe {
            let row = |cursor: Cursor| {
                let of_cursor = grid.inputs.wrapping_add(cursor.row_of(grid) * grid.row_step);
                of_cursor.wrapping_sub(before(cursor) * grid.row_step)
            };
            let rows = [row(next), if count == 2 { row(second) } else { grid.inputs }];
            for vector in (0..W).step_by(2) {
                let weights = grid.weights.add(vector * ROW_BYTES);
                let of_vectors = sums.add(vector * LANES);
                let place = Place {
                    inputs: rows,
                    run_steps: grid.run_bytes / ROW_BYTES,
                    end_of_runs: grid.runs.as_ptr_range().end,
                    sums: of_vectors,
                    below: of_vectors.wrapping_add(TILE_ROWS * W * LANES),
                    runs: grid.runs.as_ptr(),
                    row_step: grid.row_step,
                    weights,
                    step_bytes: W * ROW_BYTES,
                    ahead: ahead.next,
                };
                let is_signed = grid.are_inputs_signed;
                match (count, W) {
                    (1, 1) => place.multiply::<1, 1, false>(is_signed),
                    (1, _) => place.multiply::<1, 2, false>(is_signed),
                    (_, 1) => place.multiply::<2, 1, false>(is_signed),
                    _ if ahead.left == 0 => place.multiply::<2, 2, false>(is_signed),
                    _ => {
                        place.multiply::<2, 2, true>(is_signed);
                        let fetched = grid.runs.len() * grid.run_bytes * (FETCHED / ROW_BYTES);
                        ahead.next = ahead.next.wrapping_add(fetched);
                        ahead.left = ahead.left.saturating_sub(fetched);
                    }
                }
            }
            for (index, &cursor) in tiles[..count].iter().enumerate() {
                let of_tile = sums.add(index * TILE_ROWS * W * LANES).cast_const();
                next = cursor.walk(grid, before(cursor), |row, count, pixel| {
                    let at = |index: usize| {
                        let terms = grid.row_terms.map(|terms| &terms[pixel + index..]);
                        let from = of_tile.add((row + index) * W * LANES);
                        (from, terms, Target { output: all.row(pixel + index), ..all })
                    };
                    if count < FINISHED_ROWS {
                        for index in 0..count {
                            finish::<1, W>(at(index));
                        }
                    } else {
                        for index in (0..count).step_by(FINISHED_ROWS) {
                            finish::<FINISHED_ROWS, W>(at(index.min(count - FINISHED_ROWS)));
                        }
                    }
                });
            }
        }
    }
}

/// Adds what sums begin with, requantizes and stores `R` rows: the sums, what each row's get in addition, and where the
/// outputs go.
///
/// # Safety
/// As of [`Sums::finish`]; there are sums of `R` rows and `W` vectors, on a line, and a term for each if there are
/// any; the caller has AVX-512.
#[inline(always)]
unsafe fn finish<const R: usize, const W: usize>(
    (from, terms, target): (*const i32, Option<&[i32]>, Target<'_, W>),
) {
    // SAFETY: the caller's promises.
    unsafe {
        let mut sums = [[__m512i::load(&target.lanes[0].bias); W]; R];
        for v in 0..W {
            let bias = __m512i::load(&target.lanes[v].bias);
            for (r, row) in sums.iter_mut().enumerate() {
                let products = _mm512_load_si512(from.add((r * W + v) * LANES).cast());
                row[v] = _mm512_add_epi32(products, bias);
            }
        }
        add_terms(&mut sums, terms);
        __m512i::finish::<R, W>(target, sums);
    }
}

/// Copies rows as [`widen`](super::avx2::widen) does, but that bytes stay bytes, and that a copied row may be longer
/// than its runs; what is behind the last one stays what it is.
///
/// # Safety
/// As of that; the processor has AVX-512 BW and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn copy(
    (table, table_step): (*const *const u8, usize),
    (runs, padded): (usize, usize),
    flip: u8,
    (copies, row_bytes): (&mut [u8], usize),
    addresses: &mut [*const u8],
) {
    assert!(runs * padded <= row_bytes, "{runs} runs of {padded} bytes in {row_bytes}");
    let flips = _mm512_set1_epi8(flip.cast_signed());
    let (whole, rest) = (padded / ROW_BYTES, padded % ROW_BYTES);
    let mask = (1_u64 << rest) - 1;
    let rows = copies.chunks_exact_mut(row_bytes.max(1)).zip(addresses);
    for (row, (copy, address)) in rows.enumerate() {
        *address = copy.as_ptr();
        let mut to = copy.as_mut_ptr();
        for run in 0..runs {
            // SAFETY: the caller's promises: the table has an address for each run of each row, behind which
            // `padded` bytes can be read. The same number is written, to a row which has room for all runs.
            unsafe {
                let mut from = *table.add(run.wrapping_mul(table_step).wrapping_add(row));
                for _ in 0..whole {
                    let bytes = _mm512_xor_si512(_mm512_loadu_si512(from.cast()), flips);
                    _mm512_storeu_si512(to.cast(), bytes);
                    (from, to) = (from.add(ROW_BYTES), to.add(ROW_BYTES));
                }
                // Vectors of half a line cross the end of one less often.
                if rest > ROW_BYTES / 2 {
                    let bytes = _mm512_maskz_loadu_epi8(mask, from.cast());
                    _mm512_mask_storeu_epi8(to.cast(), mask, _mm512_xor_si512(bytes, flips));
                } else if rest > 0 {
                    #[allow(clippy::cast_possible_truncation)] // No bits are beyond the half.
                    let mask = mask as u32;
                    let bytes = _mm256_maskz_loadu_epi8(mask, from.cast());
                    let bytes = _mm256_xor_si256(bytes, _mm512_castsi512_si256(flips));
                    _mm256_mask_storeu_epi8(to.cast(), mask, bytes);
                }
                to = to.add(rest);
            }
        }
    }
}

/// Where tiles are multiplied.
#[repr(C)]
struct Place {
    /// Of the first row of each tile of inputs, without the offset of a run.
    inputs: [*const u8; 2],
    /// Products of tiles in a run.
    run_steps: usize,
    /// Behind the offsets of all runs.
    end_of_runs: *const usize,
    /// Of the first row and vector.
    sums: *mut i32,
    /// The same of the second tile of rows.
    below: *mut i32,
    /// The offset of the first run.
    runs: *const usize,
    /// From a row of inputs to the next one, in bytes.
    row_step: usize,
    /// Of the first step and vector.
    weights: *const u8,
    /// From a step's weights to the next ones, and from a row's sums to the next ones, in bytes.
    step_bytes: usize,
    /// Lines that are fetched into the second cache, [`FETCHED`] bytes with each product of tiles of 64 inputs.
    ahead: *const u8,
}

impl Place {
    /// Multiplies one or two tiles of rows by one or two vectors of channels and stores their sums; `FETCH` is whether lines are
    /// fetched meanwhile.
    ///
    /// # Safety
    /// There are inputs for all rows, at least those of one tile, and all runs, of which there is one at least, as are
    /// products in each; weights for them and room for their sums; and this thread's tiles are
    /// [set up](crate::amx::TileRegisters).
    #[inline(always)]
    unsafe fn multiply<const TILES: usize, const VECTORS: usize, const FETCH: bool>(
        &self,
        are_inputs_signed: bool,
    ) {
        // SAFETY: the caller's promises.
        unsafe {
            match are_inputs_signed {
                true => self.multiply_signed::<TILES, VECTORS, FETCH, true>(),
                false => self.multiply_signed::<TILES, VECTORS, FETCH, false>(),
            }
        }
    }

    /// The same, of inputs that are `SIGNED` or not. The sums of the first tile of rows are in `tmm0` and `tmm1`, those of
    /// the second one in `tmm2` and `tmm3`.
    ///
    /// # Safety
    /// As of [`Self::multiply`].
    #[inline(always)]
    unsafe fn multiply_signed<
        const TILES: usize,
        const VECTORS: usize,
        const FETCH: bool,
        const SIGNED: bool,
    >(
        &self,
    ) {
        // SAFETY: the caller's promises.
        unsafe {
            asm!(
                ".macro tdp sums, inputs, weights",
                ".if {SIGNED}",
                "tdpbssd \\sums, \\inputs, \\weights",
                ".else",
                "tdpbusd \\sums, \\inputs, \\weights",
                ".endif",
                ".endm",
                ".macro if_two_vectors instruction:vararg",
                ".if {VECTORS} > 1",
                "\\instruction",
                ".endif",
                ".endm",
                ".macro if_two_tiles instruction:vararg",
                ".if {TILES} > 1",
                "\\instruction",
                ".endif",
                ".endm",
                ".macro fetch_four offset",
                ".if {FETCH}",
                "prefetcht1 [{ahead} + \\offset]",
                "prefetcht1 [{ahead} + \\offset + 64]",
                "prefetcht1 [{ahead} + \\offset + 128]",
                "prefetcht1 [{ahead} + \\offset + 192]",
                ".endif",
                ".endm",
                "tilezero tmm0",
                "if_two_vectors tilezero tmm1",
                "if_two_tiles tilezero tmm2",
                "if_two_tiles if_two_vectors tilezero tmm3",
                "3:",
                "mov {first}, [{runs}]",
                "mov {second}, {first}",
                "add {first}, [{place} + {INPUTS}]",
                "add {second}, [{place} + {INPUTS} + 8]",
                "mov {steps}, [{place} + {RUN_STEPS}]",
                "2:",
                "tileloadd tmm4, [{first} + {row}]",
                "tileloadd tmm6, [{weights} + {step}]",
                ".if {VECTORS} > 1",
                "tileloadd tmm7, [{weights} + {step} + 64]",
                "tdp tmm0, tmm4, tmm6",
                "fetch_four 0",
                "if_two_tiles tileloadd tmm5, [{second} + {row}]",
                "tdp tmm1, tmm4, tmm7",
                "fetch_four 256",
                ".else",
                "if_two_tiles tileloadd tmm5, [{second} + {row}]",
                "tdp tmm0, tmm4, tmm6",
                ".endif",
                "if_two_tiles tdp tmm2, tmm5, tmm6",
                "fetch_four 512",
                "if_two_tiles if_two_vectors tdp tmm3, tmm5, tmm7",
                "fetch_four 768",
                "add {first}, 64",
                "add {second}, 64",
                "add {weights}, {tile_bytes}",
                "add {ahead}, {FETCHED}",
                "dec {steps}",
                "jnz 2b",
                "add {runs}, 8",
                "cmp {runs}, [{place} + {END_OF_RUNS}]",
                "jne 3b",
                "mov {first}, [{place} + {SUMS}]",
                "mov {second}, [{place} + {BELOW}]",
                "tilestored [{first} + {step}], tmm0",
                "if_two_vectors tilestored [{first} + {step} + 64], tmm1",
                "if_two_tiles tilestored [{second} + {step}], tmm2",
                "if_two_tiles if_two_vectors tilestored [{second} + {step} + 64], tmm3",
                ".purgem tdp",
                ".purgem if_two_vectors",
                ".purgem if_two_tiles",
                ".purgem fetch_four",
                place = in(reg) self,
                first = out(reg) _,
                second = out(reg) _,
                steps = out(reg) _,
                runs = inout(reg) self.runs => _,
                row = in(reg) self.row_step,
                weights = inout(reg) self.weights => _,
                step = in(reg) self.step_bytes,
                tile_bytes = in(reg) self.step_bytes * STEPS,
                ahead = inout(reg) self.ahead => _,
                TILES = const TILES,
                VECTORS = const VECTORS,
                FETCH = const FETCH as u8,
                SIGNED = const SIGNED as u8,
                FETCHED = const FETCHED,
                INPUTS = const offset_of!(Place, inputs),
                RUN_STEPS = const offset_of!(Place, run_steps),
                END_OF_RUNS = const offset_of!(Place, end_of_runs),
                SUMS = const offset_of!(Place, sums),
                BELOW = const offset_of!(Place, below),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
    }
}
