//! What a driver answered.

use crate::transport::Return;
use nnhal_hal::{Error, ErrorStatus};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A driver answered with an error. HIDL has no words for why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the driver answered {status} to {method}")]
pub struct Answered {
    /// The method, as the interface files name it; [`NOTIFY`] if the status came by the callback of
    /// a preparation.
    pub method: &'static str,
    /// As the driver returned or reported it.
    pub status: ErrorStatus,
}

/// What an answer by the callback of a preparation is called in [`Answered::method`].
pub const NOTIFY: &str = "IPreparedModelCallback.notify";

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

/// Calls a driver.
pub(super) fn ask<T>(
    method: &'static str,
    call: impl FnOnce() -> Return<T>,
) -> nnhal_hal::Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Misbehaviour::Panicked { method }.into()),
    }
}

/// The status behind a code.
pub(super) fn status(method: &'static str, code: i32) -> nnhal_hal::Result<ErrorStatus> {
    ErrorStatus::from_code(code).map_err(|_| Misbehaviour::Status { method, code }.into())
}

/// Turns every status but `NONE` into an error.
pub(super) fn expect_none(method: &'static str, code: i32) -> nnhal_hal::Result<()> {
    match status(method, code)? {
        ErrorStatus::None => Ok(()),
        status => Err(answered(method, status)),
    }
}

pub(super) fn answered(method: &'static str, status: ErrorStatus) -> Error {
    Error::new(status, Answered { method, status })
}

/// What must come with `NONE`.
pub(super) fn expect_some<T>(
    method: &'static str,
    what: &'static str,
    found: Option<T>,
) -> nnhal_hal::Result<T> {
    found.ok_or_else(|| Misbehaviour::Nothing { method, what }.into())
}
