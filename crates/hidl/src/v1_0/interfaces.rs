//! Interfaces of 1.0.

use super::types::{Capabilities, DeviceStatus, ErrorStatus, Model, Request};
use crate::transport::Return;
use crate::{v1_1, v1_2, v1_3};
use std::any::Any;
use std::sync::Arc;

/// A device.
///
/// The `cast_to` methods are `castFrom` of the generated C++: the same object as a newer version,
/// if it implements that.
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

    /// This device as one of 1.1.
    fn cast_to_1_1(self: Arc<Self>) -> Option<Arc<dyn v1_1::IDevice>> {
        None
    }

    /// This device as one of 1.2.
    fn cast_to_1_2(self: Arc<Self>) -> Option<Arc<dyn v1_2::IDevice>> {
        None
    }

    /// This device as one of 1.3.
    fn cast_to_1_3(self: Arc<Self>) -> Option<Arc<dyn v1_3::IDevice>> {
        None
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

    /// This prepared model as one of 1.2.
    fn cast_to_1_2(self: Arc<Self>) -> Option<Arc<dyn v1_2::IPreparedModel>> {
        None
    }

    /// This prepared model as one of 1.3 (contract: CB-4).
    fn cast_to_1_3(self: Arc<Self>) -> Option<Arc<dyn v1_3::IPreparedModel>> {
        None
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
