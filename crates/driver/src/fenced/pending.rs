//! [`Pending`]: launched executions on their way, and the threads that they share.
//!
//! One thread waits for the fences of all of them, with epoll. It also ends those whose deadline
//! passes or that are cancelled. What has nothing left to wait for is run by a few threads for each
//! client and priority ([`Class`]), as many as the engine computes executions at a time: a crowd of
//! low ones, or of another client's, each waiting for its turn to compute, then keeps no high one
//! from asking for its own. Threads start when there is something for them and end when there has
//! been nothing for a while.

use super::Task;
use crate::budget::Interruption;
use crate::error::EngineError;
use nnhal_hal::fence::{FenceState, FenceWaitError};
use nnhal_hal::{Deadline, Error, ErrorStatus, PreparedModel as _, Priority, Result, SyncFence};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_millis(500);
/// Events that are taken from the kernel at a time.
const EVENTS: usize = 256;
/// Names the descriptor that wakes the thread that waits.
const WAKE: u64 = u64::MAX;

/// The launched executions of one device that have not ended. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Pending(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Threads of each class that run executions.
    threads: usize,
    poller: OnceLock<Poller>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Poller {
    epoll: OwnedFd,
    /// Wakes the thread that waits.
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    entries: HashMap<u64, Entry>,
    /// By descriptor.
    watches: HashMap<RawFd, Watch>,
    deadlines: BTreeSet<(Deadline, u64)>,
    /// Those that have executions or threads.
    queues: BTreeMap<Class, Queue>,
    is_polling: bool,
}

/// Executions with the same claim to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    /// The client's id.
    client: u64,
    priority: Priority,
}

impl Class {
    fn of(task: &Task) -> Self {
        Self { client: task.prepared.client().id(), priority: task.prepared.priority() }
    }
}

/// Executions of one class that are ready to run.
#[derive(Debug, Default)]
struct Queue {
    /// Something is ready.
    wake: Arc<Condvar>,
    /// In the order in which they became ready.
    ready: BTreeMap<u64, u64>,
    next: u64,
    workers: usize,
    idle: usize,
}

/// An execution that no one runs yet.
#[derive(Debug)]
struct Entry {
    task: Box<Task>,
    /// Fences that have not signalled.
    unsignalled: usize,
    watched: Vec<(RawFd, Role)>,
    deadline: Option<Deadline>,
    /// Its place in the queue, and when the last fence signalled.
    ready: Option<(u64, Instant)>,
}

/// A descriptor that epoll knows.
#[derive(Debug)]
struct Watch {
    fence: SyncFence,
    /// The executions that it matters to.
    dependents: BTreeSet<(u64, Role)>,
}

/// What a descriptor is to an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// One of the fences that it waits for, by index.
    Fence(usize),
    /// It is ready when the execution is cancelled.
    Stop,
}

impl Pending {
    /// None yet. `threads` of each client and priority run executions.
    pub(crate) fn new(threads: usize) -> Self {
        Self(Arc::new(Shared {
            threads: threads.max(1),
            poller: OnceLock::new(),
            state: Mutex::default(),
        }))
    }

    /// Runs an execution when these of its fences have signalled, which are given with their
    /// indexes.
    ///
    /// # Errors
    /// A fence cannot be waited for, or the system has no more descriptors or threads.
    pub(super) fn start(&self, task: Box<Task>, fences: Vec<(usize, SyncFence)>) -> Result<()> {
        self.0.start(task, fences)
    }
}

impl Shared {
    /// Nothing is left half done under the lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

    fn start(self: &Arc<Self>, task: Box<Task>, fences: Vec<(usize, SyncFence)>) -> Result<()> {
        let class = Class::of(&task);
        let (unsignalled, deadline) = (fences.len(), task.options.deadline);
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        let entry = Entry { task, unsignalled, watched: Vec::new(), deadline: None, ready: None };
        state.entries.insert(id, entry);
        // Dropped after the lock, if it is refused.
        let mut refused = None;
        let begun = (|| {
            let has_worker = state
                .queues
                .get(&class)
                .is_none_or(|queue| queue.idle > queue.ready.len() || queue.workers < self.threads);
            if unsignalled > 0 || !has_worker {
                self.watch(&mut state, id, fences)?;
                state.set_deadline(id, deadline);
            }
            if unsignalled == 0 {
                self.enqueue(&mut state, id, Instant::now())?;
            }
            self.poll_if_needed(&mut state, id)
        })();
        if begun.is_err() {
            refused = self.take(&mut state, id);
        }
        drop(state);
        drop(refused);
        begun
    }

