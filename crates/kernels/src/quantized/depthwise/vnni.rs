//! Depthwise convolution with AVX-512 VNNI.
//!
//! The instruction sums four products of neighbouring bytes, so the bytes of four taps are interleaved:
//! 64 channels of four taps take 8 shuffles and 4 multiplications. If 32 channels or fewer are left, two
//! pixels share the lanes.
#![allow(unsafe_code)]

use super::super::Signedness;
use super::super::requantize::Form;
use super::super::requantize::avx512::{Constants, Limits};
use super::packed::{Packed, Run};
use std::arch::x86_64::*;

/// Computes the pixels of a run.
///
/// # Safety
/// The processor has AVX-512 VNNI. The table has the addresses of all taps of all pixels, and behind
/// each the block's channels can be read; the block's channels of all pixels' outputs can be written.
pub(super) unsafe fn compute(packed: &Packed, run: &Run<'_>) {
    let is_signed = packed.signedness == Signedness::Signed;
    let kernel = match (packed.taps, run.block.pixels, is_signed, run.block.has_two_parts) {
        (9, 1, false, false) => kernel::<9, false, false, false>,
        (9, 1, true, false) => kernel::<9, false, true, false>,
        (9, 1, false, true) => kernel::<9, false, false, true>,
        (9, 2, false, false) => kernel::<9, true, false, false>,
        (9, 2, true, false) => kernel::<9, true, true, false>,
        (9, 2, false, true) => kernel::<9, true, false, true>,
        (25, 1, true, false) => kernel::<25, false, true, false>,
        (_, 1, false, false) => kernel::<0, false, false, false>,
        (_, 1, true, false) => kernel::<0, false, true, false>,
        (_, 1, false, true) => kernel::<0, false, false, true>,
        (_, 1, true, true) => kernel::<0, false, true, true>,
        (_, _, false, false) => kernel::<0, true, false, false>,
        (_, _, true, false) => kernel::<0, true, true, false>,
        (_, _, false, true) => kernel::<0, true, false, true>,
        (_, _, true, true) => kernel::<0, true, true, true>,
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(packed, run) }
}

/// Loads bytes of one pixel, or of two into the halves.
///
/// # Safety
/// As many bytes as the masks have bits can be read there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn load<const PAIR: bool, const SIGNED: bool>(
    from: [*const u8; 2],
    masks: [u64; 2],
    flip: __m512i,
) -> __m512i {
    // SAFETY: the caller's promise; what a mask leaves out is not accessed.
    let bytes = unsafe {
        let bytes = _mm512_maskz_loadu_epi8(masks[0], from[0].cast());
        if PAIR {
            _mm512_mask_loadu_epi8(bytes, masks[1], from[1].wrapping_sub(32).cast())
        } else {
            bytes
        }
    };
    if SIGNED { _mm512_xor_si512(bytes, flip) } else { bytes }
}

