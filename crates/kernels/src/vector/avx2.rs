//! [`Avx2`]: vectors of 8 numbers.
#![allow(unsafe_code)]

use super::registers::{copies, first, first_mut, registers};
use super::{Kernel, Simd, WORDS};
use crate::InstructionSet;
use std::arch::x86_64::*;

const LANES: usize = 8;

/// Proof that this processor has what [`InstructionSet::Avx2`] stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(super) fn new() -> Option<Self> {
        InstructionSet::Avx2.is_available().then_some(Self(()))
    }

    /// Compiles a kernel for this instruction set and runs it.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn enabled<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has these features.
        unsafe { enabled(self, kernel) }
    }
}

/// All bits of the first lanes and none of the others, from `LANES - count` on.
static FIRST: [i32; 2 * LANES] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Four vectors in 16 bits; narrowing saturates. Four numbers of each half in turn, as its instructions have it.
#[inline]
#[target_feature(enable = "avx2")]
fn in_words([a, b, c, d]: [__m256i; 4]) -> [__m256i; 2] {
    [_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)]
}

/// The bytes of four vectors, one behind the other, of four bytes of each vector in turn.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(bytes: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

impl Simd for Avx2 {
    type F = __m256;
    type I = __m256i;
    type M = __m256;
    type W = __m256i;
    const LANES: usize = LANES;
    const REGISTERS: usize = 16;
    const FUSED: bool = true;

