//! [`Reduce`]: sums, means, products and extremes of float32.

use super::vectors::{Combination, Vectors};
use crate::InstructionSet;
use crate::prepared::OneInput;
use crate::team::Team;

/// What elements become together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The sum; 0 of nothing.
    Sum,
    /// The mean; NaN of nothing.
    Mean,
    /// The greatest, NaN if there is one; minus infinity of nothing.
    Max,
    /// The least, NaN if there is one; infinity of nothing.
    Min,
    /// The product, computed in double precision, one after the other; 0 if one of them is 0 and all are finite, 1 of
    /// nothing.
    Product,
}

/// A prepared reduction of float32 over any axes.
#[derive(Debug, Clone)]
pub struct Reduce {
    vectors: Vectors,
    reduction: Reduction,
}

impl Reduce {
    /// Of a contiguous tensor over the axes whose numbers are given.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn prepare(
        set: InstructionSet,
        reduction: Reduction,
        lengths: &[usize],
        reduced: &[usize],
    ) -> Self {
        let combination = match reduction {
            Reduction::Sum | Reduction::Mean | Reduction::Product => Combination::Sum,
            Reduction::Max => Combination::Max,
            Reduction::Min => Combination::Min,
        };
        Self { vectors: Vectors::prepare(set, combination, lengths, reduced), reduction }
    }
}

impl OneInput for Reduce {
    type Input = f32;
    type Output = f32;

    fn name(&self) -> String {
        let function = match self.reduction {
            Reduction::Mean => "mean",
            Reduction::Sum => "sum",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::Product => "product",
        };
        format!("reduce {function} f32")
    }

    fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32]) {
        let axes = &self.vectors.axes;
        #[allow(clippy::cast_precision_loss)] // The rounding does not matter.
        let divisor = match self.reduction {
            Reduction::Product => {
                let step = |product: f64, element: f32| {
                    let next = product * f64::from(element);
                    if !element.is_finite() || !product.is_finite() {
                        return next;
                    }
                    // Finite elements beyond the range stay at its end, so that a zero makes them 0.
                    let is_beyond =
                        next.is_infinite() || (product.abs() == f64::MAX && element != 0.0);
                    if is_beyond { f64::MAX.copysign(next) } else { next }
                };
                #[allow(clippy::cast_possible_truncation)] // Rounded once.
                return axes.fold(team, input, output, 1.0, step, |product| product as f32);
            }
            Reduction::Mean => axes.count as f32,
            Reduction::Sum | Reduction::Max | Reduction::Min => 1.0,
        };
        self.vectors.run(team, input, output, move |result: f32| result / divisor);
    }
}
