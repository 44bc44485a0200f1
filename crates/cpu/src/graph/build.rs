//! From a subgraph and the shapes of its inputs to a [`Graph`].

use super::{Graph, Node, Origin, Source, Value, ValueId, Work};
use driver::{EngineError, MemoryUse, OperationPlace};
use hal::model::SubgraphName;
use hal::{OperandLifeTime, Operation, OperationType};
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
            let constant = source.constant(index).map(Cow::Borrowed).map(Origin::Constant);
            graph.values.push(Value {
                operand: Cow::Borrowed(operand),
                dimensions: if constant.is_some() {
                    operand.dimensions.clone()
                } else {
                    Vec::new()
                },
                origin: constant.unwrap_or(match operand.lifetime {
                    OperandLifeTime::NoValue | OperandLifeTime::Subgraph => Origin::Omitted,
                    _ => Origin::Computed,
                }),
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
        let place = OperationPlace { subgraph: SubgraphName::Main, index, operation_type };
        let failed = |fault| match fault {
            Fault::NotKnown { .. } => NoGraph::NotStatic,
            fault => NoGraph::Error(EngineError::operation(place, fault)),
        };
        let call = self.call(source, operation);
        ops::operations::validate(&call).map_err(failed)?;
        let decoded = AnyOperation::decode(&call).map_err(failed)?;
        let shapes = decoded.output_shapes(&call).map_err(failed)?;
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
        let folded = self.fold(&call, &decoded, size);
        drop(call);
        let id = |operand: &u32| *operand as usize;
        for (operand, dimensions) in operation.outputs.iter().zip(dimensions) {
            self.values[id(operand)].dimensions = dimensions;
        }
        if let Some(outputs) = folded {
            for (operand, output) in operation.outputs.iter().zip(outputs) {
                self.values[id(operand)].origin = Origin::Constant(Cow::Owned(output.bytes));
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

    /// The operation with what is known of its arguments.
    fn call<'call>(&'call self, source: &Source, operation: &Operation) -> Call<'call> {
        let argument = |id: ValueId| {
            let value = &self.values[id];
            ArgumentSource {
                operand: &value.operand,
                shape: match value.origin {
                    Origin::Omitted => Shape::of_model(&value.operand.dimensions),
                    _ => Shape::known(value.dimensions.iter().copied()),
                },
                value: match &value.origin {
                    Origin::Omitted => ops::Value::Omitted,
                    Origin::Constant(bytes) => ops::Value::Known(bytes),
                    Origin::Input(_) | Origin::Computed => ops::Value::NotKnown,
                },
            }
        };
        let output = |operand: &u32| ArgumentSource {
            shape: source.declared(*operand),
            ..argument(*operand as usize)
        };
        Call::new(
            operation.operation_type,
            operation.inputs.iter().map(|operand| argument(*operand as usize)),
            operation.outputs.iter().map(output),
        )
    }

    /// The results of an operation on constants, unless they are much larger than those.
    fn fold(&self, call: &Call<'_>, decoded: &AnyOperation, size: u64) -> Option<Vec<Output>> {
        let mut known = 0;
        for input in call.inputs() {
            match input.value {
                ops::Value::Known(bytes) => known += bytes.len() as u64,
                ops::Value::Omitted => {}
                ops::Value::NotKnown => return None,
            }
        }
        if size > known * FOLDING_GROWTH + FREE_TO_FOLD {
            return None;
        }
        // What fails here fails when the model runs, and is reported then.
        decoded.reference(call).ok()
    }
}
