//! What an attention does with its scores becomes one node: SOFTMAX along the last axis, the factor
//! that the scores are multiplied with before, and the mask that is added.

use super::Readers;
use crate::graph::{Graph, MaskedSoftmax, ValueId, Work};
use nnhal_kernels::elementwise::{Binary, Step};
use nnhal_ops::AnyOperation;

/// To be run when operations by element are chains.
pub(crate) fn run(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let Some((factor, inputs)) = adjusted(graph, index) else { continue };
        let Some(next) = readers.only_reader(graph.nodes[index].outputs[0]) else { continue };
        let Work::Operation(AnyOperation::Softmax(softmax)) = &graph.nodes[next].work else {
            continue;
        };
        let is_last = softmax.axis + 1 == graph.input(&graph.nodes[next], 0).dimensions.len();
        if !is_last {
            continue;
        }
        let beta = softmax.beta;
        let work = Work::Softmax(MaskedSoftmax { beta, factor });
        super::replace(graph, &[index, next], work, inputs);
    }
    super::remove_absorbed(graph);
    take_factors(graph);
}

/// A number that all scores are multiplied with before becomes a part of the factor, also where views are between.
fn take_factors(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let Some((factor, inputs)) = adjusted(graph, index) else { continue };
        let [scores] = inputs[..] else { continue };
        let mut value = graph.nodes[index].outputs[0];
        let Some(first) = readers.only_reader(value) else { continue };
        let mut next = Some(first);
        while let Some(view) = next
            && matches!(graph.nodes[view].work, Work::View)
        {
            value = graph.nodes[view].outputs[0];
            next = readers.only_reader(value);
        }
        let Some(softmax) = next.map(|it| &mut graph.nodes[it]) else { continue };
        if softmax.inputs[0] != value {
            continue;
        }
        let length = graph.values[value].dimensions.len();
        softmax.work = match &softmax.work {
            Work::Operation(AnyOperation::Softmax(it)) if it.axis + 1 == length => {
                softmax.inputs.truncate(1);
                Work::Softmax(MaskedSoftmax { beta: it.beta, factor })
            }
            Work::Softmax(it) => Work::Softmax(MaskedSoftmax { factor: it.factor * factor, ..*it }),
            _ => continue,
        };
        graph.nodes[first].inputs[0] = scores;
        graph.nodes[index].outputs.clear();
    }
    super::remove_absorbed(graph);
}

/// What a chain multiplies with, and its scores and mask, if that is all that it does.
fn adjusted(graph: &Graph<'_>, index: usize) -> Option<(f32, Vec<ValueId>)> {
    let node = &graph.nodes[index];
    let Work::Chain(steps) = &node.work else { return None };
    let output = &graph.values[*node.outputs.first()?];
    // What broadcasts to no more elements has the same axes, but for those of length 1 before them.
    let is_whole = |value: ValueId| graph.values[value].elements() == output.elements();
    let scalar = |operand: usize| graph.values[node.inputs[operand]].constant_float();
    let (factor, scores, mask) = match steps[..] {
        [Step::Binary(Binary::Mul, factor)] => (scalar(factor)?, 0, None),
        [Step::Binary(Binary::Mul, factor), Step::Binary(Binary::Add, mask)] => {
            (scalar(factor)?, 0, Some(mask))
        }
        [Step::Binary(Binary::Add, other)] if is_whole(node.inputs[0]) => (1.0, 0, Some(other)),
        [Step::Binary(Binary::Add, other)] => (1.0, other, Some(0)),
        _ => return None,
    };
    let scores = node.inputs[scores];
    let columns = output.dimensions.last();
    let mask = mask.map(|mask| node.inputs[mask]);
    let is_mask = |mask: ValueId| graph.values[mask].dimensions.last() == columns;
    let fits = is_whole(scores) && mask.is_none_or(is_mask);
    fits.then(|| (factor, [scores].into_iter().chain(mask).collect()))
}
