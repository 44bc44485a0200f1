//! Products of tiles with AMX: an instruction multiplies 16 rows of 64 unsigned bytes by the signed weights of 16
//! channels, 16,384 products.
//!
//! Two tiles of rows times two vectors of channels are four tiles of sums, which with two of inputs and two of weights
//! take all eight registers. Sums go through memory, where vectors requantize them as those of [`Vnni`], which also
//! computes what has too few rows for a tile. Weights are packed as for that; their steps are filled up with zeros,
//! so that it does not matter what inputs are beside the last ones of a row.
#![allow(unsafe_code)]

use super::avx512::Vnni;
use super::block::Block;
use super::problem::Problem;
use super::tiles::{self, Arithmetic, Sums};
use super::{Ahead, ChannelLanes, DEPTH, Tile};
use crate::amx::{ROW_BYTES, TILE_ROWS};
use crate::requantize::LANES;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

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
pub(super) unsafe fn compute(
    problem: &Problem,
    block: &Block,
    tile: &Tile<'_>,
    tiles: usize,
    ahead: &mut Ahead,
) {
    let all = Tile { rows: tile.rows * tiles, ..*tile };
    // SAFETY: the caller's promises; who has AMX's tiles has AVX-512.
    unsafe {
        match block.vectors {
            vectors if all.rows < TILE_ROWS => {
                for (part, tiles) in all.parts(Vnni::ROWS[vectors]) {
                    tiles::compute::<Vnni>(problem, block, &part, tiles, ahead);
                }
            }
            1 => all_rows::<1>(problem, block, &all, ahead),
            2 => all_rows::<2>(problem, block, &all, ahead),
            4 => all_rows::<4>(problem, block, &all, ahead),
            vectors => unreachable!("no kernel for {vectors} vectors"),
        }
    }
}

/// Computes at least as many rows as a tile has, of a block of `W` vectors.
///
/// # Safety
/// As of [`compute`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn all_rows<const W: usize>(
    problem: &Problem,
    block: &Block,
    all: &Tile<'_>,
    ahead: &mut Ahead,
) {
    let lanes: &[_; W] = all.lanes.try_into().expect("one for each vector");
    let inputs = problem.row_bytes().next_multiple_of(ROW_BYTES);
    // Without a product no sums would be written.
    assert!(inputs > 0, "nothing to multiply");
    let mut sums = MaybeUninit::<Buffer>::uninit();
    let sums = sums.as_mut_ptr().cast::<i32>();
    let mut first = 0;
    while first < all.rows {
        // The last tile has the last rows, though some of them were computed before.
        let last = all.rows - TILE_ROWS;
        let starts = [first.min(last), (first + TILE_ROWS).min(last)];
        let count = if starts[0] == starts[1] { 1 } else { 2 };
        // SAFETY: the table has an address for each row. Each has `inputs` bytes, and the next one begins behind it;
        // the block has weights of `W` vectors for these. There is room for the sums of two tiles of rows and
        // `W` vectors, all of which are written before they are read. The rest is the caller's promise.
        unsafe {
            let rows = starts.map(|start| *all.table.add(start));
            for vector in (0..W).step_by(2) {
                let weights = all.weights.add(vector * ROW_BYTES);
                let is_ahead = ahead.tiles > 0;
                let place = Place {
                    inputs: rows,
                    input_bytes: inputs,
                    weights,
                    sums: sums.add(vector * LANES),
                    step_bytes: W * ROW_BYTES,
                    ahead: ahead.of_tile(weights),
                };
                match (count, W) {
                    (1, 1) => place.multiply_1x1(),
                    (1, _) => place.multiply_1x2(),
                    (_, 1) => place.multiply_2x1(),
                    _ if is_ahead => place.multiply_2x2_and_fetch(),
                    _ => place.multiply_2x2(),
                }
            }
            for (part, &start) in starts[..count].iter().enumerate() {
                let done = (first + part * TILE_ROWS - start) / FINISHED_ROWS * FINISHED_ROWS;
                for row in (done..TILE_ROWS).step_by(FINISHED_ROWS) {
                    let of_row = sums.add((part * TILE_ROWS + row) * W * LANES);
                    let terms = all.row_terms.map(|terms| &terms[start + row..][..FINISHED_ROWS]);
                    let to = all.output.wrapping_add((start + row).wrapping_mul(all.output_step));
                    finish::<W>(problem, block, lanes, of_row, terms, (to, all.output_step));
                }
            }
        }
        first += count * TILE_ROWS;
    }
}

