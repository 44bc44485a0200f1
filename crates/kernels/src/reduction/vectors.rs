//! [`Vectors`]: sums and extremes of floats and of bytes, in vectors.

use super::{Axes, offset, split};
use crate::InstructionSet;
use crate::team::{BLOCK, Pace, Team};
use crate::vector::{Byte, Isa, Kernel, Simd, Stored, load_bytes_or};

/// What elements become together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combination {
    /// The sum.
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// Elements that are reduced. What two of them become is given by a number: 0: the sum, 1: the greater one, 2:
/// the lesser one.
pub(super) trait Element: Copy + Sync {
    /// Elements from which on a second thread is worth waking.
    const ELEMENTS_OF_TASK: usize;
    /// Elements summed to a partial result before partial results are combined.
    const PIECE: usize;
    /// What elements become together.
    type Result: Copy + Default;
    /// Results side by side.
    type Vector<S: Simd>: Copy;

    /// An element that changes no result.
    fn nothing(what: u8) -> Self;

    fn load<S: Simd>(simd: S, from: &[Self]) -> Self::Vector<S>;
    /// Lanes without an element are [`Self::nothing`].
    fn load_partial<S: Simd, const WHAT: u8>(simd: S, from: &[Self]) -> Self::Vector<S>;
    fn store<S: Simd>(simd: S, vector: Self::Vector<S>, to: &mut [Self::Result]);
    fn combine<S: Simd, const WHAT: u8>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// One number out of a vector.
    fn across_lanes<S: Simd, const WHAT: u8>(simd: S, all: Self::Vector<S>) -> Self::Result;
}

impl Element for f32 {
    const ELEMENTS_OF_TASK: usize = 16 * 1024;
    /// So few that the error of long sums stays small.
    const PIECE: usize = 64;
    type Result = Self;
    type Vector<S: Simd> = S::F;

    #[inline(always)]
    fn nothing(what: u8) -> Self {
        match what {
            0 => 0.0,
            1 => Self::NEG_INFINITY,
            _ => Self::INFINITY,
        }
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F {
        simd.load(from)
    }

    #[inline(always)]
    fn load_partial<S: Simd, const WHAT: u8>(simd: S, from: &[Self]) -> S::F {
        simd.load_partial(from, Self::nothing(WHAT))
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, vector: S::F, to: &mut [Self]) {
        simd.store(vector, to);
    }

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
    fn across_lanes<S: Simd, const WHAT: u8>(simd: S, all: S::F) -> Self {
        if WHAT == 0 {
            return simd.sum(all);
        }
        let mut lanes = [Self::nothing(WHAT); 16];
        simd.store(all, &mut lanes);
        let choose = |a: Self, b: Self| {
            let is_better = if WHAT == 1 { b > a } else { b < a };
            if a.is_nan() || !(is_better || b.is_nan()) { a } else { b }
        };
        lanes.into_iter().fold(Self::nothing(WHAT), choose)
    }
}

/// Sums wrap.
impl<T: Byte> Element for T {
    const ELEMENTS_OF_TASK: usize = 32 * 1024;
    const PIECE: usize = BLOCK;
    type Result = i32;
    type Vector<S: Simd> = S::I;

    #[inline(always)]
    fn nothing(what: u8) -> Self {
        Self::nearest([0, Self::RANGE.0, Self::RANGE.1][usize::from(what)])
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::I {
        Stored::load(simd, from)
    }

    #[inline(always)]
    fn load_partial<S: Simd, const WHAT: u8>(simd: S, from: &[Self]) -> S::I {
        if from.len() == S::LANES {
            return Stored::load(simd, from);
        }
        load_bytes_or(simd, from, <Self as Element>::nothing(WHAT))
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, vector: S::I, to: &mut [i32]) {
        simd.istore(vector, to);
    }

    #[inline(always)]
    fn combine<S: Simd, const WHAT: u8>(simd: S, a: S::I, b: S::I) -> S::I {
        match WHAT {
            0 => simd.iadd(a, b),
            1 => simd.imax(a, b),
            _ => simd.imin(a, b),
        }
    }

    #[inline(always)]
    fn across_lanes<S: Simd, const WHAT: u8>(simd: S, all: S::I) -> i32 {
        let nothing = <Self as Element>::nothing(WHAT).wide();
        let mut lanes = [nothing; 16];
        simd.istore(all, &mut lanes);
        lanes.into_iter().fold(nothing, |a, b| match WHAT {
            0 => a.wrapping_add(b),
            1 => a.max(b),
            _ => a.min(b),
        })
    }
}

/// A prepared reduction over any axes.
#[derive(Debug, Clone)]
pub(super) struct Vectors {
    isa: Isa,
    combination: Combination,
    pub(super) axes: Axes,
}

impl Vectors {
    /// Of a contiguous tensor over the axes whose numbers are given.
    ///
    /// # Panics
    /// If there is no such axis.
    pub(super) fn prepare(
        set: InstructionSet,
        combination: Combination,
        lengths: &[usize],
        reduced: &[usize],
    ) -> Self {
        Self { isa: Isa::of(set), combination, axes: Axes::new(lengths, reduced) }
    }

