//! [`Pairs`]: any function of two elements of any type, with broadcasting.

use crate::broadcast::{Operand, Walk};
use crate::team::Team;

/// Prepared broadcasting of operands of one plain type: comparisons, logic, selection, integer
/// arithmetic, whatever has no kernel of its own.
#[derive(Debug, Clone)]
pub struct Pairs {
    walk: Walk,
}

impl Pairs {
    /// For tensors of two shapes, aligned at their last axes.
    ///
    /// # Panics
    /// If they do not broadcast to a common shape.
    pub fn prepare(shapes: [&[usize]; 2]) -> Self {
        Self { walk: Walk::new(&shapes) }
    }

    /// How many elements the result has.
    pub fn elements(&self) -> usize {
        self.walk.elements()
    }

    /// `output = function(a, b)` for every element. Simple functions become vector instructions.
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
        self.walk.run(team, &[a, b], output, |operands, output| match (operands[0], operands[1]) {
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
        });
    }
}
