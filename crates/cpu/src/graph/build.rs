//! From a subgraph and the shapes of its inputs to a [`Graph`].

use super::{Constant, ConstantOrigin, Graph, Node, Origin, Source, Value, ValueId, Work};
use driver::{EngineError, MemoryUse, OperationPlace};
use hal::model::SubgraphName;
use hal::{OperandLifeTime, OperandType, Operation, OperationType};
use ops::{AnyOperation, ArgumentSource, Call, Fault, Output, Shape};
use std::borrow::Cow;

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
        let mut graph = Self {
            values: Vec::with_capacity(subgraph.operands.len()),
            nodes: Vec::with_capacity(subgraph.operations.len()),
            outputs: subgraph.outputs.iter().map(|operand| *operand as usize).collect(),
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
                index: Some(index),
            });
        }
        for (input, (operand, dimensions)) in subgraph.inputs.iter().zip(inputs).enumerate() {
            let value = &mut graph.values[*operand as usize];
            value.dimensions.clone_from(dimensions);
            value.origin = Origin::Input(input);
        }
        for (index, operation) in subgraph.operations.iter().enumerate() {
            graph.add(source, index, operation, memory_limit)?;
        }
        Ok(graph)
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
        // It was, when the program was saved.
        let is_folded = |operand: &u32| self.values[*operand as usize].is_constant();
        if operation.outputs.iter().all(is_folded) {
            return Ok(());
        }
        let place = OperationPlace { subgraph: SubgraphName::Main, index, operation_type };
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
        let of_output = |operand: &u32| &self.values[*operand as usize];
        if let ([half], [input], [output]) =
            (&bytes[..], &operation.inputs[..], &operation.outputs[..])
            && of_output(input).is_float16()
            && of_output(output).operand_type() == OperandType::TensorFloat32
            && matches!(decoded, AnyOperation::Dequantize(_) | AnyOperation::Cast(_))
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
