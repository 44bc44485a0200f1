//! `android.hardware.neuralnetworks@1.1`: relaxed computation, and a preference.

use crate::memory::HidlMemory;
use crate::transport::Return;
use crate::v1_0;
use std::sync::Arc;

pub use crate::v1_0::{ErrorStatus, Operand, Operation, OperationType, PerformanceInfo};

/// A number that ought to be a code of [`nnhal_hal::ExecutionPreference`].
pub type ExecutionPreference = i32;

/// What a device says of its cost (contract: DEV-CAP-2).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Capabilities {
    /// Of `TENSOR_FLOAT32`.
    pub float32_performance: PerformanceInfo,
    /// Of `TENSOR_QUANT8_ASYMM`.
    pub quantized8_performance: PerformanceInfo,
    /// Of `TENSOR_FLOAT32` computed with the range and precision of float16.
    pub relaxed_float32to_float16_performance: PerformanceInfo,
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
}

/// A device.
pub trait IDevice: v1_0::IDevice {
    /// What the device costs (contract: DEV-CAP-2).
    fn get_capabilities_1_1(&self) -> Return<(ErrorStatus, Capabilities)>;

    /// For each operation whether the device can run it (contract: section 4).
    fn get_supported_operations_1_1(&self, model: &Model) -> Return<(ErrorStatus, Vec<bool>)>;

    /// Prepares a model in the background and notifies the callback once (contract: section 5).
    fn prepare_model_1_1(
        &self,
        model: &Model,
        preference: ExecutionPreference,
        callback: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<ErrorStatus>;
}