/// Adds what sums begin with, requantizes and stores rows.
///
/// # Safety
/// As of [`Sums::finish`]; there are sums of `FINISHED_ROWS` rows and `W` vectors, on a line; the caller has AVX-512.
#[inline(always)]
unsafe fn finish<const W: usize>(
    problem: &Problem,
    block: &Block,
    lanes: &[ChannelLanes; W],
    from: *const i32,
    terms: Option<&[i32]>,
    output: (*mut u8, usize),
) {
    // SAFETY: the caller's promises.
    unsafe {
        let mut sums = [[<__m512i as Sums>::load(&lanes[0].bias); W]; FINISHED_ROWS];
        for v in 0..W {
            let bias = <__m512i as Sums>::load(&lanes[v].bias);
            for (r, row) in sums.iter_mut().enumerate() {
                let products = _mm512_load_si512(from.add((r * W + v) * LANES).cast());
                row[v] = _mm512_add_epi32(products, bias);
            }
        }
        if let Some(terms) = terms {
            for (row, &term) in sums.iter_mut().zip(terms) {
                for sums in row {
                    *sums = _mm512_add_epi32(*sums, _mm512_set1_epi32(term));
                }
            }
        }
        <__m512i as Sums>::finish::<FINISHED_ROWS, W>(problem, block, lanes, output, sums);
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
struct Place {
    /// Of the first row of each tile of inputs.
    inputs: [*const u8; 2],
    /// Of a row, a multiple of a tile's.
    input_bytes: usize,
    /// Of the first step and vector.
    weights: *const u8,
    /// Of the first row and vector.
    sums: *mut i32,
    /// From a step's weights to the next ones, and from a row's sums to the next ones.
    step_bytes: usize,
    /// Lines that are fetched into the second cache, 16 with each product of tiles of 64 inputs.
    ahead: *const u8,
}

/// Functions of [`Place`]: what is computed in each step, and what of it is stored.
macro_rules! multiply {
    ($name:ident, [$($zero:literal)+], [$($step:literal)+], [$($store:literal)+]) => {
        /// Multiplies tiles and stores their sums.
        ///
        /// # Safety
        /// There are inputs for all rows, at least those of one tile, weights for them and room for their sums, and this thread's tiles are
        /// [set up](crate::amx::TileRegisters).
        #[inline(always)]
        unsafe fn $name(&self) {
            let steps = self.input_bytes / ROW_BYTES;
            let tile_of_sums = self.step_bytes * TILE_ROWS / size_of::<i32>();
            // SAFETY: the caller's promises.
            unsafe {
                asm!(
                    $(concat!("tilezero ", $zero),)+
                    "2:",
                    $($step,)+
                    "add {first}, 64",
                    "add {second}, 64",
                    "add {weights}, {tile_bytes}",
                    "add {ahead}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    $($store,)+
                    first = inout(reg) self.inputs[0] => _,
                    second = inout(reg) self.inputs[1] => _,
                    row = in(reg) self.input_bytes,
                    weights = inout(reg) self.weights => _,
                    step = in(reg) self.step_bytes,
                    tile_bytes = in(reg) self.step_bytes * STEPS,
                    steps = inout(reg) steps => _,
                    ahead = inout(reg) self.ahead => _,
                    sums = in(reg) self.sums,
                    below = in(reg) self.sums.wrapping_add(tile_of_sums),
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack)
                );
            }
        }
    };
}

impl Place {
    multiply!(
        multiply_2x2,
        ["tmm0" "tmm1" "tmm2" "tmm3"],
        [
            "tileloadd tmm4, [{first} + {row}]"
            "tileloadd tmm6, [{weights} + {step}]"
            "tileloadd tmm7, [{weights} + {step} + 64]"
            "tdpbusd tmm0, tmm4, tmm6"
            "tileloadd tmm5, [{second} + {row}]"
            "tdpbusd tmm1, tmm4, tmm7"
            "tdpbusd tmm2, tmm5, tmm6"
            "tdpbusd tmm3, tmm5, tmm7"
        ],
        [
            "tilestored [{sums} + {step}], tmm0"
            "tilestored [{sums} + {step} + 64], tmm1"
            "tilestored [{below} + {step}], tmm2"
            "tilestored [{below} + {step} + 64], tmm3"
        ]
    );
    multiply!(
        multiply_2x2_and_fetch,
        ["tmm0" "tmm1" "tmm2" "tmm3"],
        [
            "tileloadd tmm4, [{first} + {row}]"
            "tileloadd tmm6, [{weights} + {step}]"
            "tileloadd tmm7, [{weights} + {step} + 64]"
            "tdpbusd tmm0, tmm4, tmm6"
            "prefetcht1 [{ahead} + 0]"
            "prefetcht1 [{ahead} + 64]"
            "prefetcht1 [{ahead} + 128]"
            "prefetcht1 [{ahead} + 192]"
            "tileloadd tmm5, [{second} + {row}]"
            "tdpbusd tmm1, tmm4, tmm7"
            "prefetcht1 [{ahead} + 256]"
            "prefetcht1 [{ahead} + 320]"
            "prefetcht1 [{ahead} + 384]"
            "prefetcht1 [{ahead} + 448]"
            "tdpbusd tmm2, tmm5, tmm6"
            "prefetcht1 [{ahead} + 512]"
            "prefetcht1 [{ahead} + 576]"
            "prefetcht1 [{ahead} + 640]"
            "prefetcht1 [{ahead} + 704]"
            "tdpbusd tmm3, tmm5, tmm7"
            "prefetcht1 [{ahead} + 768]"
            "prefetcht1 [{ahead} + 832]"
            "prefetcht1 [{ahead} + 896]"
            "prefetcht1 [{ahead} + 960]"
        ],
        [
            "tilestored [{sums} + {step}], tmm0"
            "tilestored [{sums} + {step} + 64], tmm1"
            "tilestored [{below} + {step}], tmm2"
            "tilestored [{below} + {step} + 64], tmm3"
        ]
    );
    multiply!(
        multiply_1x2,
        ["tmm0" "tmm1"],
        [
            "tileloadd tmm4, [{first} + {row}]"
            "tileloadd tmm6, [{weights} + {step}]"
            "tileloadd tmm7, [{weights} + {step} + 64]"
            "tdpbusd tmm0, tmm4, tmm6"
            "tdpbusd tmm1, tmm4, tmm7"
        ],
        [
            "tilestored [{sums} + {step}], tmm0"
            "tilestored [{sums} + {step} + 64], tmm1"
            "/* not used: {below} */"
        ]
    );
    multiply!(
        multiply_2x1,
        ["tmm0" "tmm2"],
        [
            "tileloadd tmm4, [{first} + {row}]"
            "tileloadd tmm6, [{weights} + {step}]"
            "tileloadd tmm5, [{second} + {row}]"
            "tdpbusd tmm0, tmm4, tmm6"
            "tdpbusd tmm2, tmm5, tmm6"
        ],
        [
            "tilestored [{sums} + {step}], tmm0"
            "tilestored [{below} + {step}], tmm2"
        ]
    );
    multiply!(
        multiply_1x1,
        ["tmm0"],
        [
            "tileloadd tmm4, [{first} + {row}]"
            "tileloadd tmm6, [{weights} + {step}]"
            "tdpbusd tmm0, tmm4, tmm6"
        ],
        [
            "tilestored [{sums} + {step}], tmm0"
            "/* not used: {below} */"
        ]
    );
}
