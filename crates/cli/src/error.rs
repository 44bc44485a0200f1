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
    /// The arguments ask for what makes no sense, whatever the model is.
    #[error("{0}")]
    Usage(String),
    /// What the library says.
    #[error(transparent)]
    Library(#[from] nnhal::Error),
    /// What the library says, and what may help.
    #[error("{error}\n  {hint}")]
    Hinted {
        /// What the library says.
        error: nnhal::Error,
        /// What may help.
        hint: &'static str,
    },
    /// What judging a device says.
    #[cfg(feature = "conformance")]
    #[error(transparent)]
    Conformance(#[from] nnhal_conformance::command::CommandError),
    /// What a service says.
    #[cfg(feature = "service")]
    #[error(transparent)]
    Service(#[from] nnhal_service::ServiceError),
    /// What serving models says.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] nnhal_serve::StartError),
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

    /// Whether the command worked, and its answer is no: then it has been printed.
    pub fn is_negative(&self) -> bool {
        match self {
            Self::Negative(_) => true,
            #[cfg(feature = "conformance")]
            Self::Conformance(error) => error.exit_code() == 1,
            _ => false,
        }
    }

    /// The process's exit code; 2 is wrong usage.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Negative(_) => 1,
            Self::Usage(_) | Self::Library(nnhal::Error::NotFound { what: "device", .. }) => 2,
            Self::Library(error) | Self::Hinted { error, .. } if error.status().is_some() => 4,
            #[cfg(feature = "conformance")]
            Self::Conformance(error) => error.exit_code(),
            #[cfg(feature = "service")]
            Self::Service(_) => 4,
            #[cfg(feature = "serve")]
            Self::Serve(
                nnhal_serve::StartError::Nowhere | nnhal_serve::StartError::Open { .. },
            ) => 2,
            #[cfg(feature = "serve")]
            Self::Serve(_) => 3,
            Self::File { .. } | Self::Input(_) | Self::Library(_) | Self::Hinted { .. } => 3,
        }
    }
}

/// What a command gives back.
pub type Result<T, E = CliError> = std::result::Result<T, E>;
