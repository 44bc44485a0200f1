//! Tiles with NEON's dot products: sums of four products of signed bytes, in 16 lanes.
//!
//! A tile of 6 rows and 16 channels holds 24 sums in registers, with 16 bytes of inputs of each row,
//! four steps, which the products take by lane. So four steps load 6 registers of inputs and 16 of
//! weights for 96 products.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::neon::{Sums, finish, first_sums};
use super::{Block, Matrix, Tile};
use crate::quantized::dot::sdot_lane;
use std::arch::aarch64::*;

/// Computes a tile.
///
/// # Safety
/// As of [`Matrix::compute`], and the processor has dot products.
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
        5 => kernel::<5, SIGNED>,
        6 => kernel::<6, SIGNED>,
        rows => unreachable!("no kernel for {rows} rows"),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(matrix, block, tile) }
}

/// `R` rows and 16 channels.
///
/// # Safety
/// As of [`compute`], where the tile has `R` rows.
#[target_feature(enable = "dotprod")]
unsafe fn kernel<const R: usize, const SIGNED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
) {
    let mut sums = first_sums::<R>(tile);
    let flip = vdupq_n_u8(if SIGNED { 0 } else { 0x80 });
    let steps = matrix.common.run_bytes.div_ceil(4);
    let mut weights = tile.weights.cast::<i8>();
    for run in 0..matrix.common.runs {
        let mut rows = [std::ptr::null(); R];
        for (r, row) in rows.iter_mut().enumerate() {
            // SAFETY: the table has an address for each run of each row.
            *row = unsafe { *tile.table.add(run * tile.table_step + r) };
        }
        let mut step = 0;
        while step + 4 <= steps {
            let mut inputs = [vdupq_n_s8(0); R];
            for r in 0..R {
                // SAFETY: four bytes can be read at each of these steps.
                let bytes = unsafe { vld1q_u8(rows[r].add(4 * step)) };
                inputs[r] = vreinterpretq_s8_u8(veorq_u8(bytes, flip));
            }
            // SAFETY: the block has 64 bytes for each step.
            unsafe {
                multiply::<R, 0>(weights, &inputs, &mut sums);
                multiply::<R, 1>(weights.add(64), &inputs, &mut sums);
                multiply::<R, 2>(weights.add(128), &inputs, &mut sums);
                multiply::<R, 3>(weights.add(192), &inputs, &mut sums);
            }
            weights = weights.wrapping_add(256);
            step += 4;
        }
        for step in step..steps {
            let mut inputs = [vdupq_n_s8(0); R];
            for r in 0..R {
                // SAFETY: four bytes can be read at each step of a run.
                let four = unsafe { rows[r].add(4 * step).cast::<u32>().read_unaligned() };
                let bytes = vreinterpretq_u8_u32(vdupq_n_u32(four));
                inputs[r] = vreinterpretq_s8_u8(veorq_u8(bytes, flip));
            }
            // SAFETY: the block has 64 bytes for each step.
            unsafe { multiply::<R, 0>(weights, &inputs, &mut sums) };
            weights = weights.wrapping_add(64);
        }
    }
    // SAFETY: as promised.
    unsafe { finish::<R>(matrix, block, tile, sums) };
}

/// Adds the products of a step with four inputs of each row, which are a lane of 32 bits.
///
/// # Safety
/// There are 64 weights.
#[inline]
#[target_feature(enable = "dotprod")]
unsafe fn multiply<const R: usize, const LANE: i32>(
    weights: *const i8,
    inputs: &[int8x16_t; R],
    sums: &mut Sums<R>,
) {
    for quarter in 0..4 {
        // SAFETY: the caller's promise.
        let weights = unsafe { vld1q_s8(weights.add(16 * quarter)) };
        for r in 0..R {
            sums[r][quarter] = sdot_lane::<LANE>(sums[r][quarter], weights, inputs[r]);
        }
    }
}
