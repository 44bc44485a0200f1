//! [`RequestError`]: why a request is refused.

use nnhal_hal::memory::{MemoryError, MemoryKind};
use nnhal_hal::{ErrorStatus, HalVersion, OperandType};
use nnhal_ops::Shape;
use std::fmt;

/// Which argument of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The input with this index.
    Input(usize),
    /// The output with this index.
    Output(usize),
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(index) => write!(formatter, "input {index}"),
            Self::Output(index) => write!(formatter, "output {index}"),
        }
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Too few or too many inputs or outputs (contract: REQ-1).
    #[error("the request has {found} {what}, the model {expected}")]
    Count {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// As many as the request has.
        found: usize,
        /// As many as the model has.
        expected: usize,
    },
    /// An argument without value that has a place of its value (contract: REQ-2).
    #[error("{subject} is left out, but has {found}")]
    LeftOutWith {
        /// The argument.
        subject: Subject,
        /// What it has.
        found: &'static str,
    },
    /// An argument in a pool that does not exist (contract: REQ-3).
    #[error("{subject} is in pool {found}, but there are {pools}")]
    NoSuchPool {
        /// The argument.
        subject: Subject,
        /// The pool it names.
        found: u32,
        /// The number of the request's pools.
        pools: usize,
    },
    /// An argument that reaches beyond its pool (contract: REQ-3).
    #[error("{subject} ends at byte {end} of a pool of {size}")]
    OutsidePool {
        /// The argument.
        subject: Subject,
        /// The byte behind its last.
        end: u64,
        /// How long the pool is.
        size: u64,
    },
    /// An argument with a value of no bytes (contract: REQ-4).
    #[error("{subject} has length 0")]
    NoBytes {
        /// The argument.
        subject: Subject,
    },
    /// A token that stands for no buffer (contract: REQ-10, DBUF-1).
    #[error("pool {pool} is token {token}, which stands for no buffer")]
    UnknownToken {
        /// Index among the request's pools.
        pool: usize,
        /// As the request has it.
        token: u32,
    },
    /// An argument in a buffer that does not take all of it (contract: REQ-5).
    #[error("{subject} is in a buffer at offset {offset} with length {length}, expected 0 and 0")]
    PartOfBuffer {
        /// The argument.
        subject: Subject,
        /// The offset that the request says.
        offset: u32,
        /// The length that the request says.
        length: u32,
    },
    /// A buffer that was not allocated to be this argument (contract: DBUF-2).
    #[error("{subject} is in token {token}, which was not allocated to be that")]
    NoSuchRole {
        /// The argument.
        subject: Subject,
        /// The buffer's token.
        token: u32,
    },
    /// A buffer that is read before it holds anything (contract: DBUF-3).
    #[error("{subject} is in token {token}, which is uninitialized")]
    Uninitialized {
        /// The input.
        subject: Subject,
        /// The buffer's token.
        token: u32,
    },
    /// A shape that contradicts the buffer's (contract: DBUF-4, DBUF-5).
    #[error("{subject} has shape {found}, its buffer {expected}")]
    BufferShape {
        /// The argument.
        subject: Subject,
        /// What model and request say.
        found: Shape,
        /// Of an input the shape of the buffer's value, of an output what it was allocated with.
        expected: Shape,
    },
    /// A buffer that is written and used a second time (contract: DBUF-6).
    #[error("{subject} is in token {token}, as another argument is")]
    Shared {
        /// The output.
        subject: Subject,
        /// The buffer's token.
        token: u32,
    },
    /// Memory of a kind that the version does not know (contract: REQ-10).
    #[error("pool {pool} is {kind}, which the model's version {version} does not know")]
    PoolKind {
        /// Index among the request's pools.
        pool: usize,
        /// The kind of the pool's memory.
        kind: MemoryKind,
        /// The version of the interface that the model was prepared through.
        version: HalVersion,
    },
    /// Dimensions of a scalar, or that contradict the model's (contract: REQ-6).
    #[error("{subject} has dimensions {found:?}, the model says {expected}")]
    Dimensions {
        /// The argument.
        subject: Subject,
        /// The request's dimensions.
        found: Vec<u32>,
        /// The model's; of a scalar `[]`.
        expected: Shape,
    },
    /// Dimensions that neither model nor request say, where they must (contract: REQ-7, REQ-8).
    #[error("{subject} has shape {found}, which must be known")]
    UnknownDimensions {
        /// The argument.
        subject: Subject,
        /// What model and request say together.
        found: Shape,
    },
    /// An input whose length is not that of its type and shape (contract: REQ-9), or an output
    /// behind fences that is too short (contract: FENCE-2).
    #[error("{subject} ({operand_type} {shape}) has {found} bytes, expected {expected}")]
    Length {
        /// The argument.
        subject: Subject,
        /// As the model declares it.
        operand_type: OperandType,
        /// By model and request together.
        shape: Shape,
        /// Its length in the request.
        found: u64,
        /// What it should be; of an output at least.
        expected: u64,
    },
    /// A shape of more bytes than a location can say.
    #[error("{subject} ({operand_type} {shape}) exceeds 2^32 - 1 bytes")]
    TooLarge {
        /// The argument.
        subject: Subject,
        /// As the model declares it.
        operand_type: OperandType,
        /// By model and request together.
        shape: Shape,
    },
    /// An output in memory that was passed for reading only (contract: REQ-12).
    #[error("{subject} is in pool {pool}, which is read-only")]
    ReadOnly {
        /// The output.
        subject: Subject,
        /// Index among the request's pools.
        pool: u32,
    },
    /// Memory that cannot be used.
    #[error("pool {pool}")]
    Memory {
        /// Index among the request's pools.
        pool: usize,
        /// Why not.
        #[source]
        error: MemoryError,
    },
}

impl RequestError {
    /// `INVALID_ARGUMENT`, except for memory that cannot be mapped for no fault of the client's, and
    /// for a buffer that holds nothing yet.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Memory { error, .. } => error.status(),
            Self::Uninitialized { .. } => ErrorStatus::GeneralFailure,
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

impl From<RequestError> for nnhal_hal::Error {
    fn from(error: RequestError) -> Self {
        Self::new(error.status(), error)
    }
}
