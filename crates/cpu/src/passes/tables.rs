//! Functions of 8-bit numbers, element by element, become tables; tables that follow each other become one, and so do
//! those of one value that meet.

use super::Readers;
use crate::graph::{Graph, Node, Value, Work, producers};
use crate::why::Why;
use nnhal_hal::OperandType;
use nnhal_kernels::elementwise::Chain;
use nnhal_kernels::{InstructionSet, Team};
use nnhal_ops::rules::requantize::quantize;
use nnhal_ops::{AnyOperation, ArgumentSource, Call, Shape};

pub(crate) fn run(graph: &mut Graph<'_>) {
    for index in 0..graph.nodes.len() {
        if let Ok((input, table)) = table(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.work = Work::Table(Box::new(table));
            node.inputs = vec![node.inputs[input]];
        }
    }
    of_one_value(graph);
    through_floats(graph);
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

/// What the operation's reference kernel makes of all numbers there are, and which input they come in; or
/// why there is no table.
pub(super) fn table(graph: &Graph<'_>, node: &Node) -> Result<(usize, [u8; 256]), Why> {
    let Work::Operation(operation) = &node.work else { return Err(Why::Operation) };
    let candidates = match operation.by_element() {
        Some(count @ (1 | 2)) => 0..count,
        _ => return Err(Why::Operation),
    };
    let output = graph.output(node, 0);
    let is_truth = output.operand_type() == OperandType::TensorBool8;
    for argument in candidates.map(|position| graph.input(node, position)) {
        if !is_8_bit(&argument) {
            return Err(argument.of_other_type("8-bit integers"));
        }
    }
    if !is_8_bit(&output) && !is_truth {
        return Err(output.of_other_type("8-bit integers or TENSOR_BOOL8"));
    }
    let at = match operation.by_element() {
        Some(1) => 0,
        _ => beside_a_number(graph, node).ok_or_else(|| Why::Form {
            what: "one of the operands",
            found: "not a constant of one element".to_owned(),
            expected: "such a constant",
        })?,
    };
    let all: [u8; 256] = IDENTITY;
    let result = results(graph, node, operation, |position| (position == at).then_some(&all));
    Ok((at, result.ok_or(Why::Operation)?))
}

/// All numbers there are, each at its place.
const IDENTITY: [u8; 256] = {
    let mut all = [0; 256];
    let mut at = 0;
    while at < 256 {
        #[allow(clippy::cast_possible_truncation)] // Below 256.
        {
            all[at] = at as u8;
        }
        at += 1;
    }
    all
};

/// What the operation's reference kernel makes of 256 elements of some inputs, and of the constants that all others are.
fn results<'a>(
    graph: &'a Graph<'_>,
    node: &'a Node,
    operation: &AnyOperation,
    elements: impl Fn(usize) -> Option<&'a [u8; 256]>,
) -> Option<[u8; 256]> {
    let argument = |id: &usize, dimensions: &[u32], value| ArgumentSource {
        operand: &graph.values[*id].operand,
        shape: Shape::known(dimensions.iter().copied()),
        value,
    };
    let inputs = node.inputs.iter().enumerate().map(|(position, id)| match elements(position) {
        Some(elements) => argument(id, &[256], nnhal_ops::Value::Known(elements)),
        None => {
            let value = graph.values[*id].constant();
            let value = value.map_or(nnhal_ops::Value::Omitted, nnhal_ops::Value::Known);
            argument(id, &[1], value)
        }
    });
    let outputs = node.outputs.iter().map(|id| argument(id, &[256], nnhal_ops::Value::NotKnown));
    let call = Call::new(node.place.operation_type, inputs.collect::<Vec<_>>(), outputs);
    let results = operation.reference(&call).ok()?;
    results.first()?.bytes.as_slice().try_into().ok()
}

/// An operation on two functions of one value is a function of that value: `x * logistic(x)`, `x * x`.
fn of_one_value(graph: &mut Graph<'_>) {
    let producers = producers(graph);
    let mut is_changed = false;
    for index in 0..graph.nodes.len() {
        if let Some((value, table)) = table_of_one_value(graph, &producers, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.work = Work::Table(Box::new(table));
            node.inputs = vec![value];
            is_changed = true;
        }
    }
    // Tables that no one reads any more, each behind what it reads.
    while is_changed {
        let readers = Readers::of(graph);
        let is_read =
            |value: &usize| !readers.all(*value).is_empty() || readers.given_out[*value] > 0;
        let unread =
            |node: &Node| matches!(node.work, Work::Table(_)) && !node.outputs.iter().any(is_read);
        let count = graph.nodes.len();
        graph.nodes.retain(|node| !unread(node));
        is_changed = graph.nodes.len() < count;
    }
}

