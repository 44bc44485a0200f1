//! [`Kernel`]: what a step does.

use super::arena::Operands;
use nnhal_driver::{Budget, EngineError, Ledger};
use nnhal_kernels::Team;
use std::fmt;

/// What a step does with its operands.
pub(crate) trait Kernel: fmt::Debug + Send + Sync {
    /// Computes the outputs.
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError>;

    /// What profiles call it: see [`super::name`].
    fn name(&self) -> String;

    /// Bytes that it needs besides its operands.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Additions and multiplications, where they are what takes time; otherwise 0.
    fn arithmetic(&self) -> u64 {
        0
    }

    /// Whether those are of numbers of 8 bits.
    fn is_8_bit(&self) -> bool {
        false
    }
}

/// What kernels use while an execution runs.
pub(crate) struct Run<'run> {
    pub(crate) team: &'run mut Team,
    pub(crate) budget: &'run Budget,
    /// For what they take beside their scratch memory.
    pub(crate) ledger: &'run Ledger,
}
