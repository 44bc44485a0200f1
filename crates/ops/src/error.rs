//! [`OperationError`]: what is wrong with an operation, and [`Fault`]: that, or not known yet.

use crate::extension::operation_name;
use nnhal_hal::OperationType;
use std::fmt;

/// What an error is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The operation as a whole.
    Operation,
    /// An input, by position; with the name that the definition gives it.
    Input(usize, &'static str),
    /// An output, by position; with the name that the definition gives it.
    Output(usize, &'static str),
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation => formatter.write_str("the operation"),
            Self::Input(index, "") => write!(formatter, "input {index}"),
            Self::Input(index, name) => write!(formatter, "input {index} ({name})"),
            Self::Output(index, "") => write!(formatter, "output {index}"),
            Self::Output(index, name) => write!(formatter, "output {index} ({name})"),
        }
    }
}

/// An operation does not keep to its definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what} of {subject} is {found}, expected {expected}", operation_name(*operation))]
pub struct OperationError {
    /// Type of the operation that failed.
    pub operation: OperationType,
    /// Which of its arguments.
    pub subject: Subject,
    /// Which property of the argument: `rank`, `scale`, `value`.
    pub what: &'static str,
    /// The property as the model or request has it.
    pub found: String,
    /// What the definition asks for.
    pub expected: String,
}

/// What an [`OperationError`] is about, which decides when a model with it is refused (contract:
/// MODEL-29).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Concern {
    /// The number of axes, or the axis that scales by channel are for.
    Rank,
    /// Scales and zero points.
    Quantization,
    /// Lengths of axes.
    Lengths,
    /// Values, and how they go together.
    Values,
}

impl OperationError {
    /// What it is about.
    pub fn concern(&self) -> Concern {
        match self.what {
            "rank" | "channel dimension" => Concern::Rank,
            "scale" | "zero point" | "number of scales" => Concern::Quantization,
            "shape" => Concern::Lengths,
            _ => Concern::Values,
        }
    }
}

/// Why a question about an operation has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The answer depends on a value or dimension that is not known yet. While a model is being
    /// validated that is ordinary; when the operation runs, everything is known.
    #[error("{}: {what} of {subject} is not known yet", operation_name(*operation))]
    NotKnown {
        /// Type of the operation that failed.
        operation: OperationType,
        /// Which of its arguments.
        subject: Subject,
        /// Which property: `value`, `dimensions`.
        what: &'static str,
    },
    /// The operation is wrong.
    #[error(transparent)]
    Invalid(#[from] OperationError),
    /// Memory that the operation needs cannot be had.
    #[error("{}: {bytes} bytes cannot be had", operation_name(*operation))]
    OutOfMemory {
        /// Type of the operation that failed.
        operation: OperationType,
        /// How many bytes were wanted.
        bytes: u64,
    },
    /// It was interrupted, see [`Call::check_interrupt`](crate::Call::check_interrupt).
    #[error("{} was interrupted", operation_name(*operation))]
    Interrupted {
        /// Type of the operation that failed.
        operation: OperationType,
    },
    /// This build has no definition of the operation.
    #[error("{} is not implemented", operation_name(*operation))]
    NotImplemented {
        /// Type of the operation that failed.
        operation: OperationType,
    },
}

impl Fault {
    /// `Ok(None)` for something that is not known yet, so that validation can pass over it.
    ///
    /// # Errors
    /// All other faults.
    pub fn pass_over_unknown<T>(result: Result<T, Self>) -> Result<Option<T>, Self> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Self::NotKnown { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The status that an execution which met this fault ends with (contract: EXEC-7).
    pub fn execution_status(&self) -> nnhal_hal::ErrorStatus {
        match self {
            Self::OutOfMemory { .. } => nnhal_hal::ErrorStatus::ResourceExhaustedTransient,
            _ => nnhal_hal::ErrorStatus::GeneralFailure,
        }
    }
}
