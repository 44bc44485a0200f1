//! [`Value`]: what an operand holds while a program runs.

use nnhal_driver::{Charge, EngineError, OperationPlace};
use nnhal_ops::Shape;
use std::rc::Rc;

/// What an operand holds. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) enum Value<'program> {
    /// Nothing: an optional argument that is left out.
    Omitted,
    /// A constant of the model, wherever it was passed to.
    Constant { dimensions: &'program [u32], bytes: &'program [u8] },
    /// An input, or what an operation computed.
    Tensor(Rc<Tensor>),
}

/// Elements of a tensor, or a scalar.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) dimensions: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
    /// Gives the bytes back to the ledger.
    pub(crate) _charge: Charge,
}

impl Value<'_> {
    /// The dimensions; `None` if there is no value.
    pub(crate) fn dimensions(&self) -> Option<&[u32]> {
        match self {
            Self::Omitted => None,
            Self::Constant { dimensions, .. } => Some(dimensions),
            Self::Tensor(tensor) => Some(&tensor.dimensions),
        }
    }

    /// The elements; `None` if there is no value.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Omitted => None,
            Self::Constant { bytes, .. } => Some(bytes),
            Self::Tensor(tensor) => Some(&tensor.bytes),
        }
    }

    /// The shape; `None` if there is no value.
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.dimensions().map(|dimensions| Shape::known(dimensions.iter().copied()))
    }

    /// The value as operations see it.
    pub(crate) fn for_call(&self) -> nnhal_ops::Value<'_> {
        self.bytes().map_or(nnhal_ops::Value::Omitted, nnhal_ops::Value::Known)
    }
}

/// What is found of a shape and what is declared of it, together.
pub(crate) fn merge(
    place: OperationPlace,
    operand: u32,
    found: &Shape,
    declared: &Shape,
) -> Result<Shape, EngineError> {
    declared.merge(found).ok_or_else(|| EngineError::Shape {
        place,
        operand,
        found: found.clone(),
        expected: declared.clone(),
    })
}
