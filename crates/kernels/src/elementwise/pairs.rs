//! [`Pairs`]: any function of two elements of any type, with broadcasting.

use crate::InstructionSet;
use crate::broadcast::{Operand, Walk};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};

/// Prepared broadcasting of operands of one plain type: comparisons, logic, integer arithmetic,
/// whatever has no kernel of its own.
#[derive(Debug, Clone)]
pub struct Pairs {
    isa: Isa,
    walk: Walk,
}

impl Pairs {
    /// For tensors of two shapes, aligned at their last axes.
    ///
    /// # Panics
    /// If they do not broadcast to a common shape.
    pub fn prepare(set: InstructionSet, shapes: [&[usize]; 2]) -> Self {
        Self { isa: Isa::of(set), walk: Walk::new(&shapes) }
    }

    /// How many elements the result has.
    pub fn elements(&self) -> usize {
        self.walk.elements()
    }

    /// `output = function(a, b)` for every element. Functions marked `#[inline(always)]`, or so simple
    /// that they are inlined anyway, become vector instructions of the instruction set.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run<T: Copy + Sync, U: Send>(
        &self,
        team: &mut Team,
        a: &[T],
        b: &[T],
        output: &mut [U],
        function: impl Fn(T, T) -> U + Sync,
    ) {
        self.walk.run(team, &[a, b], output, &|operands, output| {
            self.isa.run(Block { a: operands[0], b: operands[1], output, function: &function });
        });
    }
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
