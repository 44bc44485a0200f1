//! [`Sse2`]: vectors of 4 numbers, of the instructions that every x86-64 processor has.
#![allow(unsafe_code)]

use super::registers::{copies, first, first_mut, registers};
use super::{ROUNDER, Simd, WORDS};
use std::arch::x86_64::*;

const LANES: usize = 4;

/// Vectors of 4 numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sse2;

/// `yes` where the mask's bits are set.
#[inline]
#[target_feature(enable = "sse2")]
fn choose(mask: __m128i, yes: __m128i, no: __m128i) -> __m128i {
    _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no))
}

/// All bits of the upper half of each 64.
#[inline]
#[target_feature(enable = "sse2")]
fn odd_lanes() -> __m128i {
    _mm_setr_epi32(0, -1, 0, -1)
}

/// How many places to shift.
#[inline]
#[target_feature(enable = "sse2")]
fn places(count: u32) -> __m128i {
    _mm_cvtsi32_si128(count.cast_signed())
}

/// 16 numbers of 16 bits, whose lower halves are these bytes and whose upper halves are others.
#[inline]
#[target_feature(enable = "sse2")]
fn pairs(bytes: __m128i, others: __m128i) -> [__m128i; 2] {
    [_mm_unpacklo_epi8(bytes, others), _mm_unpackhi_epi8(bytes, others)]
}

/// Bits 31 to 62 of the products of the even lanes plus 2^30, in the lower half of each 64 bits. Products of signed numbers are
/// those of unsigned ones less this `correction` times 2^32.
#[inline]
#[target_feature(enable = "sse2")]
fn doubled_products(a: __m128i, b: __m128i, correction: __m128i) -> __m128i {
    let product = _mm_sub_epi64(_mm_mul_epu32(a, b), _mm_slli_epi64::<32>(correction));
    _mm_srli_epi64::<31>(_mm_add_epi64(product, _mm_set1_epi64x(1 << 30)))
}

