//! Requantizing in floats, to the bit as [`Multiplier::apply`](crate::Multiplier::apply).
//!
//! With the mantissa `m = 128 a + b` and `r = -exponent`, a sum `v` becomes
//!
//! ```text
//! n = truncated(v * a * 2^(-24-r) + rounded(v * b * 2^(-31-r) + c)),    c taking the sign of v
//! ```
//!
//! where the outer sum is rounded towards zero, so that truncating it is truncating the exact one. All
//! of this grows with `v`, or stays. So it is the definition if it is that at both sides of each step
//! of the definition, at the least `v` that gives `k` and the one below it, for all `k` within the
//! limits of the output. The definition's steps are where
//!
//! ```text
//! v * m >= N(k) = (k * 2^r - 2^(r-1) + [k <= 0]) * 2^31 - 2^30
//! ```
//!
//! begins to hold. At the least such `v` the left side exceeds the right one by `u = -N(k) mod m`,
//! and at the one below it falls short by `m - u`. In units of an output's step, `2^(31+r)`, that
//! is how far `c` may be from `1/2 + 2^(-r-1)`: down by `u`, up by less than `m - u`, and for `k <= 0`,
//! where magnitudes are mirrored, the other way round. Half a unit in the last place of `c` must be
//! left on both sides, for the rounding of the inner sum. Hardly ever is there no such `c`.

use super::LANES;
use crate::vector::{Isa, Kernel, Simd};
use crate::{InstructionSet, Multiplier};
use bytemuck::{Pod, Zeroable};
use std::ops::RangeInclusive;

/// Factors of 16 channels.
#[derive(Debug, Clone, Copy, Default, Zeroable, Pod)]
#[repr(C, align(64))]
pub(crate) struct Factors {
    /// `a * 2^(-24-r)`.
    pub upper: [f32; LANES],
    /// `b * 2^(-31-r)`.
    pub lower: [f32; LANES],
    /// `c`.
    pub half: [f32; LANES],
}

impl Factors {
    /// Takes over one lane.
    pub(super) fn copy_lane(&mut self, lane: usize, from: &Self, from_lane: usize) {
        self.upper[lane] = from.upper[from_lane];
        self.lower[lane] = from.lower[from_lane];
        self.half[lane] = from.half[from_lane];
    }
}

/// How far the inner sum may be off: half a unit in the last place of numbers from 1/2 to 1, and a
/// little more for the rounding of what is computed here.
const MARGIN: f64 = 1.001 / (1 << 25) as f64;

/// `r` up to which sums near the steps are exact as floats: 255 steps of at most 2^(r+1) are below 2^24.
const GREATEST_SHIFT: i32 = 15;

/// Factors of this many channels, by 16, for outputs that are `steps` from the zero point after the
/// least one; if there are factors for all.
pub(super) fn search(
    channels: usize,
    multiplier: &dyn Fn(usize) -> Multiplier,
    steps: &RangeInclusive<i32>,
) -> Option<Vec<Factors>> {
    let mut all = vec![Factors::default(); channels.div_ceil(LANES)];
    for (vector, factors) in all.iter_mut().enumerate() {
        let first = vector * LANES;
        let count = (channels - first).min(LANES);
        // What is 0 needs no steps.
        let mut mantissas = [1 << 30; LANES];
        let mut shifts = [1; LANES];
        for lane in 0..count {
            let Multiplier { mantissa, exponent } = multiplier(first + lane);
            if mantissa == 0 {
                factors.half[lane] = 0.5;
            } else if (1..=GREATEST_SHIFT).contains(&-exponent) {
                (mantissas[lane], shifts[lane]) = (mantissa, -exponent);
            } else {
                return None;
            }
        }
        let room = Room::around(&mantissas, &shifts, steps);
        for lane in 0..count {
            if factors.half[lane] != 0.0 {
                continue;
            }
            let (mantissa, shift) = (mantissas[lane], shifts[lane]);
            let unit = 2_f64.powi(-31 - shift);
            let middle = 0.5 + 0.5_f64.powi(shift + 1);
            let [down, up] = [room.down[lane], room.up[lane]].map(|room| f64::from(room) * unit);
            #[allow(clippy::cast_possible_truncation)] // Rounded.
            let half = (middle + (up - down) / 2.0) as f32;
            let off = f64::from(half) - middle;
            if off + down < MARGIN || up - off < MARGIN || !(0.25..1.0 - 1e-3).contains(&half) {
                return None;
            }
            #[allow(clippy::cast_possible_truncation)] // Both have 24 bits at most.
            let [upper, lower] =
                [mantissa & !0x7F, mantissa & 0x7F].map(|part| (f64::from(part) * unit) as f32);
            (factors.upper[lane], factors.lower[lane], factors.half[lane]) = (upper, lower, half);
        }
    }
    Some(all)
}

/// How far `c` may be from the middle, in units of 2^(-31-r).
struct Room {
    down: [u32; LANES],
    up: [u32; LANES],
}

