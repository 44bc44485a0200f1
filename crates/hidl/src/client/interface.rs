//! [`Interface`]: a driver's device by the version that is used of it.

use super::answer::ask;
use crate::{v1_0, v1_1, v1_2, v1_3};
use nnhal_hal::HalVersion;
use std::sync::Arc;

/// A driver's device by the version that is used of it.
#[derive(Clone)]
pub enum Interface {
    /// 1.0
    V1_0(Arc<dyn v1_0::IDevice>),
    /// 1.1
    V1_1(Arc<dyn v1_1::IDevice>),
    /// 1.2
    V1_2(Arc<dyn v1_2::IDevice>),
    /// 1.3
    V1_3(Arc<dyn v1_3::IDevice>),
}

impl Interface {
    /// The newest version that the device implements.
    ///
    /// # Errors
    /// If the driver panics.
    pub fn newest(device: Arc<dyn v1_0::IDevice>) -> nnhal_hal::Result<Self> {
        ask("castFrom", || {
            let newest = None
                .or_else(|| device.cast().map(Self::V1_3))
                .or_else(|| device.cast().map(Self::V1_2))
                .or_else(|| device.cast().map(Self::V1_1));
            Ok(newest.unwrap_or(Self::V1_0(device)))
        })
    }

    /// The version.
    pub fn version(&self) -> HalVersion {
        match self {
            Self::V1_0(_) => HalVersion::V1_0,
            Self::V1_1(_) => HalVersion::V1_1,
            Self::V1_2(_) => HalVersion::V1_2,
            Self::V1_3(_) => HalVersion::V1_3,
        }
    }

    pub(super) fn v1_0(&self) -> &dyn v1_0::IDevice {
        match self {
            Self::V1_0(device) => &**device,
            Self::V1_1(device) => &**device,
            Self::V1_2(device) => &**device,
            Self::V1_3(device) => &**device,
        }
    }

    /// The same device by an older version, or as it is.
    pub(super) fn at_most(&self, version: HalVersion) -> At<'_> {
        match (self, version) {
            (_, HalVersion::V1_0) => At::V1_0(self.v1_0()),
            (Self::V1_0(device), _) => At::V1_0(&**device),
            (Self::V1_1(device), _) => At::V1_1(&**device),
            (Self::V1_2(device), HalVersion::V1_1) => At::V1_1(&**device),
            (Self::V1_3(device), HalVersion::V1_1) => At::V1_1(&**device),
            (Self::V1_2(device), _) => At::V1_2(&**device),
            (Self::V1_3(device), HalVersion::V1_2) => At::V1_2(&**device),
            (Self::V1_3(device), _) => At::V1_3(&**device),
        }
    }
}

/// A device by one version.
pub(super) enum At<'a> {
    V1_0(&'a dyn v1_0::IDevice),
    V1_1(&'a dyn v1_1::IDevice),
    V1_2(&'a dyn v1_2::IDevice),
    V1_3(&'a dyn v1_3::IDevice),
}

/// A driver's prepared model by the newest version that may be used of it.
#[derive(Clone)]
pub(super) enum PreparedInterface {
    V1_0(Arc<dyn v1_0::IPreparedModel>),
    V1_2(Arc<dyn v1_2::IPreparedModel>),
    V1_3(Arc<dyn v1_3::IPreparedModel>),
}

impl PreparedInterface {
    /// The newest version that the prepared model implements, but none newer than the device's.
    pub(super) fn newest(self, device: HalVersion) -> nnhal_hal::Result<Self> {
        ask("castFrom", || {
            Ok(match self {
                Self::V1_0(model) if device >= HalVersion::V1_2 => {
                    let newest = None
                        .or_else(|| {
                            let may = device >= HalVersion::V1_3;
                            may.then(|| model.cast()).flatten().map(Self::V1_3)
                        })
                        .or_else(|| model.cast().map(Self::V1_2));
                    newest.unwrap_or(Self::V1_0(model))
                }
                Self::V1_2(model) if device >= HalVersion::V1_3 => {
                    let older: Arc<dyn v1_0::IPreparedModel> = model.clone();
                    older.cast().map_or(Self::V1_2(model), Self::V1_3)
                }
                model => model,
            })
        })
    }
}
