//! Functions that never fall are computed behind MAX_POOL_2D and REDUCE_MAX, which leave fewer numbers: the
//! greatest result is the result of the greatest.

use super::{Readers, tables};
use crate::graph::{Graph, Node, Origin, Value, Work};
use nnhal_hal::{FusedActivation, OperandType};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::{pooling, reduce};

/// Maxima that an operation passes, at most: there may be many of both, one after the other.
const MOST_PASSED: usize = 16;

/// Of operations whose results are floats. Those that can be a step of what computes their argument, and that stays, cost
/// little where they are.
pub(crate) fn run(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    let mut stays = vec![false; graph.values.len()];
    for node in &graph.nodes {
        let Work::Operation(operation) = &node.work else { continue };
        if operation.by_element().is_some() && graph.output(node, 0).is_float() {
            stays[node.outputs[0]] = !operation.never_falls() || stays[node.inputs[0]];
        }
    }
    // The last ones first, which are in the way of those before them.
    for index in (0..graph.nodes.len()).rev() {
        let mut at = index;
        for _ in 0..MOST_PASSED {
            let can_pass = gives_rising_floats(graph, &graph.nodes[at], &stays);
            let Some(next) = maximum_of(graph, &readers, at).filter(|_| can_pass) else { break };
            exchange(graph, at, next);
            at = next;
        }
    }
}

/// Whether a node is an operation that never falls and gives floats, of numbers of which there are maxima and that none computes
/// that stays.
fn gives_rising_floats(graph: &Graph<'_>, node: &Node, stays: &[bool]) -> bool {
    let (Work::Operation(operation), Some(&input)) = (&node.work, node.inputs.first()) else {
        return false;
    };
    let has_maxima = match graph.values[input].operand_type() {
        OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => true,
        _ => graph.values[input].is_float(),
    };
    operation.never_falls() && has_maxima && graph.output(node, 0).is_float() && !stays[input]
}

/// Of functions of 8-bit numbers, which are tables.
pub(crate) fn run_of_tables(graph: &mut Graph<'_>) {
    // They stay right: nodes that are exchanged read the values that the ones in their places read before.
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let mut at = index;
        loop {
            // At once, so that no maximum is passed by one table after the other.
            while tables::join_next(graph, &readers, at) {}
            let can_pass = is_rising_table(graph, &graph.nodes[at]);
            let Some(next) = maximum_of(graph, &readers, at).filter(|_| can_pass) else { break };
            exchange(graph, at, next);
            at = next;
        }
    }
    super::remove_absorbed(graph);
}

/// Whether a node is a table that never falls.
fn is_rising_table(graph: &Graph<'_>, node: &Node) -> bool {
    let (Work::Table(table), Some(output)) = (&node.work, node.outputs.first()) else {
        return false;
    };
    let signed = |value: usize| graph.values[value].is_signed();
    match (signed(node.inputs[0]), signed(*output)) {
        (Some(before), Some(after)) => never_falls(table, before, after),
        _ => false,
    }
}

/// The node that alone reads what a node gives, if it takes maxima of that.
fn maximum_of(graph: &Graph<'_>, readers: &Readers, index: usize) -> Option<usize> {
    let output = *graph.nodes[index].outputs.first()?;
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
    let fewer =
        graph.values[*maximum.outputs.first()?].elements() < graph.values[output].elements();
    (takes_maxima && fewer && maximum.inputs[0] == output).then_some(next)
}

/// Whether greater stored numbers have results that are no less.
fn never_falls(table: &[u8; 256], is_signed: bool, gives_signed: bool) -> bool {
    // The byte of a signed number with its highest bit turned is in the order of unsigned ones.
    let flip = |is_signed: bool| if is_signed { 0x80 } else { 0 };
    let result = |rank: u8| table[usize::from(rank ^ flip(is_signed))] ^ flip(gives_signed);
    (0..u8::MAX).all(|rank| result(rank) <= result(rank + 1))
}

/// The maximum of a function's results becomes the function's result of the maximum.
fn exchange(graph: &mut Graph<'_>, function: usize, maximum: usize) {
    let (input, result) = (graph.nodes[function].inputs[0], graph.nodes[maximum].outputs[0]);
    let between = graph.nodes[function].outputs[0];
    graph.values[between] = Value {
        operand: graph.values[input].operand.clone(),
        dimensions: graph.values[result].dimensions.clone(),
        origin: Origin::Computed,
        is_widened: graph.values[input].is_widened,
        index: None,
    };
    // Each in the other's place, since nodes are in an order in which they can run.
    graph.nodes.swap(function, maximum);
    let connect = |node: &mut Node, from, to| (node.inputs[0], node.outputs[0]) = (from, to);
    connect(&mut graph.nodes[function], input, between);
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
