//! A number that all elements of a product's right matrices are multiplied with is a factor of its left ones instead, where
//! these have no more elements: attentions scale keys, of which there are more than queries.

use crate::graph::{Graph, ValueId, Work, producers};
use nnhal_hal::FusedActivation;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::arithmetic::Operator;
use std::collections::HashMap;

/// Operations between a factor and a product at most.
const MOST_MOVES: usize = 8;

/// To be run before products read through what moves elements.
pub(crate) fn run(graph: &mut Graph<'_>) {
    let (reads, producers) = (graph.reads(), producers(graph));
    // By product, the node with the factor.
    let mut moved = HashMap::new();
    let mut is_moved = vec![false; graph.nodes.len()];
    for index in 0..graph.nodes.len() {
        if let Some(factor) = factor_of_right(graph, &reads, &producers, index) {
            exchange(graph, factor, index);
            moved.insert(index, factor.node);
            is_moved[factor.node] = true;
        }
    }
    if moved.is_empty() {
        return;
    }
    let mut nodes: Vec<_> = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
    for index in 0..nodes.len() {
        let before = moved.get(&index).and_then(|factor| nodes[*factor].take());
        graph.nodes.extend(before);
        if !is_moved[index] {
            graph.nodes.extend(nodes[index].take());
        }
    }
}

/// A multiplication with one number.
#[derive(Debug, Clone, Copy)]
struct Factor {
    node: usize,
    /// Which of its inputs is multiplied.
    position: usize,
    /// The node that reads the result, and as which of its inputs.
    reader: (usize, usize),
}

/// What a product's right matrices are multiplied with before they are moved.
fn factor_of_right(
    graph: &Graph<'_>,
    reads: &[usize],
    producers: &[Option<usize>],
    index: usize,
) -> Option<Factor> {
    let Work::Operation(AnyOperation::BatchMatmul(_)) = &graph.nodes[index].work else {
        return None;
    };
    let left = &graph.values[*graph.nodes[index].inputs.first()?];
    let mut reader = (index, 1);
    for _ in 0..=MOST_MOVES {
        let value = *graph.nodes[reader.0].inputs.get(reader.1)?;
        let node = producers[value].filter(|_| reads[value] == 1)?;
        match &graph.nodes[node].work {
            Work::View | Work::Operation(AnyOperation::Transpose(_) | AnyOperation::Tile(_)) => {
                reader = (node, 0);
            }
            Work::Operation(AnyOperation::Arithmetic(it))
                if it.operator == Operator::Mul && it.activation == FusedActivation::None =>
            {
                let scaled = &graph.values[value];
                let inputs = &graph.nodes[node].inputs;
                let is_number = |input: ValueId| graph.values[input].constant_float().is_some();
                let is_scaled = |position: usize| {
                    let input = &graph.values[inputs[position]];
                    input.dimensions == scaled.dimensions && is_number(inputs[1 - position])
                };
                let position = (0..2).find(|position| is_scaled(*position))?;
                let is_smaller = left.is_float() && left.elements() <= scaled.elements();
                return is_smaller.then_some(Factor { node, position, reader });
            }
            _ => return None,
        }
    }
    None
}

/// Has a factor multiply the left matrices of the product `index`.
fn exchange(graph: &mut Graph<'_>, factor: Factor, index: usize) {
    let Factor { node, position, reader: (reader, read) } = factor;
    let left = graph.nodes[index].inputs[0];
    let scaled = graph.nodes[node].outputs[0];
    graph.nodes[reader].inputs[read] =
        std::mem::replace(&mut graph.nodes[node].inputs[position], left);
    graph.nodes[index].inputs[0] = scaled;
    let (operand, dimensions) =
        (graph.values[left].operand.clone(), graph.values[left].dimensions.clone());
    let value = &mut graph.values[scaled];
    (value.operand, value.dimensions) = (operand, dimensions);
    (value.is_widened, value.index) = (false, None);
}
