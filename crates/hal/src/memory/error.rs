//! [`MemoryError`]

use super::{MemoryKind, Protection};
use crate::client::ClientError;
use crate::codes::ErrorStatus;

/// Why memory cannot be had or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The name is no kind of memory (contract: MEM-1).
    #[error("{found:?} is no kind of memory")]
    UnknownKind {
        /// The name.
        found: String,
    },
    /// The handle does not hold what the kind wants (contract: MEM-2).
    #[error(
        "{kind}: the handle holds {descriptors} descriptors and {integers} integers, expected \
         {expected}"
    )]
    Handle {
        /// What the memory was said to be.
        kind: MemoryKind,
        /// Descriptors found.
        descriptors: usize,
        /// Integers found.
        integers: usize,
        /// The number of both that the kind has, in words.
        expected: &'static str,
    },
    /// No bytes (contract: MEM-2).
    #[error("{kind}: the size is 0")]
    Empty {
        /// What the memory was said to be.
        kind: MemoryKind,
    },
    /// Protection bits other than read and write (contract: MEM-2).
    #[error("the protection is {found:#x}, expected a combination of read (1) and write (2)")]
    Protection {
        /// The bits.
        found: i32,
    },
    /// The descriptor does not allow what is asked for: it is open for reading only, say, or for
    /// appending, or sealed.
    #[error("{asked} is asked for, but the descriptor allows {allowed}")]
    Access {
        /// What is asked for.
        asked: Protection,
        /// What the descriptor was opened for, less what seals forbid.
        allowed: Protection,
    },
    /// The descriptor is neither a file nor device memory: a pipe, say, or a directory.
    #[error("the descriptor is neither a file nor memory")]
    NotMemory,
    /// More is declared than the descriptor holds (contract: MEM-5).
    #[error("bytes up to {declared} are declared, but the descriptor holds {held}")]
    Size {
        /// Offset and size together, `u64::MAX` if that overflows.
        declared: u64,
        /// What the descriptor holds.
        held: u64,
    },
    /// The kind cannot be read or written by the CPU here.
    #[error("{kind} cannot be mapped here: {why}")]
    NotMappable {
        /// What the memory was said to be.
        kind: MemoryKind,
        /// The reason, in words.
        why: &'static str,
    },
    /// A range is outside the memory.
    #[error("{length} bytes at {offset} are outside of {size}")]
    Range {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Bytes that there are.
        size: u64,
    },
    /// Memory that may only be read is written, or the reverse.
    #[error("the memory may not be {0}")]
    Forbidden(&'static str),
    /// The file was cut short while in use (contract: MEM-5).
    #[error("the file was cut short while in use: bytes up to {expected} expected, found {found}")]
    CutShort {
        /// Where in the file the range ends.
        expected: u64,
        /// Where the file ends, or before that.
        found: u64,
    },
    /// There is no room in this process for a copy.
    #[error("no memory for a copy of {length} bytes")]
    NoRoom {
        /// Bytes.
        length: u64,
    },
    /// Whoever is to hold it may not hold as much.
    #[error(transparent)]
    Limit(#[from] ClientError),
    /// The system refused.
    #[error("{call}: {why}")]
    System {
        /// Name of the system call.
        call: &'static str,
        /// The system's words.
        why: String,
        /// Whether it was out of memory or descriptors.
        exhausted: bool,
    },
}

impl MemoryError {
    pub(super) fn system(call: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        move |error| Self::System {
            call,
            why: error.to_string(),
            exhausted: matches!(error, Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::NOSPC),
        }
    }

    /// The status that goes with it: the client's fault, the system's, or lack of memory.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::System { exhausted: true, .. } | Self::NoRoom { .. } => {
                ErrorStatus::ResourceExhaustedTransient
            }
            Self::Limit(error) => error.status(),
            Self::System { .. } | Self::CutShort { .. } => ErrorStatus::GeneralFailure,
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

impl From<MemoryError> for crate::Error {
    fn from(error: MemoryError) -> Self {
        Self::new(error.status(), error)
    }
}
