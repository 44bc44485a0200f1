//! `android.hardware.neuralnetworks@1.2`: extensions, caching, timing, output shapes, bursts.

mod interfaces;
mod types;

pub use interfaces::{
    IBurstCallback, IBurstContext, IDevice, IExecutionCallback, IPreparedModel,
    IPreparedModelCallback,
};
pub use types::{
    Capabilities, DeviceType, Extension, ExtensionNameAndPrefix, ExtraParams, MeasureTiming, Model,
    Operand, OperandPerformance, OperandTypeInformation, OutputShape, SymmPerChannelQuantParams,
    Timing,
};

pub use crate::v1_0::{
    DataLocation, ErrorStatus, OperandLifeTime, OperandType, Operation, OperationType,
    PerformanceInfo, Request, RequestArgument,
};
pub use crate::v1_1::ExecutionPreference;

/// Bytes in a cache token (`Constant::BYTE_SIZE_OF_CACHE_TOKEN`).
pub const BYTE_SIZE_OF_CACHE_TOKEN: usize = nnhal_hal::BYTE_SIZE_OF_CACHE_TOKEN;
/// Most cache files of one kind (`Constant::MAX_NUMBER_OF_CACHE_FILES`).
pub const MAX_NUMBER_OF_CACHE_FILES: u32 = nnhal_hal::MAX_NUMBER_OF_CACHE_FILES;

/// Names a compilation in the client's cache.
pub type CacheToken = [u8; BYTE_SIZE_OF_CACHE_TOKEN];
