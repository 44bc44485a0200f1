//! Requantizing 4 sums at a time.
//!
//! NEON has an instruction for each of the definition's two roundings, so sums stay signed and nothing
//! of [`ChannelLanes`] but the mantissa and the shift is wanted. `SQRDMULH` doubles a product and takes
//! its upper half, halves up; it saturates only where both factors are the least number, and a mantissa
//! is not negative. `SRSHL` by a negative count shifts to the right, halves up as well; negative numbers
//! that are one less before it have their halves go down. As on other processors that is left out
//! if no output is below the zero point.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]

use super::ChannelLanes;
use std::arch::aarch64::*;

/// Constants of 4 channels in registers.
#[derive(Clone, Copy)]
pub(crate) struct Constants {
    mantissa: int32x4_t,
    /// Of the right shift, its negative.
    shift: int32x4_t,
}

impl Constants {
    /// Loads those of a quarter of the lanes, from 0 to 3.
    #[inline(always)]
    pub(crate) fn load(lanes: &ChannelLanes, quarter: usize) -> Self {
        let (doubled, shift) =
            (&lanes.doubled[4 * quarter..][..4], &lanes.shift[4 * quarter..][..4]);
        // SAFETY: every processor of the target has NEON; four numbers each.
        unsafe {
            Self {
                mantissa: vreinterpretq_s32_u32(vshrq_n_u32::<1>(vld1q_u32(doubled.as_ptr()))),
                shift: vnegq_s32(vreinterpretq_s32_u32(vld1q_u32(shift.as_ptr()))),
            }
        }
    }

    /// The outputs of sums, before the zero point is added and they are clamped.
    #[inline(always)]
    pub(crate) fn apply<const NUDGED: bool>(&self, sums: int32x4_t) -> int32x4_t {
        // SAFETY: every processor of the target has NEON; these only work on registers.
        unsafe {
            let mut product = vqrdmulhq_s32(sums, self.mantissa);
            if NUDGED {
                product = vsraq_n_s32::<31>(product, product);
            }
            vrshlq_s32(product, self.shift)
        }
    }
}

/// What is added to outputs, and what they are clamped to, in lanes of 16 bits.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    zero_point: int16x8_t,
    min: int16x8_t,
    max: int16x8_t,
}

impl Limits {
    /// From the zero point, the least and the greatest output.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // Outputs have 8 bits.
    pub(crate) fn new(zero_point: i32, min: i32, max: i32) -> Self {
        // SAFETY: every processor of the target has NEON.
        unsafe {
            Self {
                zero_point: vdupq_n_s16(zero_point as i16),
                min: vdupq_n_s16(min as i16),
                max: vdupq_n_s16(max as i16),
            }
        }
    }

    /// The bytes of 16 outputs.
    #[inline(always)]
    pub(crate) fn narrow(&self, [a, b, c, d]: [int32x4_t; 4]) -> uint8x16_t {
        // SAFETY: every processor of the target has NEON; these only work on registers.
        unsafe {
            let low = self.clamp(vqmovn_high_s32(vqmovn_s32(a), b));
            let high = self.clamp(vqmovn_high_s32(vqmovn_s32(c), d));
            // The lower bytes, whatever their sign.
            vreinterpretq_u8_s8(vmovn_high_s16(vmovn_s16(low), high))
        }
    }

