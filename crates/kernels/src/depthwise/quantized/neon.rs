//! Depthwise convolution with NEON: products of 16-bit numbers in 32 bits, in 16 lanes.
//!
//! Weights less their zero point have 9 bits, so bytes of the input are widened to 16. Four pixels are
//! computed together, so that weights are loaded once for them.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::packing::{Layout, Packing};
use super::problem::{Problem, Run};
use crate::quantization::Signedness;
use crate::requantize::Form;
use crate::requantize::neon::{Constants, Limits};
use std::arch::aarch64::*;

/// How [`compute`] finds weights.
pub(super) const PACKING: Packing = Packing { layout: Layout::Taps, lanes: 16 };

/// Computes the pixels of a run.
///
/// # Safety
/// As of [`pixels::compute`](super::pixels::compute); each step has two taps of 16 weights of 16 bits.
pub(super) unsafe fn compute(problem: &Problem, run: &Run<'_>) {
    let is_signed = problem.signedness == Signedness::Signed;
    let (four, one) = match (is_signed, run.block.channels == 16) {
        (false, false) => {
            (pixels::<4, false, false> as Pixels, pixels::<1, false, false> as Pixels)
        }
        (false, true) => (pixels::<4, false, true> as Pixels, pixels::<1, false, true> as Pixels),
        (true, false) => (pixels::<4, true, false> as Pixels, pixels::<1, true, false> as Pixels),
        (true, true) => (pixels::<4, true, true> as Pixels, pixels::<1, true, true> as Pixels),
    };
    let mut first = 0;
    while first < run.count {
        let group = run.after(first, problem.stride);
        // SAFETY: the caller's promises; this many pixels are left.
        unsafe {
            if group.count >= 4 {
                four(problem, &group);
                first += 4;
            } else {
                one(problem, &group);
                first += 1;
            }
        }
    }
}

type Pixels = unsafe fn(&Problem, &Run<'_>);

/// The first `P` pixels of a run; with `FULL` the block has 16 channels.
///
/// # Safety
/// As of [`compute`], and the run has this many pixels.
unsafe fn pixels<const P: usize, const SIGNED: bool, const FULL: bool>(
    problem: &Problem,
    run: &Run<'_>,
) {
    let lanes = &run.lanes[0];
    let [height, width] = problem.filter;
    // SAFETY: entries of taps of pixels, 16 weights of 16 bits for each tap (whole steps of two taps are
    // packed, so none is missing), and the caller's promises.
    unsafe {
        let bias = [0, 4, 8, 12].map(|at| vld1q_s32(lanes.bias.as_ptr().add(at)));
        let mut sums = [bias; P];
        let mut weights = run.weights.cast::<i16>();
        for i in 0..height {
            for j in 0..width {
                let (low, high) = (vld1q_s16(weights), vld1q_s16(weights.add(8)));
                weights = weights.wrapping_add(16);
                let entry = i * run.columns + j * problem.dilation;
                for p in 0..P {
                    let from = run.pixel(entry + p * problem.stride);
                    let inputs = widened::<SIGNED, FULL>(run, from);
                    let sums = &mut sums[p];
                    sums[0] = vmlal_s16(sums[0], vget_low_s16(inputs[0]), vget_low_s16(low));
                    sums[1] = vmlal_high_s16(sums[1], inputs[0], low);
                    sums[2] = vmlal_s16(sums[2], vget_low_s16(inputs[1]), vget_low_s16(high));
                    sums[3] = vmlal_high_s16(sums[3], inputs[1], high);
                }
            }
        }
        store::<P, FULL>(problem, run, sums);
    }
}

/// Requantizes and stores the sums of the first `P` pixels of a run.
///
/// # Safety
/// The block's channels of the pixels' outputs can be written, 16 of them if `FULL`.
#[inline(always)]
pub(super) unsafe fn store<const P: usize, const FULL: bool>(
    problem: &Problem,
    run: &Run<'_>,
    mut sums: [[int32x4_t; 4]; P],
) {
    if run.block.form == Form::Scalar {
        // SAFETY: the caller's promise.
        unsafe { run.store_scalar::<16>(problem, bytemuck::cast_slice(&sums)) };
        return;
    }
    for quarter in 0..4 {
        let constants = Constants::load(&run.lanes[0], quarter);
        for sums in &mut sums {
            sums[quarter] = match run.block.form {
                Form::Plain => constants.apply::<false>(sums[quarter]),
                _ => constants.apply::<true>(sums[quarter]),
            };
        }
    }
    let requantization = &problem.requantization;
    let limits = Limits::new(requantization.zero_point, requantization.min, requantization.max);
    for p in 0..P {
        let bytes = limits.narrow(sums[p]);
        let to = run.output.wrapping_add(p * run.output_step);
        // SAFETY: the caller's promise.
        unsafe {
            if FULL {
                vst1q_u8(to, bytes);
            } else {
                let mut all = [0_u8; 16];
                vst1q_u8(all.as_mut_ptr(), bytes);
                std::ptr::copy_nonoverlapping(all.as_ptr(), to, run.block.channels);
            }
        }
    }
}

/// The block's channels of a pixel, in 16 bits.
///
/// # Safety
/// They can be read, 16 of them if `FULL`.
#[inline(always)]
unsafe fn widened<const SIGNED: bool, const FULL: bool>(
    run: &Run<'_>,
    from: *const u8,
) -> [int16x8_t; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = load::<FULL>(run, from);
        if SIGNED {
            let bytes = vreinterpretq_s8_u8(bytes);
            [vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)]
        } else {
            let words = [vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)];
            words.map(|words| vreinterpretq_s16_u16(words))
        }
    }
}

/// The block's channels of a pixel.
///
/// # Safety
/// They can be read, 16 of them if `FULL`.
#[inline(always)]
pub(super) unsafe fn load<const FULL: bool>(run: &Run<'_>, from: *const u8) -> uint8x16_t {
    // SAFETY: the caller's promise.
    unsafe { if FULL { vld1q_u8(from) } else { load_some(from, run.block.channels) } }
}

/// This many bytes, from 1 to 15, and zeros. (Copying through memory would be a call, for which all
/// registers would have to be saved.)
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn load_some(from: *const u8, count: usize) -> uint8x16_t {
    // SAFETY: the caller's promise.
    unsafe {
        if count < 8 {
            return vcombine_u8(vcreate_u8(load_less_than_8(from, count)), vcreate_u8(0));
        }
        let high = load_less_than_8(from.add(8), count - 8);
        vcombine_u8(vld1_u8(from), vcreate_u8(high))
    }
}

/// # Safety
/// As of [`load_some`], for 0 to 7 bytes.
#[inline(always)]
unsafe fn load_less_than_8(from: *const u8, count: usize) -> u64 {
    let (mut value, mut at) = (0, 0);
    // SAFETY: the caller's promise, for all parts that the count is the sum of.
    unsafe {
        if count & 4 != 0 {
            value = u64::from(from.cast::<u32>().read_unaligned());
            at = 4;
        }
        if count & 2 != 0 {
            value |= u64::from(from.add(at).cast::<u16>().read_unaligned()) << (8 * at);
            at += 2;
        }
        if count & 1 != 0 {
            value |= u64::from(from.add(at).read()) << (8 * at);
        }
    }
    value
}
