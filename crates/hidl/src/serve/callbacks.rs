//! [`Running`]: the callback of an execution, which is delivered once.

use super::outcome::Outcome;
use crate::transport::Return;
use crate::{v1_0, v1_2, v1_3};
use nnhal_hal::{Error, HalVersion};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Tells a client, whatever it does with that (contract: CB-2).
pub(super) fn tell(notify: impl FnOnce() -> Return<()>) {
    match catch_unwind(AssertUnwindSafe(notify)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a client could not be notified"),
        Err(_) => tracing::warn!("a client has panicked in its callback"),
    }
}

/// An execution callback by the method that will tell it.
pub(super) enum ExecutionCallback {
    V1_0(Arc<dyn v1_0::IExecutionCallback>),
    V1_2(Arc<dyn v1_2::IExecutionCallback>),
    V1_3(Arc<dyn v1_3::IExecutionCallback>),
}

impl ExecutionCallback {
    fn version(&self) -> HalVersion {
        match self {
            Self::V1_0(_) => HalVersion::V1_0,
            Self::V1_2(_) => HalVersion::V1_2,
            Self::V1_3(_) => HalVersion::V1_3,
        }
    }

    fn notify(self, outcome: Outcome) {
        let Outcome { status, output_shapes, timing } = outcome;
        tell(|| match self {
            Self::V1_0(callback) => callback.notify(status),
            Self::V1_2(callback) => callback.notify_1_2(status, &output_shapes, timing),
            Self::V1_3(callback) => callback.notify_1_3(status, &output_shapes, timing),
        });
    }
}

/// An execution whose client has not been notified yet. Dropping it tells `GENERAL_FAILURE`.
pub(super) struct Running {
    callback: Option<ExecutionCallback>,
    version: HalVersion,
}

impl Running {
    pub(super) fn new(callback: ExecutionCallback) -> Self {
        Self { version: callback.version(), callback: Some(callback) }
    }

    /// The version of the method that launched it.
    pub(super) fn version(&self) -> HalVersion {
        self.version
    }

    /// Tells the outcome.
    pub(super) fn deliver(mut self, outcome: Outcome) {
        if let Some(callback) = self.callback.take() {
            callback.notify(outcome);
        }
    }

    /// Tells an error without shapes and times, and returns its status (contract: EXEC-1).
    pub(super) fn refuse(self, error: &Error) -> i32 {
        let outcome = Outcome::failed(self.version, error);
        let status = outcome.status;
        self.deliver(outcome);
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(callback) = self.callback.take() {
            let error = Error::failure("the execution was given up");
            callback.notify(Outcome::failed(self.version, &error));
        }
    }
}
