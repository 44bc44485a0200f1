//! Depthwise convolution with AVX2: sums of two products of 16-bit numbers, in 16 lanes.
#![allow(unsafe_code)]

use super::super::Signedness;
use super::super::requantize::Form;
use super::super::requantize::avx2::{Constants, Limits};
use super::packed::{Packed, Run};
use std::arch::x86_64::*;

/// Computes the pixels of a run.
///
/// # Safety
/// The processor has AVX2. The table has the addresses of all taps of all pixels, and behind each the
/// block's channels can be read; the block's channels of all pixels' outputs can be written.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn compute(packed: &Packed, run: &Run<'_>) {
    let is_signed = packed.signedness == Signedness::Signed;
    let flip = _mm_set1_epi8(if is_signed { i8::MIN } else { 0 });
    let lanes = &run.lanes[0];
    let constants = [Constants::load(lanes, 0), Constants::load(lanes, 1)];
    let limits = Limits::new(packed.requantization.min, packed.requantization.max);
    let channels = run.block.channels;
    let taps = packed.filter[0] * packed.filter[1];
    for pixel in 0..run.count {
        let mut sums = [_mm256_setzero_si256(); 2];
        for (half, sum) in sums.iter_mut().enumerate() {
            // SAFETY: 16 numbers.
            *sum = unsafe { _mm256_loadu_si256(lanes.bias.as_ptr().add(8 * half).cast()) };
        }
        // SAFETY: the table has all taps; behind each address lie the block's channels.
        let load = |tap: usize| unsafe {
            let (i, j) = (tap / packed.filter[1], tap % packed.filter[1]);
            let column = pixel * packed.stride + j * packed.dilation;
            let from = (*run.table.add(i * run.columns + column)).add(run.block.channel);
            let bytes = if channels == 16 {
                _mm_loadu_si128(from.cast())
            } else {
                let mut bytes = [0_u8; 16];
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), channels);
                _mm_loadu_si128(bytes.as_ptr().cast())
            };
            _mm256_cvtepu8_epi16(_mm_xor_si128(bytes, flip))
        };
        for step in 0..taps.div_ceil(2) {
            let a = load(2 * step);
            // A tap that is not there is multiplied by zero.
            let b = if 2 * step + 1 < taps { load(2 * step + 1) } else { a };
            // SAFETY: the block has so many steps of two vectors.
            let weights = unsafe {
                let at = run.weights.cast::<__m256i>().add(2 * step);
                [_mm256_load_si256(at), _mm256_load_si256(at.add(1))]
            };
            let pairs = [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)];
            for half in 0..2 {
                let products = _mm256_madd_epi16(pairs[half], weights[half]);
                sums[half] = _mm256_add_epi32(sums[half], products);
            }
        }
        let mut bytes = [0_u8; 16];
        let outputs = match run.block.form {
            Form::Plain => {
                [constants[0].apply::<false>(sums[0]), constants[1].apply::<false>(sums[1])]
            }
            Form::Nudged => {
                [constants[0].apply::<true>(sums[0]), constants[1].apply::<true>(sums[1])]
            }
            _ => sums,
        };
        // SAFETY: as many bytes and numbers as the arrays have; the channels of a pixel's output may
        // be written.
        unsafe {
            if run.block.form == Form::Scalar {
                let mut numbers = [0_i32; 16];
                _mm256_storeu_si256(numbers.as_mut_ptr().cast(), outputs[0]);
                _mm256_storeu_si256(numbers.as_mut_ptr().add(8).cast(), outputs[1]);
                for (index, byte) in bytes.iter_mut().enumerate().take(channels) {
                    let sum = numbers[[0, 8, 4, 12][index / 4] + index % 4];
                    *byte = packed.output(run.block.channel + index, sum);
                }
            } else {
                let narrow = limits.narrow_interleaved(outputs[0], outputs[1]);
                _mm_storeu_si128(bytes.as_mut_ptr().cast(), narrow);
            }
            let to = run.output.wrapping_add(pixel * run.output_step);
            if channels == 16 {
                to.cast::<[u8; 16]>().write_unaligned(bytes);
            } else {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, channels);
            }
        }
    }
}
