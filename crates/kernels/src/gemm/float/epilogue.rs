//! [`Epilogue`]: what is done to a sum before it is stored.

use crate::unrolled::unrolled;
use crate::vector::Simd;
use crate::vector::functions::hard_swish;

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

/// Repeats a statement for each vector `sums[ROW][VECTOR]` of the largest tiles.
macro_rules! for_sums {
    ($body:block) => {
        unrolled! { ROW < ROWS, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 => {
            unrolled! { VECTOR < VECTORS, 0 1 2 => $body }
        } }
    };
}
pub(super) use for_sums;

impl Epilogue {
    /// The sum as it is.
    pub const NONE: Self = Self { min: f32::NEG_INFINITY, max: f32::INFINITY, hard_swish: false };
    /// `max(x, 0)`.
    pub const RELU: Self = Self { min: 0.0, ..Self::NONE };
    /// Clamped to 0 and 6.
    pub const RELU6: Self = Self { min: 0.0, max: 6.0, ..Self::NONE };
    /// `x * clamp(x + 3, 0, 6) / 6`.
    pub const HARD_SWISH: Self = Self { hard_swish: true, ..Self::NONE };

    #[inline(always)]
    pub(crate) fn apply<S: Simd>(&self, simd: S, value: S::F) -> S::F {
        // Of a NaN and a number, these take the second.
        let value = simd.max(simd.splat(self.min), value);
        let value = simd.min(simd.splat(self.max), value);
        if self.hard_swish { hard_swish(simd, value) } else { value }
    }

    /// As [`Self::apply`], to all sums of a tile. It is asked once what is to be done, and nothing is done that
    /// changes no number: for each sum, that would take longer than the work itself.
    #[inline(always)]
    pub(super) fn apply_to_tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
        &self,
        simd: S,
        sums: &mut [[S::F; VECTORS]; ROWS],
    ) {
        if self.min > f32::NEG_INFINITY {
            let min = simd.splat(self.min);
            for_sums!({ sums[ROW][VECTOR] = simd.max(min, sums[ROW][VECTOR]) });
        }
        if self.max < f32::INFINITY {
            let max = simd.splat(self.max);
            for_sums!({ sums[ROW][VECTOR] = simd.min(max, sums[ROW][VECTOR]) });
        }
        if self.hard_swish {
            for_sums!({ sums[ROW][VECTOR] = hard_swish(simd, sums[ROW][VECTOR]) });
        }
    }

    /// The same of one number.
    #[cfg(test)]
    pub(crate) fn apply_to(&self, value: f32) -> f32 {
        let value = if value < self.min { self.min } else { value };
        let value = if value > self.max { self.max } else { value };
        if self.hard_swish { value * (value + 3.0).clamp(0.0, 6.0) / 6.0 } else { value }
    }
}
