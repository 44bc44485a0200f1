//! [`SyncFence`]: a descriptor that signals when something has ended, and [`FenceSignal`], which
//! makes it do so.
//!
//! A fence is whatever descriptor says by `poll` how things stand (contract: FENCE-8):
//!
//! | `poll` for `POLLIN` says | which means |
//! |---|---|
//! | nothing | it goes on |
//! | `POLLERR` | it has failed |
//! | anything else, but a sync file whose information says that it failed | it has failed |
//! | anything else | it has ended |
//!
//! [`SyncFence::pair`] makes sync files of the kernel where it can, and otherwise sockets that poll
//! alike, but on which `SYNC_IOC_MERGE` and `SYNC_IOC_FILE_INFO` fail: [`SyncFence::is_sync_file`].
//!
//! Anything that can be polled passes for a fence. What never blocks, such as an ordinary file, is
//! a fence that has signalled.
//!
//! ```
//! use nnhal_hal::fence::{FenceState, SyncFence};
//!
//! let (signal, fence) = SyncFence::pair()?;
//! assert_eq!(fence.state()?, FenceState::Unsignalled);
//! std::thread::spawn(move || signal.signal());
//! assert_eq!(fence.wait(None)?, FenceState::Signalled);
//!
//! let (signal, fence) = SyncFence::pair()?;
//! signal.fail(nnhal_hal::Error::failure("the processor has lost its power"));
//! let late = SyncFence::wait_all(&[fence], None, None).unwrap_err();
//! assert_eq!(
//!     late.to_string(),
//!     "fence 0 has failed: GENERAL_FAILURE: the processor has lost its power"
//! );
//! # Ok::<(), nnhal_hal::Error>(())
//! ```

mod signal;
#[allow(unsafe_code)]
mod sync_file;
mod wait;

pub use signal::FenceSignal;
pub use wait::FenceWaitError;

use crate::error::{Error, Result};
use rustix::event::PollFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use signal::Outcome;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a fence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FenceState {
    /// What it stands for goes on.
    Unsignalled,
    /// It has ended.
    Signalled,
    /// It has failed.
    Failed,
}

/// Why a fence failed, where no one of this process gave a reason: the reason of the
/// `GENERAL_FAILURE` that [`SyncFence::error`] then is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceFailure {
    /// The producer gave up its [`FenceSignal`] without signalling.
    #[error("what the fence stands for was given up")]
    Abandoned,
    /// A kernel sync file with this error.
    #[error("the kernel's fence failed")]
    Kernel(#[source] io::Error),
    /// A descriptor that polls as an error.
    #[error("the fence failed; its descriptor does not say why")]
    Unexplained,
    /// Somebody else with the descriptor of a fence of this process made it ready.
    #[error("the fence became ready before what it stands for ended")]
    Forged,
}

/// A descriptor that signals when something has ended, see the [module](self). Cloning shares it.
#[derive(Debug, Clone)]
pub struct SyncFence(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    /// Of a fence whose signal is or was in this process.
    outcome: Option<Arc<Outcome>>,
}

impl SyncFence {
    /// A fence out of a descriptor, which is closed with the last clone, and when the process
    /// becomes another program (contract: SEC-6). The fence may have failed already: see
    /// [`SyncFence::state`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the descriptor cannot be polled (contract: FENCE-3, FENCE-8).
    pub fn from_fd(fd: OwnedFd) -> Result<Self> {
        fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(Error::failure)?;
        let fence = Self(Arc::new(Inner { fd, outcome: None }));
        fence.state()?;
        Ok(fence)
    }

    /// What the fence says now.
    ///
    /// # Errors
    /// As [`SyncFence::wait`].
    pub fn state(&self) -> Result<FenceState> {
        self.wait(Some(Duration::ZERO))
    }

