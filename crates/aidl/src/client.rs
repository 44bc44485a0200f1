//! A service as a [`nnhal_hal::Device`].

use nnhal_hal::{Device, Error};
use std::path::Path;
use std::sync::Arc;

/// The device that a service offers on a Unix socket: its first, or the one named.
///
/// # Errors
/// The service cannot be reached.
pub fn over_socket(path: &Path, _device: Option<&str>) -> nnhal_hal::Result<Arc<dyn Device>> {
    std::os::unix::net::UnixStream::connect(path).map_err(Error::failure)?;
    Err(Error::failure("this build has no client of the AIDL interface"))
}
