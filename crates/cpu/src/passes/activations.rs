//! An activation that is alone in reading a result becomes the epilogue of what computes it.

use super::Readers;
use crate::graph::{Convolution, Elements, Epilogue, Graph, TransposedConvolution, Work};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::Activation;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let Some(present) = epilogue(graph, index) else { continue };
        let Some(output) = graph.nodes[index].outputs.first() else { continue };
        let Some(next) = readers.only_reader(*output) else { continue };
        let is_float = graph.values[graph.nodes[next].outputs[0]].is_float();
        let activation = match &graph.nodes[next].work {
            Work::Operation(AnyOperation::Activation(Activation::Clamp(activation)))
                if is_float =>
            {
                Epilogue::Clamp(*activation)
            }
            Work::Operation(AnyOperation::HardSwish(_)) if is_float => Epilogue::HardSwish,
            _ => continue,
        };
        if !set_epilogue(&mut graph.nodes[index].work, present, activation) {
            continue;
        }
        super::absorb(graph, index, next);
    }
    super::remove_absorbed(graph);
}

/// The epilogue of a node that can have one.
fn epilogue(graph: &Graph<'_>, index: usize) -> Option<Epilogue> {
    let of_elements = |elements| match elements {
        Elements::Floats { epilogue, .. } => Some(epilogue),
        Elements::Bytes(_) => None,
    };
    match &graph.nodes[index].work {
        Work::Convolution(convolution) => of_elements(convolution.elements),
        Work::TransposedConvolution(convolution) => of_elements(convolution.elements),
        Work::Operation(AnyOperation::Arithmetic(arithmetic)) => {
            Some(Epilogue::Clamp(arithmetic.activation))
        }
        _ => None,
    }
}

/// Makes `activation` the epilogue of a node, if it has no other and can have this one.
fn set_epilogue(work: &mut Work, present: Epilogue, activation: Epilogue) -> bool {
    if present != Epilogue::NONE {
        return false;
    }
    match (work, activation) {
        (
            Work::Convolution(Convolution { elements: Elements::Floats { epilogue, .. }, .. })
            | Work::TransposedConvolution(TransposedConvolution {
                elements: Elements::Floats { epilogue, .. },
                ..
            }),
            _,
        ) => *epilogue = activation,
        (Work::Operation(AnyOperation::Arithmetic(arithmetic)), Epilogue::Clamp(activation)) => {
            arithmetic.activation = activation;
        }
        _ => return false,
    }
    true
}
