//! [`PlannedStep`]: a program's plan, for people.

use crate::error::OperationPlace;

/// A step that a program takes in every execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The operation, or the last one of those that the step computes. An
    /// [`Observer`](crate::Observer) is notified of its duration under this place.
    pub place: OperationPlace,
    /// What computes it, and how.
    pub kernel: String,
    /// The dimensions of the first output.
    pub dimensions: Vec<u32>,
    /// Additions and multiplications, where they are most of the work; otherwise 0.
    pub arithmetic: u64,
    /// Whether those are of numbers of 8 bits, and not of floats.
    pub is_8_bit: bool,
    /// Bytes read and written, weights among them, each counted once.
    pub bytes: u64,
}
