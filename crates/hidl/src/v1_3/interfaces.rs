//! Interfaces of 1.3.

use super::types::{
    BufferDesc, BufferRole, Capabilities, Model, OptionalTimePoint, OptionalTimeoutDuration,
    Priority, Request,
};
use crate::handle::Handle;
use crate::memory::HidlMemory;
use crate::transport::Return;
use crate::v1_0::ErrorStatus;
use crate::v1_1::ExecutionPreference;
use crate::v1_2::{self, CacheToken, MeasureTiming, OutputShape, Timing};
use std::sync::Arc;

/// A device.
pub trait IDevice: v1_2::IDevice {
    /// What the device costs (contract: DEV-CAP-6).
    fn get_capabilities_1_3(&self) -> Return<(ErrorStatus, Capabilities)>;

    /// For each operation of the main graph whether the device can run it (contract: section 4).
    fn get_supported_operations_1_3(&self, model: &Model) -> Return<(ErrorStatus, Vec<bool>)>;

    /// Prepares a model in the background and notifies the callback once (contract: section 5).
    #[allow(clippy::too_many_arguments)] // They are the interface's.
    fn prepare_model_1_3(
        &self,
        model: &Model,
        preference: ExecutionPreference,
        priority: Priority,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn IPreparedModelCallback>>,
    ) -> Return<ErrorStatus>;

    /// Loads what an earlier preparation saved and notifies the callback once (contract: CACHE-5).
    fn prepare_model_from_cache_1_3(
        &self,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn IPreparedModelCallback>>,
    ) -> Return<ErrorStatus>;

    /// Allocates a buffer that the driver manages (contract: section 13). The token is 0 exactly
    /// if there is no buffer.
    #[allow(clippy::type_complexity)] // The results are the interface's.
    fn allocate(
        &self,
        desc: &BufferDesc,
        prepared_models: &[Option<Arc<dyn IPreparedModel>>],
        input_roles: &[BufferRole],
        output_roles: &[BufferRole],
    ) -> Return<(ErrorStatus, Option<Arc<dyn IBuffer>>, u32)>;
}

/// A model that is ready to run.
pub trait IPreparedModel: v1_2::IPreparedModel {
    /// Runs a request in the background and notifies the callback once (contract: section 10).
    fn execute_1_3(
        &self,
        request: &Request,
        measure: MeasureTiming,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
        callback: Option<Arc<dyn IExecutionCallback>>,
    ) -> Return<ErrorStatus>;

    /// Runs a request and returns when it has ended (contract: SYNC-1).
    fn execute_synchronously_1_3(
        &self,
        request: &Request,
        measure: MeasureTiming,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
    ) -> Return<(ErrorStatus, Vec<OutputShape>, Timing)>;

    /// Launches a request that runs once all fences have signalled (contract: section 12). Answers
    /// with a fence that signals at the end; null: it has ended already.
    #[allow(clippy::type_complexity)] // The results are the interface's.
    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[Handle],
        measure: MeasureTiming,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
        duration: OptionalTimeoutDuration,
    ) -> Return<(ErrorStatus, Handle, Option<Arc<dyn IFencedExecutionCallback>>)>;
}

/// A buffer that the driver manages (contract: section 13). It exists as long as this object.
pub trait IBuffer: Send + Sync {
    /// Copies the buffer out.
    fn copy_to(&self, dst: &HidlMemory) -> Return<ErrorStatus>;

    /// Copies memory in, as a value of these dimensions; empty: the allocated ones.
    fn copy_from(&self, src: &HidlMemory, dimensions: &[u32]) -> Return<ErrorStatus>;
}

/// What becomes of a fenced execution (contract: FENCE-10 to FENCE-12).
pub trait IFencedExecutionCallback: Send + Sync {
    /// The outcome, and the times from launch to end and from the last fence to end.
    fn get_execution_info(&self) -> Return<(ErrorStatus, Timing, Timing)>;
}

/// Who is notified when a model is prepared (contract: section 7).
pub trait IPreparedModelCallback: v1_2::IPreparedModelCallback {
    /// The outcome: a prepared model exactly with `NONE`. One way: no one waits for an answer.
    fn notify_1_3(
        &self,
        status: ErrorStatus,
        prepared_model: Option<Arc<dyn IPreparedModel>>,
    ) -> Return<()>;
}

/// Who is notified when an execution has ended (contract: section 7).
pub trait IExecutionCallback: v1_2::IExecutionCallback {
    /// The outcome, with output shapes and times. One way: no one waits for an answer.
    fn notify_1_3(
        &self,
        status: ErrorStatus,
        output_shapes: &[OutputShape],
        timing: Timing,
    ) -> Return<()>;
}
