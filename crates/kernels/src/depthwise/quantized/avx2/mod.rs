//! Depthwise convolution with 256-bit vectors, in 32 lanes: with AVX-VNNI by sums of four products of
//! bytes, with AVX2 alone by sums of two products of 16-bit numbers, to which interleaved bytes are
//! widened.
//!
//! If 16 channels or fewer are left, a pixel of each half of the row share the lanes. Half as many pixels
//! are computed together as with AVX-512, which has twice as many registers.
#![allow(unsafe_code)]
// Helpers are inlined into the functions that have the instructions enabled.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

pub(super) mod nibbles;

use super::packing::Layout;
use super::pixels::{Arithmetic, FULL, FULL_PAIR, PARTIAL, Vectors, kernel, pixels};
use super::problem::{Problem, Run};
use crate::quantization::Signedness;
use crate::requantize::avx2::{Constants, Limits};
use crate::requantize::{ChannelLanes, Form};
use std::arch::x86_64::*;

/// Vectors of 32 bytes.
pub(super) struct Bytes32;

impl Vectors for Bytes32 {
    type Bytes = __m256i;
    type Sums = __m256i;

    const LANES: usize = 32;
    const HAS_MASKS: bool = false;
    const INPUT_SIGN: Signedness = Signedness::Unsigned;

    #[inline(always)]
    unsafe fn load<const SHARE: u8>(problem: &Problem, run: &Run<'_>, entry: usize) -> __m256i {
        // All 32, or from 17 on; of a pair from 1 to 16: see `Packing::pixels`.
        let channels = run.block.channels;
        // SAFETY: the caller's promise.
        unsafe {
            let from = run.pixel(entry);
            // Within the table, and used only if there is a partner.
            let partner = entry.wrapping_add(run.partner.wrapping_mul(problem.stride));
            let bytes = match SHARE {
                FULL => _mm256_loadu_si256(from.cast()),
                PARTIAL => {
                    let upper = load_some(from.add(16), channels - 16);
                    _mm256_set_m128i(upper, _mm_loadu_si128(from.cast()))
                }
                FULL_PAIR => {
                    let upper = _mm_loadu_si128(run.pixel(partner).cast());
                    _mm256_set_m128i(upper, _mm_loadu_si128(from.cast()))
                }
                _ => {
                    let upper = load_some(run.pixel(partner), channels);
                    _mm256_set_m128i(upper, load_some(from, channels))
                }
            };
            _mm256_xor_si256(bytes, _mm256_set1_epi8(problem.flip))
        }
    }

