//! Tiles with AVX2: sums of two products of 16-bit numbers, in 8 lanes.
//!
//! The instruction for products of bytes saturates at 16 bits, so bytes are widened: of four inputs
//! that are repeated in all lanes, the even ones are left by a mask and the odd ones by a shift. Weights
//! are packed as 16-bit numbers in that order.
#![allow(unsafe_code)]

use super::super::requantize::avx2::{Constants, Limits};
use super::{Block, Form, Matrix, Tile};
use std::arch::x86_64::*;

/// Computes a tile.
///
/// # Safety
/// As of [`Matrix::compute`], and the processor has AVX2.
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
    let kernel = match tile.rows {
        1 => kernel::<1, SIGNED>,
        2 => kernel::<2, SIGNED>,
        3 => kernel::<3, SIGNED>,
        4 => kernel::<4, SIGNED>,
        rows => unreachable!("no kernel for {rows} rows"),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(matrix, block, tile) }
}

/// `R` rows and 16 channels.
///
/// # Safety
/// As of [`compute`], where the tile has `R` rows.
#[target_feature(enable = "avx2")]
unsafe fn kernel<const R: usize, const SIGNED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
) {
    let lanes = &tile.lanes[0];
    let mut sums = [[_mm256_setzero_si256(); 2]; R];
    for half in 0..2 {
        // SAFETY: 16 numbers.
        let bias = unsafe { _mm256_loadu_si256(lanes.bias.as_ptr().add(8 * half).cast()) };
        for (r, row) in sums.iter_mut().enumerate() {
            let term = tile.row_terms.map_or(0, |terms| terms[r]);
            row[half] = _mm256_add_epi32(bias, _mm256_set1_epi32(term));
        }
    }
    let (flip, even) = (_mm256_set1_epi8(i8::MIN), _mm256_set1_epi16(0xFF));
    let steps = matrix.common.run_bytes.div_ceil(4);
    let mut weights = tile.weights;
    for run in 0..matrix.common.runs {
        let mut rows = [std::ptr::null(); R];
        for (r, row) in rows.iter_mut().enumerate() {
            // SAFETY: the table has an address for each run of each row.
            *row = unsafe { *tile.table.add(run * tile.table_step + r) };
        }
        for step in 0..steps {
            // SAFETY: the block has 128 bytes for each step.
            let [a, b, c, d] = unsafe {
                let at = |vector: usize| _mm256_load_si256(weights.add(32 * vector).cast());
                [at(0), at(1), at(2), at(3)]
            };
            for r in 0..R {
                // SAFETY: four bytes can be read at each step of a run.
                let four = unsafe { rows[r].add(4 * step).cast::<i32>().read_unaligned() };
                let mut inputs = _mm256_set1_epi32(four);
                if SIGNED {
                    inputs = _mm256_xor_si256(inputs, flip);
                }
                let (evens, odds) =
                    (_mm256_and_si256(inputs, even), _mm256_srli_epi16::<8>(inputs));
                let [low, high] = &mut sums[r];
                *low = _mm256_add_epi32(*low, _mm256_madd_epi16(evens, a));
                *high = _mm256_add_epi32(*high, _mm256_madd_epi16(evens, c));
                *low = _mm256_add_epi32(*low, _mm256_madd_epi16(odds, b));
                *high = _mm256_add_epi32(*high, _mm256_madd_epi16(odds, d));
            }
            weights = weights.wrapping_add(128);
        }
    }
    let limits = Limits::new(matrix.common.limits.0, matrix.common.limits.1);
    let (low, high) = (Constants::load(lanes, 0), Constants::load(lanes, 1));
    for (r, &[a, b]) in sums.iter().enumerate() {
        let mut bytes = [0_u8; 16];
        match block.form {
            Form::Scalar => {
                let mut numbers = [0_i32; 16];
                // SAFETY: 16 numbers.
                unsafe {
                    _mm256_storeu_si256(numbers.as_mut_ptr().cast(), a);
                    _mm256_storeu_si256(numbers.as_mut_ptr().add(8).cast(), b);
                }
                for (index, byte) in bytes.iter_mut().enumerate().take(block.channels) {
                    *byte = matrix.output(block, index, numbers[index]);
                }
            }
            form => {
                let outputs = if form == Form::Nudged {
                    limits.narrow(low.apply::<true>(a), high.apply::<true>(b))
                } else {
                    limits.narrow(low.apply::<false>(a), high.apply::<false>(b))
                };
                // SAFETY: 16 bytes.
                unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), outputs) };
            }
        }
        // SAFETY: the channels of a row, which may be written.
        unsafe {
            let to = tile.output.add(r * tile.output_step);
            if block.channels == 16 {
                to.cast::<[u8; 16]>().write_unaligned(bytes);
            } else {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, block.channels);
            }
        }
    }
}
