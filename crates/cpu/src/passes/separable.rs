//! A depthwise convolution of floats and the 1x1 convolutions around it become one node where what is between them is too
//! large for the caches, or threads would wait for each other between them.

use super::Readers;
use crate::graph::{Convolution, Elements, Graph, SeparableConvolution, ValueId, Work, producers};
use nnhal_kernels::InstructionSet;
use nnhal_kernels::separable_convolution::float::Shapes;
use std::num::NonZero;

pub(crate) fn run(graph: &mut Graph<'_>, set: InstructionSet, threads: NonZero<usize>) {
    let readers = Readers::of(graph);
    let producer = producers(graph);
    for index in 0..graph.nodes.len() {
        let Some(depthwise) = constant_convolution(graph, index).filter(|it| it.is_depthwise)
        else {
            continue;
        };
        let node = &graph.nodes[index];
        if has_residual(&depthwise) {
            continue;
        }
        let before = producer[node.inputs[0]].filter(|before| {
            readers.only_reader(node.inputs[0]) == Some(index)
                && constant_convolution(graph, *before).is_some_and(|it| !has_residual(&it))
        });
        let behind = readers.only_reader(node.outputs[0]).filter(|behind| {
            graph.nodes[*behind].inputs[0] == node.outputs[0]
                && constant_convolution(graph, *behind).is_some()
        });
        let all = [[before, behind], [None, behind], [before, None]];
        let suiting = all.into_iter().find_map(|[before, behind]| {
            let nodes = [before, Some(index), behind];
            let layers = nodes.map(|node| constant_convolution(graph, node?));
            let [before, _, behind] = layers.map(|layer| layer.map(|it| it.shape));
            let shapes = Shapes { before, depthwise: depthwise.shape, behind };
            shapes.suit(set, threads.get()).then_some((nodes, layers, shapes))
        });
        if let Some((nodes, layers, shapes)) = suiting {
            join(graph, nodes, layers, shapes);
        }
    }
    super::remove_absorbed(graph);
}

/// The convolution of floats that a node is, if its filter and bias are constants.
fn constant_convolution(graph: &Graph<'_>, index: usize) -> Option<Convolution> {
    let node = &graph.nodes[index];
    let Work::Convolution(convolution) = &node.work else { return None };
    let is_constant = |position: usize| graph.values[node.inputs[position]].is_constant();
    let is_one = matches!(convolution.elements, Elements::Floats { .. });
    // One that is a part of another one by now computes nothing.
    (is_one && is_constant(1) && is_constant(2) && !node.outputs.is_empty()).then_some(*convolution)
}

fn has_residual(convolution: &Convolution) -> bool {
    matches!(convolution.elements, Elements::Floats { has_residual: true, .. })
}

/// The last of the nodes computes what all of them did.
fn join(
    graph: &mut Graph<'_>,
    nodes: [Option<usize>; 3],
    layers: [Option<Convolution>; 3],
    shapes: Shapes,
) {
    let nodes: Vec<usize> = nodes.into_iter().flatten().collect();
    let [first, _, ..] = nodes[..] else { return };
    let mut inputs: Vec<ValueId> = vec![graph.nodes[first].inputs[0]];
    for node in &nodes {
        inputs.extend_from_slice(&graph.nodes[*node].inputs[1..]);
    }
    let epilogues = layers.map(|layer| match layer?.elements {
        Elements::Floats { epilogue, .. } => Some(epilogue),
        Elements::Bytes(_) => None,
    });
    let work = Work::SeparableConvolution(Box::new(SeparableConvolution { shapes, epilogues }));
    super::replace(graph, &nodes, work, inputs);
}
