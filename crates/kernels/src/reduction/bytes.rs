//! [`ReduceBytes`]: sums and extremes of 8-bit numbers, in vectors.

use super::Combination;
use super::vectors::Vectors;
use crate::InstructionSet;
use crate::team::Team;
use crate::vector::Byte;

/// A prepared reduction of `u8` or `i8` over any axes: sums and extremes of stored numbers.
#[derive(Debug, Clone)]
pub struct ReduceBytes(Vectors);

impl ReduceBytes {
    /// Most elements that become one: this many bytes have a sum that fits into 32 bits.
    pub const MOST_ELEMENTS: usize = 1 << 23;

    /// Of a contiguous tensor over the axes whose numbers are given. `None` if nothing would become an
    /// element, or so much that sums leave 32 bits.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn prepare(
        set: InstructionSet,
        combination: Combination,
        lengths: &[usize],
        reduced: &[usize],
    ) -> Option<Self> {
        let vectors = Vectors::prepare(set, combination, lengths, reduced);
        (1..=Self::MOST_ELEMENTS).contains(&vectors.axes.count).then_some(Self(vectors))
    }

    /// How many elements become one.
    pub fn count(&self) -> usize {
        self.0.axes.count
    }

    /// Computes the output: what `finish` makes of each result.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run<T: Byte, U: Send>(
        &self,
        team: &mut Team,
        input: &[T],
        output: &mut [U],
        finish: impl Fn(i32) -> U + Sync,
    ) {
        self.0.run(team, input, output, finish);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Axes;
    use super::*;
    use proptest::prelude::*;

    fn check<T: Byte>(lengths: &[usize], reduced: &[usize], seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let elements: usize = lengths.iter().product();
        let input: Vec<T> =
            (0..elements).map(|_| T::nearest(random.i32(T::RANGE.0..=T::RANGE.1))).collect();
        for reduction in [Combination::Sum, Combination::Max, Combination::Min] {
            let axes = Axes::new(lengths, reduced);
            let mut expected: Vec<Option<i32>> = vec![None; axes.output];
            for (number, element) in input.iter().enumerate() {
                let (mut rest, mut place, mut stride) = (number, 0, 1);
                for (axis, length) in lengths.iter().enumerate().rev() {
                    if !reduced.contains(&axis) {
                        place += rest % length * stride;
                        stride *= length;
                    }
                    rest /= length;
                }
                let element = element.wide();
                expected[place] = Some(expected[place].map_or(element, |all| match reduction {
                    Combination::Sum => all + element,
                    Combination::Max => all.max(element),
                    Combination::Min => all.min(element),
                }));
            }
            for set in InstructionSet::available() {
                let Some(kernel) = ReduceBytes::prepare(set, reduction, lengths, reduced) else {
                    assert_eq!(axes.count, 0);
                    continue;
                };
                let mut found = vec![None; axes.output];
                kernel.run(&mut Team::new(2), &input, &mut found, Some);
                assert_eq!(found, expected, "{set} {reduction:?} {lengths:?} {reduced:?}");
            }
        }
    }

    #[test]
    fn shapes_of_models() {
        check::<u8>(&[1, 7, 7, 576], &[1, 2], 1);
        check::<i8>(&[2, 300, 77], &[2], 2);
        check::<u8>(&[300, 700], &[0, 1], 3);
        check::<i8>(&[5, 3, 2, 40], &[0, 2], 4);
    }

    proptest! {
        #[test]
        fn any_axes(
            lengths in prop::collection::vec(prop_oneof![0..6_usize, 60..70_usize], 1..4),
            mask in 0..16_usize,
            seed: u64,
        ) {
            let reduced: Vec<usize> =
                (0..lengths.len()).filter(|axis| mask >> axis & 1 == 1).collect();
            check::<u8>(&lengths, &reduced, seed);
            check::<i8>(&lengths, &reduced, seed);
        }
    }
}
