//! Depthwise convolution with AVX-512 and VNNI, in 64 lanes, by sums of four products of bytes. Without VNNI AVX2's kernels take
//! as long as such of 512 bits would.
//!
//! If 32 channels or fewer are left, a pixel of each half of the row share the lanes.
#![allow(unsafe_code)]
// Helpers are inlined into the functions that have the instructions enabled.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::packing::Layout;
use super::pixels::{Arithmetic, PAIR, Vectors, kernel, pixels};
use super::problem::{Problem, Run};
use crate::quantization::Signedness;
use crate::requantize::avx512::{Constants, FloatConstants, Limits};
use crate::requantize::{ChannelLanes, Form, Requantization};
use std::arch::x86_64::*;

/// Vectors of 64 bytes.
pub(super) struct Bytes64;

impl Vectors for Bytes64 {
    type Bytes = __m512i;
    type Sums = __m512i;

    const LANES: usize = 64;
    const HAS_MASKS: bool = true;
    const INPUT_SIGN: Signedness = Signedness::Unsigned;
    const HAS_FLOATS: bool = true;

    #[inline(always)]
    unsafe fn load<const SHARE: u8>(problem: &Problem, run: &Run<'_>, entry: usize) -> __m512i {
        // Of 1 to 64 channels, or to 32 of a pair.
        let mask = !0_u64 >> (64 - run.block.channels);
        // SAFETY: the caller's promise; what a mask leaves out is not accessed.
        unsafe {
            let from = run.pixel(entry);
            // Within the table, and used only if there is a partner.
            let partner = entry.wrapping_add(run.partner.wrapping_mul(problem.stride));
            let bytes = _mm512_maskz_loadu_epi8(mask, from.cast());
            let bytes = if SHARE == PAIR {
                let from = run.pixel(partner).wrapping_sub(32);
                _mm512_mask_loadu_epi8(bytes, mask << 32, from.cast())
            } else {
                bytes
            };
            _mm512_xor_si512(bytes, _mm512_set1_epi8(problem.flip))
        }
    }

    #[inline(always)]
    unsafe fn interleave([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        // SAFETY: the trait's promise.
        unsafe {
            let (ab, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
            let (cd, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
            [
                _mm512_unpacklo_epi16(ab, cd),
                _mm512_unpackhi_epi16(ab, cd),
                _mm512_unpacklo_epi16(ab_high, cd_high),
                _mm512_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    unsafe fn first(lanes: &[ChannelLanes], quarter: usize) -> __m512i {
        // SAFETY: there are four vectors of 16 numbers.
        unsafe { _mm512_loadu_si512(lanes.get_unchecked(quarter).bias.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn store<const P: usize, const SHARE: u8>(
        problem: &Problem,
        run: &Run<'_>,
        sums: [[__m512i; 4]; P],
    ) {
        let mut sums = sums;
        // SAFETY: the caller's promises; there are four vectors of constants.
        unsafe {
            let Requantization { min, max, zero_point, .. } = problem.requantization;
            /// Written out, for functions would keep the sums in memory.
            macro_rules! requantize {
                ($signed:literal) => {
                    for v in 0..4 {
                        let constants = FloatConstants::load(run.lanes.get_unchecked(v));
                        for p in 0..P {
                            sums[p][v] = constants.apply::<$signed>(sums[p][v]);
                        }
                    }
                };
            }
            match run.block.form {
                Form::Floats => requantize!(false),
                Form::SignedFloats => requantize!(true),
                _ => {
                    // A copy, for what a function can change would stay in memory in the other cases too.
                    let mut copies = [[_mm512_setzero_si512(); 4]; P];
                    for p in 0..P {
                        for v in 0..4 {
                            copies[p][v] = sums[p][v];
                        }
                    }
                    return store_integers::<SHARE>(problem, run, &mut copies);
                }
            }
            let limits = Limits::new(min, max, zero_point);
            for p in 0..P {
                store_pixel::<SHARE>(run, p, limits.narrow4(sums[p]));
            }
        }
    }
}

/// Requantizes in integers and stores the first pixels of a run.
///
/// # Safety
/// As of [`Vectors::store`], for as many pixels as there are; the processor has the instructions.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn store_integers<const SHARE: u8>(
    problem: &Problem,
    run: &Run<'_>,
    sums: &mut [[__m512i; 4]],
) {
    match run.block.form {
        Form::Plain => requantize::<false>(run.lanes, sums),
        Form::Nudged => requantize::<true>(run.lanes, sums),
        // SAFETY: the caller's promise.
        _ => return unsafe { run.store_scalar::<64>(problem, bytemuck::cast_slice(sums)) },
    }
    let limits = Limits::new(problem.requantization.min, problem.requantization.max, 0);
    for (p, sums) in sums.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { store_pixel::<SHARE>(run, p, limits.narrow4(*sums)) };
    }
}

/// Outputs of sums before they are clamped.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn requantize<const NUDGED: bool>(lanes: &[ChannelLanes], sums: &mut [[__m512i; 4]]) {
    for (v, lanes) in lanes.iter().enumerate() {
        let constants = Constants::load(lanes);
        for pixel in &mut *sums {
            pixel[v] = constants.apply::<NUDGED>(pixel[v]);
        }
    }
}

/// Stores the outputs of a pixel, and of its partner.
///
/// # Safety
/// The block's channels of both may be written; the caller has the instructions.
#[inline(always)]
unsafe fn store_pixel<const SHARE: u8>(run: &Run<'_>, pixel: usize, bytes: __m512i) {
    let mask = !0_u64 >> (64 - run.block.channels);
    let to = run.output.wrapping_add(pixel.wrapping_mul(run.output_step));
    let partner = to.wrapping_add(run.partner.wrapping_mul(run.output_step));
    // SAFETY: the masks leave the block's channels of the pixels, which may be written.
    unsafe {
        // Stores with a mask take longer, also where it leaves nothing out.
        match (SHARE, run.block.channels) {
            (PAIR, 32) => {
                _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes));
                _mm256_storeu_si256(partner.cast(), _mm512_extracti64x4_epi64::<1>(bytes));
            }
            (PAIR, _) => {
                _mm512_mask_storeu_epi8(to.cast(), mask, bytes);
                let to = partner.wrapping_sub(32);
                _mm512_mask_storeu_epi8(to.cast(), mask << 32, bytes);
            }
            (_, 64) => _mm512_storeu_si512(to.cast(), bytes),
            _ => _mm512_mask_storeu_epi8(to.cast(), mask, bytes),
        }
    }
}

/// Sums of four products.
pub(super) struct Vnni;

impl Arithmetic for Vnni {
    type Vectors = Bytes64;
    type Inputs = __m512i;

    const LAYOUT: Layout = Layout::Bytes;
    const WEIGHT_BYTES: usize = 64;
    const HAS_PARTS: bool = true;

    #[inline(always)]
    unsafe fn inputs(bytes: __m512i) -> __m512i {
        bytes
    }

    #[inline(always)]
    unsafe fn multiply(sums: __m512i, inputs: __m512i, weights: *const u8) -> __m512i {
        // SAFETY: the caller's promise; weights are in whole lines.
        unsafe { _mm512_dpbusd_epi32(sums, inputs, _mm512_load_si512(weights.cast())) }
    }

    kernel!("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni", 4);
}
