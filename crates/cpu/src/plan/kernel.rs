//! [`Kernel`]: what a step does.

use super::arena::Operands;
use crate::why::Why;
use nnhal_driver::{Budget, EngineError, Ledger};
use nnhal_kernels::{Team, for_each_slice};
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

    /// Why it is the reference kernel, if it is.
    fn why(&self) -> Option<&Why> {
        None
    }
}

/// What kernels use while an execution runs.
pub(crate) struct Run<'run> {
    pub(crate) team: &'run mut Team,
    pub(crate) budget: &'run Budget,
    /// For what they take beside their scratch memory.
    pub(crate) ledger: &'run Ledger,
}

/// Elements from which on a second thread is worth waking.
pub(crate) const ELEMENTS_BY_THREAD: usize = 16 << 10;

impl Run<'_> {
    /// Writes what `function` makes of each element: on all threads if they are many, and as long as they
    /// are wanted.
    pub(crate) fn map<T: Copy + Sync, U: Send>(
        &mut self,
        input: &[T],
        output: &mut [U],
        function: impl Fn(T) -> U + Sync,
    ) {
        for_each_slice(self.team, output, ELEMENTS_BY_THREAD, |start, part| {
            for (output, input) in part.iter_mut().zip(&input[start..]) {
                *output = function(*input);
            }
        });
    }

    /// Copies as many elements as there are: on all threads if they are many, and as long as they are
    /// wanted.
    ///
    /// # Panics
    /// If the input has fewer.
    pub(crate) fn copy<T: Copy + Send + Sync>(&mut self, input: &[T], output: &mut [T]) {
        for_each_slice(self.team, output, ELEMENTS_BY_THREAD, |start, part| {
            part.copy_from_slice(&input[start..start + part.len()]);
        });
    }

    /// Writes an element everywhere: on all threads if it is to many places, and as long as that is wanted.
    pub(crate) fn fill<T: Copy + Send + Sync>(&mut self, element: T, output: &mut [T]) {
        for_each_slice(self.team, output, ELEMENTS_BY_THREAD, |_, part| part.fill(element));
    }
}
