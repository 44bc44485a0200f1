//! Reductions over any set of axes, and the normalizations that are made of them.

mod along;
mod arg;
mod cumulative;
mod fold;
mod integers;
mod normalization;
mod stored;
mod sum;
#[cfg(test)]
mod tests;
mod vectors;

pub use along::{AlongAxis, InstanceNormalization, LayerNormalization, OfRows, QuantizedL2};
pub use arg::{ArgExtreme, ArgReduction, Compared, arg_extreme};
pub use cumulative::{CumulativeSum, Order};
pub use integers::{IntegerReduction, ReduceIntegers};
pub use normalization::{
    Normalization, RowNormalization, instance_normalization, local_response_normalization,
};
pub use stored::{MOST_ADDED, ReduceStored, StoredReduction};
pub use sum::{Reduce, Reduction};

use crate::broadcast::offset_along;
use crate::sharing::{Cut, for_each_rows};
use crate::team::{Pace, Team};
use std::ops::Range;

/// One axis of an input, or several that are next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    length: usize,
    stride: usize,
}

/// The axes of an input, divided into those that stay and those that are reduced; neighbours of one
/// kind are one axis.
#[derive(Debug, Clone)]
struct Axes {
    kept: Vec<Axis>,
    reduced: Vec<Axis>,
    /// Elements of the input.
    input: usize,
    /// Elements of the output.
    output: usize,
    /// Elements that become one.
    count: usize,
    /// Whether the last axis is reduced.
    last_is_reduced: bool,
}

impl Axes {
    /// The axes of a contiguous input; those whose number is in `reduced` become one element.
    ///
    /// # Panics
    /// If there is no such axis.
    fn new(lengths: &[usize], reduced: &[usize]) -> Self {
        assert!(reduced.iter().all(|axis| *axis < lengths.len()), "no axes {reduced:?}");
        let is_reduced = |axis: usize| reduced.contains(&axis);
        let product = |wanted: bool| {
            let all = lengths.iter().enumerate().filter(|(axis, _)| is_reduced(*axis) == wanted);
            all.map(|(_, length)| *length).try_fold(1, usize::checked_mul)
        };
        let (output, count) = (product(false), product(true));
        let (output, count) = (output.expect("too large"), count.expect("too large"));
        let input = output.checked_mul(count).expect("too large");
        let mut axes = Self {
            kept: Vec::new(),
            reduced: Vec::new(),
            input,
            output,
            count,
            last_is_reduced: false,
        };
        let (mut stride, mut last): (usize, Option<bool>) = (1, None);
        for (axis, length) in lengths.iter().enumerate().rev() {
            if *length == 1 {
                continue;
            }
            let kind = is_reduced(axis);
            axes.last_is_reduced |= kind && last.is_none();
            let list = if kind { &mut axes.reduced } else { &mut axes.kept };
            match list.last_mut() {
                Some(before) if last == Some(kind) => before.length *= length,
                _ => list.push(Axis { length: *length, stride }),
            }
            last = Some(kind);
            stride = stride.wrapping_mul(*length);
        }
        axes.kept.reverse();
        axes.reduced.reverse();
        axes
    }

    /// Calls `work` with parts of the output and the numbers of their elements.
    ///
    /// # Panics
    /// If a slice has another size.
    fn for_each_part<T, U: Send>(
        &self,
        team: &mut Team,
        input: &[T],
        output: &mut [U],
        least: usize,
        work: impl Fn(Range<usize>, &mut [U], Pace<'_>) + Sync,
    ) {
        assert_eq!(input.len(), self.input, "an input of another size");
        assert_eq!(output.len(), self.output, "an output of another size");
        let cut = Cut { each: self.count, least, multiple: 64 };
        for_each_rows(team, (output, 1), cut, work);
    }
}

/// Where the element of that number is, counted along the axes.
#[inline(always)]
fn offset(axes: &[Axis], number: usize) -> usize {
    // Most are one axis or none, for which nothing has to be divided.
    match axes {
        [] => return 0,
        [axis] if number < axis.length => return number * axis.stride,
        _ => {}
    }
    offset_along(axes.iter().map(|axis| (axis.length, axis.stride)), number)
}

/// The innermost one of axes, and those around it.
fn split(axes: &[Axis]) -> (Axis, &[Axis]) {
    match axes.split_last() {
        Some((inner, outer)) => (*inner, outer),
        None => (Axis { length: 1, stride: 0 }, &[]),
    }
}
