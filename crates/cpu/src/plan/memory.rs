//! Where buffers lie in the arena.

use super::layout::Layout;
use crate::graph::{Graph, Origin, ValueId};
use kernels::LINE_BYTES;
use std::ops::Range;

/// Index of a buffer: a piece of the arena that belongs to values, or to a step's scratch memory.
pub(crate) type BufferId = usize;

/// The arena.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Where each buffer lies: those of values, then those of scratch memory by step.
    pub(crate) ranges: Vec<Range<usize>>,
    pub(crate) bytes: usize,
}

impl Layout {
    /// How many buffers values have.
    pub(crate) fn buffers(&self) -> usize {
        self.places.len()
    }

    /// Places for buffers, of which those that are needed at the same time do not overlap. `uses`
    /// are the values that each step reads and writes, `scratch` the bytes it needs beside them.
    pub(crate) fn assign(
        &self,
        graph: &Graph<'_>,
        uses: Vec<Vec<ValueId>>,
        scratch: &[usize],
    ) -> Memory {
        let mut needs = vec![Need::default(); self.buffers() + scratch.len()];
        for (id, value) in graph.values.iter().enumerate() {
            let place = &self.places[id];
            let need = &mut needs[place.buffer];
            if place.buffer == id {
                need.bytes = value.bytes();
            }
            if matches!(value.origin, Origin::Input(_)) {
                // Inputs are there before the first step.
                need.at(0);
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
        place_all(&needs)
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

/// The largest first, each at the lowest place that is free while it is needed.
fn place_all(needs: &[Need]) -> Memory {
    let mut order: Vec<BufferId> =
        (0..needs.len()).filter(|id| needs[*id].bytes > 0 && needs[*id].steps.is_some()).collect();
    order.sort_by_key(|id| (std::cmp::Reverse(needs[*id].bytes), *id));
    let mut ranges = vec![0..0; needs.len()];
    let mut placed: Vec<BufferId> = Vec::with_capacity(order.len());
    let mut end_of_all = 0;
    for id in order {
        let bytes = needs[id].bytes.next_multiple_of(LINE_BYTES);
        let (first, last) = needs[id].steps.unwrap_or_default();
        let mut start = 0;
        // `placed` is sorted by where buffers begin.
        for other in &placed {
            let (other_first, other_last) = needs[*other].steps.unwrap_or_default();
            if other_last < first || last < other_first {
                continue;
            }
            let taken: &Range<usize> = &ranges[*other];
            if start + bytes <= taken.start {
                break;
            }
            start = start.max(taken.end.next_multiple_of(LINE_BYTES));
        }
        ranges[id] = start..start + bytes;
        end_of_all = end_of_all.max(start + bytes);
        let at = placed.partition_point(|other| ranges[*other].start < start);
        placed.insert(at, id);
    }
    Memory { ranges, bytes: end_of_all }
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
        // A chain: each value lives for two steps, so two places are enough.
        let chain: Vec<Need> = (0..10).map(|step| need(640, step, step + 1)).collect();
        assert_eq!(place_all(&chain).bytes, 1280);
        assert_eq!(place_all(&[need(64, 0, 0), need(64, 1, 1)]).bytes, 64);
        assert_eq!(place_all(&[need(0, 0, 5), Need { bytes: 9, steps: None }]).bytes, 0);
    }

    proptest! {
        #[test]
        fn buffers_needed_together_lie_apart(
            needs in prop::collection::vec((0..500_usize, 0..12_usize, 0..5_usize), 0..40)
        ) {
            let needs: Vec<Need> =
                needs.into_iter().map(|(bytes, first, more)| need(bytes, first, first + more)).collect();
            let memory = place_all(&needs);
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
