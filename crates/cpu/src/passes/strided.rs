//! [`Strided`]: a value as elements of another one, looked at through what only moves elements.

use crate::graph::{Graph, ValueId, Work};
use nnhal_ops::AnyOperation;
use std::collections::HashMap;

/// Operations that are looked through at most, one after the other.
pub(super) const MOST_MOVES: usize = 8;

/// Where values come from.
pub(super) struct Sources<'a, 'source> {
    pub(super) graph: &'a Graph<'source>,
    pub(super) producers: &'a [Option<usize>],
    pub(super) splits: &'a HashMap<ValueId, usize>,
}

/// By part of a SPLIT, where it begins along the axis.
pub(super) fn part_starts(graph: &Graph<'_>) -> HashMap<ValueId, usize> {
    let mut starts = HashMap::new();
    for node in &graph.nodes {
        let Work::Operation(AnyOperation::Split(split)) = &node.work else { continue };
        let mut start = 0;
        for part in &node.outputs {
            starts.insert(*part, start);
            start += graph.values[*part].dimensions[split.axis] as usize;
        }
    }
    starts
}

/// How a value's elements are among those of another one, which is contiguous.
#[derive(Debug, Clone)]
pub(super) struct Strided {
    pub(super) base: ValueId,
    pub(super) offset: usize,
    pub(super) axes: Vec<Axis>,
}

/// Lengths and strides of the axes that an axis is made of, from the first to the last, without those of length 1. What
/// repeats has a stride of 0.
pub(super) type Axis = Vec<(usize, usize)>;

pub(super) fn length(axis: &Axis) -> usize {
    axis.iter().map(|(length, _)| length).product()
}

/// The length and the stride of an axis that is only one.
pub(super) fn single(axis: &Axis) -> Option<(usize, usize)> {
    match axis[..] {
        [] => Some((1, 1)),
        [axis] => Some(axis),
        _ => None,
    }
}

/// Of the elements along an axis, this many from one on: where the first of them is, and how they follow; `None` if strides cannot say
/// it.
fn part(axis: &[(usize, usize)], begin: usize, count: usize) -> Option<(usize, Axis)> {
    let Some(((outer, stride), inner)) = axis.split_first() else { return Some((0, Vec::new())) };
    let each: usize = inner.iter().map(|(length, _)| length).product();
    let (first, before) = (begin / each, begin % each);
    if count == 0 {
        return None;
    }
    if before == 0 && count.is_multiple_of(each) && count / each <= *outer {
        let outer = (count / each > 1).then_some((count / each, *stride));
        return Some((first * stride, outer.into_iter().chain(inner.iter().copied()).collect()));
    }
    let (place, part) = (before + count <= each).then(|| part(inner, before, count))??;
    Some((first * stride + place, part))
}

/// How far from the first element those along an axis are.
pub(super) fn offsets(axis: &Axis) -> Vec<usize> {
    let along = |offsets: Vec<usize>, (length, stride): &(usize, usize)| {
        let next = |offset| (0..*length).map(move |index| offset + index * stride);
        offsets.into_iter().flat_map(next).collect()
    };
    axis.iter().fold(vec![0], along)
}

pub(super) fn contiguous(lengths: &[usize]) -> Vec<Axis> {
    let mut stride = 1;
    let mut axes: Vec<Axis> = lengths
        .iter()
        .rev()
        .map(|length| {
            let axis = if *length == 1 { Vec::new() } else { vec![(*length, stride)] };
            stride *= length;
            axis
        })
        .collect();
    axes.reverse();
    axes
}

/// All axes as one, in which those that go on where the next one ends are one.
pub(super) fn merged(axes: &[Axis]) -> Axis {
    let mut merged: Axis = Vec::new();
    for &(length, stride) in axes.iter().flatten() {
        match merged.last_mut() {
            Some(last) if last.1 == length * stride => *last = (last.0 * length, stride),
            _ => merged.push((length, stride)),
        }
    }
    merged
}

/// The same elements in their order under other lengths, if strides can say it. There are elements.
pub(super) fn reshaped(axes: &[Axis], lengths: &[usize]) -> Option<Vec<Axis>> {
    let mut merged = merged(axes);
    let mut rest = (1, 1);
    let mut result = Vec::with_capacity(lengths.len());
    for &length in lengths.iter().rev() {
        let (mut axis, mut missing) = (Vec::new(), length);
        while missing != 1 {
            if rest.0 == 1 {
                rest = merged.pop()?;
            }
            let part = rest.0.min(missing);
            if !rest.0.is_multiple_of(part) || !missing.is_multiple_of(part) {
                return None;
            }
            axis.push((part, rest.1));
            rest = (rest.0 / part, rest.1 * part);
            missing /= part;
        }
        axis.reverse();
        result.push(axis);
    }
    result.reverse();
    Some(result)
}

