//! Rows of few elements, which take less time as columns of a matrix: many at a time, each in a lane of its own.

use crate::vector::{MOST_LANES, Simd};

/// How many rows become columns at a time.
pub(crate) const ROWS: usize = 64;

/// How many elements they have at most, with any instruction set.
pub(crate) const MOST: usize = 2 * MOST_LANES + 8;

/// Whether rows of this many elements are so short. Of longer ones more is computed in the same time along each, as was measured
/// with AVX2 and AVX-512.
#[inline(always)]
pub(crate) fn is_short<S: Simd>(_: S, elements: usize) -> bool {
    elements <= 2 * S::LANES + 8
}
