//! What the thread that waits for all jobs does.

use super::{Entry, Job, NotRun, Refused, Shared, State};
use crate::codes::ErrorStatus;
use crate::error::{Error, Result};
use crate::fence::{FenceState, FenceWaitError, SyncFence};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Events that are taken from the kernel at a time.
const EVENTS: usize = 256;
/// Names the descriptor that wakes the thread that waits.
const WAKE: u64 = u64::MAX;

/// What the thread waits with.
pub(super) struct Poller {
    epoll: OwnedFd,
    /// Wakes the thread that waits.
    wake: OwnedFd,
}

/// A descriptor that epoll knows.
pub(super) struct Watch {
    fence: SyncFence,
    /// The jobs that it matters to.
    dependents: BTreeSet<(u64, Role)>,
}

/// What a descriptor is to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// One of the fences that it waits for, by index.
    Fence(usize),
    /// It is ready when the job is cancelled.
    Stop,
}

impl<J: Job> Shared<J> {
    fn poller(&self) -> Result<&Poller> {
        if let Some(poller) = self.poller.get() {
            return Ok(poller);
        }
        let exhausted = |error| Error::new(ErrorStatus::ResourceExhaustedTransient, error);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(exhausted)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(exhausted)?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)
            .map_err(exhausted)?;
        Ok(self.poller.get_or_init(|| Poller { epoll, wake }))
    }

    /// Has epoll look at the fences of a job, and at what cancels it.
    pub(super) fn watch(
        &self,
        state: &mut State<J>,
        id: u64,
        fences: Vec<(usize, SyncFence)>,
    ) -> Result<()> {
        let Some(entry) = state.entries.get_mut(&id) else { return Ok(()) };
        let switches = entry.job.switches().into_iter();
        let stops = switches.map(|switch| Ok::<_, Error>((Role::Stop, switch.fence()?)));
        let fences = fences.into_iter().map(|(index, fence)| Ok((Role::Fence(index), fence)));
        for watched in fences.chain(stops) {
            let (role, fence) = watched?;
            let fd = fence.as_fd().as_raw_fd();
            let watch = match state.watches.get_mut(&fd) {
                Some(watch) => watch,
                None => {
                    let name = epoll::EventData::new_u64(u64::from(fd.cast_unsigned()));
                    epoll::add(&self.poller()?.epoll, &fence, name, epoll::EventFlags::IN)
                        .map_err(|error| cannot_wait_for(role, error))?;
                    state.watches.entry(fd).or_insert(Watch { fence, dependents: BTreeSet::new() })
                }
            };
            watch.dependents.insert((id, role));
            entry.watched.push((fd, role));
        }
        Ok(())
    }

    /// Forgets that a descriptor matters to a job.
    pub(super) fn unwatch(&self, state: &mut State<J>, id: u64, (fd, role): (RawFd, Role)) {
        let Some(watch) = state.watches.get_mut(&fd) else { return };
        watch.dependents.remove(&(id, role));
        if watch.dependents.is_empty() {
            // Before the descriptor is closed: epoll would keep what others have duplicates of.
            if let Some(poller) = self.poller.get() {
                let _ = epoll::delete(&poller.epoll, &watch.fence);
            }
            state.watches.remove(&fd);
        }
    }

    /// Starts the thread that waits, or sees to it that it knows of the next deadline.
    pub(super) fn poll_if_needed(self: &Arc<Self>, state: &mut State<J>, id: u64) -> Result<()> {
        if state.has_nothing_to_poll() {
            return Ok(());
        }
        self.poller()?;
        if state.is_polling {
            if state.deadlines.first().is_some_and(|(_, first)| *first == id) {
                self.wake();
            }
            return Ok(());
        }
        let shared = Arc::clone(self);
        thread::Builder::new()
            .name("nnhal-fences".to_owned())
            .spawn(move || shared.poll())
            .map_err(|error| Refused::NoThread(error.to_string()))?;
        state.is_polling = true;
        Ok(())
    }

    /// Has the thread that waits look again.
    pub(super) fn wake(&self) {
        if let Some(poller) = self.poller.get() {
            // Full is awake too.
            let _ = rustix::io::write(&poller.wake, &1_u64.to_ne_bytes());
        }
    }

    /// What the thread that waits does.
    fn poll(self: &Arc<Self>) {
        let Some(poller) = self.poller.get() else { return };
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let timeout = {
                let state = self.lock();
                let first = state.deadlines.first().map(|(deadline, _)| deadline.remaining());
                let idle = if state.is_closed { Duration::ZERO } else { self.limits.idle };
                first.or(state.has_nothing_to_poll().then_some(idle)).map(timespec)
            };
            events.clear();
            let waited = epoll::wait(
                &poller.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            );
            let ended = match waited {
                Ok(_) | Err(Errno::INTR) => self.handle(&events, Instant::now()),
                Err(error) => self.give_up(error),
            };
            for (entry, why) in ended {
                let _ = catch_unwind(AssertUnwindSafe(|| entry.job.end(why)));
            }
            let mut state = self.lock();
            if events.is_empty() && waited != Err(Errno::INTR) && state.has_nothing_to_poll() {
                state.is_polling = false;
                return;
            }
        }
    }

    /// Does what events ask for. Those that have ended with that are given back, to be ended without
    /// the lock. Failure goes before success, success before being cancelled, and that before the
    /// deadline, as in [`SyncFence::wait_all`].
    fn handle(self: &Arc<Self>, events: &[epoll::Event], seen: Instant) -> Vec<(Entry<J>, NotRun)> {
        let mut ended = Vec::new();
        let found: Vec<SyncFence> = {
            let state = self.lock();
            let fence = |event: &epoll::Event| {
                let name = event.data.u64();
                if name == WAKE {
                    let _ = self.poller.get().map(|it| rustix::io::read(&it.wake, &mut [0; 8]));
                    return None;
                }
                let fd = u32::try_from(name).ok()?.cast_signed();
                state.watches.get(&fd).map(|watch| watch.fence.clone())
            };
            events.iter().filter_map(fence).collect()
        };
        // Whoever holds a fence keeps its descriptor's number from being used again.
        let mut judged: Vec<(RawFd, Result<()>)> = found
            .iter()
            .filter_map(|fence| {
                let outcome = match fence.state() {
                    Ok(FenceState::Unsignalled) => return None,
                    Ok(FenceState::Signalled) => Ok(()),
                    Ok(FenceState::Failed) => {
                        let unknown = || Error::failure("the fence has failed");
                        Err(fence.error().unwrap_or_else(unknown))
                    }
                    Err(error) => Err(error),
                };
                Some((fence.as_fd().as_raw_fd(), outcome))
            })
            .collect();
        judged.sort_by_key(|(_, outcome)| outcome.is_ok());
        let mut state = self.lock();
        let mut stopped = Vec::new();
        for (fd, outcome) in judged {
            let dependents = state.watches.get(&fd).map(|watch| watch.dependents.clone());
            for (id, role) in dependents.into_iter().flatten() {
                match (role, &outcome) {
                    (Role::Stop, _) => stopped.push(id),
                    (Role::Fence(index), Err(error)) => {
                        let error = FenceWaitError::Failed { index, error: error.clone() };
                        ended.extend(self.take(&mut state, id).zip(Some(error.into())));
                    }
                    (Role::Fence(_), Ok(())) => {
                        let Some(entry) = state.entries.get_mut(&id) else { continue };
                        entry.watched.retain(|watched| *watched != (fd, role));
                        entry.unsignalled -= 1;
                        let is_ready = entry.unsignalled == 0;
                        self.unwatch(&mut state, id, (fd, role));
                        if is_ready && let Err(refused) = self.enqueue(&mut state, id, seen) {
                            ended.extend(self.take(&mut state, id).zip(Some(refused.into())));
                        }
                    }
                }
            }
        }
        for id in stopped {
            if let Some(entry) = self.take(&mut state, id) {
                let why = match entry.ready {
                    None => FenceWaitError::Stopped { pending: entry.unsignalled }.into(),
                    Some(_) => NotRun::Cancelled,
                };
                ended.push((entry, why));
            }
        }
        // With a full buffer there may be fences that have signalled and were not seen.
        while events.len() < EVENTS
            && let Some(&(deadline, id)) = state.deadlines.first()
            && deadline.has_passed()
            && let Some(entry) = self.take(&mut state, id)
        {
            let why = match entry.ready {
                None => FenceWaitError::DeadlinePassed { pending: entry.unsignalled }.into(),
                Some(_) => NotRun::DeadlinePassed,
            };
            ended.push((entry, why));
        }
        ended
    }

    /// Takes out all jobs when the system does not let us wait, since some would do so for ever.
    fn give_up(&self, error: Errno) -> Vec<(Entry<J>, NotRun)> {
        let mut state = self.lock();
        let waiting: Vec<u64> = state.entries.keys().copied().collect();
        let why = || FenceWaitError::System(Error::failure(error)).into();
        waiting.into_iter().filter_map(|id| self.take(&mut state, id).zip(Some(why()))).collect()
    }
}

fn cannot_wait_for(role: Role, error: Errno) -> Error {
    let what = match role {
        Role::Fence(index) => format!("fence {index} cannot be waited for: {error}"),
        Role::Stop => format!("cancelling cannot be waited for: {error}"),
    };
    let exhausted = matches!(error, Errno::NOMEM | Errno::NOSPC | Errno::MFILE | Errno::NFILE);
    let status = if exhausted {
        ErrorStatus::ResourceExhaustedTransient
    } else {
        ErrorStatus::InvalidArgument
    };
    Error::new(status, what)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
