//! [`Kernel`]: what a step does.

use super::Plan;
use super::arena::{Parts, StepMemory};
use crate::why::Why;
use nnhal_driver::{Budget, EngineError, Ledger, Observer};
use nnhal_kernels::{PreparedKernel, Team, WrongValue, for_each_slice};
use nnhal_ops::{OperationError, Subject};
use std::fmt;

/// What a step does with its operands: run a prepared kernel, or the reference kernel of an operation.
pub(crate) trait Kernel: fmt::Debug + Send + Sync {
    /// Computes the outputs.
    fn run(&self, memory: StepMemory<'_>, run: &mut Run<'_>) -> Result<(), EngineError>;

    /// What profiles call it: see [`PreparedKernel::name`].
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

    /// The plans that it runs, of control flow.
    fn plans(&self) -> &[Plan] {
        &[]
    }
}

/// The step of a prepared kernel.
#[derive(Debug)]
pub(super) struct Prepared<K> {
    pub(super) kernel: K,
    /// By input of the kernel, which argument of the operation it is; of kernels that refuse values.
    pub(super) subjects: Vec<Subject>,
}

impl<K: PreparedKernel> Kernel for Prepared<K> {
    fn run(&self, memory: StepMemory<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let place = memory.step.place;
        let mut parts = Parts::default();
        memory.split(&mut parts);
        let operands = nnhal_kernels::Operands::new(&parts.inputs, parts.written);
        self.kernel.run_on(run.team, operands).map_err(|wrong| {
            let WrongValue { input, what, found, expected } = wrong;
            let operation = place.operation_type;
            let subject = self.subjects.get(input).cloned();
            let subject = subject.unwrap_or(Subject::Input(input, ""));
            let error = OperationError { operation, subject, what, found, expected };
            EngineError::operation(place, error.into())
        })
    }

    fn name(&self) -> String {
        self.kernel.name()
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.arithmetic()
    }

    fn is_8_bit(&self) -> bool {
        self.kernel.is_8_bit()
    }
}

/// What kernels use while an execution runs.
pub(crate) struct Run<'run> {
    pub(crate) team: &'run mut Team,
    pub(crate) budget: &'run Budget,
    /// For what they take beside their scratch memory.
    pub(crate) ledger: &'run Ledger,
    pub(crate) observer: Option<&'run dyn Observer>,
}

/// Elements from which on a second thread is worth waking.
pub(crate) const ELEMENTS_BY_THREAD: usize = 16 << 10;

impl Run<'_> {
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
}
