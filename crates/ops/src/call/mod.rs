//! [`Call`]: an operation with its actual arguments, as far as they are known.
//!
//! The same type serves a model that is being validated, where shapes and values may be missing,
//! and an operation that is about to run, where everything is there.

mod argument;
mod bounds;
mod expect;
mod output;

pub use argument::{Argument, Value};
pub use bounds::{Allowance, Interrupt};
pub use output::Output;

use crate::error::{Fault, OperationError, Subject};
use crate::extension::ExtensionOperation;
use crate::shape::Shape;
use bounds::{Bounds, PIECE, WORK_BETWEEN_CHECKS};
use nnhal_hal::{HalVersion, OperationType};
use std::cell::Cell;

/// An operation with its arguments.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    operation: OperationType,
    inputs: Vec<Argument<'a>>,
    outputs: Vec<Argument<'a>>,
    bounds: Bounds<'a>,
    /// Work since the interrupt was asked last.
    work: Cell<usize>,
}

/// What goes into a [`Call`]: an operand, its shape, and its value.
#[derive(Debug, Clone)]
pub struct ArgumentSource<'a> {
    /// Type and quantization.
    pub operand: &'a nnhal_hal::Operand,
    /// The dimensions known by now; see [`Argument::shape`].
    pub shape: Shape,
    /// See [`Argument::value`].
    pub value: Value<'a>,
}

