//! [`Defect`]: an operation of a valid model that cannot be run; [`CheckedModel`]: a model with
//! those that it has.

use super::constant::Constant;
use super::error::ValidationError;
use super::mistake::OperationMistake;
use super::valid_model::ValidModel;
use super::validate;
use crate::shape::Shape;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    DataLocation, ExtraParams, HalVersion, Model, Operand, OperandLifeTime, OperandType, Operation,
    OperationType, Subgraph,
};
use std::fmt;

/// An operation that its definition forbids, in a model that is valid nevertheless (contract:
/// MODEL-29).
#[derive(Debug, Clone, PartialEq)]
pub struct Defect {
    /// Where.
    pub subgraph: SubgraphName,
    /// Index among the subgraph's operations.
    pub operation: usize,
    /// What it does.
    pub operation_type: OperationType,
    /// What is wrong with it.
    pub mistake: Box<OperationMistake>,
}

impl Defect {
    pub(super) fn new(
        subgraph: SubgraphName,
        operation: usize,
        operation_type: OperationType,
        mistake: OperationMistake,
    ) -> Self {
        Self { subgraph, operation, operation_type, mistake: Box::new(mistake) }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        ValidationError::from(self.clone()).fmt(formatter)
    }
}

impl std::error::Error for Defect {}

impl From<Defect> for ValidationError {
    fn from(defect: Defect) -> Self {
        let Defect { subgraph, operation, operation_type, mistake: error } = defect;
        Self::Operation { subgraph, operation, operation_type, error }
    }
}

/// A model that clients may hand over, with the operations in it that nothing can run. Only
/// [`check`](super::check) and [`check_for_application`](super::check_for_application) make one.
///
/// Engines get a [`ValidModel`], which has no defects: see [`CheckedModel::into_valid`] and
/// [`CheckedModel::runnable_part`].
#[derive(Debug, Clone)]
pub struct CheckedModel {
    model: ValidModel,
    /// In the order of subgraphs and operations, at most one for each operation.
    defects: Vec<Defect>,
}

/// The operations of a main subgraph that have no defect, as a model.
#[derive(Debug, Clone)]
pub struct RunnablePart {
    /// The part. What it reads of other operations is an input.
    pub model: ValidModel,
    /// For each of its operations, the index in the whole.
    pub operations: Vec<usize>,
}

impl CheckedModel {
    pub(super) fn new(model: ValidModel, defects: Vec<Defect>) -> Self {
        Self { model, defects }
    }

    /// The model, if every operation keeps to its definition.
    ///
    /// # Errors
    /// Itself, if it has defects.
    pub fn into_valid(self) -> Result<ValidModel, Self> {
        if self.defects.is_empty() { Ok(self.model) } else { Err(self) }
    }

    /// The same with the first defect as the error.
    pub(super) fn expect_valid(self) -> Result<ValidModel, ValidationError> {
        self.into_valid().map_err(|mut it| it.defects.swap_remove(0).into())
    }

    /// The operations that cannot be run, in all subgraphs.
    pub fn defects(&self) -> &[Defect] {
        &self.defects
    }

    /// The defect of an operation of the main subgraph itself.
    pub fn own_defect(&self, operation: usize) -> Option<&Defect> {
        // Those of the main subgraph come first, in order.
        let mut main = self.defects.iter().take_while(|it| it.subgraph == SubgraphName::Main);
        main.find(|it| it.operation == operation)
    }

    /// For each operation of the main subgraph, what keeps it from being run: a defect of its own,
    /// or one in a subgraph that it runs, directly or through others.
    pub fn obstacles(&self) -> Vec<Option<&Defect>> {
        let main = &self.model().main;
        let mut obstacles = vec![None; main.operations.len()];
        if self.defects.is_empty() {
            return obstacles;
        }
        let inside = self.obstacles_inside();
        for (operation, obstacle) in main.operations.iter().zip(&mut obstacles) {
            let mut inner = references(main, operation).filter_map(|index| inside[index]);
            *obstacle = inner.next();
        }
        for defect in &self.defects {
            if defect.subgraph == SubgraphName::Main {
                obstacles[defect.operation] = Some(defect);
            }
        }
        obstacles
    }

