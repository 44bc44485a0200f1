//! Types of 1.0.

use crate::memory::HidlMemory;
use std::sync::Arc;

/// A number that ought to be a code of [`nnhal_hal::OperandType`].
pub type OperandType = i32;
/// A number that ought to be a code of [`nnhal_hal::OperationType`].
pub type OperationType = i32;
/// A number that ought to be a code of [`nnhal_hal::OperandLifeTime`].
pub type OperandLifeTime = i32;
/// A number that ought to be a code of [`nnhal_hal::DeviceStatus`].
pub type DeviceStatus = i32;
/// A number that ought to be a code of [`nnhal_hal::ErrorStatus`], and up to 1.2 one of the first five.
pub type ErrorStatus = i32;

/// Cost relative to the same work on the CPU; see [`nnhal_hal::PerformanceInfo`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PerformanceInfo {
    /// Execution time as a multiple of the CPU's.
    pub exec_time: f32,
    /// Power drawn as a multiple of the CPU's.
    pub power_usage: f32,
}

/// What a device says of its cost (contract: DEV-CAP-1).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Capabilities {
    /// Of `TENSOR_FLOAT32`.
    pub float32_performance: PerformanceInfo,
    /// Of `TENSOR_QUANT8_ASYMM`.
    pub quantized8_performance: PerformanceInfo,
}

/// Where bytes are in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataLocation {
    /// Index among the pools of the model or request.
    pub pool_index: u32,
    /// Bytes from its beginning.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// A value of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Operand {
    /// The element type.
    pub operand_type: OperandType,
    /// Length of each axis, 0 where unknown.
    pub dimensions: Vec<u32>,
    /// How often operations read it.
    pub number_of_consumers: u32,
    /// The step of a quantized type.
    pub scale: f32,
    /// The stored value that stands for 0.
    pub zero_point: i32,
    /// Where the value comes from.
    pub lifetime: OperandLifeTime,
    /// Of a constant: its place.
    pub location: DataLocation,
}

/// A step of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operation {
    /// What it does.
    pub operation_type: OperationType,
    /// Indexes of its arguments.
    pub inputs: Vec<u32>,
    /// Indexes of its results.
    pub outputs: Vec<u32>,
}

/// A model.
#[derive(Debug, Clone)]
pub struct Model {
    /// All values.
    pub operands: Vec<Operand>,
    /// All steps, in execution order.
    pub operations: Vec<Operation>,
    /// Indexes of the operands that a request gives.
    pub input_indexes: Vec<u32>,
    /// Indexes of the operands that a request gets.
    pub output_indexes: Vec<u32>,
    /// Values of `CONSTANT_COPY` operands.
    pub operand_values: Arc<[u8]>,
    /// Memory of `CONSTANT_REFERENCE` operands.
    pub pools: Vec<HidlMemory>,
}

/// An input or output of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestArgument {
    /// Whether it is left out.
    pub has_no_value: bool,
    /// The place of its value.
    pub location: DataLocation,
    /// Dimensions that the model left unknown; empty if nothing is to be added.
    pub dimensions: Vec<u32>,
}

/// The arguments of an execution.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// One for each input of the model.
    pub inputs: Vec<RequestArgument>,
    /// One for each output of the model.
    pub outputs: Vec<RequestArgument>,
    /// What the locations refer to.
    pub pools: Vec<HidlMemory>,
}
