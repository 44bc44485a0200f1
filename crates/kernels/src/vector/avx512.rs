//! [`Avx512`]: vectors of 16 numbers.
#![allow(unsafe_code)]

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
fn first(count: usize) -> __mmask16 {
    if count >= LANES { !0 } else { (1 << count) - 1 }
}

/// Methods that are one or two instructions on registers.
macro_rules! registers {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: $type),*) -> $result {
            // SAFETY: `self` proves that the processor has the instructions, which only work on
            // registers.
            unsafe { $value }
        }
    )*};
}

impl Simd for Avx512 {
    type F = __m512;
    type I = __m512i;
    type M = __mmask16;
    type W = __m256i;
    const LANES: usize = LANES;
    const REGISTERS: usize = 32;

    registers! {
        fn splat(value: f32) -> __m512 = _mm512_set1_ps(value);
        fn add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        fn sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        fn mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        fn div(a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        fn min(a: __m512, b: __m512) -> __m512 = _mm512_min_ps(a, b);
        fn max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(a, b);
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fn sqrt(a: __m512) -> __m512 = _mm512_sqrt_ps(a);
        fn floor(a: __m512) -> __m512 =
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a);
        fn round(a: __m512) -> __m512 =
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
        fn abs(a: __m512) -> __m512 = _mm512_abs_ps(a);
        fn lt(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        fn eq(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        fn select(condition: __mmask16, yes: __m512, no: __m512) -> __m512 =
            _mm512_mask_blend_ps(condition, no, yes);
        fn bits(a: __m512) -> __m512i = _mm512_castps_si512(a);
        fn of_bits(a: __m512i) -> __m512 = _mm512_castsi512_ps(a);
        fn to_i32(a: __m512) -> __m512i = _mm512_cvtps_epi32(a);
        fn to_f32(a: __m512i) -> __m512 = _mm512_cvtepi32_ps(a);
        fn sum(a: __m512) -> f32 = _mm512_reduce_add_ps(a);
        fn greatest(a: __m512) -> f32 = _mm512_reduce_max_ps(a);
        fn isplat(value: i32) -> __m512i = _mm512_set1_epi32(value);
        fn iadd(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        fn isub(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
        fn imul(a: __m512i, b: __m512i) -> __m512i = _mm512_mullo_epi32(a, b);
        fn iand(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        fn ior(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        fn ixor(a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512(a, b);
        fn imin(a: __m512i, b: __m512i) -> __m512i = _mm512_min_epi32(a, b);
        fn imax(a: __m512i, b: __m512i) -> __m512i = _mm512_max_epi32(a, b);
        fn shift_left(a: __m512i, count: u32) -> __m512i =
            _mm512_sll_epi32(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn shift_right(a: __m512i, count: u32) -> __m512i =
            _mm512_sra_epi32(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn wsplat(value: i16) -> __m256i = _mm256_set1_epi16(value);
        fn wadd(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi16(a, b);
        fn wsub(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi16(a, b);
        fn wshift_left(a: __m256i, count: u32) -> __m256i =
            _mm256_sll_epi16(a, _mm_cvtsi32_si128(count.cast_signed()));
        fn doubling_high(a: __m512i, b: __m512i) -> __m512i = {
            let half = _mm512_set1_epi64(1 << 30);
            let even = _mm512_add_epi64(_mm512_mul_epi32(a, b), half);
            let (a, b) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
            let odd = _mm512_add_epi64(_mm512_mul_epi32(a, b), half);
            // Bits 31 to 62 of each product: to the lower half, to the upper half.
            let (even, odd) = (_mm512_srli_epi64::<31>(even), _mm512_slli_epi64::<1>(odd));
            _mm512_mask_blend_epi32(0xAAAA, even, odd)
        };
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m512 {
        assert!(from.len() >= LANES);
        // SAFETY: 16 elements are there; `self` proves the instruction.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn load_partial(self, from: &[f32], fill: f32) -> __m512 {
        // SAFETY: the mask leaves out what is behind the slice; `self` proves the instruction.
        unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(fill), first(from.len()), from.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, value: __m512, to: &mut [f32]) {
        assert!(to.len() >= LANES);
        // SAFETY: 16 elements are there; `self` proves the instruction.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
    }
    #[inline(always)]
    fn store_partial(self, value: __m512, to: &mut [f32]) {
        // SAFETY: the mask leaves out what is behind the slice; `self` proves the instruction.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), value) }
    }
    #[inline(always)]
    fn load_f16(self, from: &[u16]) -> __m512 {
        assert!(from.len() >= LANES);
        // SAFETY: 16 elements of 2 bytes are there; `self` proves the instructions.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn store_f16(self, value: __m512, to: &mut [u16]) {
        assert!(to.len() >= LANES);
        // SAFETY: 16 elements of 2 bytes are there; `self` proves the instructions.
        unsafe {
            let halves = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(value);
            _mm256_storeu_si256(to.as_mut_ptr().cast(), halves);
        }
    }
    #[inline(always)]
    fn iload(self, from: &[i32]) -> __m512i {
        assert!(from.len() >= LANES);
        // SAFETY: 16 elements are there; `self` proves the instruction.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn istore(self, value: __m512i, to: &mut [i32]) {
        assert!(to.len() >= LANES);
        // SAFETY: 16 elements are there; `self` proves the instruction.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8]) -> __m512i {
        assert!(from.len() >= LANES);
        // SAFETY: 16 bytes are there; `self` proves the instructions.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_i8(self, from: &[i8]) -> __m512i {
        assert!(from.len() >= LANES);
        // SAFETY: 16 bytes are there; `self` proves the instructions.
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn store_u8(self, value: __m512i, to: &mut [u8]) {
        assert!(to.len() >= LANES);
        // SAFETY: 16 bytes are there; `self` proves the instructions.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(value)) }
    }
    #[inline(always)]
    fn store_i8(self, value: __m512i, to: &mut [i8]) {
        assert!(to.len() >= LANES);
        // SAFETY: 16 bytes are there; `self` proves the instructions.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(value)) }
    }
    #[inline(always)]
    fn store_four_u8(self, values: [__m512i; 4], (low, high): (u8, u8), to: &mut [u8]) {
        assert!(to.len() >= 4 * LANES);
        let [a, b, c, d] = values;
        // SAFETY: 64 bytes are there; `self` proves the instructions.
        unsafe {
            let (first, last) = (_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
            // Four bytes of each vector in turn; narrowing saturates.
            let bytes = _mm512_packus_epi16(first, last);
            let bytes = _mm512_min_epu8(bytes, _mm512_set1_epi8(high.cast_signed()));
            let bytes = _mm512_max_epu8(bytes, _mm512_set1_epi8(low.cast_signed()));
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_permutexvar_epi32(order, bytes));
        }
    }
    #[inline(always)]
    fn store_four_i8(self, values: [__m512i; 4], (low, high): (i8, i8), to: &mut [i8]) {
        assert!(to.len() >= 4 * LANES);
        let [a, b, c, d] = values;
        // SAFETY: 64 bytes are there; `self` proves the instructions.
        unsafe {
            let (first, last) = (_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
            // Four bytes of each vector in turn; narrowing saturates.
            let bytes = _mm512_packs_epi16(first, last);
            let bytes = _mm512_min_epi8(bytes, _mm512_set1_epi8(high));
            let bytes = _mm512_max_epi8(bytes, _mm512_set1_epi8(low));
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_permutexvar_epi32(order, bytes));
        }
    }
    #[inline(always)]
    fn wload_u8(self, from: &[u8; WORDS]) -> __m256i {
        // SAFETY: 16 bytes are there; `self` proves the instructions.
        unsafe { _mm256_cvtepu8_epi16(_mm_loadu_si128(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn wload_i8(self, from: &[i8; WORDS]) -> __m256i {
        // SAFETY: 16 bytes are there; `self` proves the instructions.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn wstore(self, value: __m256i, to: &mut [i16; WORDS]) {
        // SAFETY: 16 elements are there; `self` proves the instruction.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
    }
}
