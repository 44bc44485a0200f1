//! [`Fold`]: any reduction of elements of any type.

use super::{Axes, offset};
use crate::team::Team;

/// Elements from which on a second thread is worth waking.
const ELEMENTS_OF_TASK: usize = 8 * 1024;

/// Prepared axes of a reduction whose step the caller gives: products, ALL, ANY, extremes of stored
/// numbers.
#[derive(Debug, Clone)]
pub struct Fold {
    axes: Axes,
}

impl Fold {
    /// Of a contiguous tensor over the axes whose numbers are given.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn prepare(lengths: &[usize], reduced: &[usize]) -> Self {
        Self { axes: Axes::new(lengths, reduced) }
    }

    /// Every output element begins as `first`, takes in its elements in their order with `step`, and
    /// is what `finish` makes of that.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run<T: Copy + Sync, A: Copy + Sync, U: Send>(
        &self,
        team: &mut Team,
        input: &[T],
        output: &mut [U],
        first: A,
        step: impl Fn(A, T) -> A + Sync,
        finish: impl Fn(A) -> U + Sync,
    ) {
        let axes = &self.axes;
        axes.for_each_part(team, input, output, ELEMENTS_OF_TASK, |part, outputs, mut pace| {
            for (number, output) in part.zip(outputs) {
                let start = offset(&axes.kept, number);
                let mut sum = first;
                if axes.last_is_reduced {
                    let (row, outer) = match axes.reduced.split_last() {
                        Some((row, outer)) => (row.length, outer),
                        None => (1, &[][..]),
                    };
                    for number in 0..axes.count.checked_div(row).unwrap_or(0) {
                        let start = start + offset(outer, number);
                        let row = &input[start..start + row];
                        for block in pace.blocks(row.len(), 1) {
                            sum = row[block].iter().copied().fold(sum, &step);
                        }
                    }
                } else {
                    for block in pace.blocks(axes.count, 4) {
                        for number in block {
                            sum = step(sum, input[start + offset(&axes.reduced, number)]);
                        }
                    }
                }
                *output = finish(sum);
            }
        });
    }
}