/// Four vectors in 16 bits, limited.
#[inline]
#[target_feature(enable = "sse2")]
fn limited([a, b, c, d]: [__m128i; 4], low: i16, high: i16) -> [__m128i; 2] {
    let (low, high) = (_mm_set1_epi16(low), _mm_set1_epi16(high));
    // Narrowing saturates.
    let (first, last) = (_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    [_mm_max_epi16(low, _mm_min_epi16(high, first)), _mm_max_epi16(low, _mm_min_epi16(high, last))]
}

impl Simd for Sse2 {
    type F = __m128;
    type I = __m128i;
    type M = __m128;
    type W = [__m128i; 2];
    const LANES: usize = LANES;
    // Of 16: products take some too, since nothing multiplies and adds at once.
    const REGISTERS: usize = 8;
    const FUSED: bool = false;

    registers! {
        fn splat(self, value: f32) -> __m128 = _mm_set1_ps(value);
        fn add(self, a: __m128, b: __m128) -> __m128 = _mm_add_ps(a, b);
        fn sub(self, a: __m128, b: __m128) -> __m128 = _mm_sub_ps(a, b);
        fn mul(self, a: __m128, b: __m128) -> __m128 = _mm_mul_ps(a, b);
        fn div(self, a: __m128, b: __m128) -> __m128 = _mm_div_ps(a, b);
        fn min(self, a: __m128, b: __m128) -> __m128 = _mm_min_ps(a, b);
        fn max(self, a: __m128, b: __m128) -> __m128 = _mm_max_ps(a, b);
        fn fma(self, a: __m128, b: __m128, c: __m128) -> __m128 = _mm_add_ps(_mm_mul_ps(a, b), c);
        fn sqrt(self, a: __m128) -> __m128 = _mm_sqrt_ps(a);
        fn floor(self, a: __m128) -> __m128 = {
            let rounded = self.round(a);
            let above = _mm_and_ps(_mm_cmplt_ps(a, rounded), _mm_set1_ps(1.0));
            _mm_sub_ps(rounded, above)
        };
        fn round(self, a: __m128) -> __m128 = {
            let (rounder, magnitude) = (_mm_set1_ps(ROUNDER), self.abs(a));
            let rounded = _mm_sub_ps(_mm_add_ps(magnitude, rounder), rounder);
            let rounded = _mm_or_ps(rounded, _mm_and_ps(a, _mm_set1_ps(-0.0)));
            // Greater ones are integers already; NaN stays what it is.
            self.select(_mm_cmplt_ps(magnitude, rounder), rounded, a)
        };
        fn abs(self, a: __m128) -> __m128 = _mm_andnot_ps(_mm_set1_ps(-0.0), a);
        fn lt(self, a: __m128, b: __m128) -> __m128 = _mm_cmplt_ps(a, b);
        fn eq(self, a: __m128, b: __m128) -> __m128 = _mm_cmpeq_ps(a, b);
        fn select(self, condition: __m128, yes: __m128, no: __m128) -> __m128 =
            _mm_or_ps(_mm_and_ps(condition, yes), _mm_andnot_ps(condition, no));
        fn any(self, condition: __m128) -> bool = _mm_movemask_ps(condition) != 0;
        fn bits(self, a: __m128) -> __m128i = _mm_castps_si128(a);
        fn of_bits(self, a: __m128i) -> __m128 = _mm_castsi128_ps(a);
        fn to_i32(self, a: __m128) -> __m128i = _mm_cvtps_epi32(a);
        fn to_f32(self, a: __m128i) -> __m128 = _mm_cvtepi32_ps(a);
        fn sum(self, a: __m128) -> f32 = {
            let two = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        };
        fn greatest(self, a: __m128) -> f32 = {
            let two = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        };
        fn isplat(self, value: i32) -> __m128i = _mm_set1_epi32(value);
        fn iadd(self, a: __m128i, b: __m128i) -> __m128i = _mm_add_epi32(a, b);
        fn isub(self, a: __m128i, b: __m128i) -> __m128i = _mm_sub_epi32(a, b);
        fn imul(self, a: __m128i, b: __m128i) -> __m128i = {
            let even = _mm_mul_epu32(a, b);
            let odd = _mm_mul_epu32(_mm_srli_epi64::<32>(a), _mm_srli_epi64::<32>(b));
            choose(odd_lanes(), _mm_slli_epi64::<32>(odd), even)
        };
        fn iand(self, a: __m128i, b: __m128i) -> __m128i = _mm_and_si128(a, b);
        fn ior(self, a: __m128i, b: __m128i) -> __m128i = _mm_or_si128(a, b);
        fn ixor(self, a: __m128i, b: __m128i) -> __m128i = _mm_xor_si128(a, b);
        fn imin(self, a: __m128i, b: __m128i) -> __m128i = choose(_mm_cmplt_epi32(a, b), a, b);
        fn imax(self, a: __m128i, b: __m128i) -> __m128i = choose(_mm_cmplt_epi32(a, b), b, a);
        fn shift_left(self, a: __m128i, count: u32) -> __m128i = _mm_sll_epi32(a, places(count));
        fn shift_right(self, a: __m128i, count: u32) -> __m128i = _mm_sra_epi32(a, places(count));
        fn doubling_high(self, a: __m128i, b: __m128i) -> __m128i = {
            let (negative_a, negative_b) = (_mm_srai_epi32::<31>(a), _mm_srai_epi32::<31>(b));
            let correction = _mm_add_epi32(_mm_and_si128(negative_a, b), _mm_and_si128(negative_b, a));
            let (odd_a, odd_b) = (_mm_srli_epi64::<32>(a), _mm_srli_epi64::<32>(b));
            let odd = doubled_products(odd_a, odd_b, _mm_srli_epi64::<32>(correction));
            choose(odd_lanes(), _mm_slli_epi64::<32>(odd), doubled_products(a, b, correction))
        };
        fn load_partial(self, from: &[f32], fill: f32) -> __m128 = {
            let lane = |lane: usize| from.get(lane).copied().unwrap_or(fill);
            _mm_setr_ps(lane(0), lane(1), lane(2), lane(3))
        };
        fn load_f16(self, from: &[u16]) -> __m128 = {
            let [a, b, c, d] = *first(from);
            let lane = |half| half::f16::from_bits(half).to_f32();
            _mm_setr_ps(lane(a), lane(b), lane(c), lane(d))
        };
        fn load_u8(self, from: &[u8]) -> __m128i = {
            let (four, zero) = (i32::from_ne_bytes(*first(from)), _mm_setzero_si128());
            _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero), zero)
        };
        fn load_i8(self, from: &[i8]) -> __m128i = {
            let four = _mm_cvtsi32_si128(bytemuck::cast(*first::<_, LANES>(from)));
            let twice = _mm_unpacklo_epi8(four, four);
            _mm_srai_epi32::<24>(_mm_unpacklo_epi16(twice, twice))
        };
        fn wsplat(self, value: i16) -> [__m128i; 2] = [_mm_set1_epi16(value); 2];
        fn wload_u8(self, from: &[u8; WORDS]) -> [__m128i; 2] =
            pairs(bytemuck::cast(*from), _mm_setzero_si128());
        fn wload_i8(self, from: &[i8; WORDS]) -> [__m128i; 2] =
            {
            let [low, high] = pairs(bytemuck::cast(*from), bytemuck::cast(*from));
            [_mm_srai_epi16::<8>(low), _mm_srai_epi16::<8>(high)]
        };
        fn wadd(self, a: [__m128i; 2], b: [__m128i; 2]) -> [__m128i; 2] =
            [_mm_add_epi16(a[0], b[0]), _mm_add_epi16(a[1], b[1])];
        fn wsub(self, a: [__m128i; 2], b: [__m128i; 2]) -> [__m128i; 2] =
            [_mm_sub_epi16(a[0], b[0]), _mm_sub_epi16(a[1], b[1])];
        fn wshift_left(self, a: [__m128i; 2], count: u32) -> [__m128i; 2] =
            [_mm_sll_epi16(a[0], places(count)), _mm_sll_epi16(a[1], places(count))];
        fn store_partial(self, value: __m128, to: &mut [f32]) = {
            let value: [f32; LANES] = bytemuck::cast(value);
            let count = to.len().min(LANES);
            to[..count].copy_from_slice(&value[..count]);
        };
        fn store_f16(self, value: __m128, to: &mut [u16]) = {
            let [a, b, c, d]: [f32; LANES] = bytemuck::cast(value);
            let half = |value| half::f16::from_f32(value).to_bits();
            *first_mut(to) = [half(a), half(b), half(c), half(d)];
        };
        fn store_u8(self, value: __m128i, to: &mut [u8]) = {
            let words = _mm_packs_epi32(value, value);
            let four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
            *first_mut(to) = four.to_ne_bytes();
        };
        fn store_i8(self, value: __m128i, to: &mut [i8]) = {
            let words = _mm_packs_epi32(value, value);
            let four = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
            *first_mut::<_, LANES>(to) = bytemuck::cast(four);
        };
        fn store_four_u8(self, values: [__m128i; 4], limits: (u8, u8), to: &mut [u8]) = {
            let [first, last] = limited(values, limits.0.into(), limits.1.into());
            *first_mut::<_, { 4 * LANES }>(to) = bytemuck::cast(_mm_packus_epi16(first, last));
        };
        fn store_four_i8(self, values: [__m128i; 4], limits: (i8, i8), to: &mut [i8]) = {
            let [first, last] = limited(values, limits.0.into(), limits.1.into());
            *first_mut::<_, { 4 * LANES }>(to) = bytemuck::cast(_mm_packs_epi16(first, last));
        };
    }
    copies!();
}
