//! [`Interruption`]: why work was given up.

use nnhal_hal::ErrorStatus;
use std::time::Duration;

/// Why work was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Interruption {
    /// The deadline had passed before the work began.
    #[error("the deadline had passed before the work began")]
    TooLateToStart,
    /// The deadline passed while the work was running.
    #[error("the deadline passed while the work was running")]
    DeadlinePassed,
    /// A WHILE's condition was still true when its time was over (contract: QOS-7).
    #[error("a WHILE was still going on after {limit:?}")]
    LoopTimeout {
        /// For how long it was allowed to run.
        limit: Duration,
    },
    /// No one wants the result any more.
    #[error("the work was cancelled")]
    Cancelled,
}

impl Interruption {
    /// The status that the client sees (contract: QOS-5).
    pub fn status(self) -> ErrorStatus {
        match self {
            Self::TooLateToStart => ErrorStatus::MissedDeadlinePersistent,
            Self::DeadlinePassed | Self::LoopTimeout { .. } => ErrorStatus::MissedDeadlineTransient,
            Self::Cancelled => ErrorStatus::GeneralFailure,
        }
    }
}
