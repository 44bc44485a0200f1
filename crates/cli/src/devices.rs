//! The devices of this program.

use crate::error::{CliError, Result};
use hal::Device;
use std::sync::Arc;

/// The device that is used unless another is named.
pub const DEFAULT: &str = "nnhal-reference";

/// All devices.
pub fn all() -> Vec<Arc<dyn Device>> {
    vec![reference::device()]
}

/// The device with this name. It uses at most `threads` threads for one execution; the reference
/// device always uses one.
///
/// # Errors
/// There is none; the message lists those there are.
pub fn open(name: &str, _threads: usize) -> Result<Arc<dyn Device>> {
    all().into_iter().find(|device| device.name() == name).ok_or_else(|| {
        let names: Vec<String> = all().iter().map(|device| device.name().to_owned()).collect();
        CliError::Input(format!("there is no device {name:?}; there are: {}", names.join(", ")))
    })
}
