//! [`Pairs`]: functions of two elements, with broadcasting.

use crate::InstructionSet;
use crate::broadcast::{Operand, Walk};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};
use bytemuck::Pod;
use std::fmt;

/// A function of two elements of one plain type.
pub trait PairFunction: fmt::Debug + Send + Sync {
    /// What it takes.
    type Input: Pod + Sync;
    /// What it gives.
    type Output: Pod + Send;

    /// See [`PreparedKernel::name`].
    fn name(&self) -> String;

    /// Of all elements.
    fn run(
        &self,
        broadcast: &Broadcast,
        team: &mut Team,
        inputs: [&[Self::Input]; 2],
        output: &mut [Self::Output],
    );
}

/// A prepared function of two tensors that broadcast.
#[derive(Debug, Clone)]
pub struct Pairs<F> {
    broadcast: Broadcast,
    pub(super) function: F,
}

impl<F: PairFunction> Pairs<F> {
    /// For tensors of two shapes, aligned at their last axes.
    ///
    /// # Panics
    /// If they do not broadcast to a common shape.
    pub fn prepare(set: InstructionSet, shapes: [&[usize]; 2], function: F) -> Self {
        Self { broadcast: Broadcast::prepare(set, shapes), function }
    }

    /// Of all elements.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, a: &[F::Input], b: &[F::Input], output: &mut [F::Output]) {
        self.function.run(&self.broadcast, team, [a, b], output);
    }
}

impl<F: PairFunction> PreparedKernel for Pairs<F> {
    fn name(&self) -> String {
        self.function.name()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), inputs.of(1), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

/// Prepared broadcasting of two operands.
#[derive(Debug, Clone)]
pub struct Broadcast {
    isa: Isa,
    walk: Walk,
}

impl Broadcast {
    /// See [`Pairs::prepare`].
    pub(super) fn prepare(set: InstructionSet, shapes: [&[usize]; 2]) -> Self {
        Self { isa: Isa::of(set), walk: Walk::new(&shapes) }
    }

    /// `output = function(a, b)` for every element. Functions marked `#[inline(always)]`, or so simple
    /// that they are inlined anyway, become vector instructions of the instruction set.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub(super) fn by_element<T: Copy + Sync, U: Send>(
        &self,
        team: &mut Team,
        inputs: [&[T]; 2],
        output: &mut [U],
        function: impl Fn(T, T) -> U + Sync,
    ) {
        self.by_block(team, inputs, output, |isa, operands, output| {
            each_pair(isa, operands, output, &function);
        });
    }

    /// What `work` writes to every block, with what the operands contribute to it.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub(super) fn by_block<T: Copy + Sync, U: Send>(
        &self,
        team: &mut Team,
        inputs: [&[T]; 2],
        output: &mut [U],
        work: impl Fn(Isa, [Operand<'_, T>; 2], &mut [U]) + Sync,
    ) {
        self.walk.run::<2, _, _>(team, &inputs, output, &|operands, output| {
            work(self.isa, [operands[0], operands[1]], output);
        });
    }
}

/// See [`Broadcast::by_element`].
pub(super) fn each_pair<T: Copy, U>(
    isa: Isa,
    [a, b]: [Operand<'_, T>; 2],
    output: &mut [U],
    function: &impl Fn(T, T) -> U,
) {
    isa.run(Block { a, b, output, function });
}

struct Block<'a, T, U, F> {
    a: Operand<'a, T>,
    b: Operand<'a, T>,
    output: &'a mut [U],
    function: &'a F,
}

impl<T: Copy, U, F: Fn(T, T) -> U> Kernel for Block<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { a, b, output, function } = self;
        match (a, b) {
            (Operand::Elements(a), Operand::Elements(b)) => {
                for (output, (a, b)) in output.iter_mut().zip(a.iter().zip(b)) {
                    *output = function(*a, *b);
                }
            }
            (Operand::Elements(a), Operand::Same(b)) => {
                for (output, a) in output.iter_mut().zip(a) {
                    *output = function(*a, b);
                }
            }
            (Operand::Same(a), Operand::Elements(b)) => {
                for (output, b) in output.iter_mut().zip(b) {
                    *output = function(a, *b);
                }
            }
            (Operand::Same(a), Operand::Same(b)) => {
                output.iter_mut().for_each(|output| *output = function(a, b));
            }
        }
    }
}
