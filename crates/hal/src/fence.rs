//! [`SyncFence`]: a descriptor that signals when something has ended.

use crate::error::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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

/// A descriptor that signals when something has ended. Cloning shares it.
///
/// State is what `poll` says (contract: FENCE-8): readable is signalled, an error is failed. A
/// kernel sync file that failed also polls as readable; its own file information is not looked at
/// yet.
#[derive(Debug, Clone)]
pub struct SyncFence(Arc<OwnedFd>);

impl SyncFence {
    /// A fence out of a descriptor.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the descriptor cannot be polled.
    pub fn from_fd(fd: OwnedFd) -> Result<Self> {
        let fence = Self(Arc::new(fd));
        fence.wait(Some(Duration::ZERO))?;
        Ok(fence)
    }

    /// What the fence says now.
    ///
    /// # Errors
    /// As [`SyncFence::wait`].
    pub fn state(&self) -> Result<FenceState> {
        self.wait(Some(Duration::ZERO))
    }

    /// Waits until the fence signals or fails, at most so long; `None`: for ever.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the descriptor is no fence, `GENERAL_FAILURE` if the system refuses.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<FenceState> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let remaining = until.map(|until| until.saturating_duration_since(Instant::now()));
            let remaining = remaining.map(|remaining| Timespec {
                tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: remaining.subsec_nanos().into(),
            });
            let mut fds = [PollFd::new(&*self.0, PollFlags::IN)];
            match poll(&mut fds, remaining.as_ref()) {
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(error) => return Err(Error::failure(error)),
                Ok(0) => return Ok(FenceState::Unsignalled),
                Ok(_) => {}
            }
            let found = fds[0].revents();
            return if found.contains(PollFlags::NVAL) {
                Err(Error::invalid("the descriptor is not a fence"))
            } else if found.contains(PollFlags::ERR) {
                Ok(FenceState::Failed)
            } else {
                Ok(FenceState::Signalled)
            };
        }
    }
}

impl AsFd for SyncFence {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::write;

    #[test]
    fn fence_8_readable_is_signalled() {
        let fd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let signaller = fd.try_clone().unwrap();
        let fence = SyncFence::from_fd(fd).unwrap();
        assert_eq!(fence.state().unwrap(), FenceState::Unsignalled);
        assert_eq!(fence.wait(Some(Duration::from_millis(2))).unwrap(), FenceState::Unsignalled);
        write(&signaller, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(fence.wait(None).unwrap(), FenceState::Signalled);
        assert_eq!(fence.clone().state().unwrap(), FenceState::Signalled);
    }

    #[test]
    fn fence_8_an_error_is_a_failure() {
        // The writing end of a pipe that nobody reads polls as an error.
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let fence = SyncFence::from_fd(writing).unwrap();
        drop(reading);
        assert_eq!(fence.state().unwrap(), FenceState::Failed);
    }
}