    /// What 16 bits cannot hold is beyond the limits with the zero point and without.
    #[inline(always)]
    fn clamp(&self, outputs: int16x8_t) -> int16x8_t {
        // SAFETY: every processor of the target has NEON; these only work on registers.
        unsafe {
            let outputs = vqaddq_s16(outputs, self.zero_point);
            vminq_s16(vmaxq_s16(outputs, self.min), self.max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChannelGroup, Form, LANES, Requantization, SumRange};
    use super::*;
    use crate::Multiplier;
    use proptest::prelude::*;

    /// The constants of one vector of channels whose sums are not beyond the bound.
    fn pack(requantization: &Requantization, bound: i64) -> (Form, Vec<ChannelLanes>) {
        let group = ChannelGroup {
            requantization,
            first: 0,
            channels: LANES,
            vectors: 1,
            sum_offset: 0,
            with_floats: false,
        };
        let sums = SumRange { first: 0, bound, is_constant: false };
        group.pack(&|lane| (0, lane), &|_| sums)
    }

    /// The outputs of a vector of sums; none of those that vectors cannot requantize.
    fn outputs(
        form: Form,
        lanes: &ChannelLanes,
        limits: Limits,
        sums: [i32; LANES],
    ) -> Option<[u8; LANES]> {
        // SAFETY: 16 numbers and 16 bytes.
        let outputs = [0, 1, 2, 3].map(|quarter: usize| unsafe {
            let sums = vld1q_s32(sums[4 * quarter..].as_ptr());
            let constants = Constants::load(lanes, quarter);
            match form {
                Form::Plain => Some(constants.apply::<false>(sums)),
                Form::Nudged => Some(constants.apply::<true>(sums)),
                _ => None,
            }
        });
        let [Some(a), Some(b), Some(c), Some(d)] = outputs else { return None };
        Some(bytemuck::cast(limits.narrow([a, b, c, d])))
    }

    proptest! {
        #[test]
        fn vectors_are_the_definition(
            mantissas in prop::array::uniform16(prop_oneof![9 => 1 << 30..=i32::MAX, 1 => Just(0)]),
            exponents in prop::array::uniform16(prop_oneof![8 => -20..1, 1 => -40..0]),
            is_signed: bool, zero_point: u8, ends: [u8; 2], bits in 4..31,
            sums in prop::collection::vec(any::<i32>(), 20 * LANES),
        ) {
            let value = |byte: u8| if is_signed { byte.cast_signed().into() } else { byte.into() };
            let zero_point: i32 = value(zero_point);
            let (min, max) = (value(ends[0]).min(value(ends[1])), value(ends[0]).max(value(ends[1])));
            let multipliers = mantissas.iter().zip(exponents);
            let multipliers = multipliers.map(|(&mantissa, exponent)| Multiplier { mantissa, exponent });
            let requantization = Requantization { multipliers: multipliers.collect(), zero_point, min, max };
            let bound = 1_i64 << bits;
            let (form, lanes) = pack(&requantization, bound);
            let limits = Limits::new(zero_point, min, max);
            for sums in sums.chunks_exact(LANES) {
                let sums: [i32; LANES] = std::array::from_fn(|lane| sums[lane] >> (31 - bits));
                let Some(found) = outputs(form, &lanes[0], limits, sums) else { break };
                for (lane, found) in found.into_iter().enumerate() {
                    let expected = requantization.apply(sums[lane], lane);
                    prop_assert_eq!(value(found), expected, "{} {:?}", sums[lane], requantization.multiplier(lane));
                }
            }
        }

        #[test]
        fn ties_are_the_definition(
            mantissa in 1 << 30..=i32::MAX, right in 1_i32..=16, zero_point in 0..=255, first in -100..100_i64,
        ) {
            let multiplier = Multiplier { mantissa, exponent: -right };
            for min in [0, zero_point] {
                let multipliers = vec![multiplier];
                let requantization = Requantization { multipliers, zero_point, min, max: 255 };
                let (form, lanes) = pack(&requantization, 1 << 24);
                let limits = Limits::new(zero_point, min, 255);
                // Sums that are nearest to half a step.
                let near = |k: i64, off: i64| {
                    let tie = i128::from(2 * k + 1) * (1 << 30 << right) / i128::from(mantissa);
                    i32::try_from(i64::try_from(tie).unwrap() + off).unwrap()
                };
                let sums: [i32; LANES] = std::array::from_fn(|lane| {
                    let lane = i64::try_from(lane).unwrap();
                    near(first + lane / 4, lane % 4 - 2)
                });
                let found = outputs(form, &lanes[0], limits, sums).expect("small sums");
                for (found, sum) in found.into_iter().zip(sums) {
                    prop_assert_eq!(i32::from(found), requantization.apply(sum, 0), "{}", sum);
                }
            }
        }
    }
}
