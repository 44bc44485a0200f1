//! Between the interface's types and the canonical ones of [`nnhal_hal`].
//!
//! From the wire, numbers become values, and what is unknown, negative where it must not be, or too
//! large is refused. Whether a model or request is *valid* is not asked here.
//!
//! Three facts differ from HIDL: an operand does not say how often it is used, so it is counted; a
//! location has padding, which must be in the pool as the location must; OEM types and operations do
//! not exist.

pub(crate) mod clock;
mod hints;
mod memory;
mod model;
mod request;
mod results;

pub(crate) use hints::{hints_from_wire, prefixes_to_wire, tokens_to_wire};
pub use memory::{memory_from_wire, memory_to_wire};
pub use model::{model_from_wire, model_to_wire};
pub(crate) use request::request_alone;
pub use request::{request_from_wire, request_to_wire, roles_from_wire, roles_to_wire};
pub use results::{
    capabilities_from_wire, capabilities_to_wire, extensions_from_wire, extensions_to_wire,
    shapes_from_wire, shapes_to_wire, timing_from_wire, timing_to_wire,
};

use nnhal_hal::memory::MemoryError;
use nnhal_hal::{ErrorStatus, UnknownCode};
use rsbinder::ParcelFileDescriptor;
use std::os::fd::{AsFd, OwnedFd};

/// Why something has no counterpart on the other side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// A number that is no code of its enumeration.
    #[error(transparent)]
    UnknownCode(#[from] UnknownCode),
    /// A number that must not be negative.
    #[error("{what} is {found}, which is negative")]
    Negative {
        /// What the number is.
        what: &'static str,
        /// The number.
        found: i64,
    },
    /// A number that is too large.
    #[error("{what} is {found}, more than 32 bits can count")]
    TooLarge {
        /// What the number is.
        what: &'static str,
        /// The number.
        found: i64,
    },
    /// A value of an extension that is there twice.
    #[error("the value of the token {token:#x} is given twice")]
    TokenTwice {
        /// The token.
        token: i32,
    },
    /// Something that the interface does not have.
    #[error("the AIDL interface has no {0}")]
    Inexpressible(String),
    /// The interface has no place for how often an operand is used, so a number that is wrong would be
    /// mended on the way instead of refused.
    #[error("operand {operand} is used {counted} times, but says {found}")]
    Consumers {
        /// Index of the operand.
        operand: usize,
        /// What the model says.
        found: u32,
        /// How often it is.
        counted: u32,
    },
    /// A descriptor that is missing.
    #[error("{0} has no descriptor")]
    NoDescriptor(&'static str),
    /// Padding where there is none: of an operand of a model, of an argument that is left out or in a managed buffer.
    #[error("padding of {0} bytes, expected 0: only an argument in memory can be padded")]
    Unpadded(i64),
    /// A location with padding behind the end of its pool.
    #[error("argument {argument}: its padding ends {end} bytes into a pool of {size}")]
    Padding {
        /// Its place among inputs, or among outputs.
        argument: usize,
        /// Where the padding ends.
        end: i64,
        /// The size of the pool.
        size: u64,
    },
    /// A pool that cannot be used.
    #[error("pool {pool}: {error}")]
    Pool {
        /// Index among the pools of the model or request.
        pool: usize,
        /// Why.
        error: Box<ConversionError>,
    },
    /// Memory that cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A descriptor could not be duplicated.
    #[error("a descriptor cannot be duplicated: {why}")]
    Duplicate {
        /// The system's words.
        why: String,
    },
}

impl ConversionError {
    /// The status that goes with it: `INVALID_ARGUMENT`, or what [`MemoryError::status`] says, or
    /// `RESOURCE_EXHAUSTED_TRANSIENT` where descriptors are lacking.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Memory(error) => error.status(),
            Self::Pool { error, .. } => error.status(),
            Self::Duplicate { .. } => ErrorStatus::ResourceExhaustedTransient,
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

impl From<ConversionError> for nnhal_hal::Error {
    fn from(error: ConversionError) -> Self {
        Self::new(error.status(), error)
    }
}

/// What a conversion gives.
pub type Result<T, E = ConversionError> = std::result::Result<T, E>;

/// A number of the wire that must not be negative.
pub(crate) fn unsigned(what: &'static str, number: i32) -> Result<u32> {
    u32::try_from(number).map_err(|_| ConversionError::Negative { what, found: number.into() })
}

/// Numbers of the wire that must not be negative.
pub(crate) fn all_unsigned(what: &'static str, numbers: &[i32]) -> Result<Vec<u32>> {
    numbers.iter().map(|number| unsigned(what, *number)).collect()
}

/// A number of 64 bits that must fit into 32.
pub(crate) fn short(what: &'static str, found: i64) -> Result<u32> {
    u32::try_from(found).map_err(|_| match found < 0 {
        true => ConversionError::Negative { what, found },
        false => ConversionError::TooLarge { what, found },
    })
}

/// A number for the wire, whose numbers are signed.
pub(crate) fn signed(what: &'static str, number: u32) -> Result<i32> {
    i32::try_from(number).map_err(|_| ConversionError::TooLarge { what, found: i64::from(number) })
}

pub(crate) fn all_signed(what: &'static str, numbers: &[u32]) -> Result<Vec<i32>> {
    numbers.iter().map(|number| signed(what, *number)).collect()
}

/// A descriptor of its own.
pub(crate) fn duplicate(fd: impl AsFd) -> Result<OwnedFd> {
    fd.as_fd()
        .try_clone_to_owned()
        .map_err(|error| ConversionError::Duplicate { why: error.to_string() })
}

pub(crate) fn to_parcel(fd: impl AsFd) -> Result<ParcelFileDescriptor> {
    Ok(ParcelFileDescriptor::new(duplicate(fd)?))
}

/// Descriptors of their own.
pub(crate) fn duplicates(files: &[ParcelFileDescriptor]) -> Result<Vec<OwnedFd>> {
    files.iter().map(duplicate).collect()
}
