//! [`Reduce`]: sums, means and extremes of float32, in vectors.
#![allow(unsafe_code)]

use super::{Axes, Axis, offset};
use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::parts::{Cut, for_each_part};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};

/// Elements from which on a second thread is worth waking.
const ELEMENTS_OF_TASK: usize = 16 * 1024;

/// This many elements are added up before their sum is added to that of the others: with that the
/// error of long sums stays small.
const PIECE: usize = 64;

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
}

/// A prepared reduction of float32 over any axes.
#[derive(Debug, Clone)]
pub struct Reduce {
    isa: Isa,
    reduction: Reduction,
    axes: Axes,
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
        Self { isa: Isa::of(set), reduction, axes: Axes::new(lengths, reduced) }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32]) {
        let axes = &self.axes;
        assert_eq!(input.len(), axes.input, "an input of another size");
        assert_eq!(output.len(), axes.output, "an output of another size");
        let output = DisjointOutput::new(output);
        let cut = Cut { each: axes.count, least: ELEMENTS_OF_TASK, multiple: 64 };
        for_each_part(team, axes.output, cut, |part, pace| {
            // SAFETY: every part is another one.
            let output = unsafe { output.slice(part.start, part.len()) };
            self.isa.run(Part { reduce: self, input, output, first: part.start, pace });
        });
    }
}

impl PreparedKernel for Reduce {
    fn name(&self) -> String {
        let function = match self.reduction {
            Reduction::Mean => "mean",
            Reduction::Sum => "sum",
            Reduction::Max => "max",
            Reduction::Min => "min",
        };
        format!("reduce {function} f32")
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

struct Part<'a> {
    reduce: &'a Reduce,
    input: &'a [f32],
    output: &'a mut [f32],
    /// Number of the first output element.
    first: usize,
    pace: Pace<'a>,
}

impl Kernel for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        #[allow(clippy::cast_precision_loss)] // The rounding does not matter.
        let count = self.reduce.axes.count as f32;
        match self.reduce.reduction {
            Reduction::Sum => self.reduce::<S, 0>(simd, 1.0),
            Reduction::Mean => self.reduce::<S, 0>(simd, count),
            Reduction::Max => self.reduce::<S, 1>(simd, 1.0),
            Reduction::Min => self.reduce::<S, 2>(simd, 1.0),
        }
    }
}

/// What two numbers become: 0: the sum, 1: the greater one, 2: the lesser one.
#[inline(always)]
fn combine<S: Simd, const WHAT: u8>(simd: S, a: S::F, b: S::F) -> S::F {
    match WHAT {
        0 => simd.add(a, b),
        // If one is NaN these give the second one, so a first one must be put back.
        1 => simd.select(simd.eq(a, a), simd.max(a, b), a),
        _ => simd.select(simd.eq(a, a), simd.min(a, b), a),
    }
}

#[inline(always)]
fn nothing(what: u8) -> f32 {
    match what {
        0 => 0.0,
        1 => f32::NEG_INFINITY,
        _ => f32::INFINITY,
    }
}

impl Part<'_> {
    #[inline(always)]
    fn reduce<S: Simd, const WHAT: u8>(mut self, simd: S, divisor: f32) {
        let pace = &mut self.pace;
        let axes = &self.reduce.axes;
        if axes.count == 0 {
            self.output.fill(nothing(WHAT) / divisor);
            return;
        }
        if axes.last_is_reduced {
            let (row, outer) = match axes.reduced.split_last() {
                Some((row, outer)) => (row.length, outer),
                None => (1, &[][..]),
            };
            let rows = axes.count / row;
            for (index, output) in self.output.iter_mut().enumerate() {
                let start = offset(&axes.kept, self.first + index);
                let mut all = simd.splat(nothing(WHAT));
                for number in 0..rows {
                    let start = start + offset(outer, number);
                    let row = along::<S, WHAT>(simd, &self.input[start..start + row], pace);
                    all = combine::<S, WHAT>(simd, all, row);
                }
                *output = across_lanes::<S, WHAT>(simd, all) / divisor;
            }
            return;
        }
        // The last kept axis is contiguous: neighbours are reduced side by side.
        let (width, outer) = match axes.kept.split_last() {
            Some((last, outer)) => (last.length, outer),
            None => (1, &[][..]),
        };
        let divisor = simd.splat(divisor);
        let mut done = 0;
        while done < self.output.len() {
            let number = self.first + done;
            let column = number % width;
            let start = offset(outer, number / width) + column;
            let left = (width - column).min(self.output.len() - done);
            let output = &mut self.output[done..];
            if left >= 4 * S::LANES {
                let sums =
                    side_by_side::<S, WHAT, 4>(simd, self.input, (start, 4 * S::LANES), axes, pace);
                for (index, sum) in sums.into_iter().enumerate() {
                    simd.store(simd.div(sum, divisor), &mut output[index * S::LANES..]);
                }
                done += 4 * S::LANES;
            } else {
                let count = left.min(S::LANES);
                let [sum] =
                    side_by_side::<S, WHAT, 1>(simd, self.input, (start, count), axes, pace);
                simd.store_partial(simd.div(sum, divisor), &mut output[..count]);
                done += count;
            }
        }
    }
}

