//! [`Preparation`]: what a driver reports of one, by every version of the callback.

use super::driver_model::DriverModel;
use super::notified::Notified;
use nnhal_hidl::{Return, v1_0, v1_2, v1_3};
use std::sync::Arc;

/// What a driver reported of a preparation.
pub(super) struct Preparation {
    /// As a number.
    pub(super) status: i32,
    /// The prepared model.
    pub(super) model: Option<DriverModel>,
}

impl v1_0::IPreparedModelCallback for Notified<Preparation> {
    fn notify(&self, status: i32, model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        self.put(Preparation { status, model: model.map(DriverModel::new) })
    }
}

impl v1_2::IPreparedModelCallback for Notified<Preparation> {
    fn notify_1_2(&self, status: i32, model: Option<Arc<dyn v1_2::IPreparedModel>>) -> Return<()> {
        self.put(Preparation { status, model: model.map(|model| DriverModel::new(model)) })
    }
}

impl v1_3::IPreparedModelCallback for Notified<Preparation> {
    fn notify_1_3(&self, status: i32, model: Option<Arc<dyn v1_3::IPreparedModel>>) -> Return<()> {
        self.put(Preparation { status, model: model.map(|model| DriverModel::new(model)) })
    }
}
