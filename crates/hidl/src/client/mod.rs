//! A [`nnhal_hal::Device`] in front of the interfaces: a driver of any version is used
//! through the types and traits of `hal`.
//!
//! [`from_v1_0`] to [`from_v1_3`] take a driver's `IDevice`. The device that comes out is as new as
//! the interface ([`nnhal_hal::Device::version`]) and speaks to the driver in the version that the caller
//! asks for, as far as the interface has it: a model that is prepared for 1.1 through a 1.3 driver
//! goes through `prepareModel_1_1`, under the rules of 1.1 (contract: GEN-6). Priority, deadline and
//! cache files are then not passed on, because 1.1 cannot express them.
//!
//! A model or request that the version cannot express is refused with `INVALID_ARGUMENT` and its
//! [`nnhal_hal::Obstacle`]s. A driver that is older than the version asked for is asked in its own.
//!
//! **Nothing is believed.** Whatever a driver answers is checked: numbers that are no code, no model
//! with `NONE`, shapes that are too few, times that contradict each other. It may notify a callback
//! twice (the first counts), from any thread, before or after it returns. If it lets go of a
//! callback without having notified it, the wait ends; if it keeps it for ever, the wait ends after
//! [`Options::timeout`]. A driver that panics fails the call. All these are `GENERAL_FAILURE`, with
//! a [`Misbehaviour`] as the reason.

mod answer;
mod buffer;
mod burst;
mod callbacks;
mod describe;
mod device;
mod fenced;
mod interface;
mod judging;
mod prepared;
mod wait;

pub use crate::misbehaviour::Misbehaviour;
pub use answer::{Answered, NOTIFY};
pub use device::Device;
pub use interface::Interface;
pub use prepared::PreparedModel;

use crate::{serve, v1_0, v1_1, v1_2, v1_3};
use nnhal_hal::HalVersion;
use std::sync::Arc;
use std::time::Duration;

/// How to use a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether to execute by the asynchronous methods where there are others. 1.0 and 1.1 have no
    /// others.
    pub asynchronous: bool,
    /// How long to wait for a callback that the driver neither notifies nor lets go.
    pub timeout: Duration,
}

impl Default for Options {
    /// Synchronous; an hour, which no preparation should take.
    fn default() -> Self {
        Self { asynchronous: false, timeout: Duration::from_secs(3600) }
    }
}

/// Uses a driver of 1.0 under this service instance name.
///
/// # Errors
/// As [`Device::new`].
pub fn from_v1_0(
    name: impl Into<String>,
    device: Arc<dyn v1_0::IDevice>,
) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Device>> {
    Ok(Arc::new(Device::new(name, Interface::V1_0(device), Options::default())?))
}

/// Uses a driver of 1.1 under this service instance name.
///
/// # Errors
/// As [`Device::new`].
pub fn from_v1_1(
    name: impl Into<String>,
    device: Arc<dyn v1_1::IDevice>,
) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Device>> {
    Ok(Arc::new(Device::new(name, Interface::V1_1(device), Options::default())?))
}

/// Uses a driver of 1.2 under this service instance name.
///
/// # Errors
/// As [`Device::new`].
pub fn from_v1_2(
    name: impl Into<String>,
    device: Arc<dyn v1_2::IDevice>,
) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Device>> {
    Ok(Arc::new(Device::new(name, Interface::V1_2(device), Options::default())?))
}

/// Uses a driver of 1.3 under this service instance name.
///
/// # Errors
/// As [`Device::new`].
pub fn from_v1_3(
    name: impl Into<String>,
    device: Arc<dyn v1_3::IDevice>,
) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Device>> {
    Ok(Arc::new(Device::new(name, Interface::V1_3(device), Options::default())?))
}

/// Uses a driver under this service instance name, by the newest version that it implements
/// (contract: IPC-7).
///
/// # Errors
/// As [`Device::new`].
pub fn from_newest(
    name: impl Into<String>,
    device: Arc<dyn v1_0::IDevice>,
) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Device>> {
    let interface = Interface::newest(device)?;
    Ok(Arc::new(Device::new(name, interface, Options::default())?))
}

/// A device behind the interfaces of a version and in front of them again, which ought to behave as
/// the device itself as far as the version goes: so whatever judges devices judges the interfaces
/// and adapters too. A version newer than 1.3, or than the device's, counts as that.
///
/// ```
/// let device = nnhal_hidl::client::through(nnhal_reference::device(), nnhal_hal::HalVersion::V1_2, Default::default())?;
/// assert_eq!(device.name(), "nnhal-reference");
/// assert_eq!(device.version(), nnhal_hal::HalVersion::V1_2);
/// # Ok::<(), nnhal_hal::Error>(())
/// ```
///
/// # Errors
/// As [`Device::new`].
pub fn through(
    device: Arc<dyn nnhal_hal::Device>,
    version: HalVersion,
    options: Options,
) -> nnhal_hal::Result<Arc<dyn nnhal_hal::Device>> {
    let name = device.name().to_owned();
    let version = version.min(device.version());
    let served = serve::Device::new(device);
    let interface = match version {
        HalVersion::V1_0 => Interface::V1_0(served),
        HalVersion::V1_1 => Interface::V1_1(served),
        HalVersion::V1_2 => Interface::V1_2(served),
        _ => Interface::V1_3(served),
    };
    Ok(Arc::new(Device::new(name, interface, options)?))
}
