//! Tiles with NEON, without its dot products: products of bytes in 16 bits, added by twos to sums of
//! 32 bits, in 16 lanes.
//!
//! Weights are packed by twos: of each step first the even half of the four of all channels, then the
//! odd half, so that a pair of inputs repeated in all lanes meets the pairs of eight channels in one
//! register. Multiplying and adding go to different units on most processors, which is why this is
//! better than widening to 16 bits first. If no weight is -128, 16 bits also hold the sum of two
//! products, which saves a quarter of the instructions.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::requantize::neon::{Constants, Limits};
use super::{Block, Form, Matrix, Tile};
use std::arch::aarch64::*;

/// Registers of sums of a row.
const QUARTERS: usize = 4;

/// The sums of `R` rows and 16 channels.
pub(super) type Sums<const R: usize> = [[int32x4_t; QUARTERS]; R];

/// Computes a tile.
///
/// # Safety
/// As of [`Matrix::compute`].
pub(super) unsafe fn compute(matrix: &Matrix, block: &Block, tile: &Tile<'_>) {
    // SAFETY: the caller's promises.
    unsafe {
        match (matrix.common.is_signed, matrix.has_least_weight) {
            (false, false) => with_rows::<false, false>(matrix, block, tile),
            (false, true) => with_rows::<false, true>(matrix, block, tile),
            (true, false) => with_rows::<true, false>(matrix, block, tile),
            (true, true) => with_rows::<true, true>(matrix, block, tile),
        }
    }
}

/// # Safety
/// As of [`compute`].
unsafe fn with_rows<const SIGNED: bool, const LEAST: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
) {
    let kernel = match tile.rows {
        1 => kernel::<1, SIGNED, LEAST>,
        2 => kernel::<2, SIGNED, LEAST>,
        3 => kernel::<3, SIGNED, LEAST>,
        4 => kernel::<4, SIGNED, LEAST>,
        rows => unreachable!("no kernel for {rows} rows"),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(matrix, block, tile) }
}

/// `R` rows and 16 channels; without `LEAST` no weight is -128.
///
/// # Safety
/// As of [`compute`], where the tile has `R` rows.
unsafe fn kernel<const R: usize, const SIGNED: bool, const LEAST: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
) {
    // SAFETY: every processor of the target has NEON; what is read is explained below.
    unsafe {
        let mut sums = first_sums::<R>(tile);
        let flip = vdup_n_u8(if SIGNED { 0 } else { 0x80 });
        let steps = matrix.common.run_bytes.div_ceil(4);
        let mut weights = tile.weights.cast::<i8>();
        for run in 0..matrix.common.runs {
            let mut rows = [std::ptr::null(); R];
            for (r, row) in rows.iter_mut().enumerate() {
                // The table has an address for each run of each row.
                *row = *tile.table.add(run * tile.table_step + r);
            }
            for step in 0..steps {
                // The block has 64 bytes for each step.
                let [a, b, c, d] = [0, 16, 32, 48].map(|at| vld1q_s8(weights.add(at)));
                for r in 0..R {
                    // Four bytes can be read at each step of a run.
                    let four = rows[r].add(4 * step).cast::<u32>().read_unaligned();
                    let four = vreinterpret_s16_u8(veor_u8(vcreate_u8(four.into()), flip));
                    let even = vreinterpretq_s8_s16(vdupq_lane_s16::<0>(four));
                    let odd = vreinterpretq_s8_s16(vdupq_lane_s16::<1>(four));
                    add::<LEAST>(&mut sums[r], 0, [a, c], [even, odd]);
                    add::<LEAST>(&mut sums[r], 2, [b, d], [even, odd]);
                }
                weights = weights.wrapping_add(64);
            }
        }
        finish::<R>(matrix, block, tile, sums);
    }
}

