//! Interfaces of 1.2.

use super::CacheToken;
use super::types::{
    Capabilities, DeviceType, Extension, MeasureTiming, Model, OutputShape, Timing,
};
use crate::fmq::MQDescriptor;
use crate::handle::Handle;
use crate::memory::HidlMemory;
use crate::transport::Return;
use crate::v1_0::{self, ErrorStatus, Request};
use crate::v1_1::{self, ExecutionPreference};
use std::sync::Arc;

/// A device.
pub trait IDevice: v1_1::IDevice {
    /// Names this build of the driver (contract: DEV-INFO-1).
    fn get_version_string(&self) -> Return<(ErrorStatus, String)>;

    /// The kind of processor (contract: DEV-INFO-2).
    fn get_type(&self) -> Return<(ErrorStatus, DeviceType)>;

    /// What the device costs (contract: DEV-CAP-3).
    fn get_capabilities_1_2(&self) -> Return<(ErrorStatus, Capabilities)>;

    /// The extensions that the device offers (contract: DEV-EXT-1).
    fn get_supported_extensions(&self) -> Return<(ErrorStatus, Vec<Extension>)>;

    /// For each operation whether the device can run it (contract: section 4).
    fn get_supported_operations_1_2(&self, model: &Model) -> Return<(ErrorStatus, Vec<bool>)>;

    /// How many model cache files and data cache files the device wants (contract: DEV-CACHE-1).
    fn get_number_of_cache_files_needed(&self) -> Return<(ErrorStatus, u32, u32)>;

    /// Prepares a model in the background and notifies the callback once (contract: section 5).
    fn prepare_model_1_2(
        &self,
        model: &Model,
        preference: ExecutionPreference,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn IPreparedModelCallback>>,
    ) -> Return<ErrorStatus>;

    /// Loads what an earlier preparation saved and notifies the callback once (contract: CACHE-5).
    fn prepare_model_from_cache(
        &self,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn IPreparedModelCallback>>,
    ) -> Return<ErrorStatus>;
}

/// A model that is ready to run.
pub trait IPreparedModel: v1_0::IPreparedModel {
    /// Runs a request in the background and notifies the callback once (contract: section 10).
    fn execute_1_2(
        &self,
        request: &Request,
        measure: MeasureTiming,
        callback: Option<Arc<dyn IExecutionCallback>>,
    ) -> Return<ErrorStatus>;

    /// Runs a request and returns when it has ended (contract: SYNC-1).
    fn execute_synchronously(
        &self,
        request: &Request,
        measure: MeasureTiming,
    ) -> Return<(ErrorStatus, Vec<OutputShape>, Timing)>;

    /// Begins a burst over two queues of this client (contract: BURST-1), which carry
    /// [`nnhal_burst::FmqRequestDatum`] and [`nnhal_burst::FmqResultDatum`].
    fn configure_execution_burst(
        &self,
        callback: Option<Arc<dyn IBurstCallback>>,
        request_channel: &MQDescriptor,
        result_channel: &MQDescriptor,
    ) -> Return<(ErrorStatus, Option<Arc<dyn IBurstContext>>)>;
}

/// Gives the memory of a burst's slots (contract: BURST-7, BURST-8).
pub trait IBurstCallback: Send + Sync {
    /// A memory for each slot, in order.
    fn get_memories(&self, slots: &[i32]) -> Return<(ErrorStatus, Vec<HidlMemory>)>;
}

/// The service's end of a burst. The burst ends when this object is dropped.
pub trait IBurstContext: Send + Sync {
    /// Lets go of a slot's memory (contract: BURST-10).
    fn free_memory(&self, slot: i32) -> Return<()>;

    /// Whether the burst is still there; `ping` of `IBase`, which every interface inherits.
    fn ping(&self) -> Return<()> {
        Ok(())
    }
}

/// Who is notified when a model is prepared (contract: section 7).
pub trait IPreparedModelCallback: v1_0::IPreparedModelCallback {
    /// The outcome: a prepared model exactly with `NONE`. One way: no one waits for an answer.
    fn notify_1_2(
        &self,
        status: ErrorStatus,
        prepared_model: Option<Arc<dyn IPreparedModel>>,
    ) -> Return<()>;
}

/// Who is notified when an execution has ended (contract: section 7).
pub trait IExecutionCallback: v1_0::IExecutionCallback {
    /// The outcome, with output shapes and times. One way: no one waits for an answer.
    fn notify_1_2(
        &self,
        status: ErrorStatus,
        output_shapes: &[OutputShape],
        timing: Timing,
    ) -> Return<()>;
}