    /// Computes the output: what `finish` makes of each result.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub(super) fn run<E: Element, U: Send>(
        &self,
        team: &mut Team,
        input: &[E],
        output: &mut [U],
        finish: impl Fn(E::Result) -> U + Copy + Sync,
    ) {
        let Self { isa, combination, axes } = self;
        axes.for_each_part(team, input, output, E::ELEMENTS_OF_TASK, |part, output, pace| {
            let first = part.start;
            isa.run(Part { combination: *combination, axes, input, output, first, finish, pace });
        });
    }
}

struct Part<'a, E, U, F> {
    combination: Combination,
    axes: &'a Axes,
    input: &'a [E],
    output: &'a mut [U],
    /// Number of the first output element.
    first: usize,
    finish: F,
    pace: Pace<'a>,
}

impl<E: Element, U, F: Fn(E::Result) -> U> Kernel for Part<'_, E, U, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.combination {
            Combination::Sum => self.reduce::<S, 0>(simd),
            Combination::Max => self.reduce::<S, 1>(simd),
            Combination::Min => self.reduce::<S, 2>(simd),
        }
    }
}

impl<E: Element, U, F: Fn(E::Result) -> U> Part<'_, E, U, F> {
    #[inline(always)]
    fn reduce<S: Simd, const WHAT: u8>(self, simd: S) {
        let Self { axes, input, output, first, finish, mut pace, .. } = self;
        let pace = &mut pace;
        if axes.last_is_reduced {
            let (row, outer) = split(&axes.reduced);
            for (index, output) in output.iter_mut().enumerate() {
                let start = offset(&axes.kept, first + index);
                let mut all = E::load_partial::<S, WHAT>(simd, &[]);
                let rows = axes.count.checked_div(row.length).unwrap_or(0);
                if row.length <= S::LANES {
                    // Nothing is asked between them, so that what they become stays in a register.
                    for mut block in pace.blocks(rows, row.length) {
                        while !block.is_empty() {
                            let mut piece = E::load_partial::<S, WHAT>(simd, &[]);
                            for number in block.by_ref().take(E::PIECE) {
                                let start = start + offset(outer, number);
                                let row = &input[start..start + row.length];
                                let row = E::load_partial::<S, WHAT>(simd, row);
                                piece = E::combine::<S, WHAT>(simd, piece, row);
                            }
                            all = E::combine::<S, WHAT>(simd, all, piece);
                        }
                    }
                } else {
                    for number in 0..rows {
                        let start = start + offset(outer, number);
                        let row = &input[start..start + row.length];
                        let row = along::<S, E, WHAT>(simd, row, pace);
                        all = E::combine::<S, WHAT>(simd, all, row);
                    }
                }
                *output = finish(E::across_lanes::<S, WHAT>(simd, all));
            }
            return;
        }
        // The last kept axis is contiguous: neighbours are reduced side by side.
        let (last, outer) = split(&axes.kept);
        let mut results = [E::Result::default(); 64];
        let mut done = 0;
        while done < output.len() {
            let number = first + done;
            let column = number % last.length;
            let start = offset(outer, number / last.length) + column;
            let left = (last.length - column).min(output.len() - done);
            let output = &mut output[done..];
            if left >= 4 * S::LANES {
                let count = 4 * S::LANES;
                let all = side_by_side::<S, E, WHAT, 4>(simd, input, (start, count), axes, pace);
                for (index, all) in all.into_iter().enumerate() {
                    E::store(simd, all, &mut results[index * S::LANES..]);
                }
                finish_all(&results, &mut output[..count], &finish);
                done += count;
            } else {
                let count = left.min(S::LANES);
                let [all] = side_by_side::<S, E, WHAT, 1>(simd, input, (start, count), axes, pace);
                E::store(simd, all, &mut results);
                finish_all(&results, &mut output[..count], &finish);
                done += count;
            }
        }
    }
}

