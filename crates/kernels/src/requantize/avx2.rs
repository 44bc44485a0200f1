//! Requantizing 8 sums at a time.
#![allow(unsafe_code)]

use super::ChannelLanes;
use std::arch::x86_64::*;

/// Constants of 8 channels in registers.
#[derive(Clone, Copy)]
pub(crate) struct Constants {
    doubled: __m256i,
    rounding_even: __m256i,
    rounding_odd: __m256i,
    shift: __m256i,
}

impl Constants {
    /// Loads those of the lower (0) or the upper (1) half of the lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn load(lanes: &ChannelLanes, half: usize) -> Self {
        // SAFETY: each half of an array has 32 bytes.
        unsafe {
            let load = |from: *const __m256i| _mm256_loadu_si256(from.add(half & 1));
            Self {
                doubled: load(lanes.doubled.as_ptr().cast()),
                rounding_even: load(lanes.rounding_even.as_ptr().cast()),
                rounding_odd: load(lanes.rounding_odd.as_ptr().cast()),
                shift: load(lanes.shift.as_ptr().cast()),
            }
        }
    }

    /// The outputs of sums to which 2^31 was added, before they are clamped.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn apply<const NUDGED: bool>(&self, sums: __m256i) -> __m256i {
        let odd_sums = _mm256_srli_epi64::<32>(sums);
        let odd_doubled = _mm256_srli_epi64::<32>(self.doubled);
        let even = _mm256_add_epi64(_mm256_mul_epu32(sums, self.doubled), self.rounding_even);
        let odd = _mm256_add_epi64(_mm256_mul_epu32(odd_sums, odd_doubled), self.rounding_odd);
        // The upper halves: the even ones move down, between the odd ones.
        let mut upper = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
        if NUDGED {
            upper = _mm256_sub_epi32(upper, _mm256_srai_epi32::<31>(sums));
        }
        _mm256_srav_epi32(upper, self.shift)
    }
}

/// What 8-bit outputs are clamped to, in lanes of 8 bits.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    min: __m256i,
    max: __m256i,
    /// Whether both are numbers of signed bytes; otherwise of unsigned ones.
    are_signed: bool,
}

impl Limits {
    /// From the least and the greatest output.
    #[inline]
    #[target_feature(enable = "avx2")]
    #[allow(clippy::cast_possible_truncation)] // Outputs have 8 bits.
    pub(crate) fn new(min: i32, max: i32) -> Self {
        Self {
            min: _mm256_set1_epi8(min as i8),
            max: _mm256_set1_epi8(max as i8),
            are_signed: max <= i32::from(i8::MAX),
        }
    }

    /// 32 outputs: four of each vector, then the next four of each.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn narrow4(&self, parts: [__m256i; 4]) -> __m256i {
        let low = _mm256_packs_epi32(parts[0], parts[1]);
        let high = _mm256_packs_epi32(parts[2], parts[3]);
        self.narrow2(low, high)
    }

    /// 32 outputs of 16 bits each.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn narrow2(&self, low: __m256i, high: __m256i) -> __m256i {
        // What bytes cannot hold is beyond the limits too.
        if self.are_signed {
            let bytes = _mm256_packs_epi16(low, high);
            _mm256_min_epi8(_mm256_max_epi8(bytes, self.min), self.max)
        } else {
            let bytes = _mm256_packus_epi16(low, high);
            _mm256_min_epu8(_mm256_max_epu8(bytes, self.min), self.max)
        }
    }

    /// 16 outputs of a row, then those of another.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn narrow_rows(&self, rows: [[__m256i; 2]; 2]) -> __m256i {
        let bytes = self.narrow4([rows[0][0], rows[0][1], rows[1][0], rows[1][1]]);
        // By four: the first and the third of both rows, then the others.
        _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
    }
}
