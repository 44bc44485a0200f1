//! Depthwise convolution with NEON's dot products, which sum four products of neighbouring bytes, in 16
//! lanes.
#![allow(unsafe_code)]
// Helpers are inlined into the functions that have the instructions enabled.
#![allow(clippy::inline_always)]

use super::neon::{load, store};
use super::packing::Layout;
use super::pixels::{Arithmetic, FULL, Vectors, kernel, pixels};
use super::problem::{Problem, Run};
use crate::gemm::quantized::dot::sdot;
use crate::quantization::Signedness;
use crate::requantize::ChannelLanes;
use std::arch::aarch64::*;

/// Vectors of 16 signed bytes.
pub(super) struct Bytes16;

impl Vectors for Bytes16 {
    type Bytes = int8x16_t;
    type Sums = int32x4_t;

    const LANES: usize = 16;
    const HAS_MASKS: bool = false;
    const INPUT_SIGN: Signedness = Signedness::Signed;

    #[inline(always)]
    unsafe fn load<const SHARE: u8>(problem: &Problem, run: &Run<'_>, entry: usize) -> int8x16_t {
        // SAFETY: the caller's promise.
        unsafe {
            let from = run.pixel(entry);
            let bytes =
                if SHARE == FULL { load::<true>(run, from) } else { load::<false>(run, from) };
            veorq_s8(vreinterpretq_s8_u8(bytes), vdupq_n_s8(problem.flip))
        }
    }

    #[inline(always)]
    unsafe fn interleave([a, b, c, d]: [int8x16_t; 4]) -> [int8x16_t; 4] {
        // SAFETY: every processor of the target has NEON.
        unsafe {
            let ab = [vzip1q_s8(a, b), vzip2q_s8(a, b)].map(|ab| vreinterpretq_s16_s8(ab));
            let cd = [vzip1q_s8(c, d), vzip2q_s8(c, d)].map(|cd| vreinterpretq_s16_s8(cd));
            [
                vreinterpretq_s8_s16(vzip1q_s16(ab[0], cd[0])),
                vreinterpretq_s8_s16(vzip2q_s16(ab[0], cd[0])),
                vreinterpretq_s8_s16(vzip1q_s16(ab[1], cd[1])),
                vreinterpretq_s8_s16(vzip2q_s16(ab[1], cd[1])),
            ]
        }
    }

    #[inline(always)]
    unsafe fn first(lanes: &[ChannelLanes], quarter: usize) -> int32x4_t {
        // SAFETY: 16 numbers.
        unsafe { vld1q_s32(lanes.get_unchecked(0).bias.as_ptr().add(4 * quarter)) }
    }

    #[inline(always)]
    unsafe fn store<const P: usize, const SHARE: u8>(
        problem: &Problem,
        run: &Run<'_>,
        sums: [[int32x4_t; 4]; P],
    ) {
        // SAFETY: the caller's promises.
        unsafe {
            if SHARE == FULL {
                store::<P, true>(problem, run, sums);
            } else {
                store::<P, false>(problem, run, sums);
            }
        }
    }
}

/// Dot products of signed bytes.
pub(super) struct Sdot;

impl Arithmetic for Sdot {
    type Vectors = Bytes16;
    type Inputs = int8x16_t;

    const LAYOUT: Layout = Layout::Bytes;
    const WEIGHT_BYTES: usize = 16;
    const HAS_PARTS: bool = true;

    #[inline(always)]
    unsafe fn inputs(bytes: int8x16_t) -> int8x16_t {
        bytes
    }

    #[inline(always)]
    unsafe fn multiply(sums: int32x4_t, inputs: int8x16_t, weights: *const u8) -> int32x4_t {
        // SAFETY: the caller's promise.
        unsafe { sdot(sums, inputs, vld1q_s8(weights.cast())) }
    }

    kernel!("dotprod", 4);
}
