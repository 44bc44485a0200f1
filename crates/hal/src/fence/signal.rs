//! [`FenceSignal`]: the producing side of a fence.
//!
//! A desktop kernel has no sync timeline to make sync files with, so the fence is one end of a pair
//! of connected stream sockets, which anybody can poll. Its producer holds the other end, in whose
//! queue a byte from the fence's end waits. A socket that is closed with something unread makes the
//! kernel tell the other end that the connection was reset, and that polls as an error, for ever
//! and however often. So:
//!
//! | the producer | by | the fence polls as |
//! |---|---|---|
//! | is at it | holding its end | nothing |
//! | has succeeded | reading the byte, writing one, closing | `POLLIN`, then `POLLHUP` too |
//! | has failed, is gone, was killed | closing | `POLLERR` |
//!
//! An event descriptor could not do this: user programs cannot put it into error, and it does not
//! learn of its producer's death.
//!
//! Whoever holds the fence's descriptor shares the open socket and can spoil it for the others, as
//! they could an event descriptor. Two things are seen to: the fence's end is shut for writing, so
//! no one can put more bytes before the producer; and in the producer's own process the producer's
//! word counts, not the descriptor's.

use super::{FenceFailure, Inner, SyncFence};
use crate::codes::ErrorStatus;
use crate::error::{Error, Result};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
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
    end: UnixStream,
    outcome: Arc<Outcome>,
}

impl SyncFence {
    /// A new fence and what signals it.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED_TRANSIENT` if the process has too many descriptors.
    pub fn pair() -> Result<(FenceSignal, Self)> {
        let exhausted = |error| Error::new(ErrorStatus::ResourceExhaustedTransient, error);
        let (end, mut fence) = UnixStream::pair().map_err(exhausted)?;
        fence.write_all(&[0]).map_err(Error::failure)?;
        fence.shutdown(Shutdown::Write).map_err(Error::failure)?;
        let outcome = Arc::new(Outcome::new());
        let signal = FenceSignal { end, outcome: Arc::clone(&outcome) };
        Ok((signal, Self(Arc::new(Inner { fd: fence.into(), outcome: Some(outcome) }))))
    }
}

impl FenceSignal {
    /// What the fence stands for has ended well.
    pub fn signal(self) {
        self.decide(Ok(()));
        let mut byte = [0];
        // The byte was there from the beginning, so this does not block. If the process dies right
        // after it, the fence signals all the same, which is the truth.
        let taken = (&self.end).read_exact(&mut byte);
        debug_assert!(taken.is_ok(), "{taken:?}");
        // The closing that follows makes the fence ready too, but not at once where a child of
        // this process, about to become another program, still holds a copy of this end. This
        // fails if no one has the fence any more, and then does not matter.
        let _ = (&self.end).write(&byte);
    }

    /// What the fence stands for has failed; [`SyncFence::error`] says so in this process.
    pub fn fail(self, reason: Error) {
        self.decide(Err(reason));
    }

    #[cfg(test)]
    pub(super) fn end(&self) -> &UnixStream {
        &self.end
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

/// Waits until the kernel is through with whatever it is just doing to this end of a pair of
/// sockets, by taking the lock that it does it under: that is what asking for the other end's name
/// needs. Does nothing to other descriptors.
pub(super) fn settle(fd: BorrowedFd<'_>) {
    let _ = rustix::net::getpeername(fd);
}
