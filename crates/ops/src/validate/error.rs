//! [`ValidationError`]: which rule a model breaks, and where.

use super::extension::ExtensionError;
use super::graph::GraphError;
use super::mistake::OperationMistake;
use super::operand::OperandError;
use crate::extension::{operation_name, type_name};
use nnhal_hal::compliance::Obstacle;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{ErrorStatus, HalVersion, OperandType, OperationType};

/// Which rule a model breaks, and where. [`ValidationError::rule`] names the rule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValidationError {
    /// The model holds something that came with a later version (contract: MODEL-3, MODEL-4,
    /// MODEL-6, MODEL-10, MODEL-12, EXT-1, MEM-1).
    #[error("{obstacle}, but the model is checked for {version}")]
    Newer {
        /// The version that the model is checked for.
        version: HalVersion,
        /// What is newer.
        obstacle: Obstacle,
    },
    /// A row of the table of extensions is wrong.
    #[error("row {row} of the extension names: {error}")]
    Extension {
        /// Index in the model's table of extension names.
        row: usize,
        /// What is wrong with it.
        error: ExtensionError,
    },
    /// A subgraph without operands or without operations (contract: MODEL-1).
    #[error("the {subgraph} has no {what}")]
    Empty {
        /// The main subgraph, or the index of another.
        subgraph: SubgraphName,
        /// `operands` or `operations`.
        what: &'static str,
    },
    /// An operand is wrong in itself.
    #[error("operand {operand} of the {subgraph} ({}): {error}", type_name(*operand_type))]
    Operand {
        /// Where.
        subgraph: SubgraphName,
        /// Index among the subgraph's operands.
        operand: usize,
        /// As the model declares it.
        operand_type: OperandType,
        /// What is wrong with it.
        error: OperandError,
    },
    /// Operands and operations do not fit together.
    #[error("{subgraph}: {error}")]
    Graph {
        /// The main subgraph, or the index of another.
        subgraph: SubgraphName,
        /// What does not fit.
        error: GraphError,
    },
    /// An operation does not keep to its definition.
    #[error("operation {operation} of the {subgraph}: {}{error}", prefix(*operation_type, error))]
    Operation {
        /// Where.
        subgraph: SubgraphName,
        /// Index among the subgraph's operations.
        operation: usize,
        /// What it does.
        operation_type: OperationType,
        /// What is wrong with it.
        error: Box<OperationMistake>,
    },
    /// A subgraph refers to itself, perhaps through others (contract: CF-5).
    #[error("the {subgraph} refers to itself, perhaps through others")]
    Cycle {
        /// One that does.
        subgraph: SubgraphName,
    },
}

/// The operation's name, where the mistake does not begin with it.
fn prefix(operation_type: OperationType, error: &OperationMistake) -> String {
    match error {
        OperationMistake::Signature(_) | OperationMistake::Definition(_) => String::new(),
        OperationMistake::UnmappedPrefix { .. } => format!("{operation_type}: "),
        _ => format!("{}: ", operation_name(operation_type)),
    }
}

impl ValidationError {
    /// The id in the contract of the rule that is broken.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Newer { obstacle, .. } => match obstacle {
                Obstacle::OperandType { operand_type: OperandType::Extension(_), .. }
                | Obstacle::OperationType { operation_type: OperationType::Extension(_), .. }
                | Obstacle::Extensions { .. } => "EXT-1",
                Obstacle::OperandType { .. } => "MODEL-3",
                Obstacle::OperationType { .. } => "MODEL-4",
                Obstacle::UnknownRank { .. } => "MODEL-6",
                Obstacle::ExtraParams { .. } => "MODEL-10",
                Obstacle::LifeTime { .. } | Obstacle::ReferencedSubgraphs { .. } => "MODEL-12",
                Obstacle::MemoryKind { .. } => "MEM-1",
                _ => "GEN-6",
            },
            Self::Extension { .. } => "EXT-2",
            Self::Empty { .. } => "MODEL-1",
            Self::Operand { operand_type, error, .. } => error.rule(*operand_type),
            Self::Graph { error, .. } => error.rule(),
            Self::Operation { operation_type, error, .. } => error.rule(*operation_type),
            Self::Cycle { .. } => "CF-5",
        }
    }

    /// `INVALID_ARGUMENT`, except where this machine is at fault and not the model, and
    /// `GENERAL_FAILURE` where the model is valid, but cannot be run (contract: MODEL-29, PREP-5).
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Operand { error, .. } => error.status(),
            Self::Operation { error, .. } => error.status(),
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

impl From<ValidationError> for nnhal_hal::Error {
    fn from(error: ValidationError) -> Self {
        Self::new(error.status(), error)
    }
}
