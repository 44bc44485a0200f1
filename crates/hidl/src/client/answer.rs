//! What a driver answered.

use crate::misbehaviour::Misbehaviour;
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
