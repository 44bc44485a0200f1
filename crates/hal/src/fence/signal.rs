//! [`FenceSignal`]: the producing side of a fence.
//!
//! Where the kernel makes sync files for this process ([`Timeline`]), a fence is one of those. Most
//! desktop kernels do not, and where they do it is for the superuser. Then a fence is one end of a pair
//! of connected stream sockets, which anybody can poll. Its producer holds the other end, in whose
//! queue a byte from the fence's end waits. A socket that is closed with something unread makes the
//! kernel tell the other end that the connection was reset, and that polls as an error, for ever
//! and however often. So:
//!
//! | the producer | by | the socket polls as | the sync file polls as |
//! |---|---|---|---|
//! | is at it | holding its end | nothing | nothing |
//! | has succeeded | reading the byte, writing one, closing | `POLLIN`, then `POLLHUP` too | `POLLIN` |
//! | has failed, is gone, was killed | closing | `POLLERR` | `POLLIN`, and its information is an error |
//!
//! An event descriptor could not do this: user programs cannot put it into error, and it does not
//! learn of its producer's death.
//!
//! The socket is no sync file to the kernel: `SYNC_IOC_MERGE` and `SYNC_IOC_FILE_INFO` answer `ENOTTY`,
//! and drivers that take a sync file (`IN_FENCE_FD` of DRM, for instance) refuse it.
//!
//! Whoever holds the descriptor of a socket shares the open socket and can spoil it for the others, as
//! they could an event descriptor. Two things are seen to: the fence's end is shut for writing, so
//! no one can put more bytes before the producer; and in the producer's own process the producer's
//! word counts, not the descriptor's.

use super::sync_file::Timeline;
use super::{FenceFailure, Inner, SyncFence};
use crate::codes::ErrorStatus;
use crate::error::{Error, Result};
use rustix::io::Errno;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

/// What became of what a fence stands for, once known.
pub(super) type Outcome = OnceLock<Result<()>>;

/// Whoever holds this owes a fence its end: [`FenceSignal::signal`] or [`FenceSignal::fail`].
/// Dropping it is failing, and so is the death of the process.
///
/// The producing end is closed when the process becomes another program. A process that forks and
/// goes on as it is takes a copy along; until that copy is gone too, a failed fence shows only in
/// the process it was made in.
#[derive(Debug)]
pub struct FenceSignal {
    end: End,
    outcome: Arc<Outcome>,
}

/// What makes the descriptor show how things stand. Closing it is failing.
#[derive(Debug)]
enum End {
    Socket(UnixStream),
    Timeline(Timeline),
}

impl SyncFence {
    /// A new fence and what signals it: a sync file of the kernel where that makes any
    /// ([`SyncFence::is_sync_file`]), otherwise a socket that polls alike.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED_TRANSIENT` if the process has too many descriptors.
    pub fn pair() -> Result<(FenceSignal, Self)> {
        match Timeline::create() {
            Some(Ok((timeline, fence))) => Ok(Self::with_end(End::Timeline(timeline), fence)),
            Some(Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM))) => {
                Err(Error::new(ErrorStatus::ResourceExhaustedTransient, error))
            }
            // The process may have lost the right to it since it was found.
            Some(Err(_)) | None => Self::pair_of_sockets(),
        }
    }

    /// The same, whatever the kernel makes.
    pub(super) fn pair_of_sockets() -> Result<(FenceSignal, Self)> {
        let exhausted = |error| Error::new(ErrorStatus::ResourceExhaustedTransient, error);
        let (end, mut fence) = UnixStream::pair().map_err(exhausted)?;
        fence.write_all(&[0]).map_err(Error::failure)?;
        fence.shutdown(Shutdown::Write).map_err(Error::failure)?;
        Ok(Self::with_end(End::Socket(end), fence.into()))
    }

    fn with_end(end: End, fd: OwnedFd) -> (FenceSignal, Self) {
        let outcome = Arc::new(Outcome::new());
        let signal = FenceSignal { end, outcome: Arc::clone(&outcome) };
        (signal, Self(Arc::new(Inner { fd, outcome: Some(outcome) })))
    }
}

impl FenceSignal {
    /// What the fence stands for has ended well.
    pub fn signal(self) {
        self.decide(Ok(()));
        match &self.end {
            End::Socket(end) => signal_socket(end),
            End::Timeline(timeline) => {
                let signalled = timeline.signal();
                debug_assert!(signalled.is_ok(), "{signalled:?}");
            }
        }
    }

    /// What the fence stands for has failed; [`SyncFence::error`] says so in this process.
    pub fn fail(self, reason: Error) {
        self.decide(Err(reason));
    }

    #[cfg(test)]
    pub(super) fn end(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        match &self.end {
            End::Socket(end) => end.as_fd(),
            End::Timeline(timeline) => timeline.as_fd(),
        }
    }

    /// Says what became of it. The first word counts, and is said before the descriptor shows it.
    fn decide(&self, outcome: Result<()>) {
        let _ = self.outcome.set(outcome);
    }
}

impl Drop for FenceSignal {
    fn drop(&mut self) {
        self.decide(Err(Error::failure(FenceFailure::Abandoned)));
        // Now the end is closed, which is what others see.
    }
}

fn signal_socket(mut end: &UnixStream) {
    let mut byte = [0];
    // The byte was there from the beginning, so this does not block. If the process dies right
    // after it, the fence signals all the same, which is the truth.
    let taken = end.read_exact(&mut byte);
    debug_assert!(taken.is_ok(), "{taken:?}");
    // The closing that follows makes the fence ready too, but not at once where a child of
    // this process, about to become another program, still holds a copy of this end. This
    // fails if no one has the fence any more, and then does not matter.
    let _ = end.write(&byte);
}

/// Waits until the kernel is through with whatever it is just doing to this end of a pair of
/// sockets, by taking the lock that it does it under: that is what asking for the other end's name
/// needs. Does nothing to other descriptors.
pub(super) fn settle(fd: BorrowedFd<'_>) {
    let _ = rustix::net::getpeername(fd);
}
