//! From a subgraph and the shapes of its inputs to a [`Graph`].

use super::{Constant, ConstantOrigin, Graph, Node, Origin, Source, Value, ValueId, Work};
use driver::{EngineError, MemoryUse, OperationPlace};
use hal::{OperandLifeTime, OperandType, Operation, OperationType};
use ops::{AnyOperation, ArgumentSource, Call, Fault, Output, Shape};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Why there is no graph.
#[derive(Debug)]
pub(crate) enum NoGraph {
    /// Data or control flow decide about shapes; an interpreter can run it.
    NotStatic,
    /// It breaks a rule that only shows with these shapes, or takes too much memory.
    Error(EngineError),
}

impl From<EngineError> for NoGraph {
    fn from(error: EngineError) -> Self {
        Self::Error(error)
    }
}

/// A graph of some operations of a subgraph that follow each other.
#[derive(Debug)]
pub(crate) struct Stretch<'source> {
    pub(crate) graph: Graph<'source>,
    /// By input of the graph: the operand and its dimensions.
    pub(crate) inputs: Vec<(u32, Vec<u32>)>,
    /// By output of the graph: the operand.
    pub(crate) outputs: Vec<u32>,
    pub(crate) operations: usize,
}

/// A folded constant may be so many times as large as what it is computed from, and
/// [`FREE_TO_FOLD`] bytes more.
const FOLDING_GROWTH: u64 = 8;
const FREE_TO_FOLD: u64 = 1 << 16;

impl<'source> Graph<'source> {
    /// A graph for inputs of these dimensions, by input. Operations whose inputs are all constant
    /// are computed here.
    pub(crate) fn build(
        source: &'source Source,
        inputs: &[Vec<u32>],
        memory_limit: u64,
    ) -> Result<Self, NoGraph> {
        let subgraph = &source.subgraph;
        let mut graph = Self::without_nodes(source);
        graph.outputs = subgraph.outputs.iter().map(|operand| *operand as usize).collect();
        for (input, (operand, dimensions)) in subgraph.inputs.iter().zip(inputs).enumerate() {
            graph.feed(*operand, input, dimensions);
        }
        for (index, operation) in subgraph.operations.iter().enumerate() {
            graph.add(source, index, operation, memory_limit)?;
        }
        Ok(graph)
    }

