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

use super::block::Block;
use super::problem::Problem;
use super::tiles::{Arithmetic, Packing, Sums, kernel, tiles};
use super::{Ahead, ChannelLanes, Tile};
use crate::requantize::neon::{Constants, Limits};
use crate::requantize::{Form, LANES};
use std::arch::aarch64::*;

/// 16 sums.
type Quarters = [int32x4_t; 4];

/// `LEAST` is whether a weight may be -128.
#[derive(Clone, Copy)]
pub(super) struct Neon<const LEAST: bool>;

impl<const LEAST: bool> Arithmetic for Neon<LEAST> {
    type Sums = Quarters;
    /// The even half of the four, and the odd half.
    type Inputs = [int8x16_t; 2];
    type Weights = [int8x16_t; 4];

    const ROWS: [usize; 5] = [0, 4, 0, 0, 0];

    const PACKING: Packing = Packing::BytesByTwo;

    const HAS_SIGNED_INPUTS: bool = true;

    #[inline(always)]
    unsafe fn new() -> Self {
        Self
    }

    #[inline(always)]
    unsafe fn weights(self, from: *const u8) -> [int8x16_t; 4] {
        // SAFETY: the caller's promise: 64 bytes.
        unsafe { [0, 16, 32, 48].map(|at| vld1q_s8(from.cast::<i8>().add(at))) }
    }

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> [int8x16_t; 2] {
        // SAFETY: every processor of the target has NEON; these only work on registers.
        unsafe {
            let flip = vdup_n_u8(if SIGNED { 0 } else { 0x80 });
            let four = vreinterpret_s16_u8(veor_u8(vcreate_u8(four.into()), flip));
            [
                vreinterpretq_s8_s16(vdupq_lane_s16::<0>(four)),
                vreinterpretq_s8_s16(vdupq_lane_s16::<1>(four)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn multiply(
        self,
        mut sums: Quarters,
        inputs: [int8x16_t; 2],
        [a, b, c, d]: [int8x16_t; 4],
    ) -> Quarters {
        add::<LEAST>(&mut sums, 0, [a, c], inputs);
        add::<LEAST>(&mut sums, 2, [b, d], inputs);
        sums
    }

    kernel!();
}

/// Adds the products of eight channels with four inputs to the sums in two registers.
#[inline(always)]
fn add<const LEAST: bool>(
    sums: &mut Quarters,
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

impl Sums for Quarters {
    #[inline(always)]
    unsafe fn load(from: &[i32; LANES]) -> Self {
        // SAFETY: every processor of the target has NEON; 16 numbers.
        unsafe { [0, 4, 8, 12].map(|at| vld1q_s32(from.as_ptr().add(at))) }
    }

    #[inline(always)]
    unsafe fn add(self, term: i32) -> Self {
        // SAFETY: every processor of the target has NEON.
        self.map(|sum| unsafe { vaddq_s32(sum, vdupq_n_s32(term)) })
    }

    #[inline(always)]
    unsafe fn finish<const R: usize, const W: usize>(
        problem: &Problem,
        block: &Block,
        lanes: &[ChannelLanes; W],
        output: (*mut u8, usize),
        sums: [[Self; W]; R],
    ) {
        debug_assert_eq!(W, 1, "blocks of one vector");
        let (lanes, sums) = (&lanes[0], sums.map(|row| row[0]));
        // SAFETY: the caller's promises.
        unsafe {
            match block.form {
                Form::Plain => store::<R, false>(problem, block, lanes, output, sums),
                Form::Nudged => store::<R, true>(problem, block, lanes, output, sums),
                Form::Sums => {
                    for (r, row) in sums.into_iter().enumerate() {
                        for (quarter, sums) in row.into_iter().enumerate() {
                            let to = output.0.add(r * output.1 + 16 * quarter);
                            // Sums are anywhere that bytes may be.
                            vst1q_u8(to, vreinterpretq_u8_s32(sums));
                        }
                    }
                }
                _ => store_scalar::<R>(problem, block, output, &sums),
            }
        }
    }
}

/// # Safety
/// As of [`Sums::finish`].
#[inline(always)]
unsafe fn store<const R: usize, const NUDGED: bool>(
    problem: &Problem,
    block: &Block,
    lanes: &ChannelLanes,
    (output, step): (*mut u8, usize),
    mut sums: [Quarters; R],
) {
    for quarter in 0..4 {
        let constants = Constants::load(lanes, quarter);
        for r in 0..R {
            sums[r][quarter] = constants.apply::<NUDGED>(sums[r][quarter]);
        }
    }
    let limits = problem.common.limits;
    let limits = Limits::new(problem.zero_point(), limits.0, limits.1);
    for r in 0..R {
        let bytes = limits.narrow(sums[r]);
        // SAFETY: the channels of a row, which may be written.
        unsafe {
            let to = output.add(r * step);
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
/// As of [`Sums::finish`].
#[cold]
unsafe fn store_scalar<const R: usize>(
    problem: &Problem,
    block: &Block,
    (output, step): (*mut u8, usize),
    sums: &[Quarters; R],
) {
    for (r, row) in sums.iter().enumerate() {
        let mut numbers = [0_i32; 16];
        for (quarter, &sums) in row.iter().enumerate() {
            // SAFETY: 16 numbers.
            unsafe { vst1q_s32(numbers[4 * quarter..].as_mut_ptr(), sums) };
        }
        for (index, &sum) in numbers.iter().enumerate().take(block.channels) {
            let byte = problem.output(block, index, sum);
            // SAFETY: a channel of the row, which may be written.
            unsafe { output.add(r * step + index).write(byte) };
        }
    }
}
