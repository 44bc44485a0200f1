//! [`Error`]: a result code of the Neural Networks API and a sentence.

use nnhal_hal::ErrorStatus;
use std::borrow::Cow;
use std::fmt;

/// The outcome of a call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The result codes of the Neural Networks API (`ResultCode` in `NeuralNetworksTypes.h`), less
/// `NO_ERROR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResultCode {
    /// There is no memory to be had.
    OutOfMemory,
    /// Something that is needed is not there yet.
    Incomplete,
    /// A pointer that must not be null is. Only callers in C can come to this.
    UnexpectedNull,
    /// An argument is wrong.
    BadData,
    /// Something went wrong while computing, or in a device.
    OpFailed,
    /// The object is not in a state that allows the call.
    BadState,
    /// Memory cannot be accessed.
    Unmappable,
    /// The buffer of an output is too short.
    OutputInsufficientSize,
    /// The device cannot be used.
    UnavailableDevice,
    /// The deadline passed; another time it may be met.
    MissedDeadlineTransient,
    /// The deadline passed; it would be the same another time.
    MissedDeadlinePersistent,
    /// The device is short of something; another time it may not be.
    ResourceExhaustedTransient,
    /// The device is short of something; it would be the same another time.
    ResourceExhaustedPersistent,
    /// The device's process is gone.
    DeadObject,
}

impl ResultCode {
    /// All of them, by code.
    pub const ALL: &'static [Self] = &[
        Self::OutOfMemory,
        Self::Incomplete,
        Self::UnexpectedNull,
        Self::BadData,
        Self::OpFailed,
        Self::BadState,
        Self::Unmappable,
        Self::OutputInsufficientSize,
        Self::UnavailableDevice,
        Self::MissedDeadlineTransient,
        Self::MissedDeadlinePersistent,
        Self::ResourceExhaustedTransient,
        Self::ResourceExhaustedPersistent,
        Self::DeadObject,
    ];

    /// The number in C.
    pub const fn code(self) -> i32 {
        match self {
            Self::OutOfMemory => 1,
            Self::Incomplete => 2,
            Self::UnexpectedNull => 3,
            Self::BadData => 4,
            Self::OpFailed => 5,
            Self::BadState => 6,
            Self::Unmappable => 7,
            Self::OutputInsufficientSize => 8,
            Self::UnavailableDevice => 9,
            Self::MissedDeadlineTransient => 10,
            Self::MissedDeadlinePersistent => 11,
            Self::ResourceExhaustedTransient => 12,
            Self::ResourceExhaustedPersistent => 13,
            Self::DeadObject => 14,
        }
    }

    /// The name in C, without the prefix `ANEURALNETWORKS_`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfMemory => "OUT_OF_MEMORY",
            Self::Incomplete => "INCOMPLETE",
            Self::UnexpectedNull => "UNEXPECTED_NULL",
            Self::BadData => "BAD_DATA",
            Self::OpFailed => "OP_FAILED",
            Self::BadState => "BAD_STATE",
            Self::Unmappable => "UNMAPPABLE",
            Self::OutputInsufficientSize => "OUTPUT_INSUFFICIENT_SIZE",
            Self::UnavailableDevice => "UNAVAILABLE_DEVICE",
            Self::MissedDeadlineTransient => "MISSED_DEADLINE_TRANSIENT",
            Self::MissedDeadlinePersistent => "MISSED_DEADLINE_PERSISTENT",
            Self::ResourceExhaustedTransient => "RESOURCE_EXHAUSTED_TRANSIENT",
            Self::ResourceExhaustedPersistent => "RESOURCE_EXHAUSTED_PERSISTENT",
            Self::DeadObject => "DEAD_OBJECT",
        }
    }

    /// Whether a deadline was missed.
    pub const fn is_missed_deadline(self) -> bool {
        matches!(self, Self::MissedDeadlineTransient | Self::MissedDeadlinePersistent)
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What a device's status is called above devices.
impl From<ErrorStatus> for ResultCode {
    fn from(status: ErrorStatus) -> Self {
        match status {
            ErrorStatus::DeviceUnavailable => Self::UnavailableDevice,
            ErrorStatus::None | ErrorStatus::GeneralFailure => Self::OpFailed,
            ErrorStatus::OutputInsufficientSize => Self::OutputInsufficientSize,
            ErrorStatus::InvalidArgument => Self::BadData,
            ErrorStatus::MissedDeadlineTransient => Self::MissedDeadlineTransient,
            ErrorStatus::MissedDeadlinePersistent => Self::MissedDeadlinePersistent,
            ErrorStatus::ResourceExhaustedTransient => Self::ResourceExhaustedTransient,
            ErrorStatus::ResourceExhaustedPersistent => Self::ResourceExhaustedPersistent,
        }
    }
}

/// Why a call failed: the code that crosses the C API, and a sentence that says which argument
/// broke which rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct Error {
    code: ResultCode,
    reason: Cow<'static, str>,
}

impl Error {
    /// An error with a reason.
    pub fn new(code: ResultCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, reason: reason.into() }
    }

    pub(crate) fn bad_data(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ResultCode::BadData, reason)
    }

    pub(crate) fn bad_state(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ResultCode::BadState, reason)
    }

    pub(crate) fn failed(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ResultCode::OpFailed, reason)
    }

    /// The result code.
    pub fn code(&self) -> ResultCode {
        self.code
    }

    /// The sentence, without the code.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The same with more before the sentence.
    #[must_use]
    pub(crate) fn within(self, place: impl fmt::Display) -> Self {
        Self { code: self.code, reason: format!("{place}: {}", self.reason).into() }
    }
}

/// A device's error, with its reason.
impl From<nnhal_hal::Error> for Error {
    fn from(error: nnhal_hal::Error) -> Self {
        let code =
            if error.is_gone() { ResultCode::DeadObject } else { ResultCode::from(error.status()) };
        Self::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_header() {
        let codes: Vec<i32> = ResultCode::ALL.iter().map(|code| code.code()).collect();
        assert_eq!(codes, (1..=14).collect::<Vec<_>>());
    }

    #[test]
    fn statuses_of_devices_have_codes() {
        let of = |status| ResultCode::from(status);
        assert_eq!(of(ErrorStatus::InvalidArgument), ResultCode::BadData);
        assert_eq!(of(ErrorStatus::GeneralFailure), ResultCode::OpFailed);
        assert_eq!(of(ErrorStatus::DeviceUnavailable), ResultCode::UnavailableDevice);
        assert!(of(ErrorStatus::MissedDeadlineTransient).is_missed_deadline());
        let gone = Error::from(nnhal_hal::Error::gone("the process has ended"));
        assert_eq!(gone.code(), ResultCode::DeadObject);
    }

    #[test]
    fn the_sentence_follows_the_code() {
        let error = Error::bad_data("there is no operand 7").within("inputs of ADD");
        assert_eq!(error.to_string(), "BAD_DATA: inputs of ADD: there is no operand 7");
    }
}
