//! Errors on their way through the interface: a service-specific code with the reason as text.

use nnhal_hal::{Error, ErrorStatus};
use rsbinder::{ExceptionCode, Status, StatusCode};

/// The longest text of a reason that is sent, in bytes.
const REASON_LENGTH: usize = 2000;

/// The statuses that a method may answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What neither prepares nor executes: DEVICE_UNAVAILABLE, GENERAL_FAILURE or INVALID_ARGUMENT.
    Plain,
    /// What prepares or executes: missed deadlines and exhausted resources too.
    Launch,
}

impl Answer {
    /// The status as the method may answer with it.
    pub(crate) fn of(self, status: ErrorStatus) -> ErrorStatus {
        match (self, status) {
            (Self::Launch, status) => status,
            (
                Self::Plain,
                ErrorStatus::MissedDeadlinePersistent
                | ErrorStatus::MissedDeadlineTransient
                | ErrorStatus::ResourceExhaustedPersistent
                | ErrorStatus::ResourceExhaustedTransient,
            ) => ErrorStatus::GeneralFailure,
            (Self::Plain, status) => status,
        }
    }

    /// An error on the wire.
    pub(crate) fn refuse(self, error: &Error) -> Status {
        tracing::debug!(%error, "answered with an error");
        let mut text = error.to_string();
        let end = (0..=REASON_LENGTH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        Status::new_service_specific_error(self.of(error.status()).code(), Some(text))
    }
}

/// What a service answered instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteFailure {
    /// An error of the interface, with the service's reason.
    #[error("{method}: {reason}")]
    Answered {
        /// The method, as the interface files name it.
        method: &'static str,
        /// The service's words; they may repeat the status.
        reason: String,
    },
    /// The service is gone, or the connection to it.
    #[error("{method}: the service cannot be reached ({why})")]
    Gone {
        /// The method, as the interface files name it.
        method: &'static str,
        /// What the transport says.
        why: String,
    },
    /// The service did what it must not.
    #[error("{method}: {what}")]
    Misbehaved {
        /// The method, as the interface files name it.
        method: &'static str,
        /// What it did.
        what: String,
    },
}

impl RemoteFailure {
    /// An error about what a service must not do.
    pub(crate) fn misbehaved(method: &'static str, what: impl Into<String>) -> Error {
        Error::failure(Self::Misbehaved { method, what: what.into() })
    }
}

/// What a service answered, as an error.
pub(crate) fn error_of(method: &'static str, status: &Status) -> Error {
    match status.exception_code() {
        ExceptionCode::ServiceSpecific => {
            let code = status.service_specific_error();
            match ErrorStatus::from_code(code) {
                Ok(ErrorStatus::None) | Err(_) => {
                    RemoteFailure::misbehaved(method, format!("{code} is no status of an error"))
                }
                Ok(found) => {
                    let reason = status.message().unwrap_or_default();
                    // Our own services begin with the status, which an error shows anyway.
                    let own = format!("{found}: ");
                    let reason = reason.strip_prefix(&own).unwrap_or(reason).to_owned();
                    Error::new(found, RemoteFailure::Answered { method, reason })
                }
            }
        }
        ExceptionCode::TransactionFailed => {
            let code = status.transaction_error();
            match code {
                StatusCode::UnknownTransaction | StatusCode::BadType | StatusCode::BadValue => {
                    RemoteFailure::misbehaved(method, format!("the call failed: {code}"))
                }
                _ => gone(method, code),
            }
        }
        _ => RemoteFailure::misbehaved(method, status.to_string()),
    }
}

/// The service cannot be reached.
pub(crate) fn gone(method: &'static str, why: StatusCode) -> Error {
    let why = in_words(why);
    Error::gone(RemoteFailure::Gone { method, why })
}

/// What the transport says, with the system's words for the system's errors.
fn in_words(why: StatusCode) -> String {
    match why {
        StatusCode::Errno(code) => {
            std::io::Error::from_raw_os_error(code.saturating_neg()).to_string()
        }
        StatusCode::NameNotFound => "there is none of this name".to_owned(),
        _ => why.to_string(),
    }
}

/// Whether an error says that the service is gone, not that it refused.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error.reason::<RemoteFailure>(), Some(RemoteFailure::Gone { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_status_and_reason() {
        let sent = Answer::Launch.refuse(&Error::new(ErrorStatus::MissedDeadlineTransient, "late"));
        let received = error_of("executeSynchronously", &sent);
        assert_eq!(received.status(), ErrorStatus::MissedDeadlineTransient);
        assert_eq!(received.to_string(), "MISSED_DEADLINE_TRANSIENT: executeSynchronously: late");
        let long = "ö".repeat(REASON_LENGTH);
        let sent = Answer::Plain.refuse(&Error::invalid(long));
        assert!(sent.message().unwrap().len() <= REASON_LENGTH);
        let full = Error::new(ErrorStatus::ResourceExhaustedTransient, "no descriptor is left");
        let sent = error_of("getSupportedOperations", &Answer::Plain.refuse(&full));
        assert_eq!(sent.status(), ErrorStatus::GeneralFailure);
    }

    #[test]
    fn what_is_no_error_is_misbehaviour() {
        for code in [0, 77] {
            let status = Status::new_service_specific_error(code, None);
            assert_eq!(error_of("x", &status).status(), ErrorStatus::GeneralFailure);
        }
        let dead = error_of("x", &Status::from(StatusCode::DeadObject));
        let refused = gone("connect", StatusCode::Errno(-13)).to_string();
        assert!(refused.contains("Permission denied (os error 13)"), "{refused}");
        assert!(
            is_gone(&dead) && dead.is_gone() && dead.status() == ErrorStatus::DeviceUnavailable
        );
    }
}
