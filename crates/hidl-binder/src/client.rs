//! Devices of other processes.

use crate::interfaces::DeviceProxy;
use crate::names::{DEVICE_PREFIX, DEVICE_SUFFIX, device_chain};
use nnhal_hal::HalVersion;
use nnhal_hidl::client::{self, Interface, Options};
use nnhal_hwbinder::manager::Instance;
use nnhal_hwbinder::{Binder, Error, Manager, Process};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a device of another process cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The device or the service manager.
    #[error(transparent)]
    Binder(#[from] Error),
    /// No service of this name.
    #[error("there is no device {name:?}; there {}", list(.found))]
    NotFound {
        /// What was looked for.
        name: String,
        /// What there is.
        found: Vec<String>,
    },
    /// What it says of itself.
    #[error(transparent)]
    Device(#[from] nnhal_hal::Error),
}

fn list(found: &[String]) -> String {
    match found {
        [] => "is none".to_owned(),
        [one] => format!("is {one:?}"),
        several => format!("are {}", several.join(", ")),
    }
}

/// The devices that a service manager knows, by name, each with its newest version.
///
/// # Errors
/// [`Error::Dead`] if there is no manager.
pub fn devices(process: &Arc<Process>) -> Result<BTreeMap<String, HalVersion>, Error> {
    let mut devices = BTreeMap::new();
    for Instance { interface, name } in Manager::find(process)?.list()? {
        let Some(version) = version_of(&interface) else { continue };
        let newest: &mut HalVersion = devices.entry(name).or_insert(version);
        *newest = (*newest).max(version);
    }
    Ok(devices)
}

/// The version of an interface that is a device's.
fn version_of(interface: &str) -> Option<HalVersion> {
    match interface.strip_prefix(DEVICE_PREFIX)?.strip_suffix(DEVICE_SUFFIX)? {
        "1.0" => Some(HalVersion::V1_0),
        "1.1" => Some(HalVersion::V1_1),
        "1.2" => Some(HalVersion::V1_2),
        "1.3" => Some(HalVersion::V1_3),
        _ => None,
    }
}

/// A driver behind the oldest of its interfaces, as it is before it becomes a device.
pub type Driver = dyn nnhal_hidl::v1_0::IDevice;

/// The driver of another process, by the name of its service: for whoever judges its interfaces. Others want [`open`].
///
/// # Errors
/// [`OpenError`]
pub fn driver(process: &Arc<Process>, name: &str) -> Result<Arc<Driver>, OpenError> {
    let devices = devices(process)?;
    let not_found =
        || OpenError::NotFound { name: name.to_owned(), found: devices.keys().cloned().collect() };
    let version = *devices.get(name).ok_or_else(not_found)?;
    let interface = device_chain(version).first().ok_or_else(not_found)?.name;
    let object = Manager::find(process)?.get(interface, name)?;
    let Some(Binder::Remote(remote)) = object else { return Err(not_found()) };
    let (process, interface) = (Arc::clone(process), interface.to_owned());
    Ok(Arc::new(DeviceProxy::new(process, remote, interface, name.to_owned(), version)))
}

/// A device of another process, by the name of its service. When the service ends, what runs ends with
/// `DEVICE_UNAVAILABLE`; calls find it again as soon as it is there again, and what was prepared with it is lost.
///
/// # Errors
/// [`OpenError`]
pub fn open(
    process: &Arc<Process>,
    name: &str,
    options: Options,
) -> Result<Arc<dyn nnhal_hal::Device>, OpenError> {
    let interface = Interface::newest(driver(process, name)?)?;
    Ok(Arc::new(client::Device::new(name, interface, options)?))
}
