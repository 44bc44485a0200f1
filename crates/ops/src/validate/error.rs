//! [`ValidationError`]: which rule a model breaks, and where.

use crate::error::Fault;
use hal::HalVersion;
use hal::compliance::Obstacle;
use hal::model::SubgraphName;

/// Which rule a model breaks, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValidationError {
    /// The model holds something that came with a later version.
    #[error("{obstacle}, but the version is {version}")]
    Newer {
        /// The version that the model is checked for.
        version: HalVersion,
        /// What is newer.
        obstacle: Obstacle,
    },
    /// An operation does not keep to its definition.
    #[error("operation {operation} of {subgraph}: {fault}")]
    Operation {
        /// Where.
        subgraph: SubgraphName,
        /// Which operation.
        operation: usize,
        /// What is wrong with it.
        fault: Fault,
    },
}

impl From<ValidationError> for hal::Error {
    fn from(error: ValidationError) -> Self {
        Self::invalid(error)
    }
}
