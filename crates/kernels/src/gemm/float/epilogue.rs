//! [`Epilogue`]: what is done to a sum before it is stored.

use crate::vector::Simd;

/// What becomes of a sum of products and its bias, after the residual operand has been added: it is
/// clamped, and multiplied by `clamp(x + 3, 0, 6) / 6` if HARD_SWISH is wanted. NaN stays NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epilogue {
    /// The least result.
    pub min: f32,
    /// The greatest result.
    pub max: f32,
    /// Whether HARD_SWISH follows.
    pub hard_swish: bool,
}

impl Epilogue {
    /// The sum as it is.
    pub const NONE: Self = Self { min: f32::NEG_INFINITY, max: f32::INFINITY, hard_swish: false };
    /// `max(x, 0)`.
    pub const RELU: Self = Self { min: 0.0, ..Self::NONE };
    /// Clamped to -1 and 1.
    pub const RELU1: Self = Self { min: -1.0, max: 1.0, ..Self::NONE };
    /// Clamped to 0 and 6.
    pub const RELU6: Self = Self { min: 0.0, max: 6.0, ..Self::NONE };
    /// `x * clamp(x + 3, 0, 6) / 6`.
    pub const HARD_SWISH: Self = Self { hard_swish: true, ..Self::NONE };

    #[inline(always)]
    pub(crate) fn apply<S: Simd>(&self, simd: S, value: S::F) -> S::F {
        // Of a NaN and a number, these take the second.
        let value = simd.max(simd.splat(self.min), value);
        let value = simd.min(simd.splat(self.max), value);
        if !self.hard_swish {
            return value;
        }
        let gate = simd.max(simd.splat(0.0), simd.add(value, simd.splat(3.0)));
        let gate = simd.min(simd.splat(6.0), gate);
        simd.mul(value, simd.mul(gate, simd.splat(1.0 / 6.0)))
    }

    /// The same of one number.
    #[cfg(test)]
    pub(crate) fn apply_to(&self, value: f32) -> f32 {
        let value = if value < self.min { self.min } else { value };
        let value = if value > self.max { self.max } else { value };
        if self.hard_swish { value * (value + 3.0).clamp(0.0, 6.0) / 6.0 } else { value }
    }
}

impl Default for Epilogue {
    fn default() -> Self {
        Self::NONE
    }
}
