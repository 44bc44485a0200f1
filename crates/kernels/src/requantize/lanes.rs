//! [`ChannelLanes`]: the constants of channels as vectors want them.
//!
//! With `v` the sum, `m` the mantissa and `r = -exponent >= 0`, the definition is
//!
//! ```text
//! h = (v * m + 2^30) >> 31                         halves up
//! n = (h + half - [h < 0]) >> r,  half = 2^(r-1)   halves away from zero; n = h if r = 0
//! ```
//!
//! Kernels on x86 add 2^31 to every sum, together with the bias, and hold `u = v + 2^31` as an
//! unsigned number. The upper half of the unsigned product `u * 2m + 2^31` is `h + m`, because
//! `u * 2m = 2vm + 2^32 m`. What is added to the upper half, `half - m` and the output's zero point
//! times `2^r`, goes into the same 64-bit addend as the 2^31 of the first rounding. Then
//!
//! - `[h < 0]` may be replaced by `[v < 0]`: they differ only where `v < 0` and `h = 0`, and
//!   `(half - 1) >> r = half >> r = 0` for `r >= 1`.
//! - It may be left out if the zero point is not above the least output: it changes results only if
//!   `h < 0`, so only results that are not above the zero point, and to results that are not either.
//!   That is so wherever a ReLU is part of the operation.
//!
//! All that is right while `h + half + zero_point * 2^r` stays within 32 bits, which follows from the
//! greatest magnitude that a sum can have, which is checked for each channel.
//!
//! With AVX-512 most channels take fewer steps in floats, see [`super::floats`].

use super::floats::{self, Factors};
use super::{LANES, Requantization};
use crate::quantization::Activations;
use crate::{Multiplier, Preparation, TooLarge};
use bytemuck::{Pod, Zeroable};

/// Finding a channel's constants takes as long as this many products, about a microsecond.
const WORK_OF_CONSTANTS: usize = 1 << 10;

/// Constants of 16 output channels.
#[derive(Debug, Clone, Copy, Default, Zeroable, Pod)]
#[repr(C, align(64))]
pub(crate) struct ChannelLanes {
    /// What sums begin with.
    pub bias: [i32; LANES],
    /// `2m`.
    pub doubled: [u32; LANES],
    /// By even lane: 2^31, and above it what the upper half gets.
    pub rounding_even: [u64; LANES / 2],
    /// By odd lane.
    pub rounding_odd: [u64; LANES / 2],
    /// `r`.
    pub shift: [u32; LANES],
    /// In floats.
    pub factors: Factors,
}

impl ChannelLanes {
    /// Takes over lanes that are zero here.
    pub(crate) fn merge(&mut self, other: &Self) {
        let to = bytemuck::bytes_of_mut(self);
        to.iter_mut().zip(bytemuck::bytes_of(other)).for_each(|(to, from)| *to |= *from);
    }
}

/// How vectors requantize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    /// In floats, where all results below the zero point are clamped to it.
    Floats,
    /// In floats.
    SignedFloats,
    /// Without regard to the sign of the sum.
    Plain,
    /// With the second rounding's regard to the sign of the sum.
    Nudged,
    /// One by one, by the definition.
    Scalar,
    /// Not at all: outputs are the sums, of 32 bits, for all lanes, in the order of channels.
    Sums,
}

impl Form {
    /// Those that constants are for; of [`Self::Sums`] there are none.
    const OF_CONSTANTS: [Self; 5] =
        [Self::Floats, Self::SignedFloats, Self::Plain, Self::Nudged, Self::Scalar];

    /// How much more sums begin with, if it is so much for integers.
    pub(crate) fn sum_offset(self, of_integers: i32) -> i32 {
        match self {
            Self::Floats | Self::SignedFloats | Self::Sums => 0,
            Self::Plain | Self::Nudged | Self::Scalar => of_integers,
        }
    }
}

