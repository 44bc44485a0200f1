//! Requantizing 16 sums at a time.
#![allow(unsafe_code)]

use super::ChannelLanes;
use std::arch::x86_64::*;

/// Constants of 16 channels in registers.
#[derive(Clone, Copy)]
pub(crate) struct Constants {
    doubled: __m512i,
    doubled_odd: __m512i,
    rounding_even: __m512i,
    rounding_odd: __m512i,
    shift: __m512i,
}

impl Constants {
    /// Loads them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn load(lanes: &ChannelLanes) -> Self {
        // SAFETY: each array has 64 bytes.
        unsafe {
            let doubled = _mm512_loadu_si512(lanes.doubled.as_ptr().cast());
            Self {
                doubled,
                doubled_odd: _mm512_srli_epi64::<32>(doubled),
                rounding_even: _mm512_loadu_si512(lanes.rounding_even.as_ptr().cast()),
                rounding_odd: _mm512_loadu_si512(lanes.rounding_odd.as_ptr().cast()),
                shift: _mm512_loadu_si512(lanes.shift.as_ptr().cast()),
            }
        }
    }

    /// The outputs of sums to which 2^31 was added, before they are clamped.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn apply<const NUDGED: bool>(&self, sums: __m512i) -> __m512i {
        let odd_sums = _mm512_srli_epi64::<32>(sums);
        let even = _mm512_add_epi64(_mm512_mul_epu32(sums, self.doubled), self.rounding_even);
        let odd = _mm512_add_epi64(_mm512_mul_epu32(odd_sums, self.doubled_odd), self.rounding_odd);
        // The upper halves: the even ones move down, between the odd ones.
        let mut upper = _mm512_mask_shuffle_epi32::<0b11_11_01_01>(odd, 0x5555, even);
        if NUDGED {
            upper = _mm512_sub_epi32(upper, _mm512_srai_epi32::<31>(sums));
        }
        _mm512_srav_epi32(upper, self.shift)
    }
}

/// Factors of 16 channels in registers.
#[derive(Clone, Copy)]
pub(crate) struct FloatConstants {
    upper: __m512,
    lower: __m512,
    half: __m512,
}

impl FloatConstants {
    /// Loads them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn load(lanes: &ChannelLanes) -> Self {
        // SAFETY: each array has 64 bytes, and `Factors` is aligned to 64, so that each of its arrays
        // is.
        unsafe {
            Self {
                upper: _mm512_load_ps(lanes.factors.upper.as_ptr()),
                lower: _mm512_load_ps(lanes.factors.lower.as_ptr()),
                half: _mm512_load_ps(lanes.factors.half.as_ptr()),
            }
        }
    }

    /// The outputs of sums less the zero point, before they are clamped; where they are not `SIGNED`,
    /// anything up to 0 for negative sums.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn apply<const SIGNED: bool>(&self, sums: __m512i) -> __m512i {
        const TO_ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
        let sums = _mm512_cvtepi32_ps(sums);
        let mut half = self.half;
        if SIGNED {
            // The first, or else the second where the third has bits.
            half = _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0b1111_1000>(
                _mm512_castps_si512(half),
                _mm512_castps_si512(sums),
                _mm512_set1_epi32(i32::MIN),
            ));
        }
        let inner = _mm512_fmadd_ps(sums, self.lower, half);
        _mm512_cvttps_epi32(_mm512_fmadd_round_ps::<TO_ZERO>(sums, self.upper, inner))
    }
}

/// What 8-bit outputs are clamped to.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// What is added before, in 32 lanes of 16 bits.
    zero_point: __m512i,
    /// In 64 lanes of 8 bits.
    min8: __m512i,
    max8: __m512i,
    /// Whether both are numbers of signed bytes; otherwise of unsigned ones.
    are_signed: bool,
}

impl Limits {
    /// From the least and the greatest output, and the zero point if it must be added.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[allow(clippy::cast_possible_truncation)] // Outputs have 8 bits.
    pub(crate) fn new(min: i32, max: i32, zero_point: i32) -> Self {
        Self {
            zero_point: _mm512_set1_epi16(zero_point as i16),
            min8: _mm512_set1_epi8(min as i8),
            max8: _mm512_set1_epi8(max as i8),
            are_signed: max <= i32::from(i8::MAX),
        }
    }

    /// 64 outputs: four of each vector, then the next four of each, and so on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn narrow4(&self, parts: [__m512i; 4]) -> __m512i {
        let low = _mm512_packs_epi32(parts[0], parts[1]);
        let high = _mm512_packs_epi32(parts[2], parts[3]);
        let low = _mm512_adds_epi16(low, self.zero_point);
        let high = _mm512_adds_epi16(high, self.zero_point);
        // What bytes cannot hold is beyond the limits too.
        if self.are_signed {
            let bytes = _mm512_packs_epi16(low, high);
            _mm512_min_epi8(_mm512_max_epi8(bytes, self.min8), self.max8)
        } else {
            let bytes = _mm512_packus_epi16(low, high);
            _mm512_min_epu8(_mm512_max_epu8(bytes, self.min8), self.max8)
        }
    }
}
