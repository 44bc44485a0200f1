//! [`DeliveryError`]: why an output could not be delivered.

use nnhal_hal::memory::MemoryError;
use nnhal_hal::{Error, OperandType};
use nnhal_ops::Shape;

/// Why an output could not be delivered. Most of these are defects of an engine.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryError {
    /// It was delivered before.
    #[error("output {output} was delivered twice")]
    Twice {
        /// Index among the model's outputs.
        output: usize,
    },
    /// The execution ended without it.
    #[error("output {output} was not delivered")]
    Missing {
        /// Index among the model's outputs.
        output: usize,
    },
    /// Its shape is not what model and request say.
    #[error("output {output} turned out to have shape {found}, but was declared with {expected}")]
    Shape {
        /// Index among the model's outputs.
        output: usize,
        /// The shape it has.
        found: Shape,
        /// What model and request say.
        expected: Shape,
    },
    /// It has not as many bytes as its type and shape say.
    #[error("output {output} ({operand_type} {shape}) was delivered with {found} bytes")]
    Size {
        /// Index among the model's outputs.
        output: usize,
        /// As the model declares it.
        operand_type: OperandType,
        /// The shape that was delivered.
        shape: Shape,
        /// The bytes it has.
        found: u64,
    },
    /// Its buffer, which the driver manages, can have no memory for it.
    #[error("output {output}")]
    Buffer {
        /// Index among the model's outputs.
        output: usize,
        /// Why not.
        #[source]
        error: Error,
    },
    /// The client's memory could not be written.
    #[error("output {output}")]
    Memory {
        /// Index among the model's outputs.
        output: usize,
        /// Why not.
        #[source]
        error: MemoryError,
    },
}