    /// A graph of the operations from `first` on, as many as have shapes that are known by those of
    /// operands that `dimensions` tells.
    pub(crate) fn stretch<'a>(
        source: &'source Source,
        first: usize,
        dimensions: impl Fn(u32) -> Option<&'a [u32]>,
        memory_limit: u64,
    ) -> Result<Stretch<'source>, NoGraph> {
        let operations = &source.subgraph.operations;
        let mut graph = Self::without_nodes(source);
        let mut is_there = vec![false; graph.values.len()];
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let mut end = first;
        let mut reason = None;
        for operation in &operations[first..] {
            let is_wanted = |operand: &&u32| {
                let index = **operand as usize;
                !is_there[index] && matches!(graph.values[index].origin, Origin::Computed)
            };
            let wanted: BTreeSet<u32> =
                operation.inputs.iter().filter(is_wanted).copied().collect();
            let fed: Option<Vec<_>> = wanted
                .iter()
                .map(|operand| Some((*operand, dimensions(*operand)?.to_vec())))
                .collect();
            let Some(fed) = fed else { break };
            for (input, (operand, dimensions)) in (inputs.len()..).zip(&fed) {
                graph.feed(*operand, input, dimensions);
            }
            if let Err(error) = graph.add(source, end, operation, memory_limit) {
                for (operand, _) in &fed {
                    graph.values[*operand as usize].origin = Origin::Computed;
                }
                reason = Some(error);
                break;
            }
            inputs.extend(fed);
            for output in &operation.outputs {
                is_there[*output as usize] = true;
                outputs.push(*output);
            }
            end += 1;
        }
        if end == first {
            return Err(reason.unwrap_or(NoGraph::NotStatic));
        }
        let mut is_wanted = vec![false; graph.values.len()];
        let later = operations[end..].iter().flat_map(|operation| &operation.inputs);
        for operand in later.chain(&source.subgraph.outputs) {
            is_wanted[*operand as usize] = true;
        }
        outputs.retain(|output| is_wanted[*output as usize]);
        graph.outputs = outputs.iter().map(|output| *output as usize).collect();
        Ok(Stretch { graph, inputs, outputs, operations: end - first })
    }

    /// The operands of a subgraph, and its constants.
    fn without_nodes(source: &'source Source) -> Self {
        let subgraph = &source.subgraph;
        let mut graph = Self {
            values: Vec::with_capacity(subgraph.operands.len()),
            nodes: Vec::with_capacity(subgraph.operations.len()),
            outputs: Vec::new(),
        };
        for (index, operand) in (0..).zip(&subgraph.operands) {
            let (origin, dimensions) = match (source.constant(index), operand.lifetime) {
                (Some((constant, dimensions)), _) => (Origin::Constant(constant), dimensions),
                (None, OperandLifeTime::NoValue | OperandLifeTime::Subgraph) => {
                    (Origin::Omitted, &[][..])
                }
                (None, _) => (Origin::Computed, &[][..]),
            };
            graph.values.push(Value {
                operand: Cow::Borrowed(operand),
                dimensions: dimensions.to_vec(),
                origin,
                is_widened: false,
                index: Some(index),
            });
        }
        graph
    }

    /// Makes an operand an input.
    fn feed(&mut self, operand: u32, input: usize, dimensions: &[u32]) {
        let value = &mut self.values[operand as usize];
        value.dimensions = dimensions.to_vec();
        value.origin = Origin::Input(input);
    }

    fn add(
        &mut self,
        source: &'source Source,
        index: usize,
        operation: &'source Operation,
        memory_limit: u64,
    ) -> Result<(), NoGraph> {
        let operation_type = operation.operation_type;
        if matches!(operation_type, OperationType::If | OperationType::While) {
            return Err(NoGraph::NotStatic);
        }
        if let ([input], [output]) = (&*operation.inputs, &*operation.outputs) {
            let widens = matches!(operation_type, OperationType::Dequantize | OperationType::Cast)
                && self.values[*input as usize].is_float16()
                && self.values[*output as usize].operand_type() == OperandType::TensorFloat32;
            self.values[*output as usize].is_widened = widens;
        }
        // It was, when the program was saved.
        let is_folded = |operand: &u32| self.values[*operand as usize].is_constant();
        if operation.outputs.iter().all(is_folded) {
            return Ok(());
        }
        let place = OperationPlace { subgraph: source.name, index, operation_type };
        let failed = |fault| match fault {
            Fault::NotKnown { .. } => NoGraph::NotStatic,
            fault => NoGraph::Error(EngineError::operation(place, fault)),
        };
        let understood = |all_known| self.understood(source, operation, all_known);
        let (decoded, shapes) = understood(false)
            .or_else(|fault| match fault {
                Fault::NotKnown { .. } => understood(true),
                fault => Err(fault),
            })
            .map_err(failed)?;
        let mut dimensions = Vec::with_capacity(shapes.len());
        let mut size = 0_u64;
        for (operand, found) in operation.outputs.iter().zip(shapes) {
            let expected = source.declared(*operand);
            let Some(shape) = expected.merge(&found) else {
                let operand = *operand;
                return Err(EngineError::Shape { place, operand, found, expected }.into());
            };
            dimensions.push(shape.to_known().ok_or(NoGraph::NotStatic)?);
            let elements = shape.element_count().unwrap_or(u64::MAX);
            size = size.saturating_add(elements.saturating_mul(4));
        }
        if size > memory_limit {
            let user = MemoryUse::Operation(place);
            let (wanted, limit) = (size, memory_limit);
            return Err(EngineError::MemoryLimit { user, wanted, live: 0, limit }.into());
        }
        let folded = self.fold(source, operation, &decoded, size);
        let id = |operand: &u32| *operand as usize;
        for (operand, dimensions) in operation.outputs.iter().zip(dimensions) {
            self.values[id(operand)].dimensions = dimensions;
        }
        if let Some(outputs) = folded {
            for (operand, constant) in operation.outputs.iter().zip(outputs) {
                self.values[id(operand)].origin = Origin::Constant(constant);
            }
            return Ok(());
        }
        self.nodes.push(Node {
            place,
            work: Work::Operation(decoded),
            inputs: operation.inputs.iter().map(id).collect(),
            outputs: operation.outputs.iter().map(id).collect(),
        });
        Ok(())
    }

    /// What an operation does, and the shapes of its outputs, by the values of parameters or by those
    /// of all constants.
    fn understood(
        &self,
        source: &Source,
        operation: &Operation,
        all_known: bool,
    ) -> Result<(AnyOperation, Vec<Shape>), Fault> {
        let call = self.call(source, operation, |_, constant| {
            let bytes = if all_known { Some(constant.bytes()) } else { constant.parameter() };
            bytes.map_or(ops::Value::NotKnown, ops::Value::Known)
        });
        ops::operations::validate(&call)?;
        let decoded = AnyOperation::decode(&call)?;
        let shapes = decoded.output_shapes(&call)?;
        Ok((decoded, shapes))
    }

    /// The operation with what is known of its arguments; `value` gives those of constants, by input.
    fn call<'call>(
        &'call self,
        source: &Source,
        operation: &Operation,
        value: impl Fn(usize, &'call Constant<'source>) -> ops::Value<'call>,
    ) -> Call<'call> {
        let argument = |position: usize, id: ValueId| {
            let operand = &self.values[id];
            ArgumentSource {
                operand: &operand.operand,
                shape: match operand.origin {
                    Origin::Omitted => Shape::of_model(&operand.operand.dimensions),
                    _ => Shape::known(operand.dimensions.iter().copied()),
                },
                value: match &operand.origin {
                    Origin::Omitted => ops::Value::Omitted,
                    Origin::Constant(constant) => value(position, constant),
                    Origin::Input(_) | Origin::Computed => ops::Value::NotKnown,
                },
            }
        };
        let output = |operand: &u32| ArgumentSource {
            operand: &self.values[*operand as usize].operand,
            shape: source.declared(*operand),
            value: ops::Value::NotKnown,
        };
        let inputs = operation.inputs.iter().enumerate();
        Call::new(
            operation.operation_type,
            inputs.map(|(position, operand)| argument(position, *operand as usize)),
            operation.outputs.iter().map(output),
        )
    }

    /// The results of an operation on constants, unless they are much larger than those.
    fn fold(
        &self,
        source: &Source,
        operation: &Operation,
        decoded: &AnyOperation,
        size: u64,
    ) -> Option<Vec<Constant<'source>>> {
        let inputs = operation.inputs.iter().map(|operand| &self.values[*operand as usize]);
        let mut known = 0;
        for input in inputs.clone() {
            match &input.origin {
                Origin::Constant(constant) => known += constant.length() as u64,
                Origin::Omitted => {}
                Origin::Input(_) | Origin::Computed => return None,
            }
        }
        if size > known * FOLDING_GROWTH + FREE_TO_FOLD {
            return None;
        }
        let bytes: Vec<_> = inputs
            .clone()
            .map(|input| input.as_constant().map_or_else(Cow::default, Constant::bytes_once))
            .collect();
        if let ([half], [output]) = (&bytes[..], &operation.outputs[..])
            && self.values[*output as usize].is_widened
        {
            let origin = ConstantOrigin::Widened(half.to_vec());
            return Some(vec![Constant::new(origin, 2 * half.len())]);
        }
        let value = |position: usize, _: &_| ops::Value::Known(&bytes[position]);
        let call = self.call(source, operation, value);
        // What fails here fails when the model runs, and is reported then.
        let outputs = decoded.reference(&call).ok()?;
        let constant = |output: Output| {
            let length = output.bytes.len();
            Constant::new(ConstantOrigin::Here(Cow::Owned(output.bytes)), length)
        };
        Some(outputs.into_iter().map(constant).collect())
    }
}
