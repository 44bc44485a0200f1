//! [`CliError`]: what a person is shown, and the exit code that goes with it.

use std::path::{Path, PathBuf};

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file, or an argument that refers to the model, is not what it should be.
    #[error("{0}")]
    Input(String),
    /// What the library says.
    #[error(transparent)]
    Library(#[from] nnhal::Error),
    /// A device behind its interfaces refused or failed.
    #[cfg(feature = "conformance")]
    #[error("{device}: {error}")]
    Device {
        /// The device's name.
        device: String,
        /// Status and reason.
        error: nnhal_hal::Error,
    },
    /// The command worked, and its answer is no: outputs differ, vectors failed.
    #[error("{0}")]
    Negative(String),
}

impl CliError {
    /// An error of one file.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    /// An error of a device behind its interfaces.
    #[cfg(feature = "conformance")]
    pub fn device(name: &str) -> impl Fn(nnhal_hal::Error) -> Self {
        let device = name.to_owned();
        move |error| Self::Device { device: device.clone(), error }
    }

    /// The process's exit code; 2 is wrong usage, which the argument parser reports.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Negative(_) => 1,
            Self::Library(error) if error.status().is_some() => 4,
            #[cfg(feature = "conformance")]
            Self::Device { .. } => 4,
            Self::File { .. } | Self::Input(_) | Self::Library(_) => 3,
        }
    }
}

/// What a command gives back.
pub type Result<T, E = CliError> = std::result::Result<T, E>;
