//! The interface over the kernel's binder: as a client and as a service of the system's service manager.
//!
//! On Android and its relatives. The first call opens `/dev/binderfs/binder` or `/dev/binder` and keeps it
//! open for as long as the process exists.

use crate::client::{Device, Link};
use crate::interface::nn::IDevice::IDevice;
use crate::status::{error_of, gone};
use nnhal_hal::{Error, ErrorStatus, Result};
use rsbinder::{ProcessState, SIBinder, StatusCode, Strong, hub};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What instances are registered as, before the slash.
pub const INTERFACE: &str = "android.hardware.neuralnetworks.IDevice";

/// The most threads that serve calls of other processes.
pub const THREADS: u32 = 15;

/// Where binder is, one or the other.
const PATHS: [&str; 2] = ["/dev/binderfs/binder", "/dev/binder"];

fn path() -> Option<&'static str> {
    PATHS.into_iter().find(|path| std::path::Path::new(path).exists())
}

/// Opens binder, unless it is open, and begins to serve.
///
/// # Errors
/// `DEVICE_UNAVAILABLE` where the kernel has no binder, or the process may not use it.
pub fn start() -> Result<()> {
    let unavailable = |why: String| Error::new(ErrorStatus::DeviceUnavailable, why);
    if ProcessState::is_initialized() {
        return Ok(());
    }
    let path = path();
    let path =
        path.ok_or_else(|| unavailable(format!("there is no {}", PATHS.join(" and no "))))?;
    let opened = catch_unwind(AssertUnwindSafe(|| {
        ProcessState::init(path, THREADS).map(|_| ()).map_err(|error| error.to_string())
    }));
    match opened {
        Ok(opened) => opened.map_err(|why| unavailable(format!("{path}: {why}")))?,
        Err(_) => return Err(unavailable(format!("{path} cannot be used"))),
    }
    ProcessState::start_thread_pool();
    Ok(())
}

/// The names of all instances that are registered: none where the kernel has no binder, as on most Linux, or where there is
/// no service manager.
///
/// # Errors
/// `DEVICE_UNAVAILABLE` where the process may not use binder; what the service manager answers.
pub fn list() -> Result<Vec<String>> {
    if path().is_none() || !has_manager()? {
        return Ok(Vec::new());
    }
    let all = hub::try_list_services(hub::DUMP_FLAG_PRIORITY_ALL);
    let all = all.map_err(|status| error_of("listServices", &status))?;
    let instance = |name: &String| {
        let (interface, instance) = name.split_once('/')?;
        (interface == INTERFACE).then(|| instance.to_owned())
    };
    Ok(all.iter().filter_map(instance).collect())
}

/// The device that is registered under this instance name.
///
/// # Errors
/// `DEVICE_UNAVAILABLE` where there is no binder, no service manager or no such instance; what
/// [`Device::new`] says.
pub fn open(instance: &str) -> Result<Arc<dyn nnhal_hal::Device>> {
    let name = instance.to_owned();
    let connect = move || {
        start()?;
        let found = hub::check_interface::<dyn IDevice>(&format!("{INTERFACE}/{name}"));
        Link::new(found.map_err(|why| gone("checkService", why))?, None)
    };
    Ok(Arc::new(Device::new(instance, connect)?))
}

/// Registers a device under an instance name.
///
/// # Errors
/// `DEVICE_UNAVAILABLE` where there is no binder or no service manager; what the service manager answers:
/// on Android it refuses instances that its manifest does not name.
pub fn register(instance: &str, device: &Strong<dyn IDevice>) -> Result<()> {
    start()?;
    let added = hub::add_service(&format!("{INTERFACE}/{instance}"), SIBinder::from(device));
    added.map_err(|status| error_of("addService", &status))
}

/// Whether the service manager answers.
///
/// # Errors
/// `DEVICE_UNAVAILABLE` where the kernel has no binder, or the process may not use it.
pub fn has_manager() -> Result<bool> {
    start()?;
    Ok(hub::default().is_ok())
}

/// Serves on this thread too, until the process ends.
///
/// # Errors
/// Binder was not opened, or the kernel ends the thread.
pub fn serve() -> Result<()> {
    start()?;
    ProcessState::join_thread_pool().map_err(|why: StatusCode| gone("joinThreadPool", why))
}
