//! [`Vectors`]: sums and extremes of floats and of bytes, in vectors.

use super::{Axes, offset, split};
use crate::InstructionSet;
use crate::team::{BLOCK, Pace, Team};
use crate::vector::{Byte, Isa, Kernel, MOST_LANES, Simd, Stored, load_bytes_or};

/// Columns whose results are computed together.
const COLUMNS: usize = 64;

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
    /// Adds the elements of rows, which begin at these places, to sums; gives false where this is not faster than [`Self::combine`].
    fn add_columns(
        _rows: impl Iterator<Item = usize>,
        _input: &[Self],
        _sums: &mut [Self::Result; COLUMNS],
    ) -> bool {
        false
    }
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
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        let result = match WHAT {
            0 => return simd.sum(all),
            1 => simd.greatest(all),
            _ => -simd.greatest(simd.of_bits(simd.ixor(simd.bits(all), simd.isplat(i32::MIN)))),
        };
        let nans = simd.sum(simd.select(simd.eq(all, all), zero, one));
        if nans > 0.0 { Self::NAN } else { result }
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

    /// In 16 bits, which have room for the sum of as many rows as are taken at a time.
    #[inline(always)]
    fn add_columns(
        mut rows: impl Iterator<Item = usize>,
        input: &[Self],
        sums: &mut [i32; COLUMNS],
    ) -> bool {
        const ROWS: usize = 128;
        loop {
            let (mut words, mut count) = ([0_i16; COLUMNS], 0);
            while count < ROWS
                && let Some(at) = rows.next()
            {
                let Some(row) = input[at..].first_chunk::<COLUMNS>() else { break };
                for (word, element) in words.iter_mut().zip(row) {
                    let element: i16 = (*element).into();
                    *word = word.wrapping_add(element);
                }
                count += 1;
            }
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum = sum.wrapping_add(word.into());
            }
            if count < ROWS {
                return true;
            }
        }
    }

    #[inline(always)]
    fn across_lanes<S: Simd, const WHAT: u8>(simd: S, all: S::I) -> i32 {
        let mut lanes = [0; MOST_LANES];
        simd.istore(all, &mut lanes);
        // By halves: without closures, and as vectors.
        let mut left = S::LANES;
        while left > 1 {
            left /= 2;
            for lane in 0..left {
                let (a, b) = (lanes[lane], lanes[left + lane]);
                lanes[lane] = match WHAT {
                    0 => a.wrapping_add(b),
                    1 => a.max(b),
                    _ => a.min(b),
                };
            }
        }
        lanes[0]
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
            if outer.is_empty() && (1..=4 * S::LANES).contains(&row.length) {
                // They follow each other.
                let input = &input[first * row.length..];
                for block in pace.blocks(output.len(), row.length) {
                    let rows = input[block.start * row.length..].chunks_exact(row.length);
                    for (output, row) in output[block].iter_mut().zip(rows) {
                        let all = short_row::<S, E, WHAT>(simd, row);
                        *output = finish(E::across_lanes::<S, WHAT>(simd, all));
                    }
                }
                return;
            }
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
        let mut results = [E::Result::default(); COLUMNS];
        let mut done = 0;
        while done < output.len() {
            let number = first + done;
            let column = number % last.length;
            let start = offset(outer, number / last.length) + column;
            let left = (last.length - column).min(output.len() - done);
            let output = &mut output[done..];
            if WHAT == 0 && left >= COLUMNS && sum_columns(input, start, axes, &mut results, pace) {
                finish_all(&results, &mut output[..COLUMNS], &finish);
                done += COLUMNS;
            } else if left >= 4 * S::LANES {
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
fn finish_all<R: Copy, U>(results: &[R; COLUMNS], output: &mut [U], finish: &impl Fn(R) -> U) {
    for (output, result) in output.iter_mut().zip(results) {
        *output = finish(*result);
    }
}

/// [`along`] of a few vectors.
#[inline(always)]
fn short_row<S: Simd, E: Element, const WHAT: u8>(simd: S, row: &[E]) -> E::Vector<S> {
    if row.len() < S::LANES {
        return E::load_partial::<S, WHAT>(simd, row);
    }
    let mut all = E::load(simd, row);
    let mut vectors = row[S::LANES..].chunks_exact(S::LANES);
    for vector in vectors.by_ref() {
        all = E::combine::<S, WHAT>(simd, all, E::load(simd, vector));
    }
    if vectors.remainder().is_empty() {
        return all;
    }
    let rest = E::load_partial::<S, WHAT>(simd, vectors.remainder());
    E::combine::<S, WHAT>(simd, all, rest)
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

/// The sums of [`COLUMNS`] that are next to each other over all reduced axes, by [`Element::add_columns`] if it does that.
#[inline(always)]
fn sum_columns<E: Element>(
    input: &[E],
    start: usize,
    axes: &Axes,
    sums: &mut [E::Result; COLUMNS],
    pace: &mut Pace<'_>,
) -> bool {
    *sums = [E::Result::default(); COLUMNS];
    let (inner, outer) = split(&axes.reduced);
    for number in 0..axes.count.checked_div(inner.length).unwrap_or(0) {
        let first = start + offset(outer, number);
        for block in pace.blocks(inner.length, COLUMNS) {
            let rows = block.map(|row| first + row * inner.stride);
            if !E::add_columns(rows, input, sums) {
                return false;
            }
        }
    }
    true
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
