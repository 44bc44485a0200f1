//! Operations that change nothing but lengths become views.

use super::Readers;
use crate::graph::{Graph, Work};
use nnhal_ops::facts::Movement;

pub(crate) fn run(graph: &mut Graph<'_>) {
    for node in &mut graph.nodes {
        if let Work::Operation(operation) = &node.work
            && operation.movement() == Some(Movement::InOrder)
        {
            // The other inputs are lengths and axes, which are settled.
            node.work = Work::View;
            node.inputs.truncate(1);
        }
    }
}

/// A convolution of floats whose result is read as a view only, with the same last length, computes
/// that view.
pub(crate) fn absorb(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        if !matches!(graph.nodes[index].work, Work::Convolution(_)) {
            continue;
        }
        let output = graph.nodes[index].outputs[0];
        let Some(next) = readers.only_reader(output) else { continue };
        let Some(view) = graph.nodes[next].outputs.first() else { continue };
        let [output, view] = [output, *view].map(|value| &graph.values[value]);
        if matches!(graph.nodes[next].work, Work::View)
            && output.is_float()
            && output.dimensions.last() == view.dimensions.last()
        {
            super::absorb(graph, index, next);
        }
    }
    super::remove_absorbed(graph);
}
