//! [`Axes::fold`]: any reduction of elements of any type, one after the other.

use super::{Axes, offset};
use crate::sharing::ELEMENTS_OF_TASK;
use crate::team::Team;

impl Axes {
    /// Every output element begins as `first`, takes in its elements in their order with `step`, and
    /// is what `finish` makes of that.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub(super) fn fold<T: Copy + Sync, A: Copy + Sync, U: Send>(
        &self,
        team: &mut Team,
        input: &[T],
        output: &mut [U],
        first: A,
        step: impl Fn(A, T) -> A + Sync,
        finish: impl Fn(A) -> U + Sync,
    ) {
        self.for_each_part(team, input, output, ELEMENTS_OF_TASK, |part, outputs, mut pace| {
            for (number, output) in part.zip(outputs) {
                let start = offset(&self.kept, number);
                let mut sum = first;
                if self.last_is_reduced {
                    let (row, outer) = match self.reduced.split_last() {
                        Some((row, outer)) => (row.length, outer),
                        None => (1, &[][..]),
                    };
                    for number in 0..self.count.checked_div(row).unwrap_or(0) {
                        let start = start + offset(outer, number);
                        let row = &input[start..start + row];
                        for block in pace.blocks(row.len(), 1) {
                            sum = row[block].iter().copied().fold(sum, &step);
                        }
                    }
                } else {
                    for block in pace.blocks(self.count, 4) {
                        for number in block {
                            sum = step(sum, input[start + offset(&self.reduced, number)]);
                        }
                    }
                }
                *output = finish(sum);
            }
        });
    }
}
