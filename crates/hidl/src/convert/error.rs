//! [`ConversionError`]

use nnhal_hal::memory::MemoryError;
use nnhal_hal::{ErrorStatus, HalVersion, Obstacle, UnknownCode};
use std::fmt;

/// Why something of one version has no counterpart on the other side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// A number that is no code of its enumeration (contract: GEN-7).
    #[error(transparent)]
    UnknownCode(#[from] UnknownCode),
    /// A safe union with a tag that no one knows (contract: GEN-7).
    #[error("{union} has the unknown tag {found}")]
    UnknownTag {
        /// Name of the union in the interface files.
        union: &'static str,
        /// The tag.
        found: u8,
    },
    /// Something that the version does not have.
    #[error("{version} cannot express it: {}", Shown(.obstacles))]
    Inexpressible {
        /// The version of the interface that was asked for.
        version: HalVersion,
        /// What the version cannot express.
        obstacles: Vec<Obstacle>,
    },
    /// A pool that cannot be used.
    #[error("pool {pool}")]
    Pool {
        /// Index among the pools of the model or request.
        pool: usize,
        /// Why.
        #[source]
        error: MemoryError,
    },
    /// Memory that cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A descriptor could not be duplicated.
    #[error("a descriptor cannot be duplicated: {why}")]
    Duplicate {
        /// The system's words.
        why: String,
        /// Whether there are too many already, rather than none that could be duplicated.
        exhausted: bool,
    },
}

impl ConversionError {
    /// The status that goes with it: `INVALID_ARGUMENT`, or what [`MemoryError::status`] says, or
    /// `RESOURCE_EXHAUSTED_TRANSIENT` where descriptors are lacking.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Pool { error, .. } | Self::Memory(error) => error.status(),
            Self::Duplicate { exhausted: true, .. } => ErrorStatus::ResourceExhaustedTransient,
            Self::Duplicate { .. } => ErrorStatus::GeneralFailure,
            _ => ErrorStatus::InvalidArgument,
        }
    }

    /// The same about a pool.
    pub(super) fn of_pool(self, pool: usize) -> Self {
        match self {
            Self::Memory(error) => Self::Pool { pool, error },
            other => other,
        }
    }

    pub(crate) fn duplicate(error: &std::io::Error) -> Self {
        use rustix::io::Errno;
        let errno = Errno::from_io_error(error);
        let exhausted = matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM));
        Self::Duplicate { why: error.to_string(), exhausted }
    }

    /// Refuses what has obstacles.
    pub(super) fn expect_none(
        version: HalVersion,
        obstacles: Vec<Obstacle>,
    ) -> Result<(), ConversionError> {
        if obstacles.is_empty() {
            return Ok(());
        }
        Err(ConversionError::Inexpressible { version, obstacles })
    }
}

impl From<ConversionError> for nnhal_hal::Error {
    fn from(error: ConversionError) -> Self {
        Self::new(error.status(), error)
    }
}

/// The first obstacles, and how many more there are.
struct Shown<'a>(&'a [Obstacle]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FIRST: usize = 4;
        for (index, obstacle) in self.0.iter().take(FIRST).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{obstacle}")?;
        }
        match self.0.len().saturating_sub(FIRST) {
            0 => Ok(()),
            more => write!(formatter, "; and {more} more"),
        }
    }
}