/// Writes what `finish` makes of the first results.
#[inline(always)]
fn finish_all<R: Copy, U>(results: &[R; 64], output: &mut [U], finish: &impl Fn(R) -> U) {
    for (output, result) in output.iter_mut().zip(results) {
        *output = finish(*result);
    }
}

/// A row as one vector, whose lanes remain to be combined.
#[inline(always)]
fn along<S: Simd, E: Element, const WHAT: u8>(
    simd: S,
    row: &[E],
    pace: &mut Pace<'_>,
) -> E::Vector<S> {
    let first = E::load_partial::<S, WHAT>(simd, &[]);
    let mut all = first;
    for block in pace.blocks(row.len(), 1) {
        for piece in row[block].chunks(4 * S::LANES * E::PIECE) {
            let mut parts = [first; 4];
            let mut groups = piece.chunks_exact(4 * S::LANES);
            for group in groups.by_ref() {
                for (index, part) in parts.iter_mut().enumerate() {
                    let value = E::load(simd, &group[index * S::LANES..]);
                    *part = E::combine::<S, WHAT>(simd, *part, value);
                }
            }
            for rest in groups.remainder().chunks(S::LANES) {
                let rest = E::load_partial::<S, WHAT>(simd, rest);
                parts[0] = E::combine::<S, WHAT>(simd, parts[0], rest);
            }
            let [a, b, c, d] = parts;
            let a = E::combine::<S, WHAT>(simd, a, b);
            let c = E::combine::<S, WHAT>(simd, c, d);
            all = E::combine::<S, WHAT>(simd, all, E::combine::<S, WHAT>(simd, a, c));
        }
    }
    all
}

/// Columns that are next to each other, `count` of them, each reduced over all reduced axes.
#[inline(always)]
fn side_by_side<S: Simd, E: Element, const WHAT: u8, const N: usize>(
    simd: S,
    input: &[E],
    (start, count): (usize, usize),
    axes: &Axes,
    pace: &mut Pace<'_>,
) -> [E::Vector<S>; N] {
    let first = E::load_partial::<S, WHAT>(simd, &[]);
    let (inner, outer) = split(&axes.reduced);
    // Pieces may be short, and many: they are combined to others before those are.
    let (mut all, mut pieces, mut count_of_pieces) = ([first; N], [first; N], 0);
    for number in 0..axes.count.checked_div(inner.length).unwrap_or(0) {
        let mut at = start + offset(outer, number);
        let mut left = inner.length;
        while left > 0 && !pace.is_over(left.min(E::PIECE) * N * S::LANES) {
            let mut piece = [first; N];
            for _ in 0..left.min(E::PIECE) {
                let values = &input[at..at + count];
                for (index, part) in piece.iter_mut().enumerate() {
                    let value = if N == 1 {
                        E::load_partial::<S, WHAT>(simd, values)
                    } else {
                        E::load(simd, &values[index * S::LANES..])
                    };
                    *part = E::combine::<S, WHAT>(simd, *part, value);
                }
                at += inner.stride;
            }
            left -= left.min(E::PIECE);
            for (pieces, piece) in pieces.iter_mut().zip(piece) {
                *pieces = E::combine::<S, WHAT>(simd, *pieces, piece);
            }
            count_of_pieces += 1;
            if count_of_pieces == E::PIECE {
                for (all, pieces) in all.iter_mut().zip(&mut pieces) {
                    *all = E::combine::<S, WHAT>(simd, *all, *pieces);
                    *pieces = first;
                }
                count_of_pieces = 0;
            }
        }
    }
    // No `map`, which would call a closure that is compiled without the instruction set.
    for (all, pieces) in all.iter_mut().zip(pieces) {
        *all = E::combine::<S, WHAT>(simd, *all, pieces);
    }
    all
}