/// The factor 1/4.
const FOURTH: Multiplier = Multiplier { mantissa: 1 << 30, exponent: -1 };

/// What is known of a channel's sums when it is prepared.
#[derive(Debug, Clone, Copy, Zeroable)]
pub(crate) struct SumRange {
    /// What they begin with.
    pub first: i32,
    /// None has a greater magnitude.
    pub bound: i64,
    /// Whether all are what they begin with.
    pub is_constant: bool,
}

impl SumRange {
    /// Of products with weights whose magnitudes have this sum, less their zero point, to which a bias is added.
    pub(crate) fn new(activations: Activations, first: i32, magnitude: i64, bias: i32) -> Self {
        let bound = magnitude.saturating_mul(activations.greatest());
        let bound = bound.saturating_add(i64::from(bias).abs());
        Self { first, bound, is_constant: magnitude == 0 }
    }
}

/// How one channel is requantized.
struct Channel {
    doubled: u32,
    rounding: u64,
    shift: u32,
}

/// No `h` has a greater magnitude, if no sum has a greater one than `bound`.
fn greatest_half(multiplier: Multiplier, bound: i64) -> i64 {
    ((bound.min(1 << 31) * i64::from(multiplier.mantissa)) >> 31) + 1
}

/// Whether all products are 0.
fn is_zero(multiplier: Multiplier, bound: i64) -> bool {
    let right = -i64::from(multiplier.exponent);
    // Half a step is not reached, or there are no more than 62 bits.
    let is_small = (1..62).contains(&right) && greatest_half(multiplier, bound) < 1 << (right - 1);
    multiplier.mantissa == 0 || is_small || right >= 62
}

/// The constants of a channel whose sums have at most the magnitude `bound`, if vectors can do it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked, or modulo 2^32.
fn channel(
    multiplier: Multiplier,
    zero_point: i32,
    is_nudged: bool,
    bound: i64,
) -> Option<Channel> {
    let nudge = i64::from(is_nudged);
    let mantissa = i64::from(multiplier.mantissa);
    let greatest = greatest_half(multiplier, bound);
    let right = -i64::from(multiplier.exponent);
    // What is always 0 is so for any multiplier.
    let (mantissa, greatest, right) =
        if is_zero(multiplier, bound) { (0, 1, 1) } else { (mantissa, greatest, right) };
    if !(nudge..=30).contains(&right) {
        return None;
    }
    let half = if right == 0 { 0 } else { 1_i64 << (right - 1) };
    let offset = i64::from(zero_point) << right;
    if greatest + half + 1 + offset.abs() >= 1 << 31 {
        return None;
    }
    let upper = (half - mantissa + offset - nudge) as u32;
    Some(Channel {
        doubled: 2 * mantissa as u32,
        rounding: 1 << 31 | u64::from(upper) << 32,
        shift: right as u32,
    })
}

/// Constants of channels that are requantized together.
pub(crate) struct ChannelGroup<'a> {
    pub requantization: &'a Requantization,
    /// The first channel.
    pub first: usize,
    pub channels: usize,
    /// Vectors that they take.
    pub vectors: usize,
    /// How much more sums begin with that are requantized in integers.
    pub sum_offset: i32,
    /// Whether floats may be used.
    pub with_floats: bool,
}