impl Strided {
    /// A value, looked at through at most this many of the nodes that compute it.
    pub(super) fn of(sources: &Sources<'_, '_>, value: ValueId, most_moves: usize) -> Self {
        let Sources { graph, producers, splits } = sources;
        let lengths = || graph.values[value].lengths();
        let own = || Self { base: value, offset: 0, axes: contiguous(&lengths()) };
        let Some(node) = producers[value].filter(|_| most_moves > 0) else { return own() };
        let node = &graph.nodes[node];
        let Some(input) = node.inputs.first() else { return own() };
        let shown = || Self::of(sources, *input, most_moves - 1);
        match &node.work {
            Work::View => {
                let shown = shown();
                let axes = reshaped(&shown.axes, &lengths());
                axes.map_or_else(own, |axes| Self { axes, ..shown })
            }
            Work::Operation(AnyOperation::Transpose(transpose)) => {
                let shown = shown();
                let axes = transpose.permutation.iter().map(|axis| shown.axes[*axis].clone());
                Self { axes: axes.collect(), ..shown }
            }
            Work::Copy(copy) => {
                let axes = reshaped(std::slice::from_ref(&copy.axes), &lengths());
                axes.map_or_else(own, |axes| Self { base: *input, offset: copy.offset, axes })
            }
            Work::Operation(AnyOperation::Split(split)) => {
                let before = splits.get(&value).copied().unwrap_or_default();
                let length = lengths()[split.axis];
                shown().part(split.axis, before, length).unwrap_or_else(own)
            }
            Work::Operation(AnyOperation::Slice(slice)) => {
                let mut parts = slice.begins.iter().zip(lengths()).enumerate();
                let part = |shown: Self, (axis, (begin, length)): (usize, (&u32, usize))| {
                    shown.part(axis, *begin as usize, length)
                };
                parts.try_fold(shown(), part).unwrap_or_else(own)
            }
            Work::Operation(AnyOperation::Tile(tile)) => {
                let mut shown = shown();
                for (axis, multiple) in shown.axes.iter_mut().zip(&tile.multiples) {
                    if *multiple != 1 {
                        axis.insert(0, (*multiple as usize, 0));
                    }
                }
                shown
            }
            _ => own(),
        }
    }

    /// Of the elements along an axis, this many from one on, if strides can say it.
    fn part(mut self, axis: usize, begin: usize, count: usize) -> Option<Self> {
        let (first, part) = part(&self.axes[axis], begin, count)?;
        self.offset += first;
        self.axes[axis] = part;
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_say_a_part_where_they_can() {
        let single = [(24, 10)];
        assert_eq!(part(&single, 6, 3), Some((60, vec![(3, 10)])));
        assert_eq!(part(&single, 6, 1), Some((60, vec![])));
        assert_eq!(part(&[], 0, 1), Some((0, vec![])));
        // Two groups in turn, of twelve each.
        let groups = [(12, 1), (2, 12)];
        assert_eq!(part(&groups, 0, 24), Some((0, groups.to_vec())));
        assert_eq!(part(&groups, 12, 12), Some((6, vec![(6, 1), (2, 12)])));
        assert_eq!(part(&groups, 12, 2), Some((6, vec![(2, 12)])));
        assert_eq!(part(&groups, 13, 1), Some((18, vec![])));
        assert_eq!(part(&groups, 13, 2), None);
        assert_eq!(part(&groups, 12, 3), None);
        assert_eq!(part(&groups, 12, 0), None);
    }

    #[test]
    fn strides_say_a_reshape_where_they_can() {
        // The heads of an attention.
        assert_eq!(
            reshaped(&[vec![(128, 256)], vec![(256, 1)]], &[1, 128, 4, 64]).unwrap(),
            [vec![], vec![(128, 256)], vec![(4, 64)], vec![(64, 1)]]
        );
        // The elements of a transposed matrix are no row, but their order is known.
        let transposed = [vec![(3, 1)], vec![(2, 3)]];
        assert_eq!(reshaped(&transposed, &[6]).unwrap(), [vec![(3, 1), (2, 3)]]);
        assert_eq!(reshaped(&[vec![(3, 1), (2, 3)]], &[3, 2]).unwrap(), transposed);
        assert_eq!(reshaped(&[vec![(2, 10)], vec![(3, 1)]], &[3, 2]), None);
        assert_eq!(reshaped(&[vec![], vec![(5, 2)]], &[5]).unwrap(), [vec![(5, 2)]]);
    }
}
