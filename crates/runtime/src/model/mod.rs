//! [`ModelBuilder`] and [`Model`]: models as the C API builds them, operand by operand.

pub(crate) mod assemble;
mod build;
mod order;

pub use build::ModelBuilder;

use crate::devices::Devices;
use crate::error::{Error, Result};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{Operand, OperationType, Subgraph};
use nnhal_ops::CheckedModel;
use std::fmt;
use std::sync::Arc;

/// Values of a model begin at multiples of this many bytes.
pub(crate) const VALUE_ALIGNMENT: usize = 8;

/// A model that is finished and never changes. Clones are the same model.
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    devices: Devices,
    /// As it was built, operations in an order in which they can run.
    own: Own,
    /// With everything that it refers to, without arguments that hold their default. Operations may
    /// break what their definitions say of values: these fail when they are to be computed.
    checked: CheckedModel,
    /// For each operation in running order, its position when it was added.
    added_as: Vec<usize>,
    /// For each operation in running order, the models that it runs, if it is an IF or WHILE.
    controlled: Vec<Vec<Model>>,
    /// How deep models are nested: 1 without others.
    depth: usize,
}

/// Models may be nested so deep. Whatever goes through them, and lets go of them, takes stack.
const DEEPEST: usize = 32;

/// A graph by itself: locations are within its own values, pools and references.
#[derive(Debug, Clone, Default)]
pub(crate) struct Own {
    pub(crate) graph: Subgraph,
    pub(crate) values: Vec<u8>,
    pub(crate) pools: Vec<nnhal_hal::Memory>,
    pub(crate) references: Vec<Model>,
}

impl Model {
    /// The devices that it was built for.
    pub fn devices(&self) -> &Devices {
        &self.0.devices
    }

    /// The model for devices. Its operations are in an order in which they can run; trailing
    /// arguments that hold their default are left out. Where a WHILE has operands of unknown size,
    /// devices refuse it as a whole.
    pub fn hal(&self) -> &nnhal_hal::Model {
        self.0.checked.model()
    }

    /// The same with what is known of its values and shapes, and with the operations that nothing can
    /// run.
    pub(crate) fn checked(&self) -> &CheckedModel {
        &self.0.checked
    }

    /// What the first operation that nothing can run does wrong, if one of the model itself is such.
    /// Not those of the models that it refers to: whether they run is not known before.
    pub(crate) fn defect(&self) -> Option<Error> {
        let first = self.0.checked.defects().first();
        let mut defect = first.filter(|it| it.subgraph == SubgraphName::Main)?.clone();
        // As the client counts.
        defect.operation = self.0.added_as[defect.operation];
        Some(Error::failed(defect.to_string()))
    }

    /// The operands that an execution gives, by position.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &Operand> {
        let main = &self.hal().main;
        main.inputs.iter().map(|index| &main.operands[*index as usize])
    }

    /// The operands that an execution gets, by position.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = &Operand> {
        let main = &self.hal().main;
        main.outputs.iter().map(|index| &main.operands[*index as usize])
    }

    /// An operand that an execution gives.
    ///
    /// # Errors
    /// `BAD_DATA` if there is none at this position.
    pub fn input(&self, index: u32) -> Result<&Operand> {
        let count = self.inputs().len();
        let found = self.inputs().nth(index as usize);
        found.ok_or_else(|| Error::bad_data(format!("input {index} of {count}")))
    }

    /// An operand that an execution gets.
    ///
    /// # Errors
    /// `BAD_DATA` if there is none at this position.
    pub fn output(&self, index: u32) -> Result<&Operand> {
        let count = self.outputs().len();
        let found = self.outputs().nth(index as usize);
        found.ok_or_else(|| Error::bad_data(format!("output {index} of {count}")))
    }

    /// Number of operations.
    pub fn operation_count(&self) -> usize {
        self.hal().main.operations.len()
    }

    /// For each operation in running order, its position when it was added.
    pub fn added_as(&self) -> &[usize] {
        &self.0.added_as
    }

    /// The models that the operation at this place in running order runs.
    pub(crate) fn controlled(&self, operation: usize) -> &[Self] {
        self.0.controlled.get(operation).map_or(&[], Vec::as_slice)
    }

    /// Whether any operation of the model or of those that it refers to is a vendor's or an
    /// extension's: those only their own device can do.
    pub(crate) fn has_foreign_operations(&self) -> bool {
        let foreign = |operation_type| {
            matches!(operation_type, OperationType::OemOperation | OperationType::Extension(_))
        };
        let mut subgraphs = self.hal().subgraphs();
        subgraphs.any(|(_, graph)| {
            graph.operations.iter().any(|operation| foreign(operation.operation_type))
        })
    }

    fn depth(&self) -> usize {
        self.0.depth
    }

    pub(crate) fn own(&self) -> &Own {
        &self.0.own
    }

    /// The same for all clones, different for other models while both live.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The dimensions of an operand of the main graph as far as they are known: what the model
    /// declares and what its operations make of it. 0 where unknown, empty if not even the rank is.
    pub(crate) fn known_dimensions(&self, operand: u32) -> Vec<u32> {
        self.0.checked.shape(SubgraphName::Main, operand).to_model()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let main = &self.hal().main;
        formatter
            .debug_struct("Model")
            .field("operands", &main.operands.len())
            .field("operations", &main.operations.len())
            .field("inputs", &main.inputs.len())
            .field("outputs", &main.outputs.len())
            .finish_non_exhaustive()
    }
}
