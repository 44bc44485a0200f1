//! Where buffers are in the arena.

use super::Caller;
use super::layout::{BufferId, Layout};
use crate::graph::{Graph, Origin, ValueId};
use nnhal_kernels::LINE_BYTES;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

/// The arena.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Where each buffer is: those of values, then those of scratch memory by step.
    pub(crate) ranges: Vec<Range<usize>>,
    /// Of the arena.
    pub(crate) bytes: usize,
    /// Of the arena and of what is behind it.
    pub(crate) all_bytes: usize,
}

impl Layout {
    /// How many buffers values have.
    pub(crate) fn buffers(&self) -> usize {
        self.places.len()
    }

    /// Places for buffers, of which those that are needed at the same time do not overlap. `uses`
    /// are the values that each step reads and writes, `scratch` the bytes it needs beside them. The buffers in `beside` are
    /// behind the arena, in this order. `None` if no address space has room for them.
    pub(crate) fn assign(
        &self,
        graph: &Graph<'_>,
        uses: Vec<Vec<ValueId>>,
        scratch: &[usize],
        caller: Caller,
        beside: &[BufferId],
    ) -> Option<Memory> {
        let mut needs = vec![Need::default(); self.buffers() + scratch.len()];
        for (id, value) in graph.values.iter().enumerate() {
            let place = &self.places[id];
            let need = &mut needs[place.buffer];
            if place.buffer == id {
                need.bytes = value.checked_bytes()?;
            }
            if matches!(value.origin, Origin::Input(_)) {
                // Inputs are there before the first step.
                need.at(0);
                if caller == Caller::Body {
                    need.at(uses.len());
                }
            }
        }
        for (step, values) in uses.iter().enumerate() {
            for id in values {
                if matches!(graph.values[*id].origin, Origin::Input(_) | Origin::Computed) {
                    needs[self.places[*id].buffer].at(step);
                }
            }
        }
        for id in &graph.outputs {
            needs[self.places[*id].buffer].at(uses.len());
        }
        for (step, bytes) in scratch.iter().enumerate() {
            let need = &mut needs[self.buffers() + step];
            need.bytes = *bytes;
            need.at(step);
        }
        let own: Vec<usize> =
            beside.iter().map(|id| std::mem::take(&mut needs[*id].bytes)).collect();
        let mut memory = place_all(&needs)?;
        for (id, bytes) in beside.iter().zip(own) {
            // A line is between, so that the memory of what has no bytes is known too.
            let start = memory.all_bytes.checked_add(LINE_BYTES)?;
            let end = start.checked_add(bytes)?;
            memory.all_bytes = end.checked_next_multiple_of(LINE_BYTES)?;
            memory.ranges[*id] = start..end;
        }
        Some(memory)
    }
}

/// What a buffer needs.
#[derive(Debug, Clone, Default)]
struct Need {
    bytes: usize,
    /// From the first step that uses it to the last one.
    steps: Option<(usize, usize)>,
}

impl Need {
    fn at(&mut self, step: usize) {
        let (first, last) = self.steps.unwrap_or((step, step));
        self.steps = Some((first.min(step), last.max(step)));
    }
}

/// Comparisons of two buffers that are worth a smaller arena.
const MOST_COMPARISONS: usize = 1 << 24;

/// Places for all buffers; `None` if no address space has room for them.
fn place_all(needs: &[Need]) -> Option<Memory> {
    match place_largest_first(needs, MOST_COMPARISONS) {
        Err(TooManyComparisons) => place_in_order(needs),
        Ok(memory) => memory,
    }
}

#[derive(Debug)]
struct TooManyComparisons;

/// A buffer that needs room.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    id: BufferId,
    /// Whole lines.
    bytes: usize,
    first: usize,
    last: usize,
}

/// The buffers that need room; `None` if one needs more than there are addresses.
fn in_lines(needs: &[Need]) -> Option<Vec<Buffer>> {
    let mut buffers = Vec::new();
    for (id, need) in needs.iter().enumerate() {
        if let (1.., Some((first, last))) = (need.bytes, need.steps) {
            let bytes = need.bytes.checked_next_multiple_of(LINE_BYTES)?;
            buffers.push(Buffer { id, bytes, first, last });
        }
    }
    Some(buffers)
}

/// The largest first, each at the lowest place that is free while it is needed.
fn place_largest_first(
    needs: &[Need],
    mut comparisons: usize,
) -> Result<Option<Memory>, TooManyComparisons> {
    let Some(mut order) = in_lines(needs) else { return Ok(None) };
    order.sort_by_key(|buffer| (Reverse(buffer.bytes), buffer.id));
    let mut ranges = vec![0..0; needs.len()];
    let mut placed: Vec<(Range<usize>, (usize, usize))> = Vec::with_capacity(order.len());
    let mut end_of_all = 0;
    for Buffer { id, bytes, first, last } in order {
        let mut start = 0_usize;
        // `placed` is sorted by where buffers begin.
        for (taken, (other_first, other_last)) in &placed {
            comparisons = comparisons.checked_sub(1).ok_or(TooManyComparisons)?;
            if *other_last < first || last < *other_first {
                continue;
            }
            if start.checked_add(bytes).is_some_and(|end| end <= taken.start) {
                break;
            }
            start = start.max(taken.end);
        }
        let Some(end) = start.checked_add(bytes) else { return Ok(None) };
        ranges[id] = start..end;
        end_of_all = end_of_all.max(end);
        let at = placed.partition_point(|(other, _)| other.start < start);
        placed.insert(at, (start..end, (first, last)));
    }
    Ok(Some(Memory { ranges, bytes: end_of_all, all_bytes: end_of_all }))
}