/// Adds the products of eight channels with four inputs to the sums in two registers.
#[inline(always)]
fn add<const LEAST: bool>(
    sums: &mut [int32x4_t; QUARTERS],
    first: usize,
    [a, b]: [int8x16_t; 2],
    [even, odd]: [int8x16_t; 2],
) {
    // SAFETY: every processor of the target has NEON; these only work on registers.
    unsafe {
        let low = vmull_s8(vget_low_s8(a), vget_low_s8(even));
        let high = vmull_high_s8(a, even);
        if LEAST {
            sums[first] = vpadalq_s16(sums[first], low);
            sums[first + 1] = vpadalq_s16(sums[first + 1], high);
            let low = vmull_s8(vget_low_s8(b), vget_low_s8(odd));
            let high = vmull_high_s8(b, odd);
            sums[first] = vpadalq_s16(sums[first], low);
            sums[first + 1] = vpadalq_s16(sums[first + 1], high);
        } else {
            let low = vmlal_s8(low, vget_low_s8(b), vget_low_s8(odd));
            let high = vmlal_high_s8(high, b, odd);
            sums[first] = vpadalq_s16(sums[first], low);
            sums[first + 1] = vpadalq_s16(sums[first + 1], high);
        }
    }
}

/// What the sums of a tile begin with.
#[inline(always)]
pub(super) fn first_sums<const R: usize>(tile: &Tile<'_>) -> Sums<R> {
    let lanes = &tile.lanes[0];
    // SAFETY: every processor of the target has NEON; 16 numbers.
    unsafe {
        let bias: [_; QUARTERS] = [0, 4, 8, 12].map(|at| vld1q_s32(lanes.bias.as_ptr().add(at)));
        let mut sums = [bias; R];
        if let Some(terms) = tile.row_terms {
            for (row, &term) in sums.iter_mut().zip(&terms[..R]) {
                *row = row.map(|sum| vaddq_s32(sum, vdupq_n_s32(term)));
            }
        }
        sums
    }
}

/// Requantises and stores.
///
/// # Safety
/// As of [`Matrix::compute`], where the tile has `R` rows.
#[inline(always)]
pub(super) unsafe fn finish<const R: usize>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
    sums: Sums<R>,
) {
    // SAFETY: the caller's promises.
    unsafe {
        match block.form {
            Form::Plain => store::<R, false>(matrix, block, tile, sums),
            Form::Nudged => store::<R, true>(matrix, block, tile, sums),
            _ => store_scalar::<R>(matrix, block, tile, &sums),
        }
    }
}

/// # Safety
/// As of [`finish`].
#[inline(always)]
unsafe fn store<const R: usize, const NUDGED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
    mut sums: Sums<R>,
) {
    for quarter in 0..QUARTERS {
        let constants = Constants::load(&tile.lanes[0], quarter);
        for r in 0..R {
            sums[r][quarter] = constants.apply::<NUDGED>(sums[r][quarter]);
        }
    }
    let limits = matrix.common.limits;
    let limits = Limits::new(matrix.zero_point(), limits.0, limits.1);
    for r in 0..R {
        let bytes = limits.narrow(sums[r]);
        // SAFETY: the channels of a row, which may be written.
        unsafe {
            let to = tile.output.add(r * tile.output_step);
            if block.channels == 16 {
                vst1q_u8(to, bytes);
            } else {
                let mut all = [0_u8; 16];
                vst1q_u8(all.as_mut_ptr(), bytes);
                std::ptr::copy_nonoverlapping(all.as_ptr(), to, block.channels);
            }
        }
    }
}

/// One by one.
///
/// # Safety
/// As of [`finish`].
#[cold]
unsafe fn store_scalar<const R: usize>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
    sums: &Sums<R>,
) {
    for (r, row) in sums.iter().enumerate() {
        let mut numbers = [0_i32; 16];
        for (quarter, &sums) in row.iter().enumerate() {
            // SAFETY: 16 numbers.
            unsafe { vst1q_s32(numbers[4 * quarter..].as_mut_ptr(), sums) };
        }
        for (index, &sum) in numbers.iter().enumerate().take(block.channels) {
            let output = matrix.output(block, index, sum);
            // SAFETY: a channel of the row, which may be written.
            unsafe { tile.output.add(r * tile.output_step + index).write(output) };
        }
    }
}
