//! An activation that is alone in reading a result becomes the end of what computes it.

use super::Readers;
use crate::graph::{Finish, Graph, Work};
use nnhal_hal::FusedActivation;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::Activation;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let Some(end) = end(graph, index) else { continue };
        let Some(output) = graph.nodes[index].outputs.first() else { continue };
        let Some(next) = readers.only_reader(*output) else { continue };
        let is_float = graph.values[graph.nodes[next].outputs[0]].is_float();
        let activation = match &graph.nodes[next].work {
            Work::Operation(AnyOperation::Activation(Activation::Clamp(activation)))
                if is_float =>
            {
                Finish::Clamp(*activation)
            }
            Work::Operation(AnyOperation::HardSwish(_)) if is_float => Finish::HardSwish,
            _ => continue,
        };
        if !set_end(&mut graph.nodes[index].work, end, activation) {
            continue;
        }
        super::absorb(graph, index, next);
    }
    super::remove_absorbed(graph);
}

/// What a node does at the end, of those that can do something.
fn end(graph: &Graph<'_>, index: usize) -> Option<Finish> {
    match &graph.nodes[index].work {
        Work::Convolution(convolution) => Some(convolution.finish),
        Work::TransposedConvolution(convolution) => Some(convolution.finish),
        Work::Operation(AnyOperation::Arithmetic(arithmetic)) => {
            Some(Finish::Clamp(arithmetic.activation))
        }
        _ => None,
    }
}

/// Makes a node do `activation` at the end, if nothing else is done there and it can.
fn set_end(work: &mut Work, end: Finish, activation: Finish) -> bool {
    if end != Finish::Clamp(FusedActivation::None) {
        return false;
    }
    match (work, activation) {
        (Work::Convolution(convolution), _) => convolution.finish = activation,
        (Work::TransposedConvolution(convolution), _) => convolution.finish = activation,
        (Work::Operation(AnyOperation::Arithmetic(arithmetic)), Finish::Clamp(activation)) => {
            arithmetic.activation = activation;
        }
        _ => return false,
    }
    true
}