    /// For each referenced subgraph, a defect in it or in those that it refers to.
    fn obstacles_inside(&self) -> Vec<Option<&Defect>> {
        let referenced = &self.model().referenced;
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); referenced.len()];
        for (index, graph) in referenced.iter().enumerate() {
            for operation in &graph.operations {
                references(graph, operation).for_each(|inner| readers[inner].push(index));
            }
        }
        let mut inside: Vec<Option<&Defect>> = vec![None; referenced.len()];
        let mut pending = Vec::new();
        for defect in &self.defects {
            if let SubgraphName::Referenced(index) = defect.subgraph
                && inside[index].is_none()
            {
                inside[index] = Some(defect);
                pending.push(index);
            }
        }
        // Each subgraph is entered once, so this is linear in the references.
        while let Some(index) = pending.pop() {
            for reader in &readers[index] {
                if inside[*reader].is_none() {
                    inside[*reader] = inside[index];
                    pending.push(*reader);
                }
            }
        }
        inside
    }

    /// What is left of the model without the operations that cannot be run, for asking an engine
    /// about the others; `None` if nothing is.
    pub fn runnable_part(&self) -> Option<RunnablePart> {
        let obstacles = self.obstacles();
        let operations: Vec<usize> =
            (0..obstacles.len()).filter(|index| obstacles[*index].is_none()).collect();
        let mut model = self.model().clone();
        for (index, obstacle) in self.obstacles_inside().into_iter().enumerate() {
            // Nothing that is left runs it, and taking it out would renumber the others.
            if obstacle.is_some() {
                model.referenced[index] = placeholder();
            }
        }
        let main = &mut model.main;
        let all = std::mem::take(&mut main.operations);
        for (operation, obstacle) in all.into_iter().zip(&obstacles) {
            if obstacle.is_none() {
                main.operations.push(operation);
                continue;
            }
            for output in operation.outputs {
                main.operands[output as usize].lifetime = OperandLifeTime::SubgraphInput;
                main.outputs.retain(|it| *it != output);
                main.inputs.push(output);
            }
        }
        main.operands.iter_mut().for_each(|operand| operand.number_of_consumers = 0);
        for input in main.operations.iter().flat_map(|operation| &operation.inputs) {
            main.operands[*input as usize].number_of_consumers += 1;
        }
        // Nothing is left, or (never seen) what is left is not valid by itself.
        let model = validate(&model, self.version()).ok()?;
        Some(RunnablePart { model, operations })
    }

    /// The model as the client handed it over; see [`ValidModel::model`].
    pub fn model(&self) -> &Model {
        self.model.model()
    }

    /// The version whose rules it was checked by.
    pub fn version(&self) -> HalVersion {
        self.model.version()
    }

    /// The oldest version whose rules it keeps.
    pub fn oldest_version(&self) -> HalVersion {
        self.model.oldest_version()
    }

    /// The value of an operand, if it is a constant; see [`ValidModel::constant`].
    ///
    /// # Panics
    /// If there is no such subgraph or operand.
    pub fn constant(&self, subgraph: SubgraphName, operand: u32) -> Option<&Constant> {
        self.model.constant(subgraph, operand)
    }

    /// The dimensions of an operand as far as they are known; see [`ValidModel::shape`]. Of an
    /// operation with a defect nothing follows.
    ///
    /// # Panics
    /// If there is no such subgraph or operand.
    pub fn shape(&self, subgraph: SubgraphName, operand: u32) -> &Shape {
        self.model.shape(subgraph, operand)
    }

    /// See [`ValidModel::expect_bounded_pass`].
    ///
    /// # Errors
    /// What there is too much of.
    pub fn expect_bounded_pass(&self) -> Result<(), super::PassTooLong> {
        self.model.expect_bounded_pass()
    }
}

/// The subgraphs that an operation refers to.
fn references<'a>(
    graph: &'a Subgraph,
    operation: &'a Operation,
) -> impl Iterator<Item = usize> + 'a {
    let operands = operation.inputs.iter().map(|input| &graph.operands[*input as usize]);
    operands
        .filter(|operand| operand.lifetime == OperandLifeTime::Subgraph)
        .map(|operand| operand.location.offset as usize)
}

/// A valid subgraph of the first version.
fn placeholder() -> Subgraph {
    let operand = |number_of_consumers, lifetime| Operand {
        operand_type: OperandType::TensorFloat32,
        dimensions: vec![1],
        number_of_consumers,
        scale: 0.0,
        zero_point: 0,
        lifetime,
        location: DataLocation::default(),
        extra_params: ExtraParams::None,
    };
    Subgraph {
        operands: vec![
            operand(1, OperandLifeTime::SubgraphInput),
            operand(0, OperandLifeTime::SubgraphOutput),
        ],
        operations: vec![Operation {
            operation_type: OperationType::Floor,
            inputs: vec![0],
            outputs: vec![1],
        }],
        inputs: vec![0],
        outputs: vec![1],
    }
}

#[cfg(test)]
mod tests;
