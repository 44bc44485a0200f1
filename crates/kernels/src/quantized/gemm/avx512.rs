//! Tiles with AVX-512 without VNNI: sums of two products of 16-bit numbers, in 16 lanes.
//!
//! As with AVX2 bytes are widened: of four inputs that are repeated in all lanes, the even ones are left
//! by a mask and the odd ones by a shift. Weights are packed as 16-bit numbers in that order.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::vnni::{in_floats, in_integers, store, store_scalar};
use super::{Block, Form, Matrix, Tile};
use std::arch::x86_64::*;

/// Computes a tile.
///
/// # Safety
/// As of [`Matrix::compute_rows`], and the processor has AVX-512 BW, DQ and VL.
pub(super) unsafe fn compute(matrix: &Matrix, block: &Block, tile: &Tile<'_>) {
    // SAFETY: the caller's promises.
    unsafe {
        if matrix.common.is_signed {
            with_rows::<true>(matrix, block, tile);
        } else {
            with_rows::<false>(matrix, block, tile);
        }
    }
}

/// # Safety
/// As of [`compute`].
unsafe fn with_rows<const SIGNED: bool>(matrix: &Matrix, block: &Block, tile: &Tile<'_>) {
    let kernel = match (block.vectors, tile.rows) {
        (2, 1) => kernel::<1, 2, SIGNED>,
        (2, 2) => kernel::<2, 2, SIGNED>,
        (2, 3) => kernel::<3, 2, SIGNED>,
        (2, 4) => kernel::<4, 2, SIGNED>,
        (2, 5) => kernel::<5, 2, SIGNED>,
        (2, 6) => kernel::<6, 2, SIGNED>,
        (1, 1) => kernel::<1, 1, SIGNED>,
        (1, 2) => kernel::<2, 1, SIGNED>,
        (1, 3) => kernel::<3, 1, SIGNED>,
        (1, 4) => kernel::<4, 1, SIGNED>,
        (1, 5) => kernel::<5, 1, SIGNED>,
        (1, 6) => kernel::<6, 1, SIGNED>,
        (vectors, rows) => unreachable!("no kernel for {rows} rows and {vectors} vectors"),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(matrix, block, tile) }
}

/// `R` rows and `W` vectors of channels.
///
/// # Safety
/// As of [`compute`], where the tile has `R` rows and the block `W` vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn kernel<const R: usize, const W: usize, const SIGNED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
) {
    let lanes: &[_; W] = tile.lanes.try_into().expect("as many vectors");
    let mut sums = [[_mm512_setzero_si512(); W]; R];
    for v in 0..W {
        // SAFETY: 16 numbers.
        let bias = unsafe { _mm512_loadu_si512(lanes[v].bias.as_ptr().cast()) };
        for row in &mut sums {
            row[v] = bias;
        }
    }
    if let Some(terms) = tile.row_terms {
        for (row, &term) in sums.iter_mut().zip(&terms[..R]) {
            for sum in row {
                *sum = _mm512_add_epi32(*sum, _mm512_set1_epi32(term));
            }
        }
    }
    let (flip, even) = (_mm512_set1_epi8(i8::MIN), _mm512_set1_epi16(0xFF));
    let steps = matrix.common.run_bytes.div_ceil(4);
    let mut weights = tile.weights;
    for run in 0..matrix.common.runs {
        let mut rows = [std::ptr::null(); R];
        for (r, row) in rows.iter_mut().enumerate() {
            // SAFETY: the table has an address for each run of each row.
            *row = unsafe { *tile.table.add(run * tile.table_step + r) };
        }
        for step in 0..steps {
            let mut vectors = [[_mm512_setzero_si512(); 2]; W];
            for (v, parts) in vectors.iter_mut().enumerate() {
                // SAFETY: the block has as many steps of `W` times two vectors.
                *parts = unsafe {
                    let at = weights.add(128 * v);
                    [_mm512_load_si512(at.cast()), _mm512_load_si512(at.add(64).cast())]
                };
            }
            for r in 0..R {
                // SAFETY: four bytes can be read at each step of a run.
                let four = unsafe { rows[r].add(4 * step).cast::<i32>().read_unaligned() };
                let mut inputs = _mm512_set1_epi32(four);
                if SIGNED {
                    inputs = _mm512_xor_si512(inputs, flip);
                }
                let (evens, odds) =
                    (_mm512_and_si512(inputs, even), _mm512_srli_epi16::<8>(inputs));
                for v in 0..W {
                    let [of_evens, of_odds] = vectors[v];
                    // At most 2 * 255 * 128 each, and their sum is exact in 32 bits.
                    let products = _mm512_add_epi32(
                        _mm512_madd_epi16(evens, of_evens),
                        _mm512_madd_epi16(odds, of_odds),
                    );
                    sums[r][v] = _mm512_add_epi32(sums[r][v], products);
                }
            }
            weights = weights.wrapping_add(128 * W);
        }
    }
    // SAFETY: as promised.
    unsafe {
        let (output, step) = (tile.output, tile.output_step);
        let outputs = match block.form {
            Form::Floats => in_floats::<R, W, false>(lanes, sums),
            Form::SignedFloats => in_floats::<R, W, true>(lanes, sums),
            Form::Plain => in_integers::<R, W, false>(lanes, sums),
            Form::Nudged => in_integers::<R, W, true>(lanes, sums),
            Form::Scalar => return store_scalar::<R, W>(matrix, block, output, step, sums),
        };
        store::<R, W, SIGNED>(matrix, block, output, step, outputs);
    }
}
