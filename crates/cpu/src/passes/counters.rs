//! A WHILE that counts from constants on, and ends when a comparison of its counters says so: how many rounds it takes
//! is known when the model is prepared, and its counters need no steps.

use crate::graph::{
    ControlFlowKind, Counted, Counter, Graph, Node, Origin, Value, ValueId, Work, producers,
};
use nnhal_hal::FusedActivation;
use nnhal_kernels::ElementType;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::arithmetic::{Arithmetic, Operator};
use nnhal_ops::operations::comparison::Comparison;
use nnhal_ops::operations::logical::Logical;
use std::collections::HashMap;

/// Rounds of a loop that are counted at most, one by one.
const MOST_ROUNDS: u64 = 1 << 14;

/// Nodes of a condition at most, which are computed for each round that is counted.
const MOST_NODES: usize = 16;

pub(crate) fn run(graph: &mut Graph<'_>) {
    for node in &graph.nodes {
        let Work::ControlFlow(index) = node.work else { continue };
        let flow = &mut graph.control_flow[index];
        let (ControlFlowKind::While, [condition, body]) = (flow.kind, &mut *flow.graphs) else {
            continue;
        };
        let firsts = node.inputs.iter().map(|id| integer(&graph.values[*id]));
        let counters = counters(body, firsts);
        let Some(rounds) = rounds(condition, &counters) else { continue };
        // What computed them is not needed, unless the body reads what comes next.
        for Counter { variable, id, .. } in &counters {
            body.outputs[*variable] = *id;
        }
        let reads = body.reads();
        body.nodes.retain(|node| match &node.work {
            Work::Operation(AnyOperation::Arithmetic(_)) => reads[node.outputs[0]] > 0,
            _ => true,
        });
        condition.nodes.clear();
        condition.outputs.clear();
        flow.counted = Some(Counted { rounds, counters });
    }
}

/// The value of a constant that is one integer.
fn integer(value: &Value<'_>) -> Option<i64> {
    is_integer(value)
        .then(|| value.as_constant()?.parameter())
        .flatten()
        .and_then(|bytes| bytes.try_into().map(|it| i64::from(i32::from_le_bytes(it))).ok())
}

fn is_integer(value: &Value<'_>) -> bool {
    value.elements() == 1 && value.element_type() == Some(ElementType::I32)
}

/// The variables of a loop that begin with a constant and to which each round adds one. `firsts` are what variables begin with.
fn counters(body: &Graph<'_>, firsts: impl Iterator<Item = Option<i64>>) -> Vec<Counter> {
    let producers = producers(body);
    let inputs = inputs(body);
    let counter = |(variable, (first, output)): (usize, (Option<i64>, &ValueId))| {
        let (first, id) = (first?, *inputs.get(&variable)?);
        let step =
            if *output == id { 0 } else { step(body, &body.nodes[producers[*output]?], id)? };
        is_integer(&body.values[id]).then_some(Counter { variable, id, first, step })
    };
    firsts.zip(&body.outputs).enumerate().filter_map(counter).collect()
}

/// By position, which values are inputs.
fn inputs(graph: &Graph<'_>) -> HashMap<usize, ValueId> {
    let values = graph.values.iter().enumerate();
    let position = |(id, value): (ValueId, &Value<'_>)| match value.origin {
        Origin::Input(position) => Some((position, id)),
        _ => None,
    };
    values.filter_map(position).collect()
}

/// What a node adds to a value.
fn step(graph: &Graph<'_>, node: &Node, to: ValueId) -> Option<i64> {
    let Work::Operation(AnyOperation::Arithmetic(Arithmetic {
        operator,
        activation: FusedActivation::None,
    })) = node.work
    else {
        return None;
    };
    let constant = |position: usize| integer(&graph.values[node.inputs[position]]);
    match (operator, node.inputs[0] == to, node.inputs[1] == to) {
        (Operator::Add, true, false) => constant(1),
        (Operator::Add, false, true) => constant(0),
        (Operator::Sub, true, false) => constant(1)?.checked_neg(),
        _ => None,
    }
}

/// How many rounds a loop takes whose condition reads nothing but these counters; `None` if it reads something else, if there are too
/// many, or if a counter does not hold its value in the end.
fn rounds(condition: &Graph<'_>, counters: &[Counter]) -> Option<u64> {
    let [output] = *condition.outputs else { return None };
    if condition.nodes.len() > MOST_NODES {
        return None;
    }
    let mut values: Vec<Option<i64>> = condition.values.iter().map(integer).collect();
    let inputs = inputs(condition);
    let rounds = (0..=MOST_ROUNDS).find_map(|round| {
        for counter in counters {
            if let Some(id) = inputs.get(&counter.variable) {
                values[*id] = Some(counter.value(round));
            }
        }
        for node in &condition.nodes {
            values[node.outputs[0]] = computed(node, &values);
        }
        match values[output] {
            Some(0) => Some(Some(round)),
            Some(_) => None,
            None => Some(None),
        }
    })??;
    let holds = |counter: &Counter| i32::try_from(counter.value(rounds)).is_ok();
    counters.iter().all(holds).then_some(rounds)
}

/// What a node of a condition computes of integers and truth values.
fn computed(node: &Node, values: &[Option<i64>]) -> Option<i64> {
    let Work::Operation(operation) = &node.work else { return None };
    let input = |position: usize| values[*node.inputs.get(position)?];
    let is_true = match operation {
        AnyOperation::Comparison(comparison) => {
            let (a, b) = (input(0)?, input(1)?);
            match comparison {
                Comparison::Equal => a == b,
                Comparison::NotEqual => a != b,
                Comparison::Less => a < b,
                Comparison::LessEqual => a <= b,
                Comparison::Greater => a > b,
                Comparison::GreaterEqual => a >= b,
            }
        }
        AnyOperation::Logical(Logical::And) => input(0)? != 0 && input(1)? != 0,
        AnyOperation::Logical(Logical::Or) => input(0)? != 0 || input(1)? != 0,
        AnyOperation::Logical(Logical::Not) => input(0)? == 0,
        _ => return None,
    };
    Some(i64::from(is_true))
}
