//! [`ReduceStored`] and [`ReducePlain`]: reductions of 8-bit numbers by what they stand for, of truth values,
//! and products.

use super::Fold;
use super::vectors::{Combination, Vectors};
use crate::InstructionSet;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::Byte;
use std::marker::PhantomData;

/// What 8-bit numbers become together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StoredReduction {
    /// The greatest
    Max,
    /// The least
    Min,
    /// The mean, stored alike: the nearest number, halves away from the zero point
    Mean {
        /// What stands for 0.
        zero_point: i32,
    },
    /// The mean, stored in another way: the nearest number, halves away from the zero point
    RequantizedMean {
        /// Of the input.
        from: Quantization,
        /// Of the output.
        to: Quantization,
        /// The least and the greatest stored number.
        range: (i32, i32),
    },
}

/// Most bytes whose sum is known to fit into 32 bits.
pub const MOST_ADDED: usize = 1 << 23;

/// A prepared reduction of `u8` or `i8` over any axes.
#[derive(Debug, Clone)]
pub struct ReduceStored<T> {
    reduction: StoredReduction,
    vectors: Vectors,
    /// Of more elements than vectors add up.
    one_by_one: Option<Fold>,
    stored: PhantomData<T>,
}

impl<T: Byte> ReduceStored<T> {
    /// Of a contiguous tensor over the axes whose numbers are given.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn prepare(
        set: InstructionSet,
        reduction: StoredReduction,
        lengths: &[usize],
        reduced: &[usize],
    ) -> Self {
        let combination = match reduction {
            StoredReduction::Max => Combination::Max,
            StoredReduction::Min => Combination::Min,
            StoredReduction::Mean { .. } | StoredReduction::RequantizedMean { .. } => {
                Combination::Sum
            }
        };
        let vectors = Vectors::prepare(set, combination, lengths, reduced);
        let is_long = combination == Combination::Sum && vectors.axes.count > MOST_ADDED;
        let one_by_one = is_long.then(|| Fold::prepare(lengths, reduced));
        Self { reduction, vectors, one_by_one, stored: PhantomData }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // Sums of bytes.
    pub fn run(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        match self.reduction {
            StoredReduction::Max | StoredReduction::Min => {
                self.vectors.run(team, input, output, T::nearest);
            }
            StoredReduction::Mean { zero_point } => {
                self.mean(team, input, output, zero_point, |steps, count| {
                    T::nearest(zero_point.saturating_add((steps / count).round() as i32))
                });
            }
            StoredReduction::RequantizedMean { from, to, range } => {
                self.mean(team, input, output, from.zero_point, |steps, count| {
                    let mean = (steps * f64::from(from.scale) / count) as f32;
                    let steps = (mean / to.scale).round() as i32;
                    T::nearest(steps.saturating_add(to.zero_point).clamp(range.0, range.1))
                });
            }
        }
    }

    /// What becomes of the sum of the numbers' distances from the zero point, and of their count.
    #[allow(clippy::cast_precision_loss)] // Sums of bytes.
    fn mean(
        &self,
        team: &mut Team,
        input: &[T],
        output: &mut [T],
        zero_point: i32,
        finish: impl Fn(f64, f64) -> T + Sync,
    ) {
        let count = self.vectors.axes.count as f64;
        if let Some(fold) = &self.one_by_one {
            let add = |sum: i64, x: T| sum + (i64::from(x.wide()) - i64::from(zero_point));
            return fold.run(team, input, output, 0, add, |sum| finish(sum as f64, count));
        }
        // What of the sum stands for 0.
        let zeros = f64::from(zero_point) * count;
        self.vectors.run(team, input, output, |sum| finish(f64::from(sum) - zeros, count));
    }
}