impl ChannelGroup<'_> {
    /// Packs them, and tells how they are to be used. `place` gives the vector and the lane of the
    /// channel `first + index`. Lanes without a channel give anything. The bias includes [`Form::sum_offset`].
    ///
    /// Channels without weights, which quantizers give the least scale and the greatest bias there can be, have constants that make
    /// their output of another sum.
    pub(crate) fn pack(
        &self,
        place: &dyn Fn(usize) -> (usize, usize),
        sums: &dyn Fn(usize) -> SumRange,
    ) -> (Form, Vec<ChannelLanes>) {
        let &Self { requantization, first, channels, vectors, sum_offset, with_floats } = self;
        // What a constant sum becomes, from the zero point.
        let constant = |index: usize| {
            let SumRange { first: sum, is_constant, .. } = sums(index);
            let output = || requantization.apply(sum, first + index) - requantization.zero_point;
            is_constant.then(output)
        };
        let zero_point = requantization.zero_point;
        let is_nudged = zero_point > requantization.min;
        let multiplier = |index: usize| requantization.multiplier(first + index);
        let mut packed = vec![ChannelLanes::default(); vectors];
        let of_floats = if with_floats {
            let steps = requantization.min - zero_point + 1..=requantization.max - zero_point;
            let of = |index: usize| {
                let multiplier = multiplier(index);
                let SumRange { bound, is_constant, .. } = sums(index);
                let is_zero = is_constant || is_zero(multiplier, bound);
                Multiplier { mantissa: if is_zero { 0 } else { multiplier.mantissa }, ..multiplier }
            };
            floats::search(channels, &of, &steps)
        } else {
            None
        };
        if let Some(of_floats) = of_floats {
            for index in 0..channels {
                let (vector, lane) = place(index);
                let lanes = &mut packed[vector];
                lanes.bias[lane] = sums(index).first;
                lanes.factors.copy_lane(lane, &of_floats[index / LANES], index % LANES);
                if let Some(output) = constant(index) {
                    // With factors of 0 it is this half, with the sign of the sum.
                    lanes.factors.half[lane] = output.unsigned_abs() as f32 + 0.5;
                    lanes.bias[lane] = output.signum().min(0);
                }
            }
            return (if is_nudged { Form::SignedFloats } else { Form::Floats }, packed);
        }
        let mut form = if is_nudged { Form::Nudged } else { Form::Plain };
        for index in 0..channels {
            let (vector, lane) = place(index);
            let (bias, bound, multiplier) = match constant(index) {
                // A fourth of four times as much.
                Some(output) => (4 * output, 4 * i64::from(output.abs()), FOURTH),
                None => (sums(index).first, sums(index).bound, multiplier(index)),
            };
            let lanes = &mut packed[vector];
            lanes.bias[lane] = bias.wrapping_add(sum_offset);
            let Some(channel) = channel(multiplier, zero_point, is_nudged, bound) else {
                form = Form::Scalar;
                continue;
            };
            lanes.doubled[lane] = channel.doubled;
            lanes.shift[lane] = channel.shift;
            let rounding =
                if lane % 2 == 0 { &mut lanes.rounding_even } else { &mut lanes.rounding_odd };
            rounding[lane / 2] = channel.rounding;
        }
        if form == Form::Scalar {
            // The definition is given the sums themselves.
            for index in 0..channels {
                let (vector, lane) = place(index);
                packed[vector].bias[lane] = sums(index).first.wrapping_add(sum_offset);
            }
        }
        (form, packed)
    }
}

