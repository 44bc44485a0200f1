//! [`SyncFence`]: a descriptor that signals when something has ended.

use crate::error::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
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
/// State is what `poll` says (contract: FENCE-8): readable is signalled, an error is failed. Two
/// things are not here yet. A kernel sync file that failed also polls as readable, and its own file
/// information, which tells the difference, is not looked at: such a fence passes for signalled.
/// And fences are only waited for, none is made.
///
/// Anything that can be polled passes for a fence. What never blocks, such as an ordinary file, is
/// a fence that has signalled.
#[derive(Debug, Clone)]
pub struct SyncFence(Arc<OwnedFd>);

impl SyncFence {
    /// A fence out of a descriptor, which is closed with the last clone, and when the process
    /// becomes another program (contract: SEC-6). The fence may have failed already: see
    /// [`SyncFence::state`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the descriptor cannot be polled (contract: FENCE-3, FENCE-8).
    pub fn from_fd(fd: OwnedFd) -> Result<Self> {
        fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(Error::failure)?;
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

    /// Waits until the fence signals or fails, at most so long; `None`: for ever. After that time
    /// it is still [`FenceState::Unsignalled`].
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
    use crate::ErrorStatus;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fs::{Mode, OFlags};
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
    fn fence_8_a_waiter_wakes_when_the_fence_signals() {
        let fd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let signaller = fd.try_clone().unwrap();
        let fence = SyncFence::from_fd(fd).unwrap();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                write(&signaller, &1_u64.to_ne_bytes()).unwrap();
            });
            assert_eq!(fence.wait(Some(Duration::from_secs(60))).unwrap(), FenceState::Signalled);
        });
        assert!((20..30_000).contains(&begin.elapsed().as_millis()));
    }

    #[test]
    fn a_wait_lasts_as_long_as_it_says() {
        let fence = SyncFence::from_fd(eventfd(0, EventfdFlags::CLOEXEC).unwrap()).unwrap();
        let begin = Instant::now();
        let state = fence.wait(Some(Duration::from_millis(20))).unwrap();
        assert_eq!(state, FenceState::Unsignalled);
        assert!(begin.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn fence_8_what_cannot_be_polled_is_no_fence() {
        // A descriptor that only names a file polls as invalid.
        let named = rustix::fs::open("/", OFlags::PATH, Mode::empty()).unwrap();
        let refused = SyncFence::from_fd(named).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    }

    #[test]
    fn sec_6_the_descriptor_is_closed_in_other_programs() {
        let fence = SyncFence::from_fd(eventfd(0, EventfdFlags::empty()).unwrap()).unwrap();
        assert_eq!(rustix::io::fcntl_getfd(&fence).unwrap(), FdFlags::CLOEXEC);
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
