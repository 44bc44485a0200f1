//! [`Answer`]: which statuses a method may return.

use nnhal_hal::{Error, ErrorStatus, HalVersion};

/// The kinds of methods by the statuses in their lists (contract: GEN-2). All have `NONE`,
/// `DEVICE_UNAVAILABLE` and `GENERAL_FAILURE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// What needs no time and takes no arguments: nothing else.
    Description,
    /// What needs no time: also `INVALID_ARGUMENT`.
    Plain,
    /// Preparing and its callback, launching behind fences: also `INVALID_ARGUMENT`, and from 1.3
    /// `MISSED_DEADLINE_*` and `RESOURCE_EXHAUSTED_*`.
    Launch(HalVersion),
    /// Executing and its callback: the same and `OUTPUT_INSUFFICIENT_SIZE` (contract: EXEC-11,
    /// CB-6).
    Execution(HalVersion),
    /// What has become of a fenced execution: all of 1.3 but `INVALID_ARGUMENT` and
    /// `OUTPUT_INSUFFICIENT_SIZE` (contract: FENCE-11).
    FencedInfo,
}

impl Answer {
    /// The status as this method may return it; what is not in its list is `GENERAL_FAILURE`.
    pub(super) fn of(self, status: ErrorStatus) -> ErrorStatus {
        let version = match self {
            Self::Description | Self::Plain => HalVersion::V1_0,
            Self::Launch(version) | Self::Execution(version) => version,
            Self::FencedInfo => HalVersion::V1_3,
        };
        let listed = match status {
            ErrorStatus::OutputInsufficientSize => matches!(self, Self::Execution(_)),
            ErrorStatus::InvalidArgument => !matches!(self, Self::Description | Self::FencedInfo),
            _ => true,
        };
        if listed { status.in_version(version) } else { ErrorStatus::GeneralFailure }
    }

    /// The code of an error's status. The reason ends here, so it is logged.
    pub(super) fn refuse(self, error: &Error) -> i32 {
        tracing::debug!(%error, method = ?self, "answered with an error");
        self.of(error.status()).code()
    }
}

/// The code of success.
pub(super) const NONE: i32 = ErrorStatus::None.code();

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorStatus::{
        DeviceUnavailable, GeneralFailure, InvalidArgument, MissedDeadlinePersistent,
        OutputInsufficientSize, ResourceExhaustedTransient,
    };

    /// All can say that the device is unavailable or failed (GEN-1); executions (EXEC-11) and the
    /// callbacks (CB-6) say what they may besides.
    #[test]
    fn gen_2_a_method_returns_only_what_is_in_its_list() {
        let listed = |answer: Answer| -> Vec<ErrorStatus> {
            let kept = |status: &ErrorStatus| answer.of(*status) == *status;
            ErrorStatus::ALL.iter().copied().filter(kept).collect()
        };
        let base = [ErrorStatus::None, DeviceUnavailable, GeneralFailure];
        assert_eq!(listed(Answer::Description), base);
        assert_eq!(listed(Answer::Plain), [&base[..], &[InvalidArgument]].concat());
        for version in [HalVersion::V1_0, HalVersion::V1_2] {
            assert_eq!(listed(Answer::Launch(version)), [&base[..], &[InvalidArgument]].concat());
            assert_eq!(
                listed(Answer::Execution(version)),
                [&base[..], &[OutputInsufficientSize, InvalidArgument]].concat()
            );
        }
        assert_eq!(listed(Answer::Execution(HalVersion::V1_3)), ErrorStatus::ALL);
        assert_eq!(listed(Answer::Launch(HalVersion::V1_3)).len(), 8);
        assert_eq!(listed(Answer::FencedInfo).len(), 7);
    }

    #[test]
    fn gen_2_newer_statuses_become_general_failure() {
        for status in [MissedDeadlinePersistent, ResourceExhaustedTransient] {
            assert_eq!(Answer::Execution(HalVersion::V1_2).of(status), GeneralFailure);
            assert_eq!(Answer::Plain.of(status), GeneralFailure);
            assert_eq!(Answer::Execution(HalVersion::V1_3).of(status), status);
        }
        assert_eq!(Answer::FencedInfo.of(InvalidArgument), GeneralFailure);
    }
}
