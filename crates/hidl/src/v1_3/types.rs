//! Types of 1.3.

use crate::memory::HidlMemory;
use crate::v1_0::{Operation, PerformanceInfo, RequestArgument};
use crate::v1_2::{ExtensionNameAndPrefix, Operand, OperandPerformance};
use std::sync::Arc;

/// A number that ought to be a code of [`nnhal_hal::Priority`].
pub type Priority = i32;

/// What a device says of its cost (contract: DEV-CAP-6).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Capabilities {
    /// Of `FLOAT32` computed with the range and precision of float16.
    pub relaxed_float32to_float16_performance_scalar: PerformanceInfo,
    /// Of `TENSOR_FLOAT32` computed with the range and precision of float16.
    pub relaxed_float32to_float16_performance_tensor: PerformanceInfo,
    /// By operand type, sorted.
    pub operand_performance: Vec<OperandPerformance>,
    /// Of an IF besides its branches.
    pub if_performance: PerformanceInfo,
    /// Of a WHILE besides its condition and body.
    pub while_performance: PerformanceInfo,
}

/// A graph of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Subgraph {
    /// All values.
    pub operands: Vec<Operand>,
    /// All steps, in execution order.
    pub operations: Vec<Operation>,
    /// Indexes of the operands that the caller gives.
    pub input_indexes: Vec<u32>,
    /// Indexes of the operands that the caller gets.
    pub output_indexes: Vec<u32>,
}

/// A model.
#[derive(Debug, Clone)]
pub struct Model {
    /// The graph that a request runs.
    pub main: Subgraph,
    /// The graphs that `SUBGRAPH` operands refer to.
    pub referenced: Vec<Subgraph>,
    /// Values of `CONSTANT_COPY` operands.
    pub operand_values: Arc<[u8]>,
    /// Memory of `CONSTANT_REFERENCE` operands.
    pub pools: Vec<HidlMemory>,
    /// Whether float32 may be computed with the range and precision of float16 (PREP-13).
    pub relax_computation_float32to_float16: bool,
    /// What the prefixes of extension types mean.
    pub extension_name_to_prefix: Vec<ExtensionNameAndPrefix>,
}

/// What buffer is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BufferDesc {
    /// Dimensions as far as the client knows them; empty: none.
    pub dimensions: Vec<u32>,
}

/// What a buffer is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BufferRole {
    /// Index of the prepared model in the same call.
    pub model_index: u32,
    /// Index of its input or output.
    pub io_index: u32,
    /// How likely that use is.
    pub frequency: f32,
}

/// Memory of a request (`Request::MemoryPool`).
#[derive(Debug, Clone)]
pub enum MemoryPool {
    /// Tag 0: shared memory.
    HidlMemory(HidlMemory),
    /// Tag 1: a buffer that the driver manages.
    Token(u32),
    /// A tag that no one knows (contract: GEN-7).
    Unknown {
        /// The tag as it was received.
        tag: u8,
    },
}

/// The arguments of an execution.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// One for each input of the main graph.
    pub inputs: Vec<RequestArgument>,
    /// One for each output of the main graph.
    pub outputs: Vec<RequestArgument>,
    /// What the locations refer to.
    pub pools: Vec<MemoryPool>,
}

/// A point of the steady clock, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OptionalTimePoint {
    /// Tag 0: none.
    #[default]
    None,
    /// Tag 1: nanoseconds since the clock's epoch.
    NanosecondsSinceEpoch(u64),
    /// A tag that no one knows (contract: GEN-7).
    Unknown {
        /// The tag as it was received.
        tag: u8,
    },
}

/// A length of time, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OptionalTimeoutDuration {
    /// Tag 0: none.
    #[default]
    None,
    /// Tag 1: nanoseconds.
    Nanoseconds(u64),
    /// A tag that no one knows (contract: GEN-7).
    Unknown {
        /// The tag as it was received.
        tag: u8,
    },
}
