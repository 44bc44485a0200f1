//! [`Source`]: what a program keeps of a model, to make plans of it.

use driver::{Constants, EngineError};
use hal::model::SubgraphName;
use hal::{OperandLifeTime, Subgraph};
use ops::{Shape, ValidModel};

/// The main subgraph and its constants.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) subgraph: Subgraph,
    constants: Constants,
}

impl Source {
    pub(crate) fn new(model: &ValidModel, memory_limit: u64) -> Result<Self, EngineError> {
        let constants = Constants::read(model, memory_limit)?;
        Ok(Self { subgraph: model.main().clone(), constants })
    }

    /// The bytes of a constant operand.
    pub(crate) fn constant(&self, operand: u32) -> Option<&[u8]> {
        match self.subgraph.operands[operand as usize].lifetime {
            OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => {
                self.constants.bytes(SubgraphName::Main, operand)
            }
            _ => None,
        }
    }

    /// What the model says of an operand's shape.
    pub(crate) fn declared(&self, operand: u32) -> Shape {
        let operand = &self.subgraph.operands[operand as usize];
        if operand.operand_type.is_scalar() {
            Shape::known([])
        } else {
            Shape::of_model(&operand.dimensions)
        }
    }
}
