//! Tiles with 256-bit vectors, 16 lanes in two of them.
//!
//! With AVX-VNNI, sums of four products of an unsigned and a signed byte. With AVX2 alone, sums of two
//! products of 16-bit numbers: the instruction for products of bytes saturates at 16 bits, so bytes are
//! widened, and of four inputs that are repeated in all lanes, the even ones are left by a mask and the
//! odd ones by a shift. Weights are packed as 16-bit numbers in that order.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]

use super::super::requantize::avx2::{Constants, Limits};
use super::tiles::{Arithmetic, Sums, tiles};
use super::{Ahead, Block, ChannelLanes, Form, Matrix, Tile};
use std::arch::x86_64::*;

/// With AVX-VNNI.
#[derive(Clone, Copy)]
pub(super) struct Vnni {
    flip: __m256i,
}

impl Arithmetic for Vnni {
    type Sums = [__m256i; 2];
    type Inputs = __m256i;
    type Weights = [__m256i; 2];

    const ROWS: [usize; 5] = [0, 6, 0, 0, 0];

    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the trait's promise.
        Self { flip: unsafe { _mm256_set1_epi8(i8::MIN) } }
    }

    #[inline(always)]
    unsafe fn weights(self, from: *const u8) -> [__m256i; 2] {
        // SAFETY: the caller's promise: whole lines.
        unsafe { [_mm256_load_si256(from.cast()), _mm256_load_si256(from.add(32).cast())] }
    }

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> __m256i {
        // SAFETY: the trait's promise.
        unsafe {
            let inputs = _mm256_set1_epi32(four.cast_signed());
            if SIGNED { _mm256_xor_si256(inputs, self.flip) } else { inputs }
        }
    }

    #[inline(always)]
    unsafe fn multiply(
        self,
        sums: [__m256i; 2],
        inputs: __m256i,
        weights: [__m256i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: the trait's promise.
        unsafe {
            [
                _mm256_dpbusd_avx_epi32(sums[0], inputs, weights[0]),
                _mm256_dpbusd_avx_epi32(sums[1], inputs, weights[1]),
            ]
        }
    }

    #[target_feature(enable = "avx2,avxvnni")]
    unsafe fn kernel<const R: usize, const W: usize, const SIGNED: bool>(
        matrix: &Matrix,
        block: &Block,
        tile: &Tile<'_>,
        count: usize,
        ahead: &mut Ahead,
    ) {
        // SAFETY: the caller's promises.
        unsafe { tiles::<Self, R, W, SIGNED>(matrix, block, tile, count, ahead) }
    }
}

/// With AVX2 alone.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    flip: __m256i,
    even: __m256i,
}

impl Arithmetic for Pairs {
    type Sums = [__m256i; 2];
    type Inputs = [__m256i; 2];
    type Weights = [__m256i; 4];

    const ROWS: [usize; 5] = [0, 4, 0, 0, 0];

    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the trait's promise.
        unsafe { Self { flip: _mm256_set1_epi8(i8::MIN), even: _mm256_set1_epi16(0xFF) } }
    }

    #[inline(always)]
    unsafe fn weights(self, from: *const u8) -> [__m256i; 4] {
        let from = from.cast::<__m256i>();
        // SAFETY: the caller's promise: whole lines.
        unsafe {
            [
                _mm256_load_si256(from),
                _mm256_load_si256(from.add(1)),
                _mm256_load_si256(from.add(2)),
                _mm256_load_si256(from.add(3)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> [__m256i; 2] {
        // SAFETY: the trait's promise.
        unsafe {
            let mut inputs = _mm256_set1_epi32(four.cast_signed());
            if SIGNED {
                inputs = _mm256_xor_si256(inputs, self.flip);
            }
            [_mm256_and_si256(inputs, self.even), _mm256_srli_epi16::<8>(inputs)]
        }
    }

    #[inline(always)]
    unsafe fn multiply(
        self,
        [mut low, mut high]: [__m256i; 2],
        [evens, odds]: [__m256i; 2],
        [a, b, c, d]: [__m256i; 4],
    ) -> [__m256i; 2] {
        // SAFETY: the trait's promise.
        unsafe {
            low = _mm256_add_epi32(low, _mm256_madd_epi16(evens, a));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(evens, c));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(odds, b));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(odds, d));
        }
        [low, high]
    }

    #[target_feature(enable = "avx2")]
    unsafe fn kernel<const R: usize, const W: usize, const SIGNED: bool>(
        matrix: &Matrix,
        block: &Block,
        tile: &Tile<'_>,
        count: usize,
        ahead: &mut Ahead,
    ) {
        // SAFETY: the caller's promises.
        unsafe { tiles::<Self, R, W, SIGNED>(matrix, block, tile, count, ahead) }
    }
}

impl Sums for [__m256i; 2] {
    #[inline(always)]
    unsafe fn first(lanes: &ChannelLanes) -> Self {
        let from = lanes.bias.as_ptr().cast::<__m256i>();
        // SAFETY: 16 numbers.
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }

    #[inline(always)]
    unsafe fn add(self, term: i32) -> Self {
        // SAFETY: the trait's promise.
        unsafe {
            let term = _mm256_set1_epi32(term);
            [_mm256_add_epi32(self[0], term), _mm256_add_epi32(self[1], term)]
        }
    }

    #[inline(always)]
    unsafe fn finish<const R: usize, const W: usize, const SIGNED: bool>(
        matrix: &Matrix,
        block: &Block,
        lanes: &[ChannelLanes; W],
        (output, step): (*mut u8, usize),
        sums: [[Self; W]; R],
    ) {
        debug_assert_eq!(W, 1, "blocks of one vector");
        // SAFETY: the caller's promises; arrays of 16 numbers and bytes.
        unsafe {
            let limits = Limits::new(matrix.common.limits.0, matrix.common.limits.1);
            let constants = [Constants::load(&lanes[0], 0), Constants::load(&lanes[0], 1)];
            for (r, row) in sums.iter().enumerate() {
                let [low, high] = row[0];
                let mut bytes = [0_u8; 16];
                let outputs = match block.form {
                    Form::Scalar => {
                        let mut numbers = [0_i32; 16];
                        _mm256_storeu_si256(numbers.as_mut_ptr().cast(), low);
                        _mm256_storeu_si256(numbers.as_mut_ptr().add(8).cast(), high);
                        for (index, byte) in bytes.iter_mut().enumerate().take(block.channels) {
                            *byte = matrix.output(block, index, numbers[index]);
                        }
                        _mm_loadu_si128(bytes.as_ptr().cast())
                    }
                    Form::Nudged => limits
                        .narrow(constants[0].apply::<true>(low), constants[1].apply::<true>(high)),
                    _ => limits.narrow(
                        constants[0].apply::<false>(low),
                        constants[1].apply::<false>(high),
                    ),
                };
                let to = output.add(step.wrapping_mul(r));
                if block.channels == 16 {
                    _mm_storeu_si128(to.cast(), outputs);
                } else {
                    _mm_storeu_si128(bytes.as_mut_ptr().cast(), outputs);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, block.channels);
                }
            }
        }
    }
}
