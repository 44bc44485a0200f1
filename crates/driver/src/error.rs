//! [`EngineError`]: what can go wrong while compiling or running.

use crate::delivery_error::DeliveryError;
use crate::interruption::Interruption;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{ErrorStatus, OperationType};
use nnhal_ops::extension::operation_name;
use nnhal_ops::{Fault, Shape};
use std::any::Any;
use std::fmt;

/// An operation of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperationPlace {
    /// The main subgraph, or the index of another.
    pub subgraph: SubgraphName,
    /// Index among the subgraph's operations.
    pub index: usize,
    /// What it does.
    pub operation_type: OperationType,
}

impl OperationPlace {
    /// The operation's name, also of our extension's.
    pub fn operation_name(&self) -> String {
        operation_name(self.operation_type)
    }
}

impl fmt::Display for OperationPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.operation_name();
        write!(formatter, "operation {} ({name}) of {}", self.index, self.subgraph)
    }
}

/// Whose memory a [`Ledger`](crate::Ledger) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryHolder {
    /// One prepared model, its executions included.
    Model,
    /// All that is a client's.
    Client,
    /// All that is of the clients of a [`ClientGroup`](nnhal_hal::client::ClientGroup): those of a service.
    AllClients,
    /// All models of the process.
    Process,
}

impl fmt::Display for MemoryHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Model => "the model",
            Self::Client => "the client",
            Self::AllClients => "all clients together",
            Self::Process => "the process",
        })
    }
}

/// What an engine needs memory for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryUse {
    /// A model's constants.
    Constants,
    /// Weights, in the form in which a kernel reads them.
    Weights,
    /// Steps that were planned, without weights.
    Plan,
    /// A request's inputs.
    Inputs,
    /// A buffer that the driver manages.
    Buffer,
    /// The values of an execution, and what its kernels work with.
    Values,
    /// The results of an operation.
    Operation(OperationPlace),
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constants => formatter.write_str("constants"),
            Self::Weights => formatter.write_str("packed weights"),
            Self::Plan => formatter.write_str("a plan"),
            Self::Inputs => formatter.write_str("inputs"),
            Self::Buffer => formatter.write_str("a buffer"),
            Self::Values => formatter.write_str("the values of an execution"),
            Self::Operation(place) => place.fmt(formatter),
        }
    }
}

/// Why an engine could not compile a model or run a program.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The budget was used up.
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    /// An operation met a value or shape that its definition excludes, or no memory.
    #[error("{place}")]
    Operation {
        /// Which operation.
        place: OperationPlace,
        /// What it met.
        #[source]
        fault: Box<Fault>,
    },
    /// An operand turned out to have another shape than it was declared with.
    #[error("{place}: operand {operand} has shape {found}, but was declared with {expected}")]
    Shape {
        /// The operation that computes it or takes it into a subgraph.
        place: OperationPlace,
        /// Index of the operand in the subgraph that declares it.
        operand: u32,
        /// The shape it turned out to have.
        found: Shape,
        /// The shape it was declared with.
        expected: Shape,
    },
    /// What is held at once would exceed a limit, see [`Ledger`](crate::Ledger).
    #[error("{user}: {wanted} more bytes beside {live} exceed the limit of {limit} for {holder}")]
    MemoryLimit {
        /// What wanted more.
        user: MemoryUse,
        /// How much it wanted.
        wanted: u64,
        /// How much there was.
        live: u64,
        /// Whose limit it is.
        holder: MemoryHolder,
        /// How much there may be.
        limit: u64,
    },
    /// The system had no memory, or no addresses, for what was within the limits.
    #[error("{user}: the system refused {wanted} bytes")]
    Allocation {
        /// What wanted them.
        user: MemoryUse,
        /// The number of bytes.
        wanted: u64,
    },
    /// Memory of the model or the request could not be read or written.
    #[error(transparent)]
    Memory(#[from] nnhal_hal::memory::MemoryError),
    /// A result could not be delivered.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// The engine panicked, which is a defect of the engine.
    #[error("the engine panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// Anything else, with its own status.
    #[error(transparent)]
    Other(#[from] nnhal_hal::Error),
}

impl EngineError {
    /// What an operation met.
    pub fn operation(place: OperationPlace, fault: Fault) -> Self {
        Self::Operation { place, fault: Box::new(fault) }
    }

    /// The status that the client sees.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Interrupted(interruption) => interruption.status(),
            Self::Operation { fault, .. } => fault.execution_status(),
            // Other models may give back what they hold.
            Self::MemoryLimit { holder, wanted, limit, .. }
                if *holder != MemoryHolder::Model && wanted <= limit =>
            {
                ErrorStatus::ResourceExhaustedTransient
            }
            Self::MemoryLimit { .. } => ErrorStatus::ResourceExhaustedPersistent,
            Self::Allocation { .. } => ErrorStatus::ResourceExhaustedTransient,
            Self::Memory(error) => error.status(),
            Self::Delivery(DeliveryError::Buffer { error, .. }) => error.status(),
            Self::Other(error) => error.status(),
            Self::Shape { .. } | Self::Delivery(_) | Self::Panicked { .. } => {
                ErrorStatus::GeneralFailure
            }
        }
    }

    /// What a caught panic said.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "nothing that can be shown".to_owned());
        Self::Panicked { message }
    }
}

impl From<EngineError> for nnhal_hal::Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Other(error) => error,
            error => Self::new(error.status(), error),
        }
    }
}

impl From<EngineError> for nnhal_hal::ExecutionError {
    fn from(error: EngineError) -> Self {
        nnhal_hal::Error::from(error).into()
    }
}
