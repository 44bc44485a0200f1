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

use super::tiles::{Arithmetic, Packing, Sums, Target, Work, kernel, tiles};
use crate::requantize::Form;
use crate::requantize::neon::{Constants, Limits};
use std::arch::aarch64::*;

/// 16 sums.
type Quarters = [int32x4_t; 4];

/// `LEAST` is whether a weight may be -128.
#[derive(Clone, Copy, Default)]
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
        let mut low = vmull_s8(vget_low_s8(a), vget_low_s8(even));
        let mut high = vmull_high_s8(a, even);
        if LEAST {
            sums[first] = vpadalq_s16(sums[first], low);
            sums[first + 1] = vpadalq_s16(sums[first + 1], high);
            low = vmull_s8(vget_low_s8(b), vget_low_s8(odd));
            high = vmull_high_s8(b, odd);
        } else {
            low = vmlal_s8(low, vget_low_s8(b), vget_low_s8(odd));
            high = vmlal_high_s8(high, b, odd);
        }
        sums[first] = vpadalq_s16(sums[first], low);
        sums[first + 1] = vpadalq_s16(sums[first + 1], high);
    }
}

impl Sums for Quarters {
    #[inline(always)]
    unsafe fn add(self, term: i32) -> Self {
        // SAFETY: every processor of the target has NEON.
        self.map(|sum| unsafe { vaddq_s32(sum, vdupq_n_s32(term)) })
    }

    #[inline(always)]
    unsafe fn finish<const R: usize, const W: usize>(target: Target<'_, W>, sums: [[Self; W]; R]) {
        debug_assert_eq!(W, 1, "blocks of one vector");
        let sums = sums.map(|row| row[0]);
        // SAFETY: the caller's promises.
        unsafe {
            match target.block.form {
                Form::Plain => store::<R, W, false>(target, sums),
                Form::Nudged => store::<R, W, true>(target, sums),
                Form::Sums => {
                    // By quarter: a whole row would be copied through memory.
                    for (row, quarters) in sums.into_iter().enumerate() {
                        let to = target.row(row).cast::<int32x4_t>();
                        for (quarter, sums) in quarters.into_iter().enumerate() {
                            to.wrapping_add(quarter).write_unaligned(sums);
                        }
                    }
                }
                _ => target.store_scalar(bytemuck::cast_slice(&sums)),
            }
        }
    }
}

/// # Safety
/// As of [`Sums::finish`].
#[inline(always)]
unsafe fn store<const R: usize, const W: usize, const NUDGED: bool>(
    target: Target<'_, W>,
    mut sums: [Quarters; R],
) {
    for quarter in 0..4 {
        let constants = Constants::load(&target.lanes[0], quarter);
        for r in 0..R {
            sums[r][quarter] = constants.apply::<NUDGED>(sums[r][quarter]);
        }
    }
    let limits = target.problem.common.limits;
    let limits = Limits::new(target.problem.zero_point(), limits.0, limits.1);
    for r in 0..R {
        let bytes = limits.narrow(sums[r]);
        // SAFETY: the channels of a row, which may be written.
        unsafe {
            if target.block.channels == 16 {
                vst1q_u8(target.row(r), bytes);
            } else {
                let all: [u8; 16] = bytemuck::cast(bytes);
                std::ptr::copy_nonoverlapping(all.as_ptr(), target.row(r), target.block.channels);
            }
        }
    }
}
