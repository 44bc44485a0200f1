//! Functions of 8-bit numbers that never fall are computed behind MAX_POOL_2D and REDUCE_MAX, which leave fewer
//! numbers: the greatest result is the result of the greatest.

use super::{Readers, tables};
use crate::graph::{Graph, Node, Origin, Value, Work};
use nnhal_hal::FusedActivation;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::{pooling, reduce};

pub(crate) fn run(graph: &mut Graph<'_>) {
    // They stay right: nodes that are exchanged read the values that the ones in their places read before.
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let mut at = index;
        loop {
            // At once, so that no maximum is passed by one table after the other.
            while tables::join_next(graph, &readers, at) {}
            let Some(next) = maximum_of(graph, &readers, at) else { break };
            exchange(graph, at, next);
            at = next;
        }
    }
    super::remove_absorbed(graph);
}

/// The node that alone reads what the table of a node gives, if it takes maxima of that and the table never
/// falls.
fn maximum_of(graph: &Graph<'_>, readers: &Readers, index: usize) -> Option<usize> {
    let node = &graph.nodes[index];
    let Work::Table(table) = &node.work else { return None };
    let output = *node.outputs.first()?;
    let next = readers.only_reader(output)?;
    let maximum = &graph.nodes[next];
    let Work::Operation(operation) = &maximum.work else { return None };
    let takes_maxima = match operation {
        AnyOperation::Pooling(it) => {
            it.reduction == pooling::Reduction::Max && it.activation == FusedActivation::None
        }
        AnyOperation::Reduce(it) => it.reduction == reduce::Reduction::Max,
        _ => false,
    };
    let (before, after) = (&graph.values[node.inputs[0]], &graph.values[output]);
    let fewer = graph.values[*maximum.outputs.first()?].elements() < after.elements();
    let can_be = takes_maxima && fewer && maximum.inputs[0] == output;
    (can_be && never_falls(table, before.is_signed()?, after.is_signed()?)).then_some(next)
}

/// Whether greater stored numbers have results that are no less.
fn never_falls(table: &[u8; 256], is_signed: bool, gives_signed: bool) -> bool {
    // The byte of a signed number with its highest bit turned is in the order of unsigned ones.
    let flip = |is_signed: bool| if is_signed { 0x80 } else { 0 };
    let result = |rank: u8| table[usize::from(rank ^ flip(is_signed))] ^ flip(gives_signed);
    (0..u8::MAX).all(|rank| result(rank) <= result(rank + 1))
}

/// The maximum of a table's results becomes the table's result of the maximum.
fn exchange(graph: &mut Graph<'_>, table: usize, maximum: usize) {
    let (input, result) = (graph.nodes[table].inputs[0], graph.nodes[maximum].outputs[0]);
    let between = graph.nodes[table].outputs[0];
    graph.values[between] = Value {
        operand: graph.values[input].operand.clone(),
        dimensions: graph.values[result].dimensions.clone(),
        origin: Origin::Computed,
        is_widened: false,
        index: None,
    };
    // Each in the other's place, since nodes are in an order in which they can run.
    graph.nodes.swap(table, maximum);
    let connect = |node: &mut Node, from, to| (node.inputs[0], node.outputs[0]) = (from, to);
    connect(&mut graph.nodes[table], input, between);
    connect(&mut graph.nodes[maximum], between, result);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_the_numbers_and_not_of_their_bytes() {
        let same: [u8; 256] = std::array::from_fn(|byte| byte.to_le_bytes()[0]);
        assert!(never_falls(&same, false, false) && never_falls(&same, true, true));
        assert!(!never_falls(&same, true, false) && !never_falls(&same, false, true));
        let turned = same.map(|byte| byte ^ 0x80);
        assert!(never_falls(&turned, true, false) && never_falls(&turned, false, true));
        assert!(never_falls(&[7; 256], true, false), "it may stay");
        let mut falls = same;
        falls[255] = 253;
        assert!(!never_falls(&falls, false, false));
    }
}