impl Room {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Remainders are below 2^31.
    fn around(
        mantissas: &[i32; LANES],
        shifts: &[i32; LANES],
        steps: &RangeInclusive<i32>,
    ) -> Self {
        let mut room = Self { down: [u32::MAX; LANES], up: [u32::MAX; LANES] };
        let (first, last) = (*steps.start(), *steps.end());
        for (first, last) in [(first, last.min(0)), (first.max(1), last)] {
            if first > last {
                continue;
            }
            let of_lanes = |value: &dyn Fn(i64, i32) -> i64| {
                std::array::from_fn(|lane| value(mantissas[lane].into(), shifts[lane]) as u32)
            };
            // u of the first step; from step to step it becomes 2^(31+r) less, modulo m.
            let beyond = of_lanes(&|mantissa, shift| {
                let sum = (i64::from(first) << shift) - (1 << (shift - 1));
                let least = ((sum + i64::from(first <= 0)) << 31) - (1 << 30);
                (-least).rem_euclid(mantissa)
            });
            let change =
                of_lanes(&|mantissa, shift| (-(1_i64 << (31 + shift))).rem_euclid(mantissa));
            let modulus = of_lanes(&|mantissa, _| mantissa);
            let extremes = Extremes { value: beyond, change, modulus, times: last - first };
            let [least, greatest] = Isa::of(InstructionSet::best()).run(extremes);
            for lane in 0..LANES {
                let below = modulus[lane] - greatest[lane];
                let [down, up] =
                    if first > 0 { [least[lane], below] } else { [below, least[lane]] };
                room.down[lane] = room.down[lane].min(down);
                room.up[lane] = room.up[lane].min(up);
            }
        }
        room
    }
}

/// The least and the greatest of a number and those that follow when a change is added to it this many
/// times, modulo a number below 2^31.
struct Extremes {
    value: [u32; LANES],
    change: [u32; LANES],
    modulus: [u32; LANES],
    times: i32,
}

impl Kernel for Extremes {
    type Output = [[u32; LANES]; 2];

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Self::Output {
        let Self { mut value, change, modulus, times } = self;
        let (mut least, mut greatest) = (value, value);
        for _ in 0..times {
            for lane in 0..LANES {
                // Of two numbers below 2^31: nothing wraps. A check of that would be a branch for each lane.
                let sum = value[lane].wrapping_add(change[lane]);
                value[lane] = sum.min(sum.wrapping_sub(modulus[lane]));
                least[lane] = least[lane].min(value[lane]);
                greatest[lane] = greatest[lane].max(value[lane]);
            }
        }
        [least, greatest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a vector's lane does: the exact outer sum, truncated.
    fn lane(factors: &Factors, sum: i32) -> i32 {
        #[allow(clippy::cast_precision_loss)] // As the instruction does.
        let value = sum as f32;
        let inner = value.mul_add(factors.lower[0], factors.half[0].copysign(value));
        // 48 and 24 bits that overlap.
        let outer = f64::from(value) * f64::from(factors.upper[0]) + f64::from(inner);
        #[allow(clippy::cast_possible_truncation)]
        let truncated = outer as i32;
        truncated
    }

    proptest! {
        #[test]
        fn floats_are_the_definition(
            mantissa in 1 << 30..=i32::MAX, right in 1_i32..=GREATEST_SHIFT,
            zero_point in 0..=255, sums in prop::collection::vec(any::<i32>(), 50),
        ) {
            let multiplier = Multiplier { mantissa, exponent: -right };
            for steps in [1 - zero_point..=255 - zero_point, 1..=255] {
                let Some(found) = search(1, &|_| multiplier, &steps) else {
                    prop_assert!(right > 5, "{:?}", multiplier);
                    continue;
                };
                let (low, high) = (steps.start() - 1, *steps.end());
                // All near the steps, and random ones.
                let near = |k: i64| {
                    let step = i128::from(2 * k + 1) * (1 << 30 << right) / i128::from(mantissa);
                    let step = i32::try_from(step).unwrap();
                    (-3..=3).map(move |off| step + off)
                };
                let random = sums.iter().map(|sum| sum >> (right % 8));
                for sum in random.chain((-257..257).flat_map(near)) {
                    let expected = multiplier.apply(sum).clamp(low, high);
                    let value = lane(&found[0], sum).clamp(low, high);
                    prop_assert_eq!(value, expected, "{}", sum);
                }
            }
        }
    }

    #[test]
    fn hardly_any_multiplier_needs_integers() {
        let mut random = fastrand::Rng::with_seed(11);
        for (right, most) in [(7, 1), (9, 3), (11, 30)] {
            let missing = (0..10_000)
                .filter(|_| {
                    let mantissa = random.i32(1 << 30..=i32::MAX);
                    search(1, &|_| Multiplier { mantissa, exponent: -right }, &(-100..=155))
                        .is_none()
                })
                .count();
            assert!(missing <= most, "{missing} with a shift of {right}");
        }
    }
}
