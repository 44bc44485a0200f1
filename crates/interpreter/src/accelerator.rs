//! [`Accelerator`]: who computes operations in the interpreter's place.

use crate::value::Value;
use nnhal_driver::{EngineError, RunContext};
use nnhal_hal::model::SubgraphName;
use std::fmt;

/// Computes sequences of operations in the interpreter's place, which keeps what it is there for:
/// shapes that data decide, and control flow that the accelerator leaves.
pub trait Accelerator: fmt::Debug + Send + Sync {
    /// Computes operations from the first of the remaining ones on, as many as it chooses, each IF and WHILE among them
    /// as a whole. `None` leaves that first one to the interpreter.
    ///
    /// # Errors
    /// What ends the execution. What an operation has to say of its arguments is better left to the
    /// interpreter.
    fn compute(
        &self,
        remaining: &Remaining<'_>,
        context: &RunContext<'_>,
    ) -> Result<Option<Computed>, EngineError>;
}

/// The operations of a subgraph that are yet to be computed.
pub struct Remaining<'run> {
    /// The subgraph they are in.
    pub subgraph: SubgraphName,
    /// Index of the first one.
    pub first: usize,
    pub(crate) values: &'run [Option<Value<'run>>],
}

impl Remaining<'_> {
    /// Dimensions and bytes of an operand of the subgraph that is one of its inputs, or was computed
    /// by an operation before the first one; `None` if it is left out, or something else.
    pub fn value(&self, operand: u32) -> Option<(&[u32], &[u8])> {
        let value = self.values.get(operand as usize)?.as_ref()?;
        value.dimensions().zip(value.bytes())
    }
}

/// What an [`Accelerator`] computed.
#[derive(Debug)]
pub struct Computed {
    /// How many operations, one at least.
    pub operations: usize,
    /// The values that they gave to operands that later operations read, or the subgraph gives out.
    pub outputs: Vec<ComputedOutput>,
}

/// A value.
#[derive(Debug)]
pub struct ComputedOutput {
    /// Index of the operand within the subgraph.
    pub operand: u32,
    /// Its exact dimensions.
    pub dimensions: Vec<u32>,
    /// The elements, little endian and packed.
    pub bytes: Vec<u8>,
}
