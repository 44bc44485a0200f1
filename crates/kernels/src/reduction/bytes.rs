//! [`ReduceBytes`]: sums and extremes of 8-bit numbers, in vectors.
#![allow(unsafe_code)]

use super::{Axes, Axis, offset};
use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::parts::{Cut, for_each_part};
use crate::team::{Pace, Team};
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial};

/// Elements from which on a second thread is worth waking.
const ELEMENTS_OF_TASK: usize = 32 * 1024;

/// What stored numbers become together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteReduction {
    /// The sum of the stored numbers.
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// A prepared reduction of `u8` or `i8` over any axes.
#[derive(Debug, Clone)]
pub struct ReduceBytes {
    isa: Isa,
    reduction: ByteReduction,
    axes: Axes,
}

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
        reduction: ByteReduction,
        lengths: &[usize],
        reduced: &[usize],
    ) -> Option<Self> {
        let axes = Axes::new(lengths, reduced);
        (1..=Self::MOST_ELEMENTS).contains(&axes.count).then(|| Self {
            isa: Isa::of(set),
            reduction,
            axes,
        })
    }

    /// How many elements become one.
    pub fn count(&self) -> usize {
        self.axes.count
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
        let axes = &self.axes;
        assert_eq!(input.len(), axes.input, "an input of another size");
        assert_eq!(output.len(), axes.output, "an output of another size");
        let output = DisjointOutput::new(output);
        let cut = Cut { each: axes.count, least: ELEMENTS_OF_TASK, multiple: 64 };
        for_each_part(team, axes.output, cut, |part, pace| {
            // SAFETY: every part is another one.
            let output = unsafe { output.slice(part.start, part.len()) };
            let finish = &finish;
            self.isa.run(Part { reduce: self, input, output, first: part.start, finish, pace });
        });
    }
}

struct Part<'a, T, U, F> {
    reduce: &'a ReduceBytes,
    input: &'a [T],
    output: &'a mut [U],
    /// Number of the first output element.
    first: usize,
    finish: &'a F,
    pace: Pace<'a>,
}

impl<T: Byte, U, F: Fn(i32) -> U> Kernel for Part<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.reduce.reduction {
            ByteReduction::Sum => self.reduce::<S, 0>(simd),
            ByteReduction::Max => self.reduce::<S, 1>(simd),
            ByteReduction::Min => self.reduce::<S, 2>(simd),
        }
    }
}

/// What two numbers become: 0: the sum, 1: the greater one, 2: the lesser one.
#[inline(always)]
fn combine<S: Simd, const WHAT: u8>(simd: S, a: S::I, b: S::I) -> S::I {
    match WHAT {
        0 => simd.iadd(a, b),
        1 => simd.imax(a, b),
        _ => simd.imin(a, b),
    }
}

#[inline(always)]
fn combined<const WHAT: u8>(a: i32, b: i32) -> i32 {
    match WHAT {
        // As vectors add.
        0 => a.wrapping_add(b),
        1 => a.max(b),
        _ => a.min(b),
    }
}

#[inline(always)]
fn nothing(what: u8) -> i32 {
    match what {
        0 => 0,
        1 => i32::MIN,
        _ => i32::MAX,
    }
}

