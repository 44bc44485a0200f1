//! [`ValidModel`]: a model that keeps the rules, with what is known of it before running.

use super::constant::Constant;
use super::operand::OperandError;
use super::pass::PassTooLong;
use crate::call::{ArgumentSource, Call, Value};
use crate::shape::Shape;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{HalVersion, Model, Operand, OperandLifeTime, Subgraph};
use std::sync::Arc;

/// A model that was found valid. Only [`validate`](super::validate) makes one, so whoever holds
/// one need not check again: every index of its operations is in range, every operation with a
/// definition gets arguments that it takes, as far as they are known, subgraphs do not refer to each
/// other in circles.
///
/// Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ValidModel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    model: Model,
    version: HalVersion,
    oldest_version: HalVersion,
    /// The main subgraph's, then those of the referenced ones.
    knowledge: Vec<Knowledge>,
    pass: Result<(), PassTooLong>,
}

/// What is known of a subgraph's operands, by index.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    pub(super) constants: Vec<Option<Constant>>,
    pub(super) shapes: Vec<Shape>,
}

impl ValidModel {
    /// `knowledge` holds an entry for the main subgraph and one for each referenced one.
    pub(super) fn new(
        model: Model,
        version: HalVersion,
        oldest_version: HalVersion,
        knowledge: Vec<Knowledge>,
        pass: Result<(), PassTooLong>,
    ) -> Self {
        Self(Arc::new(Inner { model, version, oldest_version, knowledge, pass }))
    }

    /// Says whether control flow is short enough to be run: one pass through it, every loop with a
    /// single round, may enter [`FREE_ENTRIES`](super::FREE_ENTRIES) subgraphs and
    /// [`REPEATED`](super::REPEATED) more for each reference to one, and may run
    /// [`FREE_OPERATIONS`](super::FREE_OPERATIONS) operations in them and [`REPEATED`](super::REPEATED)
    /// more for each operation of the model. Such a model is valid; but whoever runs control flow should refuse to.
    ///
    /// # Errors
    /// What there is too much of.
    pub fn expect_bounded_pass(&self) -> Result<(), PassTooLong> {
        self.0.pass
    }

    /// The model as the client handed it over. Constants in its pools may have changed since:
    /// take them from [`Self::constant`].
    pub fn model(&self) -> &Model {
        &self.0.model
    }

    /// The version whose rules it was checked by.
    pub fn version(&self) -> HalVersion {
        self.0.version
    }

    /// The oldest version whose rules it keeps.
    pub fn oldest_version(&self) -> HalVersion {
        self.0.oldest_version
    }

    /// The subgraph that a request runs.
    pub fn main(&self) -> &Subgraph {
        &self.0.model.main
    }

    /// The subgraph that `SUBGRAPH` operands with this offset refer to.
    ///
    /// # Panics
    /// If there is none. Every `SUBGRAPH` operand of the model has one.
    pub fn referenced(&self, index: usize) -> &Subgraph {
        &self.0.model.referenced[index]
    }

    /// A subgraph by name.
    ///
    /// # Panics
    /// As [`Self::referenced`].
    pub fn subgraph(&self, name: SubgraphName) -> &Subgraph {
        match name {
            SubgraphName::Main => self.main(),
            SubgraphName::Referenced(index) => self.referenced(index),
        }
    }

    /// An operand.
    ///
    /// # Panics
    /// If there is no such subgraph or operand.
    pub fn operand(&self, subgraph: SubgraphName, operand: u32) -> &Operand {
        &self.subgraph(subgraph).operands[operand as usize]
    }

    /// The value of an operand, if it is a constant. That of a `SUBGRAPH` operand is the index of
    /// the subgraph, as 4 bytes, little endian.
    ///
    /// # Panics
    /// As [`Self::operand`].
    pub fn constant(&self, subgraph: SubgraphName, operand: u32) -> Option<&Constant> {
        self.knowledge(subgraph).constants[operand as usize].as_ref()
    }

    /// The dimensions of an operand, as far as they are known before running: what the model
    /// declares and what the operation that writes it makes of its arguments, together. A length
    /// of 0 really means none. Scalars have rank 0.
    ///
    /// What follows from lengths that a model declares holds as long as the values keep to them.
    /// Requests are checked for that; at the borders of a referenced subgraph, and for outputs
    /// that are declared but could not be inferred, whoever runs the model has to check: operands
    /// of IF may be of unknown size on one side of the border and known on the other (contract:
    /// CF-3, CF-4).
    ///
    /// # Panics
    /// As [`Self::operand`].
    pub fn shape(&self, subgraph: SubgraphName, operand: u32) -> &Shape {
        &self.knowledge(subgraph).shapes[operand as usize]
    }

    /// An operation with what is known of its arguments before running.
    ///
    /// # Panics
    /// If there is no such subgraph or operation.
    pub fn call(&self, subgraph: SubgraphName, operation: usize) -> Call<'_> {
        let graph = self.subgraph(subgraph);
        self.knowledge(subgraph).call(graph, operation)
    }

    fn knowledge(&self, subgraph: SubgraphName) -> &Knowledge {
        &self.0.knowledge[subgraph.position()]
    }
}

impl Knowledge {
    /// What the model itself says of a subgraph's operands, whose locations were checked.
    pub(super) fn of(model: &Model, graph: &Subgraph) -> Result<Self, (usize, OperandError)> {
        let mut knowledge = Self::default();
        for (index, operand) in graph.operands.iter().enumerate() {
            let constant = Constant::of(model, operand).map_err(|error| {
                let pool = operand.location.pool_index;
                (index, OperandError::Unreadable { pool, error })
            })?;
            knowledge.constants.push(constant);
            knowledge.shapes.push(Shape::declared(operand));
        }
        Ok(knowledge)
    }

    /// An operation with what is known of its arguments. Its indexes are in range.
    pub(super) fn call<'a>(&'a self, graph: &'a Subgraph, operation: usize) -> Call<'a> {
        let source = |index: &u32| {
            let index = *index as usize;
            let operand = &graph.operands[index];
            let value = match (&self.constants[index], operand.lifetime) {
                (_, OperandLifeTime::NoValue) => Value::Omitted,
                (Some(constant), _) => constant.value(),
                // The border of a subgraph: its caller may leave an argument out.
                (None, OperandLifeTime::SubgraphInput) => Value::NotKnown,
                (None, _) => Value::Given,
            };
            ArgumentSource { operand, shape: self.shapes[index].clone(), value }
        };
        let step = &graph.operations[operation];
        Call::new(
            step.operation_type,
            step.inputs.iter().map(source),
            step.outputs.iter().map(source),
        )
    }
}