/// Step by step, each at the smallest place that is free then; its bytes are free again behind its
/// last step. Takes a little more memory than [`place_largest_first`], and much less time for many
/// buffers.
fn place_in_order(needs: &[Need]) -> Option<Memory> {
    let mut order = in_lines(needs)?;
    order.sort_by_key(|buffer| (buffer.first, Reverse(buffer.bytes), buffer.id));
    let mut ranges = vec![0..0; needs.len()];
    let mut free = Free::default();
    // By last step.
    let mut in_use = BinaryHeap::new();
    let mut end_of_all = 0;
    for Buffer { id, bytes, first, last } in order {
        while let Some(Reverse((over, id))) = in_use.peek().copied()
            && over < first
        {
            in_use.pop();
            let range: &Range<usize> = &ranges[id];
            free.give_back(range.clone());
        }
        ranges[id] = match free.take(bytes) {
            Some(range) => range,
            // At the end, with what is free there.
            None => {
                let start = free.take_end(end_of_all).unwrap_or(end_of_all);
                start..start.checked_add(bytes)?
            }
        };
        end_of_all = end_of_all.max(ranges[id].end);
        in_use.push(Reverse((last, id)));
    }
    Some(Memory { ranges, bytes: end_of_all, all_bytes: end_of_all })
}

/// Parts of the arena that are free, none beside another.
#[derive(Debug, Default)]
struct Free {
    /// By where they begin, where they end.
    by_start: BTreeMap<usize, usize>,
    /// Lengths, and where they begin.
    by_length: BTreeSet<(usize, usize)>,
}

impl Free {
    fn insert(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.by_start.insert(range.start, range.end);
            self.by_length.insert((range.len(), range.start));
        }
    }

    fn remove(&mut self, range: &Range<usize>) {
        self.by_start.remove(&range.start);
        self.by_length.remove(&(range.len(), range.start));
    }

    /// The beginning of the smallest part that is long enough.
    fn take(&mut self, bytes: usize) -> Option<Range<usize>> {
        let (length, start) = *self.by_length.range((bytes, 0)..).next()?;
        self.remove(&(start..start + length));
        self.insert(start + bytes..start + length);
        Some(start..start + bytes)
    }

    /// The part that reaches to the arena's end: where it begins.
    fn take_end(&mut self, end_of_all: usize) -> Option<usize> {
        let (start, end) = self.by_start.last_key_value().map(|(start, end)| (*start, *end))?;
        (end == end_of_all).then(|| {
            self.remove(&(start..end));
            start
        })
    }

    fn give_back(&mut self, range: Range<usize>) {
        let Range { mut start, mut end } = range;
        let before = self.by_start.range(..start).next_back().map(|(start, end)| (*start, *end));
        if let Some((before, _)) = before.filter(|(_, end)| *end == start) {
            self.remove(&(before..start));
            start = before;
        }
        if let Some(behind) = self.by_start.get(&end).copied() {
            self.remove(&(end..behind));
            end = behind;
        }
        self.insert(start..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn need(bytes: usize, first: usize, last: usize) -> Need {
        Need { bytes, steps: Some((first, last)) }
    }

    #[test]
    fn what_is_over_makes_room() {
        // A chain: each value is needed for two steps, so two places are enough.
        let chain: Vec<Need> = (0..10).map(|step| need(640, step, step + 1)).collect();
        for place in [place_all, place_in_order] {
            assert_eq!(place(&chain).unwrap().bytes, 1280);
            assert_eq!(place(&[need(64, 0, 0), need(64, 1, 1)]).unwrap().bytes, 64);
            assert_eq!(place(&[need(0, 0, 5), Need { bytes: 9, steps: None }]).unwrap().bytes, 0);
            // What is free at the end grows.
            assert_eq!(place(&[need(64, 0, 0), need(640, 1, 1)]).unwrap().bytes, 640);
        }
    }

    #[test]
    fn more_than_addresses_is_nothing() {
        let half = usize::MAX / 2 + 1;
        for place in [place_all, place_in_order] {
            assert!(place(&[need(half, 0, 1), need(half, 0, 1)]).is_none());
            assert!(place(&[need(usize::MAX, 0, 1)]).is_none());
            assert_eq!(place(&[need(half, 0, 0), need(half, 1, 1)]).unwrap().bytes, half);
        }
    }

    #[test]
    fn very_many_buffers_are_placed_in_a_moment() {
        let needs: Vec<Need> = (0..100_000).map(|index| need(640, 0, index)).collect();
        assert!(place_largest_first(&needs, MOST_COMPARISONS).is_err());
        assert_eq!(place_all(&needs).unwrap().bytes, 64_000_000);
    }

    proptest! {
        #[test]
        fn buffers_needed_together_do_not_overlap(
            needs in prop::collection::vec((0..500_usize, 0..12_usize, 0..5_usize), 0..40)
        ) {
            let needs: Vec<Need> =
                needs.into_iter().map(|(bytes, first, more)| need(bytes, first, first + more)).collect();
            for memory in [place_all(&needs).unwrap(), place_in_order(&needs).unwrap()] {
                for (a, one) in needs.iter().enumerate() {
                    prop_assert!(memory.ranges[a].len() >= one.bytes);
                    prop_assert!(memory.ranges[a].end <= memory.bytes);
                    prop_assert!(memory.ranges[a].start.is_multiple_of(LINE_BYTES));
                    for (b, other) in needs.iter().enumerate().skip(a + 1) {
                        let ((first, last), (from, to)) = (one.steps.unwrap(), other.steps.unwrap());
                        let (a, b) = (&memory.ranges[a], &memory.ranges[b]);
                        let together = first <= to && from <= last;
                        let overlap = a.start < b.end && b.start < a.end;
                        prop_assert!(!(together && overlap), "{a:?} and {b:?}");
                    }
                }
            }
        }
    }
}
