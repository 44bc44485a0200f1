//! What definitions demand of an [`Argument`].

use super::Argument;
use crate::error::Fault;
use nnhal_hal::OperationType;

impl Argument<'_> {
    /// Demands a rank. An unknown one passes.
    ///
    /// # Errors
    /// The rank is another.
    pub fn expect_rank(&self, expected: usize) -> Result<(), Fault> {
        self.expect_rank_in(expected..=expected)
    }

    /// Demands a rank within a range. An unknown one passes.
    ///
    /// # Errors
    /// The rank is outside.
    pub fn expect_rank_in(&self, expected: std::ops::RangeInclusive<usize>) -> Result<(), Fault> {
        match self.shape.rank() {
            Some(rank) if !expected.contains(&rank) => {
                let wanted = if expected.start() == expected.end() {
                    expected.start().to_string()
                } else if *expected.end() == usize::MAX {
                    format!("{} or more", expected.start())
                } else {
                    format!("{} to {}", expected.start(), expected.end())
                };
                Err(self.wrong("rank", rank, wanted))
            }
            _ => Ok(()),
        }
    }

    /// The greatest rank: the interface's limit for its operations, and for those of the extension the one
    /// that all models have.
    pub(crate) fn most_axes(&self, of_the_interface: usize) -> usize {
        match self.operation {
            OperationType::Extension(_) => crate::shape::MAX_RANK,
            _ => of_the_interface,
        }
    }

    /// Demands a length along one axis. An unknown one passes, on either side.
    ///
    /// # Errors
    /// Both are known and differ.
    pub fn expect_length(&self, axis: usize, expected: Option<u32>) -> Result<(), Fault> {
        match (self.shape.length(axis), expected) {
            (Some(found), Some(expected)) if found != expected => Err(self.wrong(
                "shape",
                &self.shape,
                format!("length {expected} along axis {axis}"),
            )),
            _ => Ok(()),
        }
    }

    /// Demands the same scale and zero point as another argument has.
    ///
    /// # Errors
    /// They differ.
    pub fn expect_quantized_as(&self, other: &Argument<'_>) -> Result<(), Fault> {
        // Compared as stored: two operands either carry the same number or they do not.
        #[allow(clippy::float_cmp)]
        if self.scale != other.scale {
            return Err(self.wrong(
                "scale",
                self.scale,
                format!("{} as {}", other.scale, other.subject),
            ));
        }
        if self.zero_point != other.zero_point {
            return Err(self.wrong(
                "zero point",
                self.zero_point,
                format!("{} as {}", other.zero_point, other.subject),
            ));
        }
        Ok(())
    }

    /// Demands a scale and zero point that the definition fixes.
    ///
    /// # Errors
    /// They are others.
    pub fn expect_quantization(&self, scale: f32, zero_point: i32) -> Result<(), Fault> {
        #[allow(clippy::float_cmp)]
        if self.scale != scale {
            return Err(self.wrong("scale", self.scale, scale));
        }
        if self.zero_point != zero_point {
            return Err(self.wrong("zero point", self.zero_point, zero_point));
        }
        Ok(())
    }

    /// An axis: negative ones count from the end.
    ///
    /// # Errors
    /// The rank of `tensor` is not known yet, or there is no such axis.
    pub fn axis_of(&self, axis: i32, tensor: &Argument<'_>) -> Result<usize, Fault> {
        let rank = tensor.shape.rank().ok_or_else(|| tensor.not_known("rank"))?;
        let signed_rank = i64::try_from(rank).unwrap_or(i64::MAX);
        let from_front = if axis < 0 { i64::from(axis) + signed_rank } else { i64::from(axis) };
        usize::try_from(from_front)
            .ok()
            .filter(|axis| *axis < rank)
            .ok_or_else(|| self.wrong("value", axis, format!("an axis of a tensor of rank {rank}")))
    }
}
