//! Functions of 8-bit numbers, element by element, become tables, and tables that follow each other
//! become one.

use super::Readers;
use crate::graph::{Graph, Node, Value, Work};
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
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let argument = |id: &usize, dimensions: &[u32], value| ArgumentSource {
        operand: &graph.values[*id].operand,
        shape: Shape::known(dimensions.iter().copied()),
        value,
    };
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for (position, id) in node.inputs.iter().enumerate() {
        inputs.push(if position == at {
            argument(id, &[256], nnhal_ops::Value::Known(&all))
        } else {
            let value = graph.values[*id]
                .constant()
                .map_or(nnhal_ops::Value::Omitted, nnhal_ops::Value::Known);
            argument(id, &[1], value)
        });
    }
    let outputs = node.outputs.iter().map(|id| argument(id, &[256], nnhal_ops::Value::NotKnown));
    let call = Call::new(node.place.operation_type, inputs, outputs);
    let results = operation.reference(&call).map_err(|_| Why::Operation)?;
    let table = results.first().and_then(|it| it.bytes.as_slice().try_into().ok());
    Ok((at, table.ok_or(Why::Operation)?))
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
