//! Element by element: chains of functions of one and of two real operands; integers, comparisons, truth
//! values and choices by them; conversions from and to quantized values and floats of 16 bits. What is computed
//! of quantized values is in [`quantized`].
//!
//! A [`Chain`] passes over memory once, however many steps it has: each step works on a block that
//! fits into the first cache.
//!
//! ```
//! use nnhal_kernels::elementwise::{Binary, Chain, Step, Unary};
//! use nnhal_kernels::{InstructionSet, Team};
//!
//! // relu6(image + bias)
//! let steps = [
//!     Step::Binary(Binary::Add, 1),
//!     Step::Unary(Unary::Clamp { low: 0.0, high: 6.0 }),
//! ];
//! let chain = Chain::prepare(InstructionSet::best(), &[&[2, 3], &[3]], &steps);
//! let mut output = [0.0; 6];
//! chain.run(
//!     &mut Team::alone(),
//!     &[&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[0.0, -5.0, 0.5]],
//!     &mut output,
//! );
//! assert_eq!(output, [1.0, 0.0, 3.5, 4.0, 0.0, 6.0]);
//! ```

mod binary;
mod cast;
mod convert;
mod integers;
mod logic;
mod map;
mod pairs;
pub mod quantized;
mod select;
#[cfg(test)]
mod tests;
mod unary;

use crate::InstructionSet;
use crate::broadcast::{MOST_OPERANDS, Operand, Walk};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};
pub use binary::Binary;
pub use cast::Cast;
pub use convert::{
    Dequantize, DequantizeChannels, Quantize, f16_to_f32, f16_to_f32_in_place, f32_to_f16,
};
pub use integers::{IntegerFunction, IntegerMap, IntegerUnary, Integers};
pub use logic::{Compare, Comparison, TruthFunction};
pub use map::Not;
pub(crate) use map::map;
pub use pairs::Pairs;
pub use select::Select;
pub use unary::Unary;

/// One step of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A function of the value so far.
    Unary(Unary),
    /// A function of the value so far and an operand, which is given by its number.
    Binary(Binary, usize),
}

/// A prepared chain of steps on operands that broadcast.
#[derive(Debug, Clone)]
pub struct Chain {
    isa: Isa,
    walk: Walk,
    steps: Vec<Step>,
}

impl Chain {
    /// Most operands, that which it begins with included.
    pub const MOST_OPERANDS: usize = MOST_OPERANDS;

    /// Steps that begin with the value of operand 0. Shapes are aligned at their last axes.
    ///
    /// # Panics
    /// If the shapes do not broadcast to a common one, there are none or more than
    /// [`MOST_OPERANDS`](Self::MOST_OPERANDS), or a step
    /// names an operand that is not there.
    pub fn prepare(set: InstructionSet, shapes: &[&[usize]], steps: &[Step]) -> Self {
        assert!(!shapes.is_empty(), "a chain begins with an operand");
        for step in steps {
            if let Step::Binary(_, operand) = step {
                assert!(*operand < shapes.len(), "there is no operand {operand}");
            }
        }
        Self { isa: Isa::of(set), walk: Walk::new(shapes), steps: steps.to_vec() }
    }

    /// Computes the result.
    ///
    /// # Panics
    /// If an operand or the output has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, operands: &[&[f32]], output: &mut [f32]) {
        self.walk.run::<MOST_OPERANDS, _, _>(team, operands, output, &|operands, output| {
            self.isa.run(Block { steps: &self.steps, operands, output });
        });
    }
}

impl PreparedKernel for Chain {
    fn name(&self) -> String {
        match self.steps.len() {
            1 => "elementwise f32".to_owned(),
            steps => format!("elementwise {steps} fused f32"),
        }
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let mut slices = [&[][..]; Self::MOST_OPERANDS];
        let slices = &mut slices[..self.walk.operands()];
        for (index, slice) in slices.iter_mut().enumerate() {
            *slice = inputs.of(index);
        }
        self.run(team, slices, bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

/// The steps on one block.
struct Block<'a> {
    steps: &'a [Step],
    operands: &'a [Operand<'a, f32>],
    output: &'a mut [f32],
}

impl Kernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { steps, operands, output } = self;
        // Until a step has written the output, the value is that of operand 0.
        // Which of both it is, is known where steps are compiled: otherwise ADD took a fifth longer in portable vectors.
        let mut steps = steps.iter();
        match operands[0] {
            Operand::Same(value) => output.fill(value),
            Operand::Elements(input) => match steps.next() {
                None => output.copy_from_slice(input),
                Some(Step::Unary(unary)) => unary.apply(simd, Some(input), output),
                Some(Step::Binary(binary, operand)) => {
                    binary.apply(simd, Some(input), operands[*operand], output);
                }
            },
        }
        for step in steps {
            match step {
                Step::Unary(unary) => unary.apply(simd, None, output),
                Step::Binary(binary, operand) => {
                    binary.apply(simd, None, operands[*operand], output);
                }
            }
        }
    }
}
