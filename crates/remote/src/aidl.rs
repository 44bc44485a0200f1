//! Devices behind the AIDL interface.

use crate::Kind;
use nnhal_aidl::client;
use nnhal_hal::Device;
use std::sync::Arc;

/// A service on a Unix socket.
pub(crate) const UNIX: Kind =
    Kind { scheme: "unix", form: "unix:PATH[#DEVICE]", open: open_socket, list: None };

fn open_socket(rest: &str) -> nnhal_hal::Result<Arc<dyn Device>> {
    let (path, device) = match rest.rsplit_once('#') {
        Some((path, device)) => (path, Some(device)),
        None => (rest, None),
    };
    client::over_socket(path.as_ref(), device)
}
