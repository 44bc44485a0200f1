//! [`Avx512`]: vectors of 16 numbers.
#![allow(unsafe_code)]

use super::registers::{copies, first, first_mut, registers};
use super::{Kernel, Simd, WORDS};
use crate::InstructionSet;
use std::arch::x86_64::*;

const LANES: usize = 16;

/// Proof that this processor has what [`InstructionSet::Avx512`] stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(super) fn new() -> Option<Self> {
        InstructionSet::Avx512.is_available().then_some(Self(()))
    }

    /// Compiles a kernel for this instruction set and runs it.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
        fn enabled<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the processor has these features.
        unsafe { enabled(self, kernel) }
    }
}

/// A mask of the first `count` lanes.
#[inline(always)]
fn mask_of(count: usize) -> __mmask16 {
    if count >= LANES { !0 } else { (1 << count) - 1 }
}

/// Four vectors in 16 bits; narrowing saturates. Four numbers of each quarter in turn, as its instructions have it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn in_words([a, b, c, d]: [__m512i; 4]) -> [__m512i; 2] {
    [_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d)]
}

/// The bytes of four vectors, one behind the other, of four bytes of each vector in turn.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn in_order(bytes: __m512i) -> __m512i {
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_permutexvar_epi32(order, bytes)
}

impl Simd for Avx512 {
    type F = __m512;
    type I = __m512i;
    type M = __mmask16;
    type W = __m256i;
    const LANES: usize = LANES;
    const REGISTERS: usize = 32;
    const FUSED: bool = true;

