//! Tiles with NEON's products of matrices: of two rows and two channels, eight products of signed bytes for each of the four sums.
//!
//! Weights of two steps are packed together ([`pair_steps`](super::tiles::pair_steps)), so that a register has eight of two channels. The sums of two
//! rows stay in registers of their own until the end of a run: a tile of 6 rows and 16 channels has 24, and takes 24 products where
//! dot products take 48. A row without a partner is its own. Runs of few steps, and the last of an odd number of steps, are dot products, as of [`Sdot`].
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::DEPTH;
use super::dot::smmla;
use super::sdot::{Sdot, signed};
use super::tiles::{Arithmetic, LEAST_STEPS_TO_PAIR, Packing, Streams, Work, kernel, tiles};
use std::arch::aarch64::*;

/// Pairs of rows of a tile, at most.
const MOST_PAIRS: usize = 3;

/// Products of matrices of signed bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Smmla;

impl Arithmetic for Smmla {
    type Sums = <Sdot as Arithmetic>::Sums;
    type Inputs = <Sdot as Arithmetic>::Inputs;
    type Weights = <Sdot as Arithmetic>::Weights;

    const ROWS: [usize; 5] = Sdot::ROWS;

    const PACKING: Packing = Packing::BytesOfTwoSteps;

    const HAS_SIGNED_INPUTS: bool = true;

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> Self::Inputs {
        // SAFETY: the caller's promise.
        unsafe { Sdot.inputs::<SIGNED>(four) }
    }

    #[inline(always)]
    unsafe fn multiply(
        self,
        sums: Self::Sums,
        inputs: Self::Inputs,
        weights: Self::Weights,
    ) -> Self::Sums {
        // SAFETY: the caller's promise; who has products of matrices has dot products.
        unsafe { Sdot.multiply(sums, inputs, weights) }
    }

    #[inline(always)]
    unsafe fn run<const R: usize, const W: usize, const SIGNED: bool>(
        self,
        rows: &[*const u8; R],
        steps: usize,
        streams: &mut Streams,
        sums: &mut [[Self::Sums; W]; R],
    ) {
        // There are no other tiles.
        let is_paired = const { R <= 2 * MOST_PAIRS && W == 1 };
        if !is_paired || steps < LEAST_STEPS_TO_PAIR {
            // SAFETY: the caller's promises.
            return unsafe { Sdot.run::<R, W, SIGNED>(rows, steps, streams, sums) };
        }
        let pairs_of_rows = const { R.div_ceil(2) };
        // SAFETY: eight bytes can be read at each two steps, for which the block has 128 bytes; the processor has the
        // instructions.
        unsafe {
            // By pair of rows and pair of channels: of the first row, then of the second.
            let mut products = [[vdupq_n_s32(0); 8]; MOST_PAIRS];
            let mut step = 0;
            while step + 2 <= steps {
                let eight = |row: usize| vld1_u8(rows[row].add(DEPTH * step));
                let mut inputs = [vdupq_n_s8(0); MOST_PAIRS];
                for pair in 0..pairs_of_rows {
                    let partner = if 2 * pair + 1 < R { 2 * pair + 1 } else { 2 * pair };
                    inputs[pair] = signed::<SIGNED>(vcombine_u8(eight(2 * pair), eight(partner)));
                }
                for channels in 0..8 {
                    let weights = vld1q_s8(streams.weights.cast::<i8>().add(16 * channels));
                    for pair in 0..pairs_of_rows {
                        let sum = &mut products[pair][channels];
                        *sum = smmla(*sum, inputs[pair], weights);
                    }
                }
                streams.weights = streams.weights.wrapping_add(128);
                step += 2;
            }
            for row in 0..R {
                for quarter in 0..4 {
                    let [low, high] =
                        [0, 1].map(|at| vreinterpretq_s64_s32(products[row / 2][2 * quarter + at]));
                    let of_row =
                        if row % 2 == 0 { vzip1q_s64(low, high) } else { vzip2q_s64(low, high) };
                    let sum = &mut sums[row][0][quarter];
                    *sum = vaddq_s32(*sum, vreinterpretq_s32_s64(of_row));
                }
            }
            for step in step..steps {
                self.step::<R, W, SIGNED>(rows, step, streams, sums);
            }
        }
    }

    kernel!("dotprod,i8mm");
}
