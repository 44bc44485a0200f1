//! [`GatherNd`]: parts of a tensor by the indexes of their first axes.

use super::gather::copy_rows;
use crate::preparation::product;
use crate::prepared::{Operands, PreparedKernel, WrongValue, for_sizes};
use crate::sharing::{Cut, ELEMENTS_OF_COPY, for_each_rows};
use crate::team::Team;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Prepared GATHER_ND. Inputs: the tensor, and rows of indexes.
#[derive(Debug, Clone)]
pub struct GatherNd {
    axes: Vec<Indexed>,
    /// Elements of a part.
    part: usize,
    element_size: usize,
}

/// An axis that has an index in each row.
#[derive(Debug, Clone, Copy)]
struct Indexed {
    length: usize,
    /// From one index to the next, in elements.
    stride: usize,
}

impl GatherNd {
    /// Parts of a tensor of these lengths, by indexes of its first `depth` axes; of elements that have 1, 2, 4 or 8
    /// bytes.
    ///
    /// # Panics
    /// If there are fewer axes.
    pub fn prepare(lengths: &[usize], depth: usize, element_size: usize) -> Self {
        let (indexed, rest) = lengths.split_at(depth);
        // Saturates for tensors without elements only, of which no part is copied.
        let part = rest.iter().fold(1, |all: usize, length| all.saturating_mul(*length));
        let mut stride = part;
        let mut axes = Vec::with_capacity(depth);
        for length in indexed.iter().rev() {
            axes.push(Indexed { length: *length, stride });
            stride = stride.saturating_mul(*length);
        }
        axes.reverse();
        Self { axes, part, element_size }
    }

    /// # Errors
    /// An index is negative or not below the length of its axis; what is written then has no meaning. Indexes of parts
    /// without elements are not looked at.
    ///
    /// # Panics
    /// If the input is smaller than prepared for, or the indexes are not those of the output's parts.
    fn run<T: Copy + Send + Sync>(
        &self,
        team: &mut Team,
        input: &[T],
        indexes: &[i32],
        output: &mut [T],
    ) -> Result<(), WrongValue> {
        if output.is_empty() {
            return Ok(());
        }
        let depth = self.axes.len();
        let parts = output.len() / self.part;
        assert_eq!(product(&[parts, self.part]), Some(output.len()), "an output of another size");
        assert_eq!(product(&[parts, depth]), Some(indexes.len()), "indexes of other parts");
        let wrong = FirstWrong::default();
        match self.part {
            1 => self.gather_short::<T, 1>(team, input, indexes, output, &wrong),
            2 => self.gather_short::<T, 2>(team, input, indexes, output, &wrong),
            4 => self.gather_short::<T, 4>(team, input, indexes, output, &wrong),
            8 => self.gather_short::<T, 8>(team, input, indexes, output, &wrong),
            _ => copy_rows(team, (input, self.part), output, |part| {
                let first = first(&self.axes, &indexes[part * depth..][..depth]);
                wrong.unless(first, part)
            }),
        }
        match wrong.0.into_inner() {
            usize::MAX => Ok(()),
            part => Err(self.refused(&indexes[part * depth..][..depth])),
        }
    }

    /// Of parts that have so few elements that calls for each would take longer than copying it.
    fn gather_short<T: Copy + Send + Sync, const N: usize>(
        &self,
        team: &mut Team,
        input: &[T],
        indexes: &[i32],
        output: &mut [T],
        wrong: &FirstWrong,
    ) {
        let input = input.as_chunks::<N>().0;
        let kernel = Short { input, indexes, axes: &self.axes };
        // With loops over the axes that are unrolled it takes a third less.
        match self.axes.len() {
            1 => kernel.run::<1>(team, output, wrong),
            2 => kernel.run::<2>(team, output, wrong),
            3 => kernel.run::<3>(team, output, wrong),
            4 => kernel.run::<4>(team, output, wrong),
            _ => kernel.run_any(team, output, wrong),
        }
    }

    /// What is wrong with a row of indexes that is refused: the first one that is outside of its axis.
    fn refused(&self, row: &[i32]) -> WrongValue {
        let mut pairs = row.iter().zip(&self.axes);
        let (index, axis) = pairs
            .find(|(index, axis)| axis.place(**index).is_none())
            .expect("an index outside of its axis");
        let (found, expected) = (index.to_string(), format!("0 or more, below {}", axis.length));
        WrongValue { input: 1, what: "value", found, expected }
    }
}