impl<T: Byte> PreparedKernel for ReduceStored<T> {
    fn name(&self) -> String {
        let function = match self.reduction {
            StoredReduction::Max => "max",
            StoredReduction::Min => "min",
            StoredReduction::Mean { .. } | StoredReduction::RequantizedMean { .. } => "mean",
        };
        format!("reduce {function} {}", T::NAME)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

/// What elements become together, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainReduction {
    /// The product of floats, computed in double precision; 0 if one of them is 0
    Product,
    /// Whether all bytes are true, which those are that are not 0
    All,
    /// Whether one is
    Any,
}

/// A prepared reduction of floats or truth values over any axes.
#[derive(Debug, Clone)]
pub struct ReducePlain {
    reduction: PlainReduction,
    fold: Fold,
}

impl ReducePlain {
    /// Of a contiguous tensor over the axes whose numbers are given.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn prepare(reduction: PlainReduction, lengths: &[usize], reduced: &[usize]) -> Self {
        Self { reduction, fold: Fold::prepare(lengths, reduced) }
    }
}

impl PreparedKernel for ReducePlain {
    fn name(&self) -> String {
        match self.reduction {
            PlainReduction::Product => "reduce product f32".to_owned(),
            PlainReduction::All => "reduce all bool".to_owned(),
            PlainReduction::Any => "reduce any bool".to_owned(),
        }
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let fold = &self.fold;
        match self.reduction {
            PlainReduction::Product => {
                // Nothing makes a product with a zero in it anything else.
                let step = |product: f64, element: f32| {
                    if product == 0.0 || element == 0.0 {
                        0.0
                    } else {
                        product * f64::from(element)
                    }
                };
                let output = bytemuck::cast_slice_mut(output);
                #[allow(clippy::cast_possible_truncation)] // Rounded once.
                fold.run(team, inputs.of(0), output, 1.0, step, |it| it as f32);
            }
            PlainReduction::All => {
                let step = |all: bool, element: u8| all && element != 0;
                fold.run(team, inputs.of(0), output, true, step, u8::from);
            }
            PlainReduction::Any => {
                let step = |any: bool, element: u8| any || element != 0;
                fold.run(team, inputs.of(0), output, false, step, u8::from);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared::tests::outputs;

    #[test]
    fn sums_that_vectors_cannot_hold_have_the_same_mean() {
        let input: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let quantization = |scale, zero_point| Quantization { scale, zero_point };
        for reduction in [
            StoredReduction::Max,
            StoredReduction::Min,
            StoredReduction::Mean { zero_point: 77 },
            StoredReduction::RequantizedMean {
                from: quantization(0.5, 77),
                to: quantization(0.1, 3),
                range: (0, 200),
            },
        ] {
            let fast = ReduceStored::prepare(InstructionSet::best(), reduction, &[2, 500], &[1]);
            let one_by_one = Some(Fold::prepare(&[2, 500], &[1]));
            let slow = ReduceStored { one_by_one, ..fast.clone() };
            let (mut of_fast, mut of_slow) = ([0_u8; 2], [0_u8; 2]);
            fast.run(&mut Team::alone(), &input, &mut of_fast);
            slow.run(&mut Team::alone(), &input, &mut of_slow);
            assert_eq!(of_fast, of_slow, "{reduction:?}");
        }
    }

    #[test]
    fn truth_values_and_products_are_taken_together() {
        let truths = [1, 0, 2, 3, 0, 0];
        let of =
            |reduction| outputs(&ReducePlain::prepare(reduction, &[3, 2], &[1]), &[&truths], [3]);
        assert_eq!(of(PlainReduction::All), [[0, 1, 0]]);
        assert_eq!(of(PlainReduction::Any), [[1, 1, 0]]);
        let floats = [0.0, f32::INFINITY, 3.0, -2.5];
        let kernel = ReducePlain::prepare(PlainReduction::Product, &[2, 2], &[1]);
        let [found] = outputs(&kernel, &[bytemuck::cast_slice(&floats)], [8]);
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&found), [0.0, -7.5]);
    }
}