/// `TAPS` taps, or any number if it is 0. With `PAIR` two pixels at a time, with `TWO` the weights are
/// sums of two bytes.
///
/// # Safety
/// As of [`compute`], where the block and the number of taps are as the parameters say.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn kernel<const TAPS: usize, const PAIR: bool, const SIGNED: bool, const TWO: bool>(
    packed: &Packed,
    run: &Run<'_>,
) {
    let taps = if TAPS == 0 { packed.taps } else { TAPS };
    let steps = taps.div_ceil(4);
    let flip = _mm512_set1_epi8(i8::MIN);
    let low = !0_u64 >> (64 - run.block.channels);
    let masks = [low, low << 32];
    let lanes: &[_; 4] = run.lanes.try_into().expect("four vectors of channels");
    let limits = Limits::new(packed.requantization.min, packed.requantization.max);
    let width = if PAIR { 2 } else { 1 };
    let mut first = 0;
    while first < run.count {
        // The last pixel of an odd number is computed twice.
        let pixels = [first, (first + width - 1).min(run.count - 1)];
        let mut sums = [_mm512_setzero_si512(); 4];
        for (sum, lanes) in sums.iter_mut().zip(lanes) {
            // SAFETY: 16 numbers.
            *sum = unsafe { _mm512_loadu_si512(lanes.bias.as_ptr().cast()) };
        }
        for step in 0..steps {
            // SAFETY: the table has all taps of both pixels, and behind each address the channels of
            // the block, which are the masks' bits.
            let tap = |tap: usize| unsafe {
                let at = run.table.add((4 * step + tap) * run.count);
                let from = [
                    (*at.add(pixels[0])).add(run.block.channel),
                    (*at.add(pixels[1])).add(run.block.channel),
                ];
                load::<PAIR, SIGNED>(from, masks, flip)
            };
            // Taps that are not there are multiplied by zero, so any other will do.
            let a = tap(0);
            let (mut b, mut c, mut d) = (a, a, a);
            if 4 * step + 1 < taps {
                b = tap(1);
                (c, d) = (a, b);
            }
            if 4 * step + 2 < taps {
                c = tap(2);
            }
            if 4 * step + 3 < taps {
                d = tap(3);
            }
            let (ab, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
            let (cd, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
            let interleaved = [
                _mm512_unpacklo_epi16(ab, cd),
                _mm512_unpackhi_epi16(ab, cd),
                _mm512_unpacklo_epi16(ab_high, cd_high),
                _mm512_unpackhi_epi16(ab_high, cd_high),
            ];
            for v in 0..4 {
                // SAFETY: the block has so many steps of four vectors, twice with two parts.
                unsafe {
                    let weights = run.weights.cast::<__m512i>();
                    let part = _mm512_load_si512(weights.add(step * 4 + v));
                    sums[v] = _mm512_dpbusd_epi32(sums[v], interleaved[v], part);
                    if TWO {
                        let part = _mm512_load_si512(weights.add((steps + step) * 4 + v));
                        sums[v] = _mm512_dpbusd_epi32(sums[v], interleaved[v], part);
                    }
                }
            }
        }
        let bytes = match packed.form {
            Form::Plain => {
                for (sum, lanes) in sums.iter_mut().zip(lanes) {
                    *sum = Constants::load(lanes).apply::<false>(*sum);
                }
                limits.narrow4::<SIGNED>(sums)
            }
            Form::Nudged => {
                for (sum, lanes) in sums.iter_mut().zip(lanes) {
                    *sum = Constants::load(lanes).apply::<true>(*sum);
                }
                limits.narrow4::<SIGNED>(sums)
            }
            Form::Scalar => scalar(packed, run, sums),
        };
        let to = pixels.map(|pixel| run.output.wrapping_add(pixel * run.output_step));
        // SAFETY: the masks leave the block's channels of the pixels, which may be written.
        unsafe {
            _mm512_mask_storeu_epi8(to[0].cast(), masks[0], bytes);
            if PAIR {
                _mm512_mask_storeu_epi8(to[1].wrapping_sub(32).cast(), masks[1], bytes);
            }
        }
        first += width;
    }
}

/// Requantises one by one.
#[cold]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn scalar(packed: &Packed, run: &Run<'_>, sums: [__m512i; 4]) -> __m512i {
    let mut numbers = [[0_i32; 16]; 4];
    for (sums, numbers) in sums.iter().zip(&mut numbers) {
        // SAFETY: 16 numbers.
        unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), *sums) };
    }
    let mut bytes = [0_u8; 64];
    for (lane, byte) in bytes.iter_mut().enumerate() {
        let index = lane % (64 / run.block.pixels);
        if index < run.block.channels {
            let sum = numbers[lane % 16 / 4][lane / 16 * 4 + lane % 4];
            *byte = packed.output(run.block.channel + index, sum);
        }
    }
    // SAFETY: 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
