//! [`Shape`]: the dimensions of a tensor, as far as they are known.

use nnhal_hal::Operand;
use std::fmt;

/// Most axes of an operand. With MODEL-17 more would be of no use, and every step of validation
/// that handles a shape is of bounded cost (contract: SEC-3).
pub const MAX_RANK: usize = 32;

/// The dimensions of a tensor, of which any, or even their number, may not be known yet.
///
/// Here 0 is a length like any other: the interface's "0 means unknown" ends where a model's
/// dimensions are read ([`Shape::of_model`]). A scalar has the shape of rank 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape(Option<Vec<Option<u32>>>);

impl Shape {
    /// Nothing is known, not even the rank.
    pub const UNKNOWN: Self = Self(None);

    /// Some lengths are known.
    pub fn new(lengths: impl Into<Vec<Option<u32>>>) -> Self {
        Self(Some(lengths.into()))
    }

    /// All lengths are known.
    pub fn known(lengths: impl IntoIterator<Item = u32>) -> Self {
        Self(Some(lengths.into_iter().map(Some).collect()))
    }

    /// The rank is known, the lengths are not.
    pub fn of_rank(rank: usize) -> Self {
        Self(Some(vec![None; rank]))
    }

    /// What a model or a request says of a tensor: 0 means unknown, and no dimensions at all mean
    /// unknown rank.
    pub fn of_model(dimensions: &[u32]) -> Self {
        if dimensions.is_empty() {
            return Self::UNKNOWN;
        }
        Self(Some(dimensions.iter().map(|length| Some(*length).filter(|it| *it != 0)).collect()))
    }

    /// What a model says of an operand.
    pub fn declared(operand: &Operand) -> Self {
        if operand.operand_type.is_scalar() {
            return Self::known([]);
        }
        Self::of_model(&operand.dimensions)
    }

    /// What a model or a request would say of it; the reverse of [`Shape::of_model`].
    pub fn to_model(&self) -> Vec<u32> {
        let lengths = self.0.as_deref().unwrap_or_default();
        lengths.iter().map(|length| length.unwrap_or(0)).collect()
    }

    /// Number of axes.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(Vec::len)
    }

    /// The lengths by axis, if the rank is known.
    pub fn lengths(&self) -> Option<&[Option<u32>]> {
        self.0.as_deref()
    }

    /// The length along one axis; `None` also if there is no such axis.
    pub fn length(&self, axis: usize) -> Option<u32> {
        self.0.as_ref()?.get(axis).copied().flatten()
    }

    /// All lengths, if all are known.
    pub fn to_known(&self) -> Option<Vec<u32>> {
        self.0.as_ref()?.iter().copied().collect()
    }

    /// Number of elements, if all lengths are known and the product fits.
    pub fn element_count(&self) -> Option<u64> {
        let lengths = self.lengths()?;
        if lengths.contains(&None) {
            return None;
        }
        if lengths.contains(&Some(0)) {
            return Some(0);
        }
        lengths.iter().flatten().map(|length| u64::from(*length)).try_fold(1, u64::checked_mul)
    }

    /// What both know together; `None` if they contradict each other.
    pub fn merge(&self, other: &Self) -> Option<Self> {
        let (Some(ours), Some(theirs)) = (&self.0, &other.0) else {
            return Some(if self.0.is_some() { self.clone() } else { other.clone() });
        };
        if ours.len() != theirs.len() {
            return None;
        }
        let lengths = ours.iter().zip(theirs).map(|pair| match pair {
            (Some(ours), Some(theirs)) if ours != theirs => None,
            (ours, theirs) => Some(ours.or(*theirs)),
        });
        lengths.collect::<Option<Vec<_>>>().map(|lengths| Self(Some(lengths)))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(lengths) = &self.0 else {
            return formatter.write_str("[...]");
        };
        formatter.write_str("[")?;
        for (axis, length) in lengths.iter().enumerate() {
            let separator = if axis == 0 { "" } else { ", " };
            match length {
                Some(length) => write!(formatter, "{separator}{length}")?,
                None => write!(formatter, "{separator}?")?,
            }
        }
        formatter.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_6_zero_and_empty_mean_unknown_in_a_model() {
        assert_eq!(Shape::of_model(&[]), Shape::UNKNOWN);
        assert_eq!(Shape::of_model(&[2, 0]), Shape::new([Some(2), None]));
        assert_eq!(Shape::of_model(&[2, 0]).to_model(), [2, 0]);
    }

    #[test]
    fn merging_adds_knowledge_or_fails() {
        let some = Shape::new([Some(2), None]);
        assert_eq!(some.merge(&Shape::new([None, Some(3)])), Some(Shape::known([2, 3])));
        assert_eq!(some.merge(&Shape::UNKNOWN), Some(some.clone()));
        assert_eq!(some.merge(&Shape::known([3, 3])), None);
        assert_eq!(some.merge(&Shape::of_rank(3)), None);
    }

    #[test]
    fn shown_for_people() {
        assert_eq!(Shape::new([Some(2), None]).to_string(), "[2, ?]");
        assert_eq!(Shape::UNKNOWN.to_string(), "[...]");
    }
}