    #[inline(always)]
    unsafe fn interleave([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        // SAFETY: the trait's promise.
        unsafe {
            let (ab, ab_high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
            let (cd, cd_high) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
            [
                _mm256_unpacklo_epi16(ab, cd),
                _mm256_unpackhi_epi16(ab, cd),
                _mm256_unpacklo_epi16(ab_high, cd_high),
                _mm256_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    unsafe fn first(lanes: &[ChannelLanes], quarter: usize) -> __m256i {
        // SAFETY: there are two vectors of 16 numbers.
        unsafe {
            let bias = &lanes.get_unchecked(quarter / 2).bias;
            _mm256_loadu_si256(bias.as_ptr().add(quarter % 2 * 8).cast())
        }
    }

    #[inline(always)]
    unsafe fn store<const P: usize, const SHARE: u8>(
        problem: &Problem,
        run: &Run<'_>,
        sums: [[__m256i; 4]; P],
    ) {
        // In memory: the constants of what follows take all registers.
        let mut sums = sums;
        // SAFETY: the caller's promises.
        unsafe {
            match run.block.form {
                Form::Scalar | Form::Sums => {
                    run.store_scalar::<32>(problem, bytemuck::cast_slice(&sums));
                }
                Form::Plain => store::<SHARE, false>(problem, run, &mut sums),
                _ => store::<SHARE, true>(problem, run, &mut sums),
            }
        }
    }
}

/// Requantizes and stores the first pixels of a run.
///
/// # Safety
/// As of [`Vectors::store`], for as many pixels as there are; the processor has AVX2.
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn store<const SHARE: u8, const NUDGED: bool>(
    problem: &Problem,
    run: &Run<'_>,
    sums: &mut [[__m256i; 4]],
) {
    let lanes: &[ChannelLanes; 2] = run.lanes.try_into().expect("of 32 channels");
    for v in 0..4 {
        let constants = Constants::load(&lanes[v / 2], v % 2);
        for pixel in &mut *sums {
            pixel[v] = constants.apply::<NUDGED>(pixel[v]);
        }
    }
    let limits = Limits::new(problem.requantization.min, problem.requantization.max);
    for (p, pixel) in sums.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { store_pixel::<SHARE>(run, p, limits.narrow4(*pixel)) };
    }
}

/// Stores the outputs of a pixel, and of its partner.
///
/// # Safety
/// The block's channels of both may be written; the caller has AVX2.
#[inline(always)]
unsafe fn store_pixel<const SHARE: u8>(run: &Run<'_>, pixel: usize, bytes: __m256i) {
    let channels = run.block.channels;
    let to = run.output.wrapping_add(pixel.wrapping_mul(run.output_step));
    let partner = to.wrapping_add(run.partner.wrapping_mul(run.output_step));
    // SAFETY: the caller's promise.
    unsafe {
        let (low, high) = (_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes));
        match SHARE {
            FULL => _mm256_storeu_si256(to.cast(), bytes),
            PARTIAL => {
                _mm_storeu_si128(to.cast(), low);
                store_some(to.add(16), high, channels - 16);
            }
            FULL_PAIR => {
                _mm_storeu_si128(to.cast(), low);
                _mm_storeu_si128(partner.cast(), high);
            }
            _ => {
                store_some(to, low, channels);
                store_some(partner, high, channels);
            }
        }
    }
}

/// This many bytes, from 1 to 16, and zeros.
///
/// # Safety
/// They can be read; the caller has AVX2.
#[inline(always)]
unsafe fn load_some(from: *const u8, count: usize) -> __m128i {
    let words = count / 4;
    // SAFETY: the caller's promises; all parts are within the bytes, and what the mask leaves out is not
    // accessed.
    unsafe {
        let of_four = _mm_set1_epi32(i32::try_from(words).unwrap_unchecked());
        let places = _mm_setr_epi32(0, 1, 2, 3);
        let bytes = _mm_maskload_epi32(from.cast(), _mm_cmpgt_epi32(of_four, places));
        if count.is_multiple_of(4) {
            return bytes;
        }
        let rest = _mm_set1_epi32(load_rest(from.add(4 * words), count % 4));
        _mm_or_si128(bytes, _mm_and_si128(_mm_cmpeq_epi32(of_four, places), rest))
    }
}

/// Fewer than four bytes, and zeros.
///
/// # Safety
/// They can be read.
#[cold]
#[inline(never)] // Each load has a call of it.
unsafe fn load_rest(from: *const u8, count: usize) -> i32 {
    // SAFETY: the caller's promise.
    let byte = |at: usize| unsafe { i32::from(from.add(at).read()) };
    (0..count).rev().fold(0, |rest, at| rest << 8 | byte(at))
}

/// The first this many bytes, from 1 to 16.
///
/// # Safety
/// They can be written; the caller has AVX2.
#[inline(always)]
unsafe fn store_some(to: *mut u8, bytes: __m128i, count: usize) {
    let mut all = [0_u8; 16];
    // SAFETY: the caller's promises.
    unsafe {
        _mm_storeu_si128(all.as_mut_ptr().cast(), bytes);
        if count == 8 {
            _mm_storel_epi64(to.cast(), bytes);
        } else {
            std::ptr::copy_nonoverlapping(all.as_ptr(), to, count);
        }
    }
}

/// With AVX-VNNI.
pub(super) struct Vnni;

impl Arithmetic for Vnni {
    type Vectors = Bytes32;
    type Inputs = __m256i;

    const LAYOUT: Layout = Layout::Bytes;
    const WEIGHT_BYTES: usize = 32;
    const HAS_PARTS: bool = false;

    #[inline(always)]
    unsafe fn inputs(bytes: __m256i) -> __m256i {
        bytes
    }

    #[inline(always)]
    unsafe fn multiply(sums: __m256i, inputs: __m256i, weights: *const u8) -> __m256i {
        // SAFETY: the caller's promise; a line's halves are aligned to 32 bytes.
        unsafe { _mm256_dpbusd_avx_epi32(sums, inputs, _mm256_load_si256(weights.cast())) }
    }

    kernel!("avx2,avxvnni", 2);
}

/// With AVX2 alone.
pub(super) struct Pairs;

impl Arithmetic for Pairs {
    type Vectors = Bytes32;
    /// The even two of four taps, and the odd two.
    type Inputs = [__m256i; 2];

    const LAYOUT: Layout = Layout::Pairs;
    const WEIGHT_BYTES: usize = 64;
    const HAS_PARTS: bool = false;

    #[inline(always)]
    unsafe fn inputs(bytes: __m256i) -> [__m256i; 2] {
        // SAFETY: the trait's promise.
        unsafe { [_mm256_and_si256(bytes, _mm256_set1_epi16(0xFF)), _mm256_srli_epi16::<8>(bytes)] }
    }

    #[inline(always)]
    unsafe fn multiply(sums: __m256i, [evens, odds]: [__m256i; 2], weights: *const u8) -> __m256i {
        // SAFETY: the caller's promise; a line's halves are aligned to 32 bytes.
        unsafe {
            let of_evens = _mm256_load_si256(weights.cast());
            let of_odds = _mm256_load_si256(weights.add(32).cast());
            let sums = _mm256_add_epi32(sums, _mm256_madd_epi16(evens, of_evens));
            _mm256_add_epi32(sums, _mm256_madd_epi16(odds, of_odds))
        }
    }

    kernel!("avx2", 2);
}
