//! Interfaces of 1.0.

use super::types::{Capabilities, DeviceStatus, ErrorStatus, Model, Request};
use crate::cast::Cast;
use crate::transport::Return;
use std::any::Any;
use std::sync::Arc;

/// A device.
pub trait IDevice: Send + Sync + Any {
    /// What the device costs (contract: DEV-CAP-1).
    fn get_capabilities(&self) -> Return<(ErrorStatus, Capabilities)>;

    /// For each operation whether the device can run it (contract: section 4).
    fn get_supported_operations(&self, model: &Model) -> Return<(ErrorStatus, Vec<bool>)>;

    /// Prepares a model in the background and notifies the callback once (contract: section 5).
    fn prepare_model(
        &self,
        model: &Model,
        callback: Option<Arc<dyn IPreparedModelCallback>>,
    ) -> Return<ErrorStatus>;

    /// What the device is doing (contract: DEV-STAT-1).
    fn get_status(&self) -> Return<DeviceStatus>;

    /// Provides this device as each newer version that it implements.
    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        let _ = cast;
    }
}

impl dyn IDevice {
    /// This device as one of a newer version, such as `dyn v1_3::IDevice`, if it implements that.
    pub fn cast<I: IDevice + ?Sized>(self: &Arc<Self>) -> Option<Arc<I>> {
        Cast::to(|cast| Arc::clone(self).provide(cast))
    }
}

/// A model that is ready to run.
pub trait IPreparedModel: Send + Sync + Any {
    /// Runs a request in the background and notifies the callback once (contract: section 10).
    fn execute(
        &self,
        request: &Request,
        callback: Option<Arc<dyn IExecutionCallback>>,
    ) -> Return<ErrorStatus>;

    /// Provides this prepared model as each newer version that it implements.
    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        let _ = cast;
    }
}

impl dyn IPreparedModel {
    /// This prepared model as one of a newer version, such as `dyn v1_3::IPreparedModel`, if it implements that
    /// (contract: CB-4).
    pub fn cast<I: IPreparedModel + ?Sized>(self: &Arc<Self>) -> Option<Arc<I>> {
        Cast::to(|cast| Arc::clone(self).provide(cast))
    }
}

/// Who is notified when a model is prepared (contract: section 7).
pub trait IPreparedModelCallback: Send + Sync {
    /// The outcome: a prepared model exactly with `NONE`. One way: no one waits for an answer.
    fn notify(
        &self,
        status: ErrorStatus,
        prepared_model: Option<Arc<dyn IPreparedModel>>,
    ) -> Return<()>;
}

/// Who is notified when an execution has ended (contract: section 7).
pub trait IExecutionCallback: Send + Sync {
    /// The outcome. One way: no one waits for an answer.
    fn notify(&self, status: ErrorStatus) -> Return<()>;
}
