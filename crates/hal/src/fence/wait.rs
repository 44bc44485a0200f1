//! Waiting for one fence or for many.

use super::{FenceState, SyncFence};
use crate::codes::ErrorStatus;
use crate::error::{Error, Result};
use crate::time::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Why [`SyncFence::wait_all`] did not see all fences signal.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FenceWaitError {
    /// A fence failed.
    #[error("fence {index} has failed: {error}")]
    Failed {
        /// The first that was found so, by its index.
        index: usize,
        /// Why, see [`SyncFence::error`].
        error: Error,
    },
    /// The deadline passed.
    #[error("the deadline passed while {pending} fences had not signalled")]
    DeadlinePassed {
        /// How many had not; fences that are the same count once.
        pending: usize,
    },
    /// Whoever waits was asked to stop.
    #[error("the wait was given up while {pending} fences had not signalled")]
    Stopped {
        /// How many had not; fences that are the same count once.
        pending: usize,
    },
    /// A descriptor is no fence, or the system refuses.
    #[error(transparent)]
    System(Error),
}

impl FenceWaitError {
    /// The status that whoever waited answers with. A fence's own failure is no status of those
    /// that wait for it: it is a `GENERAL_FAILURE` to them, whatever it was to its producer
    /// (contract: FENCE-11).
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Failed { .. } | Self::Stopped { .. } => ErrorStatus::GeneralFailure,
            Self::DeadlinePassed { .. } => ErrorStatus::MissedDeadlineTransient,
            Self::System(error) => error.status(),
        }
    }
}

impl From<FenceWaitError> for Error {
    fn from(error: FenceWaitError) -> Self {
        match error {
            FenceWaitError::System(error) => error,
            error => Self::new(error.status(), error),
        }
    }
}

impl SyncFence {
    /// Those of the fences that have not signalled by now, with their indexes, for
    /// [`Background::start`](crate::background::Background::start). Of several with the same
    /// descriptor it is the first.
    ///
    /// # Errors
    /// [`FenceWaitError::Failed`] if one has failed; [`FenceWaitError::System`].
    pub fn unsignalled(fences: &[Self]) -> Result<Vec<(usize, Self)>, FenceWaitError> {
        let pending = not_known_to_have_signalled(fences)?;
        if pending.is_empty() {
            return Ok(Vec::new());
        }
        let asked: Vec<&Self> = pending.iter().map(|index| &fences[*index]).collect();
        let found = poll_until(&asked, Some(Instant::now())).map_err(FenceWaitError::System)?;
        let pending = still_pending(fences, &pending, &found)?;
        Ok(pending.into_iter().map(|index| (index, fences[index].clone())).collect())
    }

    /// Waits until all fences have signalled, however many, and says when the last was seen to do
    /// so (contract: FENCE-12, FENCE-13): now, where all had before or there are none.
    ///
    /// The wait ends at once when one of them fails, when the deadline passes, or when `stop` is
    /// ready, that is, signals or fails: keep the other side of a [`SyncFence::pair`] to end the
    /// wait from elsewhere. If several of these happen together, failure goes before success,
    /// success before being stopped, and that before the deadline.
    ///
    /// # Errors
    /// [`FenceWaitError`], see there.
    pub fn wait_all(
        fences: &[Self],
        deadline: Option<Deadline>,
        stop: Option<&Self>,
    ) -> Result<Instant, FenceWaitError> {
        let mut pending = not_known_to_have_signalled(fences)?;
        if pending.is_empty() {
            return Ok(Instant::now());
        }
        loop {
            let asked: Vec<&Self> =
                pending.iter().map(|index| &fences[*index]).chain(stop).collect();
            let until =
                deadline.and_then(|deadline| Instant::now().checked_add(deadline.remaining()));
            let found = poll_until(&asked, until).map_err(FenceWaitError::System)?;
            let seen = Instant::now();
            pending = still_pending(fences, &pending, &found)?;
            if pending.is_empty() {
                return Ok(seen);
            }
            let pending = pending.len();
            if stop.is_some() && found.last().is_some_and(|found| !found.is_empty()) {
                return Err(FenceWaitError::Stopped { pending });
            }
            if deadline.is_some_and(Deadline::has_passed) {
                return Err(FenceWaitError::DeadlinePassed { pending });
            }
        }
    }
}

/// The indexes of different fences that have not signalled as far as is known without asking.
fn not_known_to_have_signalled(fences: &[SyncFence]) -> Result<Vec<usize>, FenceWaitError> {
    let mut pending: Vec<usize> = (0..fences.len()).collect();
    // The same descriptor need not be asked twice, and the kernel takes no more of them at once
    // than a process may have.
    pending.sort_by_key(|index| (fences[*index].as_fd().as_raw_fd(), *index));
    pending.dedup_by_key(|index| fences[*index].as_fd().as_raw_fd());
    pending.sort_unstable();
    // What producers in this process have said needs no asking.
    still_pending(fences, &pending, std::iter::repeat(&PollFlags::empty()))
}

/// Those that have not signalled, after `poll` has found this of each.
fn still_pending<'a>(
    fences: &[SyncFence],
    pending: &[usize],
    found: impl IntoIterator<Item = &'a PollFlags>,
) -> Result<Vec<usize>, FenceWaitError> {
    let mut still = Vec::new();
    for (&index, found) in pending.iter().zip(found) {
        let fence = &fences[index];
        match fence.judge(*found).map_err(FenceWaitError::System)? {
            FenceState::Unsignalled => still.push(index),
            FenceState::Signalled => {}
            FenceState::Failed => {
                return Err(FenceWaitError::Failed { index, error: fence.reason() });
            }
        }
    }
    Ok(still)
}

/// Waits until at least one of the fences is ready, or until then; `None`: for ever. What each of
/// them is ready for.
pub(super) fn poll_until(fences: &[&SyncFence], until: Option<Instant>) -> Result<Vec<PollFlags>> {
    let mut asked: Vec<PollFd<'_>> =
        fences.iter().map(|fence| PollFd::new(*fence, PollFlags::IN)).collect();
    loop {
        let remaining = until.map(|until| until.saturating_duration_since(Instant::now()));
        match poll(&mut asked, remaining.map(timespec).as_ref()) {
            Ok(_) => return Ok(asked.iter().map(PollFd::revents).collect()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(Error::failure(error)),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
