//! Devices behind the AIDL interface.

use crate::Kind;
use nnhal_aidl::{binder, socket};
use nnhal_hal::Device;
use std::sync::Arc;

/// A service on a Unix socket.
pub(crate) const UNIX: Kind =
    Kind { scheme: "unix", form: "unix:PATH[#DEVICE]", open: open_socket, list: None };

/// A service of kernel binder's service manager.
pub(crate) const KERNEL: Kind =
    Kind { scheme: "aidl", form: "aidl:NAME", open: binder::open, list: Some(binder::list) };

fn open_socket(rest: &str) -> nnhal_hal::Result<Arc<dyn Device>> {
    let (path, device) = match rest.rsplit_once('#') {
        Some((path, device)) => (path, Some(device)),
        None => (rest, None),
    };
    socket::open(path.as_ref(), device)
}
