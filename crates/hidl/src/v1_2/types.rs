//! Types of 1.2.

use crate::memory::HidlMemory;
use crate::v1_0::{DataLocation, OperandLifeTime, OperandType, Operation, PerformanceInfo};
use std::sync::Arc;

/// A number that ought to be a code of [`nnhal_hal::DeviceType`].
pub type DeviceType = i32;
/// A number that ought to be a code of [`nnhal_hal::MeasureTiming`].
pub type MeasureTiming = i32;

/// The cost of operations whose first operand is of a type (`Capabilities::OperandPerformance`).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OperandPerformance {
    /// A code of `OperandType`.
    pub operand_type: OperandType,
    /// The cost.
    pub info: PerformanceInfo,
}

/// What a device says of its cost (contract: DEV-CAP-3 to DEV-CAP-5).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Capabilities {
    /// Of `FLOAT32` computed with the range and precision of float16.
    pub relaxed_float32to_float16_performance_scalar: PerformanceInfo,
    /// Of `TENSOR_FLOAT32` computed with the range and precision of float16.
    pub relaxed_float32to_float16_performance_tensor: PerformanceInfo,
    /// By operand type, sorted.
    pub operand_performance: Vec<OperandPerformance>,
}

/// A scale for each index of one axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SymmPerChannelQuantParams {
    /// As many as the axis is long.
    pub scales: Vec<f32>,
    /// The axis.
    pub channel_dim: u32,
}

/// What some operand types carry beyond scale and zero point (`Operand::ExtraParams`).
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ExtraParams {
    /// Tag 0: nothing.
    #[default]
    None,
    /// Tag 1: for `TENSOR_QUANT8_SYMM_PER_CHANNEL`.
    ChannelQuant(SymmPerChannelQuantParams),
    /// Tag 2: for an extension's type.
    Extension(Arc<[u8]>),
    /// A tag that no one knows (contract: GEN-7).
    Unknown {
        /// The tag as it was received.
        tag: u8,
    },
}

/// A value of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Operand {
    /// The element type.
    pub operand_type: OperandType,
    /// Length of each axis, 0 where unknown; empty if not even the rank is known.
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
    /// See [`ExtraParams`].
    pub extra_params: ExtraParams,
}

/// What a prefix of extension types means (`Model::ExtensionNameAndPrefix`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ExtensionNameAndPrefix {
    /// The extension's name.
    pub name: String,
    /// The prefix that stands for it in this model.
    pub prefix: u16,
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
    /// Whether float32 may be computed with the range and precision of float16 (PREP-13).
    pub relax_computation_float32to_float16: bool,
    /// What the prefixes of extension types mean.
    pub extension_name_to_prefix: Vec<ExtensionNameAndPrefix>,
}

/// The final shape of an output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OutputShape {
    /// In elements; 0 where it is not known.
    pub dimensions: Vec<u32>,
    /// Whether the buffer given was long enough.
    pub is_sufficient: bool,
}

/// How long an execution took, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timing {
    /// On the device; [`u64::MAX`] if not available.
    pub time_on_device: u64,
    /// In the driver; [`u64::MAX`] if not available.
    pub time_in_driver: u64,
}

impl Timing {
    /// Neither time is available.
    pub const NONE: Self = Self { time_on_device: u64::MAX, time_in_driver: u64::MAX };
}

/// An operand type of an extension (`Extension::OperandTypeInformation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OperandTypeInformation {
    /// The number within the extension.
    pub operand_type: u16,
    /// Whether it is a tensor type.
    pub is_tensor: bool,
    /// Bytes that a scalar or an element takes.
    pub byte_size: u32,
}

/// An extension that a device offers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Extension {
    /// In reverse domain order, such as `com.example.extension`.
    pub name: String,
    /// The operand types it defines.
    pub operand_types: Vec<OperandTypeInformation>,
}
