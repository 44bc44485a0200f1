//! [`Layout`]: a model, laid out for interpreting.

use nnhal_driver::{Budget, EngineError, OperationPlace};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{Operand, OperandLifeTime, Operation, OperationType, Subgraph};
use nnhal_ops::{Shape, ValidModel};

/// The subgraphs of a model: the main one, then the referenced ones.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) graphs: Vec<Graph>,
}

/// A subgraph.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) name: SubgraphName,
    pub(crate) operands: Vec<Operand>,
    /// For each operand what the model says of its shape.
    pub(crate) declared: Vec<Shape>,
    /// For each operand whether anybody wants its value.
    pub(crate) wanted: Vec<bool>,
    /// For each operand which of the subgraph's outputs it is.
    pub(crate) output_index: Vec<Option<usize>>,
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
    pub(crate) steps: Vec<Step>,
}

/// An operation.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) place: OperationPlace,
    pub(crate) action: Action,
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
    /// Operands that no later step reads.
    pub(crate) last_reads: Vec<u32>,
}

/// What a step does. Subgraphs are named by their index in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// An operation with a kernel.
    Compute,
    /// IF
    Branch { then: usize, otherwise: usize },
    /// WHILE
    Loop { condition: usize, body: usize },
}

impl Layout {
    pub(crate) fn new(model: &ValidModel, budget: &Budget) -> Result<Self, EngineError> {
        let mut graphs = Vec::with_capacity(model.model().subgraph_count());
        for (name, subgraph) in model.model().subgraphs() {
            budget.check()?;
            graphs.push(Graph::new(name, subgraph));
        }
        Ok(Self { graphs })
    }
}

impl Graph {
    fn new(name: SubgraphName, subgraph: &Subgraph) -> Self {
        let operands = &subgraph.operands;
        let declared = operands.iter().map(Shape::declared).collect();
        // From the last operation to the first: whoever reads an operand first here is the last.
        let mut wanted = vec![false; operands.len()];
        let mut output_index = vec![None; operands.len()];
        for (index, output) in subgraph.outputs.iter().enumerate() {
            wanted[*output as usize] = true;
            output_index[*output as usize] = Some(index);
        }
        let mut steps = Vec::with_capacity(subgraph.operations.len());
        for (index, operation) in subgraph.operations.iter().enumerate().rev() {
            let mut last_reads = Vec::new();
            for input in &operation.inputs {
                let already = std::mem::replace(&mut wanted[*input as usize], true);
                if !already {
                    last_reads.push(*input);
                }
            }
            steps.push(Step {
                place: OperationPlace {
                    subgraph: name,
                    index,
                    operation_type: operation.operation_type,
                },
                action: action(operands, operation),
                inputs: operation.inputs.clone(),
                outputs: operation.outputs.clone(),
                last_reads,
            });
        }
        steps.reverse();
        Self {
            name,
            operands: operands.clone(),
            declared,
            wanted,
            output_index,
            inputs: subgraph.inputs.clone(),
            outputs: subgraph.outputs.clone(),
            steps,
        }
    }
}

fn action(operands: &[Operand], operation: &Operation) -> Action {
    let subgraph = |input: usize| {
        let operand = &operands[operation.inputs[input] as usize];
        debug_assert_eq!(operand.lifetime, OperandLifeTime::Subgraph);
        SubgraphName::Referenced(operand.location.offset as usize).position()
    };
    match operation.operation_type {
        OperationType::If => Action::Branch { then: subgraph(1), otherwise: subgraph(2) },
        OperationType::While => Action::Loop { condition: subgraph(0), body: subgraph(1) },
        _ => Action::Compute,
    }
}