    registers! {
        fn splat(self, value: f32) -> __m256 = _mm256_set1_ps(value);
        fn add(self, a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        fn sub(self, a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
        fn mul(self, a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fn div(self, a: __m256, b: __m256) -> __m256 = _mm256_div_ps(a, b);
        fn min(self, a: __m256, b: __m256) -> __m256 = _mm256_min_ps(a, b);
        fn max(self, a: __m256, b: __m256) -> __m256 = _mm256_max_ps(a, b);
        fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fn sqrt(self, a: __m256) -> __m256 = _mm256_sqrt_ps(a);
        fn floor(self, a: __m256) -> __m256 = _mm256_floor_ps(a);
        fn round(self, a: __m256) -> __m256 =
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
        fn abs(self, a: __m256) -> __m256 = _mm256_andnot_ps(_mm256_set1_ps(-0.0), a);
        fn lt(self, a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_LT_OQ>(a, b);
        fn eq(self, a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b);
        fn select(self, condition: __m256, yes: __m256, no: __m256) -> __m256 =
            _mm256_blendv_ps(no, yes, condition);
        fn any(self, condition: __m256) -> bool = _mm256_movemask_ps(condition) != 0;
        fn lookup(self, a: __m256, lanes: __m256i) -> __m256 = _mm256_permutevar8x32_ps(a, lanes);
        fn bits(self, a: __m256) -> __m256i = _mm256_castps_si256(a);
        fn of_bits(self, a: __m256i) -> __m256 = _mm256_castsi256_ps(a);
        fn to_i32(self, a: __m256) -> __m256i = _mm256_cvtps_epi32(a);
        fn to_f32(self, a: __m256i) -> __m256 = _mm256_cvtepi32_ps(a);
        fn sum(self, a: __m256) -> f32 = {
            let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        };
        fn greatest(self, a: __m256) -> f32 = {
            let four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        };
        fn isplat(self, value: i32) -> __m256i = _mm256_set1_epi32(value);
        fn iadd(self, a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        fn isub(self, a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
        fn imul(self, a: __m256i, b: __m256i) -> __m256i = _mm256_mullo_epi32(a, b);
        fn iand(self, a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        fn ior(self, a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        fn ixor(self, a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256(a, b);
        fn imin(self, a: __m256i, b: __m256i) -> __m256i = _mm256_min_epi32(a, b);
        fn imax(self, a: __m256i, b: __m256i) -> __m256i = _mm256_max_epi32(a, b);
        fn shift_left(self, a: __m256i, count: u32) -> __m256i =
            _mm256_sll_epi32(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn shift_right(self, a: __m256i, count: u32) -> __m256i =
            _mm256_sra_epi32(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn wsplat(self, value: i16) -> __m256i = _mm256_set1_epi16(value);
        fn wadd(self, a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi16(a, b);
        fn wsub(self, a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi16(a, b);
        fn wshift_left(self, a: __m256i, count: u32) -> __m256i =
            _mm256_sll_epi16(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn doubling_high(self, a: __m256i, b: __m256i) -> __m256i = {
            let half = _mm256_set1_epi64x(1 << 30);
            let even = _mm256_add_epi64(_mm256_mul_epi32(a, b), half);
            let (a, b) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
            let odd = _mm256_add_epi64(_mm256_mul_epi32(a, b), half);
            // Bits 31 to 62 of each product: to the lower half, to the upper half.
            let (even, odd) = (_mm256_srli_epi64::<31>(even), _mm256_slli_epi64::<1>(odd));
            _mm256_blend_epi32::<0xAA>(even, odd)
        };
        fn load_f16(self, from: &[u16]) -> __m256 =
            _mm256_cvtph_ps(bytemuck::cast(*first::<_, LANES>(from)));
        fn store_f16(self, value: __m256, to: &mut [u16]) = {
            let halves = _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(value);
            *first_mut::<_, LANES>(to) = bytemuck::cast(halves);
        };
        fn load_u8(self, from: &[u8]) -> __m256i =
            _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_ne_bytes(*first(from))));
        fn load_i8(self, from: &[i8]) -> __m256i =
            _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytemuck::cast(*first::<_, LANES>(from))));
        fn store_u8(self, value: __m256i, to: &mut [u8]) = {
            let (low, high) = (_mm256_castsi256_si128(value), _mm256_extracti128_si256::<1>(value));
            let words = _mm_packus_epi32(low, high);
            *first_mut(to) = _mm_cvtsi128_si64(_mm_packus_epi16(words, words)).to_ne_bytes();
        };
        fn store_i8(self, value: __m256i, to: &mut [i8]) = {
            let (low, high) = (_mm256_castsi256_si128(value), _mm256_extracti128_si256::<1>(value));
            let words = _mm_packs_epi32(low, high);
            let bytes = _mm_cvtsi128_si64(_mm_packs_epi16(words, words));
            *first_mut::<_, LANES>(to) = bytemuck::cast(bytes);
        };
        fn store_four_u8(self, values: [__m256i; 4], limits: (u8, u8), to: &mut [u8]) = {
            let [first, last] = in_words(values);
            let bytes = _mm256_packus_epi16(first, last);
            let bytes = _mm256_min_epu8(bytes, _mm256_set1_epi8(limits.1.cast_signed()));
            let bytes = _mm256_max_epu8(bytes, _mm256_set1_epi8(limits.0.cast_signed()));
            *first_mut::<_, { 4 * LANES }>(to) = bytemuck::cast(in_order(bytes));
        };
        fn store_four_i8(self, values: [__m256i; 4], limits: (i8, i8), to: &mut [i8]) = {
            let [first, last] = in_words(values);
            let bytes = _mm256_packs_epi16(first, last);
            let bytes = _mm256_min_epi8(bytes, _mm256_set1_epi8(limits.1));
            let bytes = _mm256_max_epi8(bytes, _mm256_set1_epi8(limits.0));
            *first_mut::<_, { 4 * LANES }>(to) = bytemuck::cast(in_order(bytes));
        };
        fn wload_u8(self, from: &[u8; WORDS]) -> __m256i =
            _mm256_cvtepu8_epi16(bytemuck::cast(*from));
        fn wload_i8(self, from: &[i8; WORDS]) -> __m256i =
            _mm256_cvtepi8_epi16(bytemuck::cast(*from));
    }

    copies!();

    #[inline(always)]
    fn load_partial(self, from: &[f32], fill: f32) -> __m256 {
        let count = from.len().min(LANES);
        // SAFETY: the mask is within the table, and leaves out what is behind the slice, which is not read; `self` proves
        // the instructions.
        unsafe {
            let mask = _mm256_loadu_si256(FIRST.as_ptr().add(LANES - count).cast());
            let loaded = _mm256_maskload_ps(from.as_ptr(), mask);
            _mm256_blendv_ps(_mm256_set1_ps(fill), loaded, _mm256_castsi256_ps(mask))
        }
    }
    #[inline(always)]
    fn store_partial(self, value: __m256, to: &mut [f32]) {
        let count = to.len();
        if count >= LANES {
            return self.store(value, to);
        }
        // In halves of halves: AMD's processors take tens of cycles for a store by mask.
        // SAFETY: together the parts are as long as the slice; `self` proves the instructions.
        unsafe {
            let mut to = to.as_mut_ptr();
            let mut part = _mm256_castps256_ps128(value);
            if count & 4 != 0 {
                _mm_storeu_ps(to, part);
                part = _mm256_extractf128_ps::<1>(value);
                to = to.add(4);
            }
            if count & 2 != 0 {
                _mm_storel_pd(to.cast(), _mm_castps_pd(part));
                part = _mm_movehl_ps(part, part);
                to = to.add(2);
            }
            if count & 1 != 0 {
                _mm_store_ss(to, part);
            }
        }
    }
}