/// The value that both operands of a node are functions of, and what the node makes of all numbers there are.
fn table_of_one_value(
    graph: &Graph<'_>,
    producers: &[Option<usize>],
    node: &Node,
) -> Option<(usize, [u8; 256])> {
    let Work::Operation(operation) = &node.work else { return None };
    if operation.by_element() != Some(2) {
        return None;
    }
    let operands = [node.inputs[0], node.inputs[1]];
    let output = graph.output(node, 0);
    let is_truth = output.operand_type() == OperandType::TensorBool8;
    let are_alike = operands.iter().all(|id| {
        let value = &graph.values[*id];
        is_8_bit(value) && value.dimensions == output.dimensions
    });
    if !are_alike || !(is_8_bit(&output) || is_truth) {
        return None;
    }
    // What an operand is a table of, if it is one.
    let source = |id: usize| match &graph.nodes[producers[id]?].work {
        Work::Table(table) => Some((graph.nodes[producers[id]?].inputs[0], **table)),
        _ => None,
    };
    let [first, second] = operands.map(|id| source(id).unwrap_or((id, IDENTITY)));
    let (value, tables) = if first.0 == second.0 {
        (first.0, [first.1, second.1])
    } else if first.0 == operands[1] {
        (first.0, [first.1, IDENTITY])
    } else if second.0 == operands[0] {
        (second.0, [IDENTITY, second.1])
    } else {
        return None;
    };
    // A table of truth values is of fewer.
    if !is_8_bit(&graph.values[value]) {
        return None;
    }
    let result = results(graph, node, operation, |position| tables.get(position))?;
    Some((value, result))
}

/// Which of two operands is computed, where the other is a constant of one element, which changes
/// nothing about the shape.
fn beside_a_number(graph: &Graph<'_>, node: &Node) -> Option<usize> {
    let value = |at: usize| &graph.values[node.inputs[at]];
    let is_number = |at: usize| value(at).is_constant() && value(at).elements() == 1;
    let at = (0..2).find(|at| is_number(1 - at) && !value(*at).is_constant())?;
    (value(at).dimensions == graph.values[node.outputs[0]].dimensions).then_some(at)
}

/// What is done with 8-bit numbers as floats, one by one, between DEQUANTIZE and QUANTIZE becomes a table;
/// nothing at all brings them to another quantization.
fn through_floats(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for first in 0..graph.nodes.len() {
        let Some((between, last, table)) = table_through_floats(graph, &readers, first) else {
            continue;
        };
        graph.nodes[first].work = Work::Table(Box::new(table));
        for node in between {
            graph.nodes[node].outputs.clear();
        }
        super::absorb(graph, first, last);
    }
    super::remove_absorbed(graph);
}

/// The nodes between a DEQUANTIZE and its QUANTIZE, the latter, and what they make of all numbers there
/// are, if no one else reads what is between.
fn table_through_floats(
    graph: &Graph<'_>,
    readers: &Readers,
    first: usize,
) -> Option<(Vec<usize>, usize, [u8; 256])> {
    let Work::Operation(AnyOperation::Dequantize(_)) = &graph.nodes[first].work else {
        return None;
    };
    let input = &graph.values[graph.nodes[first].inputs[0]];
    let (least, _) = input.operand_type().quantized_range().filter(|_| is_8_bit(input))?;
    let mut reals: [f32; 256] = std::array::from_fn(|_| 0.0);
    for (byte, real) in (0..=u8::MAX).zip(&mut reals) {
        let stored = if least < 0 { byte.cast_signed().into() } else { i32::from(byte) };
        #[allow(clippy::cast_precision_loss)] // Of 9 bits.
        let steps = (stored - input.operand.zero_point) as f32;
        *real = steps * input.operand.scale;
    }
    let (mut value, mut between) = (*graph.nodes[first].outputs.first()?, Vec::new());
    loop {
        let next = readers.only_reader(value)?;
        let node = &graph.nodes[next];
        let output = &graph.values[*node.outputs.first()?];
        match &node.work {
            Work::Chain(steps) if node.inputs[0] == value => {
                if output.dimensions != graph.values[value].dimensions {
                    return None;
                }
                let numbers = node.inputs[1..].iter().map(|id| graph.values[*id].constant_float());
                let numbers: Vec<f32> = numbers.collect::<Option<_>>()?;
                let shapes: Vec<&[usize]> =
                    [&[256][..]].into_iter().chain(numbers.iter().map(|_| &[][..])).collect();
                let operands: Vec<&[f32]> = [&reals[..]]
                    .into_iter()
                    .chain(numbers.iter().map(std::slice::from_ref))
                    .collect();
                let chain = Chain::prepare(InstructionSet::Portable, &shapes, steps);
                let mut results = [0.0; 256];
                chain.run(&mut Team::alone(), &operands, &mut results);
                reals = results;
                between.push(next);
                value = node.outputs[0];
            }
            Work::Operation(AnyOperation::Quantize(_)) if is_8_bit(output) => {
                let range = output.operand_type().quantized_range()?;
                let nnhal_hal::Operand { scale, zero_point, .. } = *output.operand;
                let stored = |real| quantize(real, scale, zero_point, range).to_le_bytes()[0];
                return Some((between, next, reals.map(stored)));
            }
            _ => return None,
        }
    }
}

/// Tables that follow each other become one.
fn join(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        while join_next(graph, &readers, index) {}
    }
    super::remove_absorbed(graph);
}

/// Whether a node was a table whose only reader is a table too, which it is one with now. What is read does not change.
pub(super) fn join_next(graph: &mut Graph<'_>, readers: &Readers, index: usize) -> bool {
    let joined = || {
        let output = graph.nodes[index].outputs.first()?;
        let Work::Table(first) = &graph.nodes[index].work else { return None };
        let next = readers.only_reader(*output)?;
        let Work::Table(then) = &graph.nodes[next].work else { return None };
        Some((next, first.map(|stored| then[usize::from(stored)])))
    };
    let Some((next, table)) = joined() else { return false };
    graph.nodes[index].work = Work::Table(Box::new(table));
    super::absorb(graph, index, next);
    true
}