    /// Waits until the fence signals or fails, at most so long; `None`: for ever. After that time
    /// it is still [`FenceState::Unsignalled`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the descriptor is no fence, `GENERAL_FAILURE` if the system refuses.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<FenceState> {
        if let Some(outcome) = self.outcome() {
            return Ok(FenceState::of(outcome));
        }
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let found = wait::poll_until(&[self], until)?;
        self.judge(found[0])
    }

    /// Why the fence has failed; `None` if it has not. Its producer's own reason if that is in this
    /// process, otherwise a `GENERAL_FAILURE` because of a [`FenceFailure`].
    pub fn error(&self) -> Option<Error> {
        match self.state() {
            Ok(FenceState::Failed) => Some(self.reason()),
            Ok(FenceState::Signalled | FenceState::Unsignalled) => None,
            Err(error) => Some(error),
        }
    }

    /// Whether it is a sync file to the kernel, so that `SYNC_IOC_MERGE`, `SYNC_IOC_FILE_INFO` and
    /// drivers that take a fence's descriptor work with it. Those of [`SyncFence::pair`] are where the
    /// kernel has `CONFIG_SW_SYNC` and the process may open `/sys/kernel/debug/sync/sw_sync` or
    /// `/dev/sw_sync`. Otherwise they are sockets, on which those requests fail with `ENOTTY`.
    pub fn is_sync_file(&self) -> bool {
        sync_file::status(self.as_fd()).is_some()
    }

    /// What its producer said, if that is in this process and has said anything.
    fn outcome(&self) -> Option<&Result<()>> {
        self.0.outcome.as_ref().and_then(|outcome| outcome.get())
    }

    /// What an answer of `poll` means.
    fn judge(&self, found: PollFlags) -> Result<FenceState> {
        if let Some(outcome) = self.outcome() {
            return Ok(FenceState::of(outcome));
        }
        if found.is_empty() {
            return Ok(FenceState::Unsignalled);
        }
        if found.contains(PollFlags::NVAL) {
            return Err(Error::invalid("the descriptor is not a fence"));
        }
        if found.contains(PollFlags::ERR) {
            return Ok(FenceState::Failed);
        }
        if self.0.outcome.is_some() || found.contains(PollFlags::HUP) {
            return self.judge_hung_up();
        }
        Ok(FenceState::of_readable(sync_file::status(self.as_fd()).as_ref()))
    }

    /// The same for a socket whose other end may just be closing. While the kernel closes it there
    /// is an instant in which this end polls as hung up, but not yet as an error: both are set
    /// under the lock of this end, but polling looks without it. Asking for the other end's name
    /// takes that lock, so what is seen after it is the whole.
    fn judge_hung_up(&self) -> Result<FenceState> {
        signal::settle(self.as_fd());
        if let Some(outcome) = &self.0.outcome {
            // The producer speaks before it touches its descriptor. A fence that is ready without
            // its word was made so by somebody else who has the descriptor.
            return Ok(outcome.get().map_or(FenceState::Failed, FenceState::of));
        }
        let found = wait::poll_until(&[self], Some(Instant::now()))?;
        let failed = found[0].contains(PollFlags::ERR);
        Ok(if failed { FenceState::Failed } else { FenceState::Signalled })
    }

    /// Why the fence has failed, given that it has.
    fn reason(&self) -> Error {
        Error::failure(match (self.outcome(), &self.0.outcome) {
            (Some(Err(error)), _) => return error.clone(),
            (_, Some(_)) => FenceFailure::Forged,
            (_, None) => match sync_file::status(self.as_fd()) {
                Some(Err(error)) => FenceFailure::Kernel(error),
                Some(Ok(_)) | None => FenceFailure::Unexplained,
            },
        })
    }
}

impl FenceState {
    fn of(outcome: &Result<()>) -> Self {
        if outcome.is_ok() { Self::Signalled } else { Self::Failed }
    }

    /// Of a descriptor that is ready, given what it says of itself if it is a sync file.
    fn of_readable(information: Option<&io::Result<sync_file::Progress>>) -> Self {
        match information {
            Some(Err(_)) => Self::Failed,
            // That it was active was so before it became ready.
            Some(Ok(_)) | None => Self::Signalled,
        }
    }
}

impl AsFd for SyncFence {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }
}

#[cfg(test)]
mod tests;
