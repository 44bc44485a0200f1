//! Depthwise convolution with NEON's dot products, which sum four products of neighbouring bytes.
//!
//! The bytes of four taps are interleaved: 16 channels of four taps take 8 instructions, and 4 for the
//! products. Four pixels are computed together, so that with 3x3 filters they share interleaved columns.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::Signedness;
use super::neon::{load, store};
use super::packed::{Order, Packed, Run};
use crate::quantized::dot::sdot;
use std::arch::aarch64::*;

/// The sums of a pixel.
type Sums = [int32x4_t; 4];

/// Computes the pixels of a run.
///
/// # Safety
/// The processor has dot products. The table has the addresses of all taps of all pixels, and behind
/// each the block's channels can be read; the block's channels of all pixels' outputs can be written.
pub(super) unsafe fn compute(packed: &Packed, run: &Run<'_>) {
    let is_signed = packed.signedness == Signedness::Signed;
    let kernel = match (is_signed, run.block.has_two_parts, run.block.channels == 16) {
        (false, false, false) => kernel::<false, false, false>,
        (false, false, true) => kernel::<false, false, true>,
        (false, true, false) => kernel::<false, true, false>,
        (false, true, true) => kernel::<false, true, true>,
        (true, false, false) => kernel::<true, false, false>,
        (true, false, true) => kernel::<true, false, true>,
        (true, true, false) => kernel::<true, true, false>,
        (true, true, true) => kernel::<true, true, true>,
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(packed, run) }
}

/// With `TWO` the weights are sums of two bytes; with `FULL` the block has 16 channels.
///
/// # Safety
/// As of [`compute`], where the block is as the parameters say.
#[target_feature(enable = "dotprod")]
unsafe fn kernel<const SIGNED: bool, const TWO: bool, const FULL: bool>(
    packed: &Packed,
    run: &Run<'_>,
) {
    let mut first = 0;
    // SAFETY: the caller's promises; so many pixels are left.
    unsafe {
        while first + 4 <= run.count {
            let group = run.after(first, packed.stride);
            match (packed.order, packed.stride) {
                (Order::Columns3, 1) => by_column::<4, 1, SIGNED, TWO, FULL>(packed, &group),
                (Order::Columns3, _) => by_column::<4, 2, SIGNED, TWO, FULL>(packed, &group),
                _ => by_row::<4, SIGNED, TWO, FULL>(packed, &group),
            }
            first += 4;
        }
        for first in first..run.count {
            let group = run.after(first, packed.stride);
            match packed.order {
                Order::Columns3 => by_column::<1, 1, SIGNED, TWO, FULL>(packed, &group),
                _ => by_row::<1, SIGNED, TWO, FULL>(packed, &group),
            }
        }
    }
}

/// The block's channels of the pixel of a table's entry, as signed numbers.
///
/// # Safety
/// As of [`kernel`], for the entry.
#[inline]
#[target_feature(enable = "dotprod")]
unsafe fn signed<const SIGNED: bool, const FULL: bool>(run: &Run<'_>, entry: usize) -> int8x16_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { load::<FULL>(run, (*run.table.add(entry)).add(run.block.channel)) };
    let bytes = if SIGNED { bytes } else { veorq_u8(bytes, vdupq_n_u8(0x80)) };
    vreinterpretq_s8_u8(bytes)
}

/// Bytes of four taps, for each channel one behind the other.
#[inline]
#[target_feature(enable = "dotprod")]
fn interleave([a, b, c, d]: [int8x16_t; 4]) -> [int8x16_t; 4] {
    let zip = |a, b| {
        let (a, b) = (vreinterpretq_s16_s8(a), vreinterpretq_s16_s8(b));
        [vreinterpretq_s8_s16(vzip1q_s16(a, b)), vreinterpretq_s8_s16(vzip2q_s16(a, b))]
    };
    let [e, f] = zip(vzip1q_s8(a, b), vzip1q_s8(c, d));
    let [g, h] = zip(vzip2q_s8(a, b), vzip2q_s8(c, d));
    [e, f, g, h]
}