impl PreparedKernel for GatherNd {
    fn name(&self) -> String {
        "gather nd".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        for_sizes!(self.element_size, T => {
            let output = bytemuck::cast_slice_mut(output);
            self.run::<T>(team, inputs.of(0), inputs.of(1), output)
        })
    }
}

impl Indexed {
    /// The position of an index, if it is one of the axis.
    #[inline(always)]
    fn place(self, index: i32) -> Option<usize> {
        // Negative ones are beyond any length: a comparison for both limits.
        let index = (index as isize).cast_unsigned();
        // No further than the tensor goes, so that nothing wraps. With checks for that it took a fifth longer.
        (index < self.length).then(|| index.wrapping_mul(self.stride))
    }
}

/// The position of the first element of the part with these indexes; `None` if one is outside of its axis.
#[inline(always)]
fn first(axes: &[Indexed], row: &[i32]) -> Option<usize> {
    axes.iter()
        .zip(row)
        .try_fold(0_usize, |first, (axis, index)| Some(first.wrapping_add(axis.place(*index)?)))
}

/// The first part whose indexes are wrong, whichever thread comes upon one first.
struct FirstWrong(AtomicUsize);

impl Default for FirstWrong {
    fn default() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }
}

impl FirstWrong {
    /// Where a part is, or that its indexes are wrong.
    #[inline(always)]
    fn unless(&self, first: Option<usize>, part: usize) -> Option<usize> {
        if first.is_none() {
            self.0.fetch_min(part, Ordering::Relaxed);
        }
        first
    }
}

/// Parts of `N` elements.
struct Short<'a, T, const N: usize> {
    input: &'a [[T; N]],
    indexes: &'a [i32],
    axes: &'a [Indexed],
}