/// A row as one vector, whose lanes remain to be combined.
#[inline(always)]
fn along<S: Simd, const WHAT: u8>(simd: S, row: &[f32], pace: &mut Pace<'_>) -> S::F {
    let first = simd.splat(nothing(WHAT));
    let mut all = first;
    for block in pace.blocks(row.len(), 1) {
        for piece in row[block].chunks(4 * S::LANES * PIECE) {
            let mut sums = [first; 4];
            let mut groups = piece.chunks_exact(4 * S::LANES);
            for group in groups.by_ref() {
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum = combine::<S, WHAT>(simd, *sum, simd.load(&group[index * S::LANES..]));
                }
            }
            for rest in groups.remainder().chunks(S::LANES) {
                let rest = simd.load_partial(rest, nothing(WHAT));
                sums[0] = combine::<S, WHAT>(simd, sums[0], rest);
            }
            let [a, b, c, d] = sums;
            let (a, b) = (combine::<S, WHAT>(simd, a, b), combine::<S, WHAT>(simd, c, d));
            all = combine::<S, WHAT>(simd, all, combine::<S, WHAT>(simd, a, b));
        }
    }
    all
}

/// One number out of a vector.
#[inline(always)]
fn across_lanes<S: Simd, const WHAT: u8>(simd: S, all: S::F) -> f32 {
    if WHAT == 0 {
        return simd.sum(all);
    }
    let mut lanes = [nothing(WHAT); 16];
    simd.store(all, &mut lanes);
    let choose = |a: f32, b: f32| {
        let is_better = if WHAT == 1 { b > a } else { b < a };
        if a.is_nan() || !(is_better || b.is_nan()) { a } else { b }
    };
    lanes.into_iter().fold(nothing(WHAT), choose)
}

/// Columns that are next to each other, `count` of them, each reduced over all reduced axes.
#[inline(always)]
fn side_by_side<S: Simd, const WHAT: u8, const N: usize>(
    simd: S,
    input: &[f32],
    (start, count): (usize, usize),
    axes: &Axes,
    pace: &mut Pace<'_>,
) -> [S::F; N] {
    let first = simd.splat(nothing(WHAT));
    let none = Axis { length: 1, stride: 0 };
    let (inner, outer) = match axes.reduced.split_last() {
        Some((inner, outer)) => (*inner, outer),
        None => (none, &[][..]),
    };
    let mut all = [first; N];
    for number in 0..axes.count / inner.length {
        let mut at = start + offset(outer, number);
        let mut left = inner.length;
        while left > 0 && !pace.is_over(left.min(PIECE) * N * S::LANES) {
            let mut piece = [first; N];
            for _ in 0..left.min(PIECE) {
                let values = &input[at..at + count];
                for (index, sum) in piece.iter_mut().enumerate() {
                    let value = if N == 1 {
                        simd.load_partial(values, 0.0)
                    } else {
                        simd.load(&values[index * S::LANES..])
                    };
                    *sum = combine::<S, WHAT>(simd, *sum, value);
                }
                at += inner.stride;
            }
            left -= left.min(PIECE);
            for (all, piece) in all.iter_mut().zip(piece) {
                *all = combine::<S, WHAT>(simd, *all, piece);
            }
        }
    }
    all
}
