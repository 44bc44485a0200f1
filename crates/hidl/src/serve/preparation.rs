//! [`Preparation`]: the callback of a preparation, which is delivered once.

use super::callbacks::tell;
use super::prepared::PreparedModel;
use super::status::{Answer, NONE};
use crate::{v1_0, v1_2, v1_3};
use nnhal_hal::{ErrorStatus, HalVersion};
use std::sync::Arc;

/// A prepared model callback by the method that will tell it.
pub(super) enum PreparedModelCallback {
    V1_0(Arc<dyn v1_0::IPreparedModelCallback>),
    V1_2(Arc<dyn v1_2::IPreparedModelCallback>),
    V1_3(Arc<dyn v1_3::IPreparedModelCallback>),
}

impl PreparedModelCallback {
    fn answer(&self) -> Answer {
        Answer::Launch(match self {
            Self::V1_0(_) => HalVersion::V1_0,
            Self::V1_2(_) => HalVersion::V1_2,
            Self::V1_3(_) => HalVersion::V1_3,
        })
    }

    fn notify(self, status: i32, model: Option<Arc<PreparedModel>>) {
        tell(|| match self {
            Self::V1_0(callback) => callback.notify(status, model.map(|model| model as _)),
            Self::V1_2(callback) => callback.notify_1_2(status, model.map(|model| model as _)),
            Self::V1_3(callback) => callback.notify_1_3(status, model.map(|model| model as _)),
        });
    }
}

/// A preparation whose client has not been notified yet. Dropping it tells `GENERAL_FAILURE`.
pub(super) struct Preparation(Option<PreparedModelCallback>);

impl Preparation {
    pub(super) fn new(callback: PreparedModelCallback) -> Self {
        Self(Some(callback))
    }

    /// Tells the outcome and returns its status: a model exactly with `NONE` (contract: PREP-3).
    pub(super) fn deliver(mut self, result: nnhal_hal::Result<Arc<PreparedModel>>) -> i32 {
        let Some(callback) = self.0.take() else { return NONE };
        let (status, model) = match result {
            Ok(model) => (NONE, Some(model)),
            Err(error) => (callback.answer().refuse(&error), None),
        };
        callback.notify(status, model);
        status
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback.notify(ErrorStatus::GeneralFailure.code(), None);
        }
    }
}
