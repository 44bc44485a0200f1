//! [`Misbehaviour`]: what a driver answers that it must not.

use nnhal_hal::{Error, ErrorStatus};

/// A driver did what it must not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// A status that is no code.
    #[error("{method}: {code} is no status")]
    Status {
        /// Name in the interface files.
        method: &'static str,
        /// As it was received.
        code: i32,
    },
    /// `NONE`, but without the object that goes with it.
    #[error("{method}: NONE, but no {what}")]
    Nothing {
        /// Name in the interface files.
        method: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// A list of the wrong length.
    #[error("{method}: {found} {what}, expected {expected}")]
    Count {
        /// Name in the interface files.
        method: &'static str,
        /// What the list holds, in the plural.
        what: &'static str,
        /// The length of the list.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
    /// Shapes that do not go with the status.
    #[error("{method}: {status} with output shapes of which {what}")]
    Shapes {
        /// Name in the interface files.
        method: &'static str,
        /// As the driver returned or reported it.
        status: ErrorStatus,
        /// What is wrong.
        what: &'static str,
    },
    /// No shape of an output that only the driver knows.
    #[error("{method}: NONE without the shape of output {output}, which was unknown")]
    UnknownShape {
        /// Name in the interface files.
        method: &'static str,
        /// Index among the request's outputs.
        output: usize,
    },
    /// A fence that is none.
    #[error("{method}: a fence of {descriptors} descriptors")]
    Fence {
        /// Name in the interface files.
        method: &'static str,
        /// The number of descriptors in its handle.
        descriptors: usize,
    },
    /// The callback is gone and was never notified.
    #[error("{method}: the driver let go of the callback without having notified it")]
    NeverNotified {
        /// Name in the interface files.
        method: &'static str,
    },
    /// The callback was not notified for too long.
    #[error("{method}: the driver did not notify the callback for {seconds} s")]
    NotInTime {
        /// Name in the interface files.
        method: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// The driver panicked.
    #[error("{method}: the driver panicked")]
    Panicked {
        /// Name in the interface files.
        method: &'static str,
    },
}

impl From<Misbehaviour> for Error {
    fn from(misbehaviour: Misbehaviour) -> Self {
        Self::failure(misbehaviour)
    }
}
