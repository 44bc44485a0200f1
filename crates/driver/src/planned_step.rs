//! [`PlannedStep`]: a program's plan, for people.

use crate::error::OperationPlace;
use std::ops::Range;

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
    /// Of these, weights that were packed when the model was prepared.
    pub weight_bytes: u64,
    /// What it reads of the memory of an execution: inputs of the model, and what other steps wrote.
    pub reads: Vec<PlannedValue>,
    /// What it writes there.
    pub writes: Vec<PlannedValue>,
    /// The bytes that it needs while it runs and no longer.
    pub scratch: Range<u64>,
    /// Which of the program's plans it is a step of: each has memory of its own.
    pub plan: usize,
    /// Of a step that runs the reference kernel of its operation, which is slow: why no fast kernel does,
    /// as a part of a sentence. `None` of others.
    pub why_reference: Option<String>,
}

/// A value in the memory of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedValue {
    /// Number of the buffer within the plan's memory. Values that share one are parts of the same
    /// value; the bytes of different ones may be the same at different times.
    pub buffer: usize,
    /// Where it is in the plan's memory.
    pub bytes: Range<u64>,
    /// The operand of the subgraph, if it is one and not made by the program.
    pub operand: Option<u32>,
    /// Whether the buffer is needed until the execution ends, because outputs are in it.
    pub is_kept: bool,
}
