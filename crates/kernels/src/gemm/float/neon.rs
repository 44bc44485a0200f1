//! Tiles with NEON: four values of the depth at a time.
//!
//! A tile of 6 rows and 16 columns holds 24 sums in registers, with four values of each row, which
//! multiplications take by lane, in 6 more. So four steps load 22 registers for 96 multiplications.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::tile::{SECOND_CACHE, Tile, finish, prefetch};
use crate::vector::Simd;
use std::arch::aarch64::*;

/// Columns of a register.
const COLUMNS: usize = 4;

/// Sums of `ROWS` rows, in this many registers each.
type Sums<const ROWS: usize, const REGISTERS: usize> = [[float32x4_t; REGISTERS]; ROWS];

/// Computes a tile of the vectors that `simd` has, two registers each.
///
/// # Safety
/// As of `microkernel::run_part`.
pub(super) unsafe fn run_part<S: Simd<F = float32x4x2_t>>(
    simd: S,
    rows: usize,
    vectors: usize,
    tile: &Tile<'_>,
    biases: *const f32,
) {
    let run = match (rows, vectors) {
        (1, 1) => run::<S, 1, 1, 2>,
        (2, 1) => run::<S, 2, 1, 2>,
        (3, 1) => run::<S, 3, 1, 2>,
        (4, 1) => run::<S, 4, 1, 2>,
        (5, 1) => run::<S, 5, 1, 2>,
        (6, 1) => run::<S, 6, 1, 2>,
        (1, 2) => run::<S, 1, 2, 4>,
        (2, 2) => run::<S, 2, 2, 4>,
        (3, 2) => run::<S, 3, 2, 4>,
        (4, 2) => run::<S, 4, 2, 4>,
        (5, 2) => run::<S, 5, 2, 4>,
        (6, 2) => run::<S, 6, 2, 4>,
        _ => unreachable!("no tile of {rows} rows and {vectors} vectors"),
    };
    // SAFETY: as the caller promises.
    unsafe { run(simd, tile, biases) }
}

/// # Safety
/// As of [`run_part`], for `ROWS` rows and `VECTORS` vectors, which have `REGISTERS` registers.
unsafe fn run<
    S: Simd<F = float32x4x2_t>,
    const ROWS: usize,
    const VECTORS: usize,
    const REGISTERS: usize,
>(
    simd: S,
    tile: &Tile<'_>,
    from: *const f32,
) {
    let width = REGISTERS * COLUMNS;
    // SAFETY: the caller promises the panel, the segments, the output and the residual; every
    // processor of the target has NEON.
    unsafe {
        let mut panel = tile.panel;
        let ahead = tile.ahead;
        let mut biases = [vdupq_n_f32(0.0); REGISTERS];
        for register in 0..REGISTERS {
            biases[register] = vld1q_f32(from.add(register * COLUMNS));
        }
        let mut sums = [biases; ROWS];
        panel = panel.add(width);
        for segment in tile.segments.chunks_exact(ROWS) {
            let mut rows = [std::ptr::null::<f32>(); ROWS];
            for row in 0..ROWS {
                rows[row] = segment[row].add(tile.offset);
            }
            let mut depth = 0;
            while depth + 4 <= tile.segment_depth {
                let mut values = [vdupq_n_f32(0.0); ROWS];
                for row in 0..ROWS {
                    values[row] = vld1q_f32(rows[row].add(depth));
                }
                for depth in 0..4 {
                    prefetch::<SECOND_CACHE>(panel.wrapping_add(depth * width + ahead[depth % 2]));
                }
                step::<0, ROWS, REGISTERS>(panel, &values, &mut sums);
                step::<1, ROWS, REGISTERS>(panel.add(width), &values, &mut sums);
                step::<2, ROWS, REGISTERS>(panel.add(2 * width), &values, &mut sums);
                step::<3, ROWS, REGISTERS>(panel.add(3 * width), &values, &mut sums);
                panel = panel.add(4 * width);
                depth += 4;
            }
            while depth < tile.segment_depth {
                let mut values = [vdupq_n_f32(0.0); ROWS];
                for row in 0..ROWS {
                    values[row] = vld1q_dup_f32(rows[row].add(depth));
                }
                step::<0, ROWS, REGISTERS>(panel, &values, &mut sums);
                panel = panel.add(width);
                depth += 1;
            }
        }
        let mut vectors = [[simd.splat(0.0); VECTORS]; ROWS];
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                let registers = &sums[row];
                vectors[row][vector] =
                    float32x4x2_t(registers[2 * vector], registers[2 * vector + 1]);
            }
        }
        finish(simd, &tile.target, tile.epilogue, vectors);
    }
}

/// Adds the products of one value of the depth, which is a lane of `values`.
///
/// # Safety
/// The panel has a row of this many registers.
#[inline(always)]
unsafe fn step<const LANE: i32, const ROWS: usize, const REGISTERS: usize>(
    panel: *const f32,
    values: &[float32x4_t; ROWS],
    sums: &mut Sums<ROWS, REGISTERS>,
) {
    for register in 0..REGISTERS {
        // SAFETY: as the caller promises; every processor of the target has NEON.
        unsafe {
            let weights = vld1q_f32(panel.add(register * COLUMNS));
            for row in 0..ROWS {
                sums[row][register] =
                    vfmaq_laneq_f32::<LANE>(sums[row][register], weights, values[row]);
            }
        }
    }
}