    registers! {
        fn splat(self, value: f32) -> __m512 = _mm512_set1_ps(value);
        fn add(self, a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        fn sub(self, a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        fn mul(self, a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        fn div(self, a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        fn min(self, a: __m512, b: __m512) -> __m512 = _mm512_min_ps(a, b);
        fn max(self, a: __m512, b: __m512) -> __m512 = _mm512_max_ps(a, b);
        fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fn sqrt(self, a: __m512) -> __m512 = _mm512_sqrt_ps(a);
        fn floor(self, a: __m512) -> __m512 =
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a);
        fn round(self, a: __m512) -> __m512 =
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
        fn abs(self, a: __m512) -> __m512 = _mm512_abs_ps(a);
        fn lt(self, a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        fn eq(self, a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        fn select(self, condition: __mmask16, yes: __m512, no: __m512) -> __m512 =
            _mm512_mask_blend_ps(condition, no, yes);
        fn any(self, condition: __mmask16) -> bool = condition != 0;
        fn lookup(self, a: __m512, lanes: __m512i) -> __m512 = _mm512_permutexvar_ps(lanes, a);
        fn bits(self, a: __m512) -> __m512i = _mm512_castps_si512(a);
        fn of_bits(self, a: __m512i) -> __m512 = _mm512_castsi512_ps(a);
        fn to_i32(self, a: __m512) -> __m512i = _mm512_cvtps_epi32(a);
        fn to_f32(self, a: __m512i) -> __m512 = _mm512_cvtepi32_ps(a);
        fn sum(self, a: __m512) -> f32 = _mm512_reduce_add_ps(a);
        fn greatest(self, a: __m512) -> f32 = _mm512_reduce_max_ps(a);
        fn isplat(self, value: i32) -> __m512i = _mm512_set1_epi32(value);
        fn iadd(self, a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        fn isub(self, a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
        fn imul(self, a: __m512i, b: __m512i) -> __m512i = _mm512_mullo_epi32(a, b);
        fn iand(self, a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        fn ior(self, a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        fn ixor(self, a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512(a, b);
        fn imin(self, a: __m512i, b: __m512i) -> __m512i = _mm512_min_epi32(a, b);
        fn imax(self, a: __m512i, b: __m512i) -> __m512i = _mm512_max_epi32(a, b);
        fn shift_left(self, a: __m512i, count: u32) -> __m512i =
            _mm512_sll_epi32(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn shift_right(self, a: __m512i, count: u32) -> __m512i =
            _mm512_sra_epi32(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn wsplat(self, value: i16) -> __m256i = _mm256_set1_epi16(value);
        fn wadd(self, a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi16(a, b);
        fn wsub(self, a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi16(a, b);
        fn wshift_left(self, a: __m256i, count: u32) -> __m256i =
            _mm256_sll_epi16(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn doubling_high(self, a: __m512i, b: __m512i) -> __m512i = {
            let half = _mm512_set1_epi64(1 << 30);
            let even = _mm512_add_epi64(_mm512_mul_epi32(a, b), half);
            let (a, b) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
            let odd = _mm512_add_epi64(_mm512_mul_epi32(a, b), half);
            // Bits 31 to 62 of each product: to the lower half, to the upper half.
            let (even, odd) = (_mm512_srli_epi64::<31>(even), _mm512_slli_epi64::<1>(odd));
            _mm512_mask_blend_epi32(0xAAAA, even, odd)
        };
        fn load_f16(self, from: &[u16]) -> __m512 =
            _mm512_cvtph_ps(bytemuck::cast(*first::<_, LANES>(from)));
        fn store_f16(self, value: __m512, to: &mut [u16]) = {
            let halves = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(value);
            *first_mut::<_, LANES>(to) = bytemuck::cast(halves);
        };
        fn load_u8(self, from: &[u8]) -> __m512i =
            _mm512_cvtepu8_epi32(bytemuck::cast(*first::<_, LANES>(from)));
        fn load_i8(self, from: &[i8]) -> __m512i =
            _mm512_cvtepi8_epi32(bytemuck::cast(*first::<_, LANES>(from)));
        fn store_u8(self, value: __m512i, to: &mut [u8]) =
            *first_mut::<_, LANES>(to) = bytemuck::cast(_mm512_cvtepi32_epi8(value));
        fn store_i8(self, value: __m512i, to: &mut [i8]) =
            *first_mut::<_, LANES>(to) = bytemuck::cast(_mm512_cvtepi32_epi8(value));
        fn store_four_u8(self, values: [__m512i; 4], limits: (u8, u8), to: &mut [u8]) = {
            let [first, last] = in_words(values);
            let bytes = _mm512_packus_epi16(first, last);
            let bytes = _mm512_min_epu8(bytes, _mm512_set1_epi8(limits.1.cast_signed()));
            let bytes = _mm512_max_epu8(bytes, _mm512_set1_epi8(limits.0.cast_signed()));
            *first_mut::<_, { 4 * LANES }>(to) = bytemuck::cast(in_order(bytes));
        };
        fn store_four_i8(self, values: [__m512i; 4], limits: (i8, i8), to: &mut [i8]) = {
            let [first, last] = in_words(values);
            let bytes = _mm512_packs_epi16(first, last);
            let bytes = _mm512_min_epi8(bytes, _mm512_set1_epi8(limits.1));
            let bytes = _mm512_max_epi8(bytes, _mm512_set1_epi8(limits.0));
            *first_mut::<_, { 4 * LANES }>(to) = bytemuck::cast(in_order(bytes));
        };
        fn wload_u8(self, from: &[u8; WORDS]) -> __m256i =
            _mm256_cvtepu8_epi16(bytemuck::cast(*from));
        fn wload_i8(self, from: &[i8; WORDS]) -> __m256i =
            _mm256_cvtepi8_epi16(bytemuck::cast(*from));
    }

    copies!();

    #[inline(always)]
    fn load_partial(self, from: &[f32], fill: f32) -> __m512 {
        // SAFETY: the mask leaves out what is behind the slice; `self` proves the instruction.
        unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(fill), mask_of(from.len()), from.as_ptr()) }
    }
    #[inline(always)]
    fn store_partial(self, value: __m512, to: &mut [f32]) {
        // SAFETY: the mask leaves out what is behind the slice; `self` proves the instruction.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), mask_of(to.len()), value) }
    }
}