impl<T: Copy + Send + Sync, const N: usize> Short<'_, T, N> {
    /// By indexes of `D` axes.
    fn run<const D: usize>(&self, team: &mut Team, output: &mut [T], wrong: &FirstWrong) {
        let (Ok(axes), (rows, _)) =
            (<&[Indexed; D]>::try_from(self.axes), self.indexes.as_chunks::<D>())
        else {
            return self.run_any(team, output, wrong);
        };
        self.share(team, output, wrong, |part| first(axes, &rows[part]));
    }

    /// By indexes of any number of axes.
    fn run_any(&self, team: &mut Team, output: &mut [T], wrong: &FirstWrong) {
        let depth = self.axes.len();
        self.share(team, output, wrong, |part| {
            first(self.axes, &self.indexes[part * depth..][..depth])
        });
    }

    #[inline(always)]
    fn share(
        &self,
        team: &mut Team,
        output: &mut [T],
        wrong: &FirstWrong,
        first: impl Fn(usize) -> Option<usize> + Sync,
    ) {
        let cut = Cut { each: N + self.axes.len(), least: ELEMENTS_OF_COPY, multiple: 1 };
        for_each_rows(team, (output, N), cut, |parts, output, _| {
            for (part, output) in parts.zip(output.as_chunks_mut::<N>().0) {
                let Some(first) = wrong.unless(first(part), part) else { return };
                *output = self.input[first / N];
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::BLOCK;
    use proptest::prelude::*;

    /// Distinct elements of a tensor.
    fn numbers(lengths: &[usize]) -> Vec<u32> {
        (0..lengths.iter().product::<usize>()).map(|it| u32::try_from(it).unwrap()).collect()
    }

    /// By a plain loop over rows of right indexes.
    fn expected(lengths: &[usize], depth: usize, input: &[u32], rows: &[Vec<i32>]) -> Vec<u32> {
        let part: usize = lengths[depth..].iter().product();
        let start = |row: &Vec<i32>| {
            row.iter()
                .zip(lengths)
                .fold(0, |at, (index, length)| at * length + usize::try_from(*index).unwrap())
        };
        rows.iter().flat_map(|row| &input[start(row) * part..][..part]).copied().collect()
    }

    fn random_rows(lengths: &[usize], depth: usize, count: usize) -> Vec<Vec<i32>> {
        let mut random = fastrand::Rng::with_seed(5);
        let index = |length: &usize| i32::try_from(random.usize(0..*length)).unwrap();
        let mut index = index;
        (0..count).map(|_| lengths[..depth].iter().map(&mut index).collect()).collect()
    }

    /// What a kernel finds, on two threads.
    fn found(
        lengths: &[usize],
        depth: usize,
        rows: &[Vec<i32>],
    ) -> Result<(Vec<u32>, Vec<u32>), WrongValue> {
        let input = numbers(lengths);
        let part: usize = lengths[depth..].iter().product();
        let mut output = vec![u32::MAX; rows.len() * part];
        let kernel = GatherNd::prepare(lengths, depth, 4);
        kernel.run(&mut Team::new(2), &input, &rows.concat(), &mut output)?;
        Ok((output, expected(lengths, depth, &input, rows)))
    }

    #[test]
    fn parts_of_any_size_by_any_number_of_indexes() {
        for (lengths, depth, count) in [
            // Single elements, of enough to be shared by two threads.
            (vec![7], 1, 100_000),
            (vec![5, 9], 2, 100_000),
            (vec![6, 8, 3], 3, 100_000),
            (vec![2, 3, 4, 5], 4, 100_000),
            (vec![2, 3, 2, 2, 3], 5, 50_000),
            // Short parts and others.
            (vec![5, 4, 2], 2, 30_000),
            (vec![5, 4], 1, 30_000),
            (vec![3, 4, 2, 4], 2, 30_000),
            (vec![6, 3], 1, 30_000),
            (vec![4, 3, 100], 2, 2_000),
            // Longer than a block.
            (vec![3, 2 * BLOCK + 5], 1, 4),
            // No index: the whole tensor each time.
            (vec![4, 9], 0, 3),
            (vec![1], 0, 3),
            // Nothing to write.
            (vec![4, 0], 1, 3),
            (vec![4, 3], 1, 0),
        ] {
            let rows = random_rows(&lengths, depth, count);
            let (found, expected) = found(&lengths, depth, &rows).unwrap();
            assert!(found == expected, "{lengths:?} {depth}");
        }
    }

    #[test]
    fn the_first_index_outside_of_its_axis_is_refused() {
        for rest in [vec![], vec![2], vec![9]] {
            let lengths = [vec![3, 4], rest].concat();
            for (index, axis) in [(-1, 0), (3, 0), (4, 1), (i32::MIN, 1), (i32::MAX, 0)] {
                // Two threads share them, and the second one has wrong ones too.
                let mut rows = random_rows(&lengths, 2, 60_000);
                rows[59_990] = vec![-7, -8];
                rows[20_000][axis] = index;
                let wrong = found(&lengths, 2, &rows).unwrap_err();
                let below = format!("0 or more, below {}", lengths[axis]);
                assert_eq!((wrong.input, wrong.what), (1, "value"));
                assert_eq!((wrong.found, wrong.expected), (index.to_string(), below));
            }
        }
        // An axis of which there is no index.
        let wrong = GatherNd::prepare(&[0], 1, 1).run(&mut Team::alone(), &[], &[0], &mut [1_u8]);
        assert_eq!(wrong.unwrap_err().expected, "0 or more, below 0");
        // Of parts without elements, none is looked at.
        assert!(found(&[3, 0], 1, &[vec![9]]).is_ok());
    }

    #[test]
    fn long_parts_are_cut_into_tasks_that_ask_whether_to_go_on() {
        let (input, mut output) = (vec![1_u8; 128 * BLOCK], vec![0; 128 * BLOCK]);
        let kernel = GatherNd::prepare(&[1, 128 * BLOCK], 1, 1);
        let questions = AtomicUsize::new(0);
        let ask = || questions.fetch_add(1, Ordering::Relaxed) > 0;
        Team::alone().until(&ask, |team| {
            assert_eq!(kernel.run(team, &input, &[0], &mut output), Ok(()));
            assert!(team.is_stopped());
        });
    }

    proptest! {
        #[test]
        fn any_tensor(lengths in prop::collection::vec(1..5_usize, 1..6), depth: prop::sample::Index, count in 0..20_usize) {
            let depth = depth.index(lengths.len() + 1);
            let rows = random_rows(&lengths, depth, count);
            let (found, expected) = found(&lengths, depth, &rows).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
