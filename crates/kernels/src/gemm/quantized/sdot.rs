//! Tiles with NEON's dot products: sums of four products of signed bytes, in 16 lanes.
//!
//! A tile of 6 rows and 16 channels holds 24 sums in registers, with 16 bytes of inputs of each row,
//! four steps, which the products take by lane. So four steps load 6 registers of inputs and 16 of
//! weights for 96 products.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::DEPTH;
use super::dot::sdot_lane;
use super::tiles::{Arithmetic, Packing, Streams, Work, kernel, tiles};
use std::arch::aarch64::*;

/// Dot products of signed bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Sdot;

impl Arithmetic for Sdot {
    type Sums = [int32x4_t; 4];
    type Inputs = int8x16_t;
    type Weights = [int8x16_t; 4];

    const ROWS: [usize; 5] = [0, 6, 0, 0, 0];

    const PACKING: Packing = Packing::Bytes;

    const HAS_SIGNED_INPUTS: bool = true;

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> int8x16_t {
        // SAFETY: every processor of the target has NEON.
        unsafe { signed::<SIGNED>(vreinterpretq_u8_u32(vdupq_n_u32(four))) }
    }

    #[inline(always)]
    unsafe fn multiply(
        self,
        mut sums: [int32x4_t; 4],
        inputs: int8x16_t,
        weights: [int8x16_t; 4],
    ) -> [int32x4_t; 4] {
        for (sum, weights) in sums.iter_mut().zip(weights) {
            // SAFETY: the trait's promise.
            *sum = unsafe { sdot_lane::<0>(*sum, weights, inputs) };
        }
        sums
    }

    #[inline(always)]
    unsafe fn run<const R: usize, const W: usize, const SIGNED: bool>(
        self,
        rows: &[*const u8; R],
        steps: usize,
        streams: &mut Streams,
        sums: &mut [[Self::Sums; W]; R],
    ) {
        let mut step = 0;
        while step + 4 <= steps {
            // SAFETY: four bytes can be read at each of these steps, for which the block has 64 bytes
            // each.
            unsafe {
                let mut inputs = [vdupq_n_s8(0); R];
                for r in 0..R {
                    inputs[r] = signed::<SIGNED>(vld1q_u8(rows[r].add(DEPTH * step)));
                }
                let weights = streams.weights.cast::<i8>();
                multiply::<R, W, 0>(weights, &inputs, sums);
                multiply::<R, W, 1>(weights.add(64), &inputs, sums);
                multiply::<R, W, 2>(weights.add(128), &inputs, sums);
                multiply::<R, W, 3>(weights.add(192), &inputs, sums);
            }
            streams.weights = streams.weights.wrapping_add(256);
            step += 4;
        }
        for step in step..steps {
            // SAFETY: the caller's promises.
            unsafe { self.step::<R, W, SIGNED>(rows, step, streams, sums) };
        }
    }

    kernel!("dotprod");
}

/// Inputs as signed numbers.
///
/// # Safety
/// None: every processor of the target has NEON.
#[inline(always)]
pub(super) unsafe fn signed<const SIGNED: bool>(bytes: uint8x16_t) -> int8x16_t {
    // SAFETY: this only works on registers.
    unsafe { vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(if SIGNED { 0 } else { 0x80 }))) }
}

/// Adds the products of a step with four inputs of each row, which are a lane of 32 bits.
///
/// # Safety
/// There are 64 weights; the processor has dot products.
#[inline(always)]
unsafe fn multiply<const R: usize, const W: usize, const LANE: i32>(
    weights: *const i8,
    inputs: &[int8x16_t; R],
    sums: &mut [[[int32x4_t; 4]; W]; R],
) {
    for quarter in 0..4 {
        // SAFETY: the caller's promise.
        let weights = unsafe { vld1q_s8(weights.add(16 * quarter)) };
        for r in 0..R {
            // SAFETY: as above.
            sums[r][0][quarter] =
                unsafe { sdot_lane::<LANE>(sums[r][0][quarter], weights, inputs[r]) };
        }
    }
}