    /// Has epoll look at the fences of an execution, and at what cancels it.
    fn watch(&self, state: &mut State, id: u64, fences: Vec<(usize, SyncFence)>) -> Result<()> {
        let Some(entry) = state.entries.get_mut(&id) else { return Ok(()) };
        let stops: Vec<Result<_>> =
            entry.task.switches().map(|switch| Ok((Role::Stop, switch.fence()?))).collect();
        let fences = fences.into_iter().map(|(index, fence)| Ok((Role::Fence(index), fence)));
        for watched in fences.chain(stops) {
            let (role, fence) = watched?;
            let fd = fence.as_fd().as_raw_fd();
            let watch = match state.watches.get_mut(&fd) {
                Some(watch) => watch,
                None => {
                    let name = epoll::EventData::new_u64(u64::from(fd.cast_unsigned()));
                    epoll::add(&self.poller()?.epoll, &fence, name, epoll::EventFlags::IN)
                        .map_err(|error| cannot_be_watched(role, error))?;
                    state.watches.entry(fd).or_insert(Watch { fence, dependents: BTreeSet::new() })
                }
            };
            watch.dependents.insert((id, role));
            entry.watched.push((fd, role));
        }
        Ok(())
    }

    /// Forgets that a descriptor matters to an execution.
    fn unwatch(&self, state: &mut State, id: u64, (fd, role): (RawFd, Role)) {
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

    /// Takes an execution out, to run it or to end it.
    fn take(&self, state: &mut State, id: u64) -> Option<Entry> {
        let mut entry = state.entries.remove(&id)?;
        for watched in std::mem::take(&mut entry.watched) {
            self.unwatch(state, id, watched);
        }
        if let Some(deadline) = entry.deadline {
            state.deadlines.remove(&(deadline, id));
        }
        if let Some((place, _)) = entry.ready
            && let Some(queue) = state.queues.get_mut(&Class::of(&entry.task))
        {
            queue.ready.remove(&place);
        }
        if state.has_nothing_to_poll() && state.is_polling {
            self.wake();
        }
        Some(entry)
    }

    /// Has an execution run, whose last fence has just signalled.
    fn enqueue(self: &Arc<Self>, state: &mut State, id: u64, signalled: Instant) -> Result<()> {
        let Some(entry) = state.entries.get_mut(&id) else { return Ok(()) };
        let class = Class::of(&entry.task);
        let queue = state.queues.entry(class).or_default();
        entry.ready = Some((queue.next, signalled));
        queue.ready.insert(queue.next, id);
        queue.next += 1;
        let sooner = entry.task.deadline_after(signalled);
        let has_deadline = entry.deadline.is_some();
        // A worker that has been woken counts as idle until it runs.
        let has_worker = if queue.ready.len() <= queue.idle {
            queue.wake.notify_one();
            true
        } else if queue.workers < self.threads {
            let shared = Arc::clone(self);
            let spawned = thread::Builder::new()
                .name("nnhal-fenced".to_owned())
                .spawn(move || shared.work(class));
            match spawned {
                Ok(_) => {
                    queue.workers += 1;
                    true
                }
                Err(_) if queue.workers > 0 => false,
                Err(error) => {
                    state.queues.remove(&class);
                    return Err(Error::new(ErrorStatus::ResourceExhaustedTransient, error));
                }
            }
        } else {
            false
        };
        if !has_worker || has_deadline {
            state.set_deadline(id, sooner);
        }
        Ok(())
    }

    /// Starts the thread that waits, or sees to it that it knows of this execution's deadline.
    fn poll_if_needed(self: &Arc<Self>, state: &mut State, id: u64) -> Result<()> {
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
            .map_err(|error| Error::new(ErrorStatus::ResourceExhaustedTransient, error))?;
        state.is_polling = true;
        Ok(())
    }

    fn wake(&self) {
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
                let idle = state.has_nothing_to_poll().then_some(IDLE);
                first.or(idle).map(timespec)
            };
            events.clear();
            let waited = epoll::wait(
                &poller.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            );
            if let Err(error) = waited
                && error != Errno::INTR
            {
                tracing::error!(%error, "fences cannot be waited for");
                thread::sleep(IDLE);
            }
            let seen = Instant::now();
            for (entry, error) in self.handle(&events, seen) {
                let _ = catch_unwind(AssertUnwindSafe(|| entry.task.end(Err(error))));
            }
            let mut state = self.lock();
            if events.is_empty() && waited.is_ok() && state.has_nothing_to_poll() {
                state.is_polling = false;
                return;
            }
        }
    }

    /// Does what events ask for. Those that have ended with that are given back, to be ended without
    /// the lock. Failure goes before success, success before being cancelled, and that before the
    /// deadline, as in [`SyncFence::wait_all`].
    fn handle(self: &Arc<Self>, events: &[epoll::Event], seen: Instant) -> Vec<(Entry, Error)> {
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
                        if is_ready && let Err(error) = self.enqueue(&mut state, id, seen) {
                            ended.extend(self.take(&mut state, id).zip(Some(error)));
                        }
                    }
                }
            }
        }
        for id in stopped {
            if let Some(entry) = self.take(&mut state, id) {
                let error = match entry.ready {
                    None => FenceWaitError::Stopped { pending: entry.unsignalled }.into(),
                    Some(_) => EngineError::from(Interruption::Cancelled).into(),
                };
                ended.push((entry, error));
            }
        }
        // With a full buffer there may be fences that have signalled and were not seen.
        while events.len() < EVENTS
            && let Some(&(deadline, id)) = state.deadlines.first()
            && deadline.has_passed()
            && let Some(entry) = self.take(&mut state, id)
        {
            let error = match entry.ready {
                None => FenceWaitError::DeadlinePassed { pending: entry.unsignalled }.into(),
                Some(_) => EngineError::from(Interruption::DeadlinePassed).into(),
            };
            ended.push((entry, error));
        }
        ended
    }

    /// What a thread that runs executions does.
    fn work(&self, class: Class) {
        let mut state = self.lock();
        loop {
            // It is there as long as it has a thread.
            let Some(queue) = state.queues.get_mut(&class) else { return };
            let next = queue.ready.first_key_value().map(|(_, id)| *id);
            if let Some(entry) = next.and_then(|id| self.take(&mut state, id)) {
                drop(state);
                let signalled = entry.ready.map_or_else(Instant::now, |(_, signalled)| signalled);
                let _ = catch_unwind(AssertUnwindSafe(|| entry.task.run(signalled)));
                state = self.lock();
                continue;
            }
            let Some(queue) = state.queues.get_mut(&class) else { return };
            queue.idle += 1;
            let wake = Arc::clone(&queue.wake);
            let waited = wake.wait_timeout(state, IDLE);
            let timeout;
            (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            let Some(queue) = state.queues.get_mut(&class) else { return };
            queue.idle -= 1;
            if timeout.timed_out() && queue.ready.is_empty() {
                queue.workers -= 1;
                if queue.workers == 0 {
                    state.queues.remove(&class);
                }
                return;
            }
        }
    }
}

impl State {
    fn has_nothing_to_poll(&self) -> bool {
        self.watches.is_empty() && self.deadlines.is_empty()
    }

    /// Ends an execution that no one runs by then.
    fn set_deadline(&mut self, id: u64, deadline: Option<Deadline>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let before = std::mem::replace(&mut entry.deadline, deadline);
        if let Some(before) = before {
            self.deadlines.remove(&(before, id));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, id));
        }
    }
}

fn cannot_be_watched(role: Role, error: Errno) -> Error {
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
