//! [`OperationMistake`]: what is wrong with an operation, and whether the model is refused for it.
//!
//! Some mistakes make a model invalid, others only mean that no engine can run the operation: see
//! [`Rules::refuse`].

use super::Rules;
use super::control_flow::ControlFlowError;
use crate::error::{Concern, Fault, OperationError};
use crate::shape::Shape;
use nnhal_hal::{ErrorStatus, HalVersion, OperationType};

/// What is wrong with an operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationMistake {
    /// It takes such arguments only in a later version (contract: MODEL-25).
    #[error("{reason} came with {since}, but the model is checked for {version}")]
    Newer {
        /// The oldest version that allows it.
        since: HalVersion,
        /// What needs that version.
        reason: &'static str,
        /// The version that the model is checked for.
        version: HalVersion,
    },
    /// Number, types or presence of the arguments (contract: MODEL-25, MODEL-26).
    #[error(transparent)]
    Signature(Fault),
    /// Ranks, quantization, values or lengths of the arguments (contract: MODEL-29).
    #[error(transparent)]
    Definition(Fault),
    /// The scale of an argument, or of one of its channels, is infinite: its values would be, too (contract: MODEL-29).
    #[error("the scale of {list} {argument} is infinite, and nothing can be computed with it")]
    InfiniteScale {
        /// `input` or `output`.
        list: &'static str,
        /// Index in that list.
        argument: usize,
    },
    /// An output is declared otherwise than the operation makes it (contract: MODEL-29).
    #[error("output {output} has shape {found}, expected {expected}")]
    OutputShape {
        /// Index among the operation's outputs.
        output: usize,
        /// As declared.
        found: Shape,
        /// As the arguments make it.
        expected: Shape,
    },
    /// An output of more than 2^32 - 1 bytes, or of too many axes (contract: MODEL-17, SEC-3).
    #[error("output {output} has shape {found}, expected at most 2^32 - 1 bytes and 32 axes")]
    OutputTooLarge {
        /// Index among the operation's outputs.
        output: usize,
        /// Its shape.
        found: Shape,
    },
    /// An extension's operation whose prefix stands for nothing (contract: EXT-3).
    #[error("prefix {prefix:#06x} stands for no extension")]
    UnmappedPrefix {
        /// The upper 16 bits of the operation's code.
        prefix: u16,
    },
    /// Operands and subgraphs of an IF or WHILE do not go together.
    #[error(transparent)]
    ControlFlow(ControlFlowError),
}

impl OperationMistake {
    pub(super) fn rule(&self, operation_type: OperationType) -> &'static str {
        match self {
            Self::Signature(Fault::Invalid(OperationError { what: "value", .. })) => "MODEL-26",
            Self::Newer { .. } | Self::Signature(_) => match operation_type {
                OperationType::If => "CF-1",
                OperationType::While => "CF-2",
                _ => "MODEL-25",
            },
            Self::Definition(_) | Self::InfiniteScale { .. } | Self::OutputShape { .. } => {
                "MODEL-29"
            }
            Self::OutputTooLarge { .. } => "MODEL-17",
            Self::UnmappedPrefix { .. } => "EXT-3",
            Self::ControlFlow(error) => match error {
                ControlFlowError::Condition { .. }
                | ControlFlowError::Count { .. }
                | ControlFlowError::NoModel { .. } => {
                    if operation_type == OperationType::If {
                        "CF-1"
                    } else {
                        "CF-2"
                    }
                }
                ControlFlowError::Incompatible { .. } => "CF-3",
                ControlFlowError::UnknownSize { .. } => "CF-4",
            },
        }
    }

    /// The status that goes with it.
    pub(super) fn status(&self) -> ErrorStatus {
        match self {
            Self::Signature(fault @ Fault::OutOfMemory { .. })
            | Self::Definition(fault @ Fault::OutOfMemory { .. }) => fault.execution_status(),
            mistake if Rules::Interface.refuse(mistake) => ErrorStatus::InvalidArgument,
            // The model is valid, but cannot be run (PREP-5).
            _ => ErrorStatus::GeneralFailure,
        }
    }
}

/// The operations whose scales and zero points also Android's runtime looks at when they are added.
const QUANTIZATION_AT_ONCE: [OperationType; 4] =
    [OperationType::MirrorPad, OperationType::Mul, OperationType::Pack, OperationType::Reverse];

/// The operations of whose arguments it looks at lengths as well.
const LENGTHS_AT_ONCE: [OperationType; 4] = [
    OperationType::Cast,
    OperationType::FullyConnected,
    OperationType::MirrorPad,
    OperationType::Reverse,
];

/// Whether an application's model is refused as soon as an operation's arguments break its definition
/// like this, before it is known whether the rest is right: see
/// [`check_for_application`](super::check_for_application).
pub fn refused_at_once(error: &OperationError) -> bool {
    match error.concern() {
        Concern::Rank => true,
        Concern::Quantization => QUANTIZATION_AT_ONCE.contains(&error.operation),
        Concern::Lengths => LENGTHS_AT_ONCE.contains(&error.operation),
        Concern::Values => false,
    }
}

impl Rules {
    /// Whether a model with this mistake is refused. If not, the operation cannot be run, and the
    /// model is valid (contract: MODEL-29).
    ///
    /// An application's model is not refused for most scales and sizes either, nor for a needed argument
    /// that is left out: Android's runtime finds out about them when it computes, and devices are never
    /// shown such an operation.
    pub(super) fn refuse(self, mistake: &OperationMistake) -> bool {
        match mistake {
            OperationMistake::Definition(Fault::Invalid(error)) => match self {
                Self::Interface => {
                    matches!(error.concern(), Concern::Rank | Concern::Quantization)
                }
                Self::Application => refused_at_once(error),
            },
            OperationMistake::InfiniteScale { .. } | OperationMistake::OutputShape { .. } => false,
            OperationMistake::OutputTooLarge { .. }
            | OperationMistake::Signature(Fault::Invalid(OperationError {
                what: "value", ..
            })) => self == Self::Interface,
            _ => true,
        }
    }
}
