//! [`ReduceStored`]: reductions of 8-bit numbers by what they stand for, and of truth values.

use super::vectors::{Combination, Vectors};
use crate::InstructionSet;
use crate::prepared::OneInput;
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
    },
    /// Whether all are true, as unsigned numbers are that are not 0: 1 or 0
    All,
    /// Whether one is
    Any,
}

/// Most bytes whose sum is known to fit into 32 bits.
pub const MOST_ADDED: usize = 1 << 23;

/// A prepared reduction of `u8` or `i8` over any axes.
#[derive(Debug, Clone)]
pub struct ReduceStored<T> {
    reduction: StoredReduction,
    vectors: Vectors,
    /// Of more elements than vectors add up.
    adds_one_by_one: bool,
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
            StoredReduction::Max | StoredReduction::Any => Combination::Max,
            StoredReduction::Min | StoredReduction::All => Combination::Min,
            StoredReduction::Mean { .. } | StoredReduction::RequantizedMean { .. } => {
                Combination::Sum
            }
        };
        let vectors = Vectors::prepare(set, combination, lengths, reduced);
        let adds_one_by_one = vectors.axes.count > MOST_ADDED;
        Self { reduction, vectors, adds_one_by_one, stored: PhantomData }
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
        let axes = &self.vectors.axes;
        let count = axes.count as f64;
        if self.adds_one_by_one {
            let add = |sum: i64, x: T| sum + (i64::from(x.wide()) - i64::from(zero_point));
            return axes.fold(team, input, output, 0, add, |sum| finish(sum as f64, count));
        }
        // What of the sum stands for 0.
        let zeros = f64::from(zero_point) * count;
        self.vectors.run(team, input, output, |sum| finish(f64::from(sum) - zeros, count));
    }
}

impl<T: Byte> OneInput for ReduceStored<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        let (function, elements) = match self.reduction {
            StoredReduction::Max => ("max", T::NAME),
            StoredReduction::Min => ("min", T::NAME),
            StoredReduction::Mean { .. } | StoredReduction::RequantizedMean { .. } => {
                ("mean", T::NAME)
            }
            StoredReduction::All => ("all", "bool"),
            StoredReduction::Any => ("any", "bool"),
        };
        format!("reduce {function} {elements}")
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // Sums of bytes.
    fn run(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        match self.reduction {
            StoredReduction::Max
            | StoredReduction::Min
            | StoredReduction::All
            | StoredReduction::Any => {
                let is_truth =
                    matches!(self.reduction, StoredReduction::All | StoredReduction::Any);
                let most = if is_truth { 1 } else { T::RANGE.1 };
                self.vectors.run(team, input, output, move |extreme| T::nearest(extreme.min(most)));
            }
            StoredReduction::Mean { zero_point } => {
                self.mean(team, input, output, zero_point, |steps, count| {
                    T::nearest(zero_point.saturating_add((steps / count).round() as i32))
                });
            }
            StoredReduction::RequantizedMean { from, to } => {
                self.mean(team, input, output, from.zero_point, |steps, count| {
                    let mean = (steps * f64::from(from.scale) / count) as f32;
                    let steps = (mean / to.scale).round() as i32;
                    T::nearest(steps.saturating_add(to.zero_point))
                });
            }
        }
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
            },
        ] {
            let fast = ReduceStored::prepare(InstructionSet::best(), reduction, &[2, 500], &[1]);
            let slow = ReduceStored { adds_one_by_one: true, ..fast.clone() };
            let (mut of_fast, mut of_slow) = ([0_u8; 2], [0_u8; 2]);
            fast.run(&mut Team::alone(), &input, &mut of_fast);
            slow.run(&mut Team::alone(), &input, &mut of_slow);
            assert_eq!(of_fast, of_slow, "{reduction:?}");
        }
    }

    /// Of the extreme bytes too, whose sums are the largest.
    fn means_of_columns<T: Byte>() {
        let (least, most) = T::RANGE;
        let mut random = fastrand::Rng::with_seed(3);
        for (lengths, reduced) in [
            (vec![2, 300, 70], vec![1]),
            (vec![129, 64], vec![0]),
            (vec![3, 2, 5, 130], vec![0, 2]),
            (vec![0, 64], vec![0]),
        ] {
            let count: usize = lengths.iter().product();
            let rests = [0; 9].map(|_| random.i32(least..=most));
            for kind in 0..3 {
                let element = |at: usize| T::nearest([most, least, rests[at % 9]][kind]);
                let input: Vec<T> = (0..count).map(element).collect();
                for set in InstructionSet::available() {
                    let mean = StoredReduction::Mean { zero_point: 3 };
                    let fast = ReduceStored::prepare(set, mean, &lengths, &reduced);
                    let slow = ReduceStored { adds_one_by_one: true, ..fast.clone() };
                    let outputs = [fast, slow].map(|kernel| {
                        let mut output = vec![T::nearest(9); kernel.vectors.axes.output];
                        kernel.run(&mut Team::new(2), &input, &mut output);
                        output
                    });
                    assert_eq!(outputs[0], outputs[1], "{lengths:?} {set}");
                }
            }
        }
    }

    #[test]
    fn means_of_columns_are_those_of_their_bytes() {
        means_of_columns::<u8>();
        means_of_columns::<i8>();
    }

    #[test]
    fn truth_values_are_taken_together() {
        let truths = [1, 0, 2, 3, 0, 0];
        for set in InstructionSet::available() {
            let of = |reduction| {
                let kernel = ReduceStored::<u8>::prepare(set, reduction, &[3, 2], &[1]);
                outputs(&kernel, &[&truths], [3])
            };
            assert_eq!(of(StoredReduction::All), [[0, 1, 0]]);
            assert_eq!(of(StoredReduction::Any), [[1, 1, 0]]);
        }
    }
}
