//! [`Error`]: a status for the wire and a reason for the person.

use crate::codes::ErrorStatus;
use crate::output_shape::OutputShape;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The outcome of a call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed: the status that crosses the HAL, and the reason behind it.
///
/// The reason is the typed error of whoever found the fault; [`Error::reason`] gives it back for
/// matching, and showing this error shows the whole chain of reasons.
#[derive(Debug, Clone)]
pub struct Error {
    status: ErrorStatus,
    is_gone: bool,
    reason: Arc<dyn StdError + Send + Sync + 'static>,
}

impl Error {
    /// An error with any status but `NONE`, which is taken as `GENERAL_FAILURE`.
    pub fn new(
        status: ErrorStatus,
        reason: impl Into<Box<dyn StdError + Send + Sync + 'static>>,
    ) -> Self {
        let status = if status == ErrorStatus::None { ErrorStatus::GeneralFailure } else { status };
        Self { status, is_gone: false, reason: reason.into().into() }
    }

    /// A `DEVICE_UNAVAILABLE` because the device's process has ended, or cannot be reached any more.
    pub fn gone(reason: impl Into<Box<dyn StdError + Send + Sync + 'static>>) -> Self {
        Self { is_gone: true, ..Self::new(ErrorStatus::DeviceUnavailable, reason) }
    }

    /// An `INVALID_ARGUMENT`.
    pub fn invalid(reason: impl Into<Box<dyn StdError + Send + Sync + 'static>>) -> Self {
        Self::new(ErrorStatus::InvalidArgument, reason)
    }

    /// A `GENERAL_FAILURE`.
    pub fn failure(reason: impl Into<Box<dyn StdError + Send + Sync + 'static>>) -> Self {
        Self::new(ErrorStatus::GeneralFailure, reason)
    }

    /// The status, never `NONE`.
    pub fn status(&self) -> ErrorStatus {
        self.status
    }

    /// Whether it is an [`Error::gone`]: the device itself did not answer.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The typed reason, if it is an `E`.
    pub fn reason<E: StdError + 'static>(&self) -> Option<&E> {
        self.reason.downcast_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.status, self.reason)?;
        let mut cause = self.reason.source();
        while let Some(error) = cause {
            write!(formatter, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.reason.source()
    }
}

/// Why an execution failed. Only `OUTPUT_INSUFFICIENT_SIZE` comes with shapes (contract: GEN-3).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct ExecutionError {
    /// Status and reason.
    #[source]
    pub error: Error,
    /// With `OUTPUT_INSUFFICIENT_SIZE` an entry per output, in request order; empty otherwise.
    pub output_shapes: Vec<OutputShape>,
}

impl From<Error> for ExecutionError {
    fn from(error: Error) -> Self {
        Self { error, output_shapes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("rank is {0}")]
    struct Rank(u32);

    #[test]
    fn the_reason_is_shown_and_given_back() {
        let error = Error::invalid(Rank(3));
        assert_eq!(error.to_string(), "INVALID_ARGUMENT: rank is 3");
        assert_eq!(error.reason::<Rank>().unwrap().0, 3);
    }

    #[test]
    fn a_process_that_is_gone_is_distinguished_from_an_unavailable_device() {
        let gone = Error::gone("no answer");
        assert_eq!(gone.status(), ErrorStatus::DeviceUnavailable);
        assert!(gone.clone().is_gone());
        assert!(!Error::new(ErrorStatus::DeviceUnavailable, "unplugged").is_gone());
    }

    #[test]
    fn an_error_is_never_none() {
        assert_eq!(Error::new(ErrorStatus::None, "x").status(), ErrorStatus::GeneralFailure);
    }
}