impl<'a> Call<'a> {
    /// An operation with these arguments, which messages call by their numbers only.
    pub(crate) fn without_names(
        operation: OperationType,
        inputs: impl IntoIterator<Item = ArgumentSource<'a>>,
        outputs: impl IntoIterator<Item = ArgumentSource<'a>>,
    ) -> Self {
        let argument = |source: ArgumentSource<'a>, subject| Argument {
            operand_type: source.operand.operand_type,
            shape: if source.operand.operand_type.is_scalar() {
                Shape::known([])
            } else {
                source.shape
            },
            scale: source.operand.scale,
            zero_point: source.operand.zero_point,
            extra_params: &source.operand.extra_params,
            value: source.value,
            operation,
            subject,
            bounds: Bounds::default(),
        };
        Self {
            operation,
            inputs: inputs
                .into_iter()
                .enumerate()
                .map(|(index, source)| argument(source, Subject::Input(index, "")))
                .collect(),
            outputs: outputs
                .into_iter()
                .enumerate()
                .map(|(index, source)| argument(source, Subject::Output(index, "")))
                .collect(),
            bounds: Bounds::default(),
            work: Cell::new(0),
        }
    }

    /// The same call, that may be interrupted while it computes.
    #[must_use]
    pub fn with_interrupt(self, interrupt: Interrupt<'a>) -> Self {
        let bounds = Bounds { interrupt: Some(interrupt), ..self.bounds };
        self.within(bounds)
    }

    /// The same call, that has to ask for the memory that it takes while it computes.
    #[must_use]
    pub fn with_allowance(self, allowance: Allowance<'a>) -> Self {
        let bounds = Bounds { allowance: Some(allowance), ..self.bounds };
        self.within(bounds)
    }

    fn within(mut self, bounds: Bounds<'a>) -> Self {
        self.bounds = bounds;
        for argument in self.inputs.iter_mut().chain(&mut self.outputs) {
            argument.bounds = bounds;
        }
        self
    }

    /// Asked by kernels wherever much can come to pass without: between rows, windows, candidates.
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub fn check_interrupt(&self) -> Result<(), Fault> {
        self.bounds.check(self.operation)
    }

    /// Called by kernels before they take this many steps. A step is an element that is read or written,
    /// or a product. Now and then it asks whether to stop. Loops of more steps than fit a few
    /// milliseconds are counted piece by piece: [`Call::each`].
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub fn work(&self, steps: usize) -> Result<(), Fault> {
        let work = self.work.get().saturating_add(steps);
        if work < WORK_BETWEEN_CHECKS {
            self.work.set(work);
            return Ok(());
        }
        self.work.set(0);
        self.check_interrupt()
    }

    /// Visits all items, however many there are, and counts them as work.
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub fn each<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        mut visit: impl FnMut(T),
    ) -> Result<(), Fault> {
        let mut items = items.into_iter();
        loop {
            let mut count = 0;
            for item in items.by_ref().take(PIECE) {
                visit(item);
                count += 1;
            }
            self.work(count)?;
            if count < PIECE {
                return Ok(());
            }
        }
    }

    /// Room for elements that a kernel needs for itself.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`]
    pub fn room<T>(&self, count: usize) -> Result<Vec<T>, Fault> {
        self.bounds.room(self.operation, count)
    }

    /// Appends an item to a list whose length is not known beforehand.
    ///
    /// # Errors
    /// As [`Call::room`].
    pub fn push<T>(&self, list: &mut Vec<T>, item: T) -> Result<(), Fault> {
        if list.len() == list.capacity() {
            let more = list.len().max(64);
            let grown = self.room(list.len() + more)?;
            let before = std::mem::replace(list, grown);
            list.extend(before);
        }
        list.push(item);
        Ok(())
    }

    /// Counts elements that a kernel takes and frees again as it goes, this many at once at most.
    ///
    /// # Errors
    /// As [`Call::room`].
    pub fn reserve<T>(&self, count: usize) -> Result<(), Fault> {
        self.room::<T>(count).map(drop)
    }

    /// The first `count` of these elements, for a kernel's own use.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`], [`Fault::Interrupted`]
    pub fn collect<T>(
        &self,
        count: usize,
        elements: impl IntoIterator<Item = T>,
    ) -> Result<Vec<T>, Fault> {
        self.bounds.collect(self.operation, count, elements)
    }

    /// What is called.
    pub fn operation(&self) -> OperationType {
        self.operation
    }

    /// The operation whose rules hold: of an operation of the extension that takes those of one of the
    /// interface over for more types, that one; of all others, itself.
    pub fn definition(&self) -> OperationType {
        let extended = ExtensionOperation::of(self.operation);
        extended.and_then(ExtensionOperation::like).unwrap_or(self.operation)
    }

    /// All inputs by position.
    pub fn inputs(&self) -> &[Argument<'a>] {
        &self.inputs
    }

    /// All outputs by position.
    pub fn outputs(&self) -> &[Argument<'a>] {
        &self.outputs
    }

    /// An input that the signature requires.
    ///
    /// # Panics
    /// If there is no such input: the signature is checked before anything else is asked.
    pub fn input(&self, index: usize) -> &Argument<'a> {
        &self.inputs[index]
    }

    /// An output that the signature requires.
    ///
    /// # Panics
    /// As [`Call::input`].
    pub fn output(&self, index: usize) -> &Argument<'a> {
        &self.outputs[index]
    }

    /// An input that may be missing at the end of the list, or left out.
    pub fn optional(&self, index: usize) -> Option<&Argument<'a>> {
        self.inputs.get(index).filter(|argument| !argument.is_omitted())
    }

    /// A trailing truth value, false where it is missing.
    ///
    /// # Errors
    /// [`Fault::NotKnown`]
    pub fn optional_bool(&self, index: usize) -> Result<bool, Fault> {
        self.optional(index).map_or(Ok(false), Argument::bool)
    }

    /// A trailing integer, with what it is where it is missing.
    ///
    /// # Errors
    /// [`Fault::NotKnown`]
    pub fn optional_i32(&self, index: usize, otherwise: i32) -> Result<i32, Fault> {
        self.optional(index).map_or(Ok(otherwise), Argument::i32)
    }

    /// The operation as a whole does not keep to its definition.
    pub fn wrong(
        &self,
        what: &'static str,
        found: impl ToString,
        expected: impl ToString,
    ) -> Fault {
        OperationError {
            operation: self.operation,
            subject: Subject::Operation,
            what,
            found: found.to_string(),
            expected: expected.to_string(),
        }
        .into()
    }

    /// Something about the operation is not known yet.
    pub fn not_known(&self, what: &'static str) -> Fault {
        Fault::NotKnown { operation: self.operation, subject: Subject::Operation, what }
    }

    /// Names an argument, for messages.
    pub(crate) fn name_input(&mut self, index: usize, name: &'static str) {
        if let Some(argument) = self.inputs.get_mut(index) {
            argument.subject = Subject::Input(index, name);
        }
    }

    /// Names an argument, for messages.
    pub(crate) fn name_output(&mut self, index: usize, name: &'static str) {
        if let Some(argument) = self.outputs.get_mut(index) {
            argument.subject = Subject::Output(index, name);
        }
    }
}

/// What an operation needs beyond what its argument types say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The oldest version that allows it.
    pub version: HalVersion,
    /// What needs that version.
    pub reason: &'static str,
}

impl Since {
    /// Nothing newer than what the argument types ask for.
    pub const ALWAYS: Self = Self { version: HalVersion::V1_0, reason: "" };

    /// The later of two needs.
    #[must_use]
    pub fn and(self, version: HalVersion, reason: &'static str, needed: bool) -> Self {
        if needed && version > self.version { Self { version, reason } } else { self }
    }
}
