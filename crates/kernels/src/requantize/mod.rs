//! Requantization: from 32-bit sums of products to 8-bit outputs, to the bit as TensorFlow Lite's
//! reference kernels (which is gemmlowp's arithmetic) and so NNAPI.
//!
//! The product of a sum and a real factor is rounded twice: first halves go up, then away from zero
//! ([`Multiplier::apply`]). Vectors compute the same in fewer steps, see `lanes` and
//! `floats`.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod floats;
mod lanes;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

pub(crate) use lanes::{ChannelGroup, ChannelLanes, Form, SumRange, derived as derived_lanes};

use crate::quantization::Signedness;
use crate::{Multiplier, Preparation, TooLarge};

/// Lanes of [`ChannelLanes`].
pub(crate) const LANES: usize = 16;

/// How sums become outputs: `clamp(sum * multiplier + zero_point, min, max)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requantization {
    /// One for all output channels, or one for each.
    pub multipliers: Vec<Multiplier>,
    /// The stored value that stands for 0.
    pub zero_point: i32,
    /// The least stored value, within the type's range.
    pub min: i32,
    /// The greatest stored value, not below the least one and within the type's range.
    pub max: i32,
}

impl Requantization {
    /// By a real factor, to all numbers of a type.
    #[cfg(test)]
    pub(crate) fn by(factor: f64, zero_point: i32, signedness: Signedness) -> Self {
        let (min, max) = signedness.range();
        Self { multipliers: vec![Multiplier::from_real(factor)], zero_point, min, max }
    }

    /// The multiplier of an output channel.
    pub fn multiplier(&self, channel: usize) -> Multiplier {
        match &*self.multipliers {
            [one] => *one,
            each => each[channel],
        }
    }

    /// A copy with the multipliers this many times, one after the other, unless there is a single one.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    pub(crate) fn repeated(
        &self,
        times: usize,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let multipliers = match &*self.multipliers {
            [one] => vec![*one],
            each => preparation.repeated(each, times, "multipliers of channels")?,
        };
        Ok(Self { multipliers, ..*self })
    }

    /// The stored output for a sum in a channel.
    pub fn apply(&self, sum: i32, channel: usize) -> i32 {
        let product = self.multiplier(channel).apply(sum);
        product.saturating_add(self.zero_point).clamp(self.min, self.max)
    }

    /// # Panics
    /// If there are not as many multipliers as channels (or one), one is negative, or the limits are
    /// not those of outputs of this signedness.
    pub(crate) fn check(&self, channels: usize, signedness: Signedness) {
        let count = self.multipliers.len();
        assert!(count == 1 || count == channels, "{count} multipliers for {channels} channels");
        assert!(
            self.multipliers.iter().all(|multiplier| multiplier.mantissa >= 0),
            "a multiplier is negative"
        );
        let range = signedness.range();
        assert!(
            range.0 <= self.min && self.min <= self.max && self.max <= range.1,
            "outputs from {} to {} are not in {range:?}",
            self.min,
            self.max
        );
        assert!(
            range.0 <= self.zero_point && self.zero_point <= range.1,
            "zero point {} is not in {range:?}",
            self.zero_point
        );
    }
}
