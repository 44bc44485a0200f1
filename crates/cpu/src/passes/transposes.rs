//! TRANSPOSEs that follow each other, with views and parts between them, are one copy, or a view.

use super::remove_unread_moves;
use super::strided::{MOST_MOVES, Sources, Strided, merged, part_starts};
use crate::graph::{Copy, Graph, ValueId, Work, producers};
use nnhal_kernels::movement::StridedCopy;
use nnhal_ops::AnyOperation;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let producers = producers(graph);
    let splits = part_starts(graph);
    for index in 0..graph.nodes.len() {
        let sources = Sources { graph, producers: &producers, splits: &splits };
        if let Some((work, base)) = moved(&sources, index) {
            graph.nodes[index].work = work;
            graph.nodes[index].inputs = vec![base];
        }
    }
    remove_unread_moves(graph);
}

/// What a TRANSPOSE is of the value that elements come from in the end, and that value.
fn moved(sources: &Sources<'_, '_>, index: usize) -> Option<(Work, ValueId)> {
    let graph = sources.graph;
    let node = &graph.nodes[index];
    let Work::Operation(AnyOperation::Transpose(_)) = &node.work else { return None };
    let output = node.outputs[0];
    if graph.values[output].elements() == 0 {
        return None;
    }
    let all = (1..=MOST_MOVES).rev().map(|most_moves| Strided::of(sources, output, most_moves));
    let all: Vec<Strided> = all.collect();
    let is_view = |it: &&Strided| {
        it.copy().axes.iter().all(|(_, stride)| *stride == 1)
            && it.offset == 0
            && graph.values[it.base].elements() == graph.values[output].elements()
    };
    if let Some(view) = all.iter().find(is_view) {
        return Some((Work::View, view.base));
    }
    // It goes back farthest. What is a single copy already is left as the operation that it is.
    let farthest = all.first().filter(|it| copies(sources, output, it.base) > 1)?;
    let copy = farthest.copy();
    let has_kernel = copy.axes.len() <= StridedCopy::MOST_AXES;
    has_kernel.then_some((Work::Copy(copy), farthest.base))
}

/// How many nodes between a value and the one that it comes from are copies.
fn copies(sources: &Sources<'_, '_>, mut value: ValueId, base: ValueId) -> usize {
    let mut copies = 0;
    while value != base
        && let Some(node) = sources.producers[value]
    {
        let node = &sources.graph.nodes[node];
        copies += usize::from(!matches!(node.work, Work::View));
        value = node.inputs[0];
    }
    copies
}

impl Strided {
    /// The copy that makes the value of what it comes from.
    fn copy(&self) -> Copy {
        Copy { offset: self.offset, axes: merged(&self.axes) }
    }
}