impl<T: Byte, U, F: Fn(i32) -> U> Part<'_, T, U, F> {
    #[inline(always)]
    fn reduce<S: Simd, const WHAT: u8>(mut self, simd: S) {
        let pace = &mut self.pace;
        let axes = &self.reduce.axes;
        let none = Axis { length: 1, stride: 0 };
        if axes.last_is_reduced {
            let (row, outer) = axes.reduced.split_last().unwrap_or((&none, &[]));
            for (index, output) in self.output.iter_mut().enumerate() {
                let start = offset(&axes.kept, self.first + index);
                let mut all = nothing(WHAT);
                for number in 0..axes.count / row.length {
                    let start = start + offset(outer, number);
                    // A row is no longer than [`ReduceBytes::MOST_ELEMENTS`].
                    if pace.is_over(row.length) {
                        break;
                    }
                    let row = along::<S, T, WHAT>(simd, &self.input[start..start + row.length]);
                    all = combined::<WHAT>(all, row);
                }
                *output = (self.finish)(all);
            }
            return;
        }
        // The last kept axis is contiguous: neighbours are reduced side by side.
        let (last, outer) = axes.kept.split_last().unwrap_or((&none, &[]));
        let mut results = [0; 64];
        let mut done = 0;
        while done < self.output.len() {
            let number = self.first + done;
            let column = number % last.length;
            let start = offset(outer, number / last.length) + column;
            let left = (last.length - column).min(self.output.len() - done);
            let count = if left >= 4 * S::LANES {
                let sums =
                    side_by_side::<S, T, WHAT, 4>(simd, self.input, (start, S::LANES), axes, pace);
                for (index, sum) in sums.into_iter().enumerate() {
                    simd.istore(sum, &mut results[index * S::LANES..]);
                }
                4 * S::LANES
            } else {
                let count = left.min(S::LANES);
                let [sum] =
                    side_by_side::<S, T, WHAT, 1>(simd, self.input, (start, count), axes, pace);
                simd.istore(sum, &mut results);
                count
            };
            for (output, result) in self.output[done..done + count].iter_mut().zip(results) {
                *output = (self.finish)(result);
            }
            done += count;
        }
    }
}

/// A row.
#[inline(always)]
fn along<S: Simd, T: Byte, const WHAT: u8>(simd: S, row: &[T]) -> i32 {
    let mut all = [simd.isplat(nothing(WHAT)); 4];
    let mut groups = row.chunks_exact(4 * S::LANES);
    for group in groups.by_ref() {
        for (index, all) in all.iter_mut().enumerate() {
            *all = combine::<S, WHAT>(simd, *all, T::load(simd, &group[index * S::LANES..]));
        }
    }
    let [a, b, c, d] = all;
    let (a, b) = (combine::<S, WHAT>(simd, a, b), combine::<S, WHAT>(simd, c, d));
    let mut lanes = [nothing(WHAT); 16];
    simd.istore(combine::<S, WHAT>(simd, a, b), &mut lanes);
    let rest = groups.remainder().iter().map(|it| it.wide());
    lanes.into_iter().chain(rest).fold(nothing(WHAT), combined::<WHAT>)
}

/// Columns that are next to each other, each reduced over all reduced axes: `N` vectors, of which a
/// single one has `count` columns.
#[inline(always)]
fn side_by_side<S: Simd, T: Byte, const WHAT: u8, const N: usize>(
    simd: S,
    input: &[T],
    (start, count): (usize, usize),
    axes: &Axes,
    pace: &mut Pace<'_>,
) -> [S::I; N] {
    let none = Axis { length: 1, stride: 0 };
    let (inner, outer) = axes.reduced.split_last().unwrap_or((&none, &[]));
    let mut all = [simd.isplat(nothing(WHAT)); N];
    for number in 0..axes.count / inner.length {
        let mut at = start + offset(outer, number);
        for block in pace.blocks(inner.length, N * S::LANES) {
            for _ in block {
                if count == S::LANES {
                    let values = &input[at..at + N * S::LANES];
                    for (index, all) in all.iter_mut().enumerate() {
                        let value = T::load(simd, &values[index * S::LANES..]);
                        *all = combine::<S, WHAT>(simd, *all, value);
                    }
                } else {
                    let value = load_bytes_partial(simd, &input[at..at + count]);
                    all[0] = combine::<S, WHAT>(simd, all[0], value);
                }
                at += inner.stride;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<T: Byte>(lengths: &[usize], reduced: &[usize], seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let elements: usize = lengths.iter().product();
        let input: Vec<T> =
            (0..elements).map(|_| T::nearest(random.i32(T::RANGE.0..=T::RANGE.1))).collect();
        for reduction in [ByteReduction::Sum, ByteReduction::Max, ByteReduction::Min] {
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
                    ByteReduction::Sum => all + element,
                    ByteReduction::Max => all.max(element),
                    ByteReduction::Min => all.min(element),
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
