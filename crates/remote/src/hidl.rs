//! Devices behind the HIDL interfaces.

use crate::Kind;
use nnhal_hal::{Device, Error, ErrorStatus};
use nnhal_hidl_binder::client;
use nnhal_hwbinder::Process;
use std::path::PathBuf;
use std::sync::Arc;

/// A service of hwbinder.
pub(crate) const HIDL: Kind = Kind { scheme: "hidl", form: "hidl:NAME", open, list: Some(list) };

/// The binder device that HIDL services are behind.
fn path() -> nnhal_hal::Result<PathBuf> {
    let chosen = nnhal_settings::HWBINDER.read().map_err(Error::failure)?;
    Ok(chosen.map_or_else(|| nnhal_hwbinder::DEVICE.into(), PathBuf::from))
}

fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorStatus::DeviceUnavailable, error)
}

fn open(name: &str) -> nnhal_hal::Result<Arc<dyn Device>> {
    let process = Process::open(&path()?, Default::default()).map_err(unavailable)?;
    client::open(&process, name, Default::default()).map_err(|error| match error {
        client::OpenError::Device(error) => error,
        other => unavailable(other),
    })
}

/// None where there is no binder, as on most Linux.
fn list() -> nnhal_hal::Result<Vec<String>> {
    let path = path()?;
    if !path.exists() {
        return Ok(Vec::new());
    }
    let process = Process::open(&path, Default::default()).map_err(unavailable)?;
    match client::devices(&process) {
        Ok(devices) => Ok(devices.into_keys().collect()),
        // No service manager, no services.
        Err(nnhal_hwbinder::Error::Dead) => Ok(Vec::new()),
        Err(error) => Err(unavailable(error)),
    }
}
