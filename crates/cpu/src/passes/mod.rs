//! Rewriting a graph into one that computes the same with less work.

mod activations;
mod chains;
mod convolutions;
mod gates;
mod layout;
mod matmul;
mod means;
mod normalization;
mod padding;
mod softmax;
mod summands;
mod tables;
mod views;

use crate::graph::{Graph, ValueId};

/// All of them, in an order in which each finds what the ones before have made.
pub(crate) fn run(graph: &mut Graph<'_>) {
    views::run(graph);
    layout::run(graph);
    means::run(graph);
    convolutions::run(graph);
    views::absorb(graph);
    gates::run(graph);
    matmul::run(graph);
    normalization::run(graph);
    padding::run(graph);
    activations::run(graph);
    summands::run(graph);
    // Of sums.
    activations::run(graph);
    chains::run(graph);
    softmax::run(graph);
    tables::run(graph);
}

/// Who reads values.
struct Readers {
    /// By value: a reading node, and how many reads there are in all.
    reads: Vec<(Option<usize>, usize)>,
}

impl Readers {
    fn of(graph: &Graph<'_>) -> Self {
        let mut reads = vec![(None, 0); graph.values.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            for input in &node.inputs {
                reads[*input] = (Some(index), reads[*input].1 + 1);
            }
        }
        for output in &graph.outputs {
            reads[*output].1 += 1;
        }
        Self { reads }
    }

    /// The node that reads a value, if there is exactly one read.
    fn only_reader(&self, value: ValueId) -> Option<usize> {
        let (reader, count) = self.reads[value];
        reader.filter(|_| count == 1)
    }
}

/// By value, the node that computes it.
fn producers(graph: &Graph<'_>) -> Vec<Option<usize>> {
    let mut producers = vec![None; graph.values.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for output in &node.outputs {
            producers[*output] = Some(index);
        }
    }
    producers
}

/// The node `index` computes what `absorbed` did; gives its outputs. The nodes between must not
/// depend on them, which holds if `absorbed` alone reads what the node computed.
fn absorb(graph: &mut Graph<'_>, index: usize, absorbed: usize) -> Vec<ValueId> {
    let outputs = std::mem::take(&mut graph.nodes[absorbed].outputs);
    graph.nodes[index].outputs.clone_from(&outputs);
    graph.nodes[index].place = graph.nodes[absorbed].place;
    outputs
}

/// Removes nodes that compute nothing any more.
fn remove_absorbed(graph: &mut Graph<'_>) {
    graph.nodes.retain(|node| !node.outputs.is_empty());
}