/// The constants of this many vectors, and how each of this many blocks of channels is requantized: what `pack` enters and
/// tells for the block with an index, which has [`WORK_OF_CONSTANTS`] for each of its `channels`. They are saved with the weights, since
/// finding them takes longer than reading them.
///
/// # Errors
/// If they are more than may be taken.
pub(crate) fn derived(
    preparation: &mut Preparation,
    vectors: usize,
    blocks: usize,
    channels: &dyn Fn(usize) -> usize,
    pack: &mut dyn FnMut(usize, &mut [ChannelLanes]) -> Form,
) -> Result<(Vec<ChannelLanes>, Vec<Form>), TooLarge> {
    let mut forms: Vec<u8> = preparation.zeros(blocks, "constants of blocks")?;
    let lanes = preparation.derive(vectors, |lanes, pace| {
        for (index, form) in forms.iter_mut().enumerate() {
            if pace.is_over(channels(index).saturating_mul(WORK_OF_CONSTANTS)) {
                break;
            }
            *form = pack(index, lanes) as u8;
        }
    })?;
    let forms = preparation.derive(blocks, |all, _| all.copy_from_slice(&forms))?;
    let known = |form: &u8| Form::OF_CONSTANTS.into_iter().find(|it| *it as u8 == *form);
    Ok((lanes, forms.iter().map(|form| known(form).unwrap_or(Form::Scalar)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a vector's lane does.
    fn lane(channel: &Channel, sum: i32, is_nudged: bool) -> i32 {
        let u = sum.cast_unsigned() ^ 1 << 31;
        let wide = (u64::from(u) * u64::from(channel.doubled)).wrapping_add(channel.rounding);
        #[allow(clippy::cast_possible_truncation)] // The upper half.
        let upper = ((wide >> 32) as u32).cast_signed();
        let positive = if is_nudged { i32::from(u >> 31 == 1) } else { 0 };
        upper.wrapping_add(positive) >> channel.shift
    }

    /// As converters write channels of pretrained networks that have no weights: sums of 2^30, by a factor of 2^-60.
    #[test]
    fn channels_without_weights_do_not_keep_others_from_vectors() {
        let multipliers = (0..LANES).map(|index| match index % 3 {
            0 => Multiplier { mantissa: 1 << 30, exponent: [-60, -31, 9][index % 9 / 3] },
            _ => Multiplier { mantissa: 1_500_000_000, exponent: -9 },
        });
        for zero_point in [-128, 3] {
            let multipliers = multipliers.clone().collect();
            let requantization = Requantization { multipliers, zero_point, min: -128, max: 127 };
            for with_floats in [false, true] {
                let group = ChannelGroup {
                    requantization: &requantization,
                    first: 0,
                    channels: LANES,
                    vectors: 1,
                    sum_offset: 0,
                    with_floats,
                };
                let sums = |index: usize| match index % 3 {
                    0 => SumRange { first: -1 << 30, bound: 1 << 30, is_constant: true },
                    _ => SumRange { first: 7, bound: 1 << 20, is_constant: false },
                };
                let (form, _) = group.pack(&|index| (0, index), &sums);
                let is_nudged = zero_point > -128;
                let expected = match (with_floats, is_nudged) {
                    (true, true) => Form::SignedFloats,
                    (true, false) => Form::Floats,
                    (false, true) => Form::Nudged,
                    (false, false) => Form::Plain,
                };
                assert_eq!(form, expected, "{with_floats} {zero_point}");
            }
        }
    }

    proptest! {
        #[test]
        fn lanes_are_the_definition(
            mantissa in 1 << 30..=i32::MAX, right in 0_i32..=31, zero_point in -128..=255,
            sums in prop::collection::vec(any::<i32>(), 50), bits in 4..31,
        ) {
            let bound = 1_i64 << bits;
            let multiplier = Multiplier { mantissa, exponent: -right };
            for is_nudged in [false, true] {
                let channel = channel(multiplier, zero_point, is_nudged, bound);
                prop_assert!(channel.is_some() || bits > 20 || right > 20 || right == 0);
                let Some(channel) = channel else { continue };
                // Random sums, and all near the ties of the second rounding.
                let near = |k: i64| {
                    let tie = i128::from(2 * k + 1) * (1 << 30 << right) / i128::from(mantissa);
                    let tie = i64::try_from(tie).unwrap();
                    (-2..=2).map(move |off| tie + off)
                };
                let random = sums.iter().map(|&sum| i64::from(sum) >> (31 - bits));
                for sum in random.chain((-200..200).flat_map(near)) {
                    if sum.abs() > bound || sum > i64::from(i32::MAX) { continue }
                    let sum = i32::try_from(sum).unwrap();
                    let expected = multiplier.apply(sum) + zero_point;
                    let found = lane(&channel, sum, is_nudged);
                    if is_nudged {
                        prop_assert_eq!(found, expected);
                    } else {
                        prop_assert_eq!(found.max(zero_point), expected.max(zero_point));
                    }
                }
            }
        }
    }
}
