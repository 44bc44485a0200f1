//! [`difference`]: two tensors, element by element.

use crate::data_type::DataType;
use crate::tensor::stored;
use std::fmt;

/// How far results may be from each other: by `absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// In the unit of the values.
    pub absolute: f64,
    /// As a share of the expected value.
    pub relative: f64,
}

/// How elements differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The first element that differs beyond tolerance, counted in memory order.
    pub index: usize,
    /// Its value on the first device.
    pub expected: f64,
    /// Its value on the second device.
    pub found: f64,
    /// How many elements differ beyond tolerance.
    pub count: usize,
    /// How many elements the tensor has.
    pub total: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, expected, found, count, total } = self;
        write!(formatter, "element {index} is {found}, expected {expected}")?;
        write!(formatter, " ({count} of {total} elements differ)")
    }
}

/// How far two tensors are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Distance {
    /// The largest difference of two elements, in the unit of the stored values. Infinite where one of
    /// them is no number or infinite, and the other is not the same.
    pub largest: f64,
    /// The square root of the mean of all squared differences.
    pub rms: f64,
    /// The largest magnitude of an expected element that is finite.
    pub magnitude: f64,
}

impl Distance {
    /// Between tensors with the same number of elements, stored as this type.
    pub fn of(data_type: DataType, expected: &[u8], found: &[u8]) -> Self {
        let (expected, found) = (stored(data_type, expected), stored(data_type, found));
        let mut distance = Self::default();
        let mut squares = 0.0;
        for (expected, found) in expected.iter().zip(&found) {
            if expected.is_finite() {
                distance.magnitude = distance.magnitude.max(expected.abs());
            }
            let off = off(*expected, *found);
            distance.largest = distance.largest.max(off);
            squares += off * off;
        }
        #[allow(clippy::cast_precision_loss)] // Counts of elements are below 2^53.
        let count = expected.len().max(1) as f64;
        distance.rms = (squares / count).sqrt();
        distance
    }

    /// The largest difference as a share of the largest magnitude; 0 where nothing differs.
    pub fn of_magnitude(&self) -> f64 {
        if self.largest == 0.0 { 0.0 } else { self.largest / self.magnitude }
    }
}

/// How far two numbers are from each other; 0 if both are the same infinity or no numbers.
fn off(expected: f64, found: f64) -> f64 {
    if expected == found || (expected.is_nan() && found.is_nan()) {
        return 0.0;
    }
    let off = (found - expected).abs();
    if off.is_nan() { f64::INFINITY } else { off }
}

/// `None` if every element is within tolerance. A NaN is where the other is one too.
pub fn difference(
    data_type: DataType,
    expected: &[u8],
    found: &[u8],
    tolerance: Tolerance,
) -> Option<Difference> {
    let (expected, found) = (stored(data_type, expected), stored(data_type, found));
    let total = expected.len();
    let mut beyond = expected.iter().zip(&found).enumerate().filter(|(_, (expected, found))| {
        let allowed = tolerance.absolute + tolerance.relative * expected.abs();
        // The same infinity, and what is no number on both sides: the question is whether they differ.
        let is_same = found == expected || (found.is_nan() && expected.is_nan());
        // No share of infinity allows anything; and the comparison is false for a NaN.
        let is_within = expected.is_finite() && (*found - *expected).abs() <= allowed;
        !is_same && !is_within
    });
    let (index, (expected, found)) = beyond.next()?;
    let (expected, found) = (*expected, *found);
    Some(Difference { index, expected, found, count: 1 + beyond.count(), total })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };

    #[test]
    fn the_first_difference_is_named() {
        let found = difference(DataType::Int8, &[1, 2, 0xFF], &[1, 4, 1], EXACT).unwrap();
        assert_eq!(found.to_string(), "element 1 is 4, expected 2 (2 of 3 elements differ)");
    }

    #[test]
    fn nan_and_infinity_agree_with_themselves_alone() {
        let wide = Tolerance { absolute: f64::MAX, relative: 0.0 };
        let nan = f32::NAN.to_ne_bytes();
        assert!(difference(DataType::Float32, &[0; 4], &nan, wide).is_some());
        assert!(difference(DataType::Float32, &nan, &[0; 4], wide).is_some());
        assert!(difference(DataType::Float32, &nan, &(-f32::NAN).to_ne_bytes(), EXACT).is_none());
        let infinite = f32::INFINITY.to_ne_bytes();
        assert!(difference(DataType::Float32, &infinite, &infinite, EXACT).is_none());
        assert!(difference(DataType::Float32, &infinite, &[0; 4], wide).is_some());
        let share = Tolerance { absolute: 0.0, relative: 1e-5 };
        assert!(difference(DataType::Float32, &infinite, &[0; 4], share).is_some());
        assert!(difference(DataType::Float32, &[0; 4], &infinite, wide).is_some());
        assert!(difference(DataType::Float32, &[0; 4], &[0; 4], EXACT).is_none());
    }

    #[test]
    fn a_step_is_allowed_between_integers() {
        let one = Tolerance { absolute: 1.0, relative: 0.0 };
        assert!(difference(DataType::Uint8, &[7], &[8], one).is_none());
        assert!(difference(DataType::Uint8, &[7], &[9], one).is_some());
    }
}
