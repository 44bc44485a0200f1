//! The interface over Unix sockets: binder's protocol for sockets, as `rsbinder` speaks it, with
//! descriptors beside the bytes.
//!
//! A client begins with one connection and opens another when a call finds all of them busy, up to
//! [`MOST_CONNECTIONS`]: a service then has one thread for each call that is going on.

use crate::client::{Device, Link};
pub use crate::lines::{Lines, MOST_CONNECTIONS, PROTOCOL};
use crate::status::error_of;
use nnhal_hal::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// The device that a service offers on a Unix socket: its first, or the one named.
///
/// # Errors
/// `DEVICE_UNAVAILABLE` where the service cannot be reached; `INVALID_ARGUMENT` where it has no device of
/// that name; what [`Device::new`] says.
pub fn open(path: &Path, device: Option<&str>) -> Result<Arc<dyn nnhal_hal::Device>> {
    let named = device.map(str::to_owned);
    let name = named.clone().map_or_else(|| first_name(path), Ok)?;
    let path = path.to_owned();
    let connect = move || {
        let lines = Lines::connect(&path)?;
        let device = match &named {
            None => lines.device()?,
            Some(name) => {
                let service = lines.service()?.ok_or_else(|| {
                    Error::invalid("the service offers one device, which has no name")
                })?;
                let found = service.getDevice(name);
                found.map_err(|status| error_of("getDevice", &status))?
            }
        };
        Link::new(device, Some(lines))
    };
    Ok(Arc::new(Device::new(name, connect)?))
}

/// What a service calls its first device. Others' services have no names for theirs: theirs has that of
/// the socket, as the part after the last `-` that names have.
fn first_name(path: &Path) -> Result<String> {
    let names = match Lines::connect(path)?.service()? {
        Some(service) => service.getDevices().map_err(|status| error_of("getDevices", &status))?,
        None => Vec::new(),
    };
    Ok(names.into_iter().next().unwrap_or_else(|| {
        let stem = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        format!("unix-{}", stem.unwrap_or_default())
    }))
}
