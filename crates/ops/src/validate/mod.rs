//! From a [`Model`] that a client hands over to a [`ValidModel`] (contract: section 8).

mod constant;
mod error;
mod valid_model;

pub use constant::{Constant, PARAMETER_BYTES};
pub use error::ValidationError;
pub use valid_model::ValidModel;

use crate::shape::Shape;
use hal::{HalVersion, Model, Subgraph};
use valid_model::Knowledge;

/// Checks a model by the rules of a version of the interface.
///
/// # Errors
/// The first rule that the model breaks.
pub fn validate(model: &Model, version: HalVersion) -> Result<ValidModel, ValidationError> {
    if let Some(obstacle) = model.stands_in_the_way_of(version).into_iter().next() {
        return Err(ValidationError::Newer { version, obstacle });
    }
    let knowledge = |graph: &Subgraph| Knowledge {
        constants: graph
            .operands
            .iter()
            .map(|operand| Constant::of(model, operand).ok().flatten())
            .collect(),
        shapes: graph.operands.iter().map(|operand| Shape::of_model(&operand.dimensions)).collect(),
    };
    Ok(ValidModel::new(
        model.clone(),
        version,
        model.oldest_expressible(),
        knowledge(&model.main),
        model.referenced.iter().map(knowledge).collect(),
    ))
}

/// The oldest version whose rules the model keeps.
///
/// # Errors
/// It keeps those of none: see [`validate`].
pub fn oldest_version(model: &Model) -> Result<HalVersion, ValidationError> {
    Ok(validate(model, HalVersion::LATEST)?.oldest_version())
}
