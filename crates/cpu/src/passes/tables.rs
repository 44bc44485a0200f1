//! Functions of 8-bit numbers, element by element, become tables, and tables that follow each other
//! become one.

use super::Readers;
use crate::graph::{Graph, Node, Value, Work};
use hal::OperandType;
use ops::{AnyOperation, ArgumentSource, Call, Shape};

pub(crate) fn run(graph: &mut Graph<'_>) {
    for index in 0..graph.nodes.len() {
        if let Some(table) = table(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.work = Work::Table(Box::new(table));
            node.inputs.truncate(1);
        }
    }
    join(graph);
}

/// Whether it is stored in 8 bits each of which counts.
fn is_8_bit(value: &Value<'_>) -> bool {
    matches!(
        value.operand_type(),
        OperandType::TensorQuant8Asymm
            | OperandType::TensorQuant8AsymmSigned
            | OperandType::TensorQuant8Symm
    )
}

/// What the operation's reference kernel makes of all numbers there are.
fn table(graph: &Graph<'_>, node: &Node) -> Option<[u8; 256]> {
    let Work::Operation(operation) = &node.work else { return None };
    if !matches!(
        operation,
        AnyOperation::Activation(_)
            | AnyOperation::HardSwish(_)
            | AnyOperation::Elementwise(_)
            | AnyOperation::Elu(_)
    ) {
        return None;
    }
    let (input, output) = (&graph.values[node.inputs[0]], &graph.values[node.outputs[0]]);
    if !is_8_bit(input) || !is_8_bit(output) {
        return None;
    }
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let argument = |id: &usize, value| ArgumentSource {
        operand: &graph.values[*id].operand,
        shape: Shape::known([256]),
        value,
    };
    let (first, rest) = node.inputs.split_first()?;
    let mut inputs = vec![argument(first, ops::Value::Known(&all))];
    for id in rest {
        let value = graph.values[*id].constant().map_or(ops::Value::Omitted, ops::Value::Known);
        inputs.push(argument(id, value));
    }
    let outputs = node.outputs.iter().map(|id| argument(id, ops::Value::NotKnown));
    let call = Call::new(node.place.operation_type, inputs, outputs);
    let results = operation.reference(&call).ok()?;
    results.first()?.bytes.as_slice().try_into().ok()
}

fn join(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let Some(output) = graph.nodes[index].outputs.first() else { continue };
        let Work::Table(first) = &graph.nodes[index].work else { continue };
        let Some(next) = readers.only_reader(*output) else { continue };
        let Work::Table(then) = &graph.nodes[next].work else { continue };
        let joined = first.map(|stored| then[usize::from(stored)]);
        graph.nodes[index].work = Work::Table(Box::new(joined));
        super::absorb(graph, index, next);
    }
    super::remove_absorbed(graph);
}