/// Adds products with the weights of a step, of which there are so many in each part.
///
/// # Safety
/// The block has the step.
#[inline]
#[target_feature(enable = "dotprod")]
unsafe fn multiply<const TWO: bool>(
    run: &Run<'_>,
    (step, steps): (usize, usize),
    inputs: [int8x16_t; 4],
    sums: &mut Sums,
) {
    let weights = run.weights.cast::<i8>();
    for quarter in 0..4 {
        // SAFETY: each step has 64 bytes.
        unsafe {
            let part = vld1q_s8(weights.add(step * 64 + quarter * 16));
            sums[quarter] = sdot(sums[quarter], inputs[quarter], part);
            if TWO {
                let part = vld1q_s8(weights.add((steps + step) * 64 + quarter * 16));
                sums[quarter] = sdot(sums[quarter], inputs[quarter], part);
            }
        }
    }
}

/// The first `P` pixels of a run, four taps at a time.
///
/// # Safety
/// As of [`kernel`].
#[inline]
#[target_feature(enable = "dotprod")]
unsafe fn by_row<const P: usize, const SIGNED: bool, const TWO: bool, const FULL: bool>(
    packed: &Packed,
    run: &Run<'_>,
) {
    let [height, width] = packed.filter;
    let steps = (height * width).div_ceil(4);
    // SAFETY: entries of taps of pixels, the block's steps, and the caller's promises.
    unsafe {
        let mut sums = [first_sums(run); P];
        let (mut i, mut j) = (0, 0);
        for step in 0..steps {
            // Taps that are not there are multiplied by zero, so any will do.
            let mut entries = [0; 4];
            for entry in &mut entries {
                *entry = i * run.columns + j * packed.dilation;
                if j + 1 < width {
                    j += 1;
                } else if i + 1 < height {
                    (i, j) = (i + 1, 0);
                }
            }
            for p in 0..P {
                let at = p * packed.stride;
                let inputs = interleave([
                    signed::<SIGNED, FULL>(run, entries[0] + at),
                    signed::<SIGNED, FULL>(run, entries[1] + at),
                    signed::<SIGNED, FULL>(run, entries[2] + at),
                    signed::<SIGNED, FULL>(run, entries[3] + at),
                ]);
                multiply::<TWO>(run, (step, steps), inputs, &mut sums[p]);
            }
        }
        store::<P, FULL>(packed, run, sums);
    }
}

/// The first `P` pixels of a run of a 3x3 filter, the three taps of a column at a time. Columns are
/// interleaved once for all pixels that see them, which are `S` columns from each other.
///
/// # Safety
/// As of [`kernel`].
#[inline]
#[target_feature(enable = "dotprod")]
unsafe fn by_column<
    const P: usize,
    const S: usize,
    const SIGNED: bool,
    const TWO: bool,
    const FULL: bool,
>(
    packed: &Packed,
    run: &Run<'_>,
) {
    // SAFETY: entries of taps of pixels, one of three steps, and the caller's promises.
    unsafe {
        let mut sums = [first_sums(run); P];
        for column in 0..(P - 1) * S + 3 {
            let a = signed::<SIGNED, FULL>(run, column);
            let b = signed::<SIGNED, FULL>(run, run.columns + column);
            let c = signed::<SIGNED, FULL>(run, 2 * run.columns + column);
            // The weight of the fourth is zero.
            let inputs = interleave([a, b, c, c]);
            for p in 0..P {
                if column >= p * S && column < p * S + 3 {
                    multiply::<TWO>(run, (column - p * S, 3), inputs, &mut sums[p]);
                }
            }
        }
        store::<P, FULL>(packed, run, sums);
    }
}

/// What sums of a block begin with.
#[inline]
#[target_feature(enable = "dotprod")]
fn first_sums(run: &Run<'_>) -> Sums {
    let bias = &run.lanes[0].bias;
    // SAFETY: 16 numbers.
    unsafe { [0, 4, 8, 12].map(|at| vld1q_s32(bias.as_ptr().add(at))) }
}
