//! [`CommandError`]: what a person is shown, and the exit code that goes with it.

use nnhal_hal::Device;
use std::path::{Path, PathBuf};

/// Why a command did not do what it was asked, or that its answer is no.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An argument, or a folder of vectors, is not what it should be.
    #[error("{0}")]
    Input(String),
    /// The device does not describe itself as it must.
    #[error("{device}: {error}")]
    Device {
        /// The device's name.
        device: String,
        /// Status and reason.
        error: nnhal_hal::Error,
    },
    /// The command worked, and its answer is no: vectors failed, requirements are violated.
    #[error("{0}")]
    Negative(String),
}

impl CommandError {
    /// The process's exit code; 2 is wrong usage, which the argument parser reports.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Negative(_) => 1,
            Self::File { .. } | Self::Input(_) => 3,
            Self::Device { .. } => 4,
        }
    }
}

/// An error of one file.
pub(super) fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> CommandError {
    let path = path.to_owned();
    move |source| CommandError::File { path, source }
}

/// An error of a device.
pub(super) fn device_error(device: &dyn Device) -> impl Fn(nnhal_hal::Error) -> CommandError {
    let device = device.name().to_owned();
    move |error| CommandError::Device { device: device.clone(), error }
}
