//! [`CacheError`]: why a compilation could not be saved or loaded.

use super::identity::Identity;
use crate::error::EngineError;
use nnhal_hal::UnknownCode;
use nnhal_hal::memory::Protection;
use nnhal_ops::ValidationError;
use std::fmt;
use std::io;

/// One of the two kinds of cache file (contract: CACHE-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// May hold what is trusted.
    Model,
    /// Constants.
    Data,
}

impl fmt::Display for FileKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Model => "model",
            Self::Data => "data",
        })
    }
}

/// Why a compilation could not be saved or loaded. For the client all of these are a
/// `GENERAL_FAILURE` when loading, and nothing when saving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Not as many files as were asked for (contract: CACHE-4, CACHE-7).
    #[error("{found} {kind} cache files, expected {expected}")]
    Count {
        /// Which files.
        kind: FileKind,
        /// The number of files that were given.
        found: usize,
        /// How many were asked for.
        expected: u32,
    },
    /// A descriptor that is not open for reading and writing (contract: CACHE-8).
    #[error("the cache file is open for {found}, expected reading and writing")]
    Access {
        /// What it is open for.
        found: Protection,
    },
    /// A descriptor of something else: a pipe, a device.
    #[error("the cache file is not a regular file")]
    NotAFile,
    /// The system refused.
    #[error("{call} of the cache file")]
    System {
        /// Name of the system call.
        call: &'static str,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// More than any compilation that is cached takes.
    #[error("{found} bytes, but cache files have at most {limit}")]
    TooLong {
        /// Bytes in the file, or to be written to it.
        found: u64,
        /// Most there may be.
        limit: u64,
    },
    /// Less than the smallest compilation takes.
    #[error("a cache file of {found} bytes, the smallest has {expected}")]
    TooShort {
        /// Bytes in the file.
        found: u64,
        /// Fewest there may be.
        expected: u64,
    },
    /// It begins like nothing that was saved here.
    #[error("the file begins with {found:02x?}, which is no cache file")]
    NotACache {
        /// The first bytes.
        found: [u8; 8],
    },
    /// It has the format of another version.
    #[error("format {found} of cache files, expected {expected}")]
    Format {
        /// The number in the file.
        found: u32,
        /// The one that is understood.
        expected: u32,
    },
    /// The length of the file, or of its parts, is not what it says.
    #[error("a cache file of {found} bytes says that it has {expected}")]
    Length {
        /// Bytes in the file.
        found: u64,
        /// What it says.
        expected: u64,
    },
    /// There is no memory for it.
    #[error("no room for {length} bytes of a cache file")]
    NoRoom {
        /// How much it takes.
        length: u64,
    },
    /// The keyed code is not that of the content: the file was altered, written half, or written by
    /// somebody without the key (contract: CACHE-9, CACHE-16).
    #[error("the cache file is not what was saved: its code does not fit its content")]
    Altered,
    /// It was saved under another token (contract: CACHE-10, CACHE-11).
    #[error("the cache file was saved under another token")]
    Token,
    /// It was saved by another driver, version or processor (contract: CACHE-18).
    #[error("the cache file was saved by {found}, this is {expected}")]
    Saver {
        /// Who saved it.
        found: Box<Identity>,
        /// Who loads it.
        expected: Box<Identity>,
    },
    /// The description is none, though the code fits.
    #[error("the description of the cache file")]
    Description(#[source] postcard::Error),
    /// There are bytes behind the description.
    #[error("{found} bytes behind the description of the cache file")]
    Rest {
        /// The number of bytes.
        found: usize,
    },
    /// A number in the description stands for nothing (contract: CACHE-18).
    #[error("the description of the cache file")]
    Code(#[from] UnknownCode),
    /// A number of a version in the description stands for nothing.
    #[error("version {found} in the description of the cache file")]
    Version {
        /// The number.
        found: u8,
    },
    /// The model in the file breaks a rule.
    #[error("the model in the cache file")]
    Model(#[from] ValidationError),
    /// The constants of the model that is to be saved cannot be read.
    #[error("the constants of the model")]
    Constants(#[source] EngineError),
}

impl CacheError {
    /// The error of a call.
    pub(super) fn system(call: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { call, error }
    }
}

impl From<CacheError> for nnhal_hal::Error {
    fn from(error: CacheError) -> Self {
        Self::failure(error)
    }
}
