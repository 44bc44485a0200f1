//! An ADD of floats of one shape of which one operand is a convolution that no one else reads becomes
//! the convolution's end.

use super::Readers;
use crate::graph::{Elements, Epilogue, Graph, Value, Work, producers};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::arithmetic::Operator;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    let mut producer = producers(graph);
    for addition in 0..graph.nodes.len() {
        let node = &graph.nodes[addition];
        let Work::Operation(AnyOperation::Arithmetic(arithmetic)) = &node.work else { continue };
        let Some(output) = node.outputs.first().map(|output| &graph.values[*output]) else {
            continue;
        };
        // Axes of length 1 before the others make no difference.
        let lengths = |value: &Value<'_>| -> Vec<u32> {
            value.dimensions.iter().copied().skip_while(|length| *length == 1).collect()
        };
        let is_plain =
            node.inputs[..2].iter().all(|input| lengths(&graph.values[*input]) == lengths(output));
        if arithmetic.operator != Operator::Add || !output.is_float() || !is_plain {
            continue;
        }
        let (epilogue, operands) =
            (Epilogue::Clamp(arithmetic.activation), [node.inputs[0], node.inputs[1]]);
        // The later one of two convolutions: the other operand is there when it runs.
        let candidate = [(0, 1), (1, 0)]
            .into_iter()
            .filter_map(|(own, other)| {
                let index = producer[operands[own]]?;
                let Work::Convolution(convolution) = &graph.nodes[index].work else { return None };
                let free = Elements::Floats { epilogue: Epilogue::NONE, has_residual: false };
                let is_free = convolution.elements == free;
                let is_alone = readers.only_reader(operands[own]) == Some(addition);
                let is_late = producer[operands[other]].is_none_or(|other| other < index);
                (is_free && is_alone && is_late).then_some((index, operands[other]))
            })
            .max();
        let Some((index, other)) = candidate else { continue };
        if let Work::Convolution(convolution) = &mut graph.nodes[index].work {
            convolution.elements = Elements::Floats { epilogue, has_residual: true };
        }
        graph.nodes[index].inputs.push(other);
        for value in super::absorb(graph, index, addition) {
            producer[value] = Some(index);
        }
    }
    super::remove_absorbed(graph);
}
