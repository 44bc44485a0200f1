//! [`Background`]: work that other threads do, and that may have to wait for something first.
//!
//! One thread waits for the fences of all jobs together, with epoll. It also ends jobs whose deadline
//! passes or that are cancelled before they run. What has nothing left to wait for is run by a few
//! threads for each class of jobs ([`Job::Class`]), so that many jobs of one class, each of which
//! may block while it runs, do not keep jobs of another class from beginning (contract: CONC-4). A job
//! holds no thread while it waits. So jobs may wait for fences that other jobs signal, however many
//! and in whatever order, and still come to an end.
//!
//! Threads start when there is something for them and end when there has been nothing for a while.
//!
//! ```
//! use nnhal_hal::SyncFence;
//! use nnhal_hal::background::{Background, Job, Limits, NotRun};
//! use std::sync::mpsc::{Sender, channel};
//! use std::time::Instant;
//!
//! struct Answer(Sender<Result<i32, String>>);
//!
//! impl Job for Answer {
//!     type Class = ();
//!
//!     fn class(&self) {}
//!
//!     fn run(self, _ready: Instant) {
//!         self.0.send(Ok(42)).unwrap();
//!     }
//!
//!     fn end(self, why: NotRun) {
//!         self.0.send(Err(why.to_string())).unwrap();
//!     }
//! }
//!
//! let background = Background::new("example", Limits::default());
//! let (sender, receiver) = channel();
//! let (signal, fence) = SyncFence::pair()?;
//! background.start(Answer(sender.clone()), vec![(0, fence)])?;
//! assert!(receiver.try_recv().is_err());
//! signal.signal();
//! assert_eq!(receiver.recv()?, Ok(42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod poll;
#[cfg(test)]
mod tests;

use crate::cancellation::Cancellation;
use crate::codes::ErrorStatus;
use crate::error::{Error, Result};
use crate::fence::{FenceWaitError, SyncFence};
use crate::time::Deadline;
use poll::{Poller, Role, Watch};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Something to be done in the background. Once it has been started exactly one of
/// [`run`](Self::run) and [`end`](Self::end) is called, on another thread.
pub trait Job: Send + Sized + 'static {
    /// Jobs of the same class share threads, and those of others do not take them away.
    type Class: Copy + Ord + Send + 'static;

    /// The class; always the same.
    fn class(&self) -> Self::Class;

    /// What cancels it while it waits.
    fn switches(&self) -> Vec<Cancellation> {
        Vec::new()
    }

    /// When it is to be ended if it still waits.
    fn deadline(&self) -> Option<Deadline> {
        None
    }

    /// The same from when it is ready on, given when that was.
    fn deadline_after(&self, _ready: Instant) -> Option<Deadline> {
        self.deadline()
    }

    /// Does it, given when it had nothing left to wait for but a thread. Whoever panics here ends
    /// the job and harms no other.
    fn run(self, ready: Instant);

    /// Ends it without doing it. This is to be quick: other jobs wait for the thread.
    fn end(self, why: NotRun);
}

/// How much goes on at once, for each class of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Threads that run jobs, at least one.
    pub threads: usize,
    /// Jobs that wait, for fences or for a thread; at least one. More are refused.
    pub waiting: usize,
    /// How long a thread without work stays.
    pub idle: Duration,
}

impl Default for Limits {
    /// 64 threads, 4096 waiting jobs, 2 s.
    fn default() -> Self {
        Self { threads: 64, waiting: 4096, idle: Duration::from_secs(2) }
    }
}

/// Why a job was not started, beside what may be wrong with its fences. It has been dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Too many wait already.
    #[error("{waiting} jobs of its class wait already, of at most {limit}")]
    Full {
        /// The jobs of the class that wait.
        waiting: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The system gives no thread, and there is none that could do it later.
    #[error("no thread can be started: {0}")]
    NoThread(String),
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::new(ErrorStatus::ResourceExhaustedTransient, refused)
    }
}

/// Why a job that was started has ended without being run.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NotRun {
    /// While it waited for fences: one failed, its deadline passed, it was cancelled.
    #[error(transparent)]
    Fences(#[from] FenceWaitError),
    /// It was cancelled while it waited for a thread.
    #[error("it was cancelled while it waited for a thread")]
    Cancelled,
    /// Its deadline passed while it waited for a thread.
    #[error("its deadline passed while it waited for a thread")]
    DeadlinePassed,
    /// Its fences have signalled, and there is no thread.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl From<NotRun> for Error {
    fn from(why: NotRun) -> Self {
        match why {
            NotRun::Fences(error) => error.into(),
            NotRun::Refused(refused) => refused.into(),
            NotRun::Cancelled => Self::failure(why),
            NotRun::DeadlinePassed => Self::new(ErrorStatus::MissedDeadlineTransient, why),
        }
    }
}

/// Runs jobs in the background, see the [module](self). Dropping it waits for nothing: what was
/// started goes on, and what waits is run in its order (contract: CONC-3).
pub struct Background<J: Job>(Arc<Shared<J>>);

struct Shared<J: Job> {
    /// Of the threads that run jobs.
    name: &'static str,
    limits: Limits,
    poller: OnceLock<Poller>,
    state: Mutex<State<J>>,
}

struct State<J: Job> {
    next_id: u64,
    /// Those that no thread has taken yet.
    entries: HashMap<u64, Entry<J>>,
    /// By descriptor.
    watches: HashMap<RawFd, Watch>,
    deadlines: BTreeSet<(Deadline, u64)>,
    /// Those that have jobs or threads.
    queues: BTreeMap<J::Class, Queue>,
    is_polling: bool,
    is_closed: bool,
}

/// The jobs of one class.
#[derive(Default)]
struct Queue {
    /// Something is ready, or no more comes.
    wake: Arc<Condvar>,
    /// Jobs that are ready to run, in the order in which they became so.
    ready: BTreeMap<u64, u64>,
    next: u64,
    /// Jobs that wait, for whatever.
    waiting: usize,
    workers: usize,
    idle: usize,
}

/// A job that no one runs yet.
struct Entry<J> {
    job: Box<J>,
    /// Fences that have not signalled.
    unsignalled: usize,
    watched: Vec<(RawFd, Role)>,
    deadline: Option<Deadline>,
    /// Its place in the queue, and since when it has that.
    ready: Option<(u64, Instant)>,
}

impl<J: Job> Background<J> {
    /// No jobs and no threads yet. Threads that run jobs have this name, of which Linux shows 15
    /// bytes.
    pub fn new(name: &'static str, limits: Limits) -> Self {
        let state = State {
            next_id: 0,
            entries: HashMap::new(),
            watches: HashMap::new(),
            deadlines: BTreeSet::new(),
            queues: BTreeMap::new(),
            is_polling: false,
            is_closed: false,
        };
        let Limits { threads, waiting, idle } = limits;
        let limits = Limits { threads: threads.max(1), waiting: waiting.max(1), idle };
        let (poller, state) = (OnceLock::new(), Mutex::new(state));
        Self(Arc::new(Shared { name, limits, poller, state }))
    }

    /// Runs a job once these fences have signalled, which come with the indexes that a
    /// [`FenceWaitError`] is to name: those that [`SyncFence::unsignalled`] gives.
    ///
    /// # Errors
    /// [`Refused`]; `INVALID_ARGUMENT` for a fence that cannot be waited for;
    /// `RESOURCE_EXHAUSTED_TRANSIENT` without descriptors. The job has been dropped then.
    pub fn start(&self, job: J, fences: Vec<(usize, SyncFence)>) -> Result<()> {
        self.0.start(Box::new(job), fences)
    }

    /// Threads that run jobs of this class.
    #[cfg(test)]
    fn workers(&self, class: J::Class) -> usize {
        self.0.lock().queues.get(&class).map_or(0, |queue| queue.workers)
    }
}

impl<J: Job> Drop for Background<J> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        for queue in state.queues.values() {
            queue.wake.notify_all();
        }
        if state.is_polling {
            self.0.wake();
        }
    }
}

impl<J: Job> fmt::Debug for Background<J> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Background")
            .field("name", &self.0.name)
            .field("limits", &self.0.limits)
            .field("waiting", &self.0.lock().entries.len())
            .finish_non_exhaustive()
    }
}

impl<J: Job> Shared<J> {
    /// Nothing is left half done under the lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, job: Box<J>, fences: Vec<(usize, SyncFence)>) -> Result<()> {
        let class = job.class();
        let (unsignalled, deadline) = (fences.len(), job.deadline());
        let mut state = self.lock();
        let queue = state.queues.entry(class).or_default();
        let Limits { waiting: limit, threads, .. } = self.limits;
        if queue.waiting >= limit {
            let waiting = queue.waiting;
            drop(state);
            return Err(Refused::Full { waiting, limit }.into());
        }
        queue.waiting += 1;
        let has_worker = queue.idle > queue.ready.len() || queue.workers < threads;
        let id = state.next_id;
        state.next_id += 1;
        let entry = Entry { job, unsignalled, watched: Vec::new(), deadline: None, ready: None };
        state.entries.insert(id, entry);
        let begun = (|| {
            if unsignalled > 0 || !has_worker {
                self.watch(&mut state, id, fences)?;
                state.set_deadline(id, deadline);
            }
            if unsignalled == 0 {
                self.enqueue(&mut state, id, Instant::now())?;
            }
            self.poll_if_needed(&mut state, id)
        })();
        // Dropped after the lock: what a job holds may do anything then.
        let refused = if begun.is_err() { self.take(&mut state, id) } else { None };
        drop(state);
        drop(refused);
        begun
    }

    /// Takes a job out, to run it or to end it.
    fn take(&self, state: &mut State<J>, id: u64) -> Option<Entry<J>> {
        let mut entry = state.entries.remove(&id)?;
        for watched in std::mem::take(&mut entry.watched) {
            self.unwatch(state, id, watched);
        }
        if let Some(deadline) = entry.deadline {
            state.deadlines.remove(&(deadline, id));
        }
        let class = entry.job.class();
        if let Some(queue) = state.queues.get_mut(&class) {
            queue.waiting -= 1;
            if let Some((place, _)) = entry.ready {
                queue.ready.remove(&place);
            }
        }
        state.forget_if_unused(class);
        if state.has_nothing_to_poll() && state.is_polling {
            self.wake();
        }
        Some(entry)
    }

    /// Has a job run that has been ready since then.
    fn enqueue(
        self: &Arc<Self>,
        state: &mut State<J>,
        id: u64,
        since: Instant,
    ) -> Result<(), Refused> {
        let Some(entry) = state.entries.get_mut(&id) else { return Ok(()) };
        let class = entry.job.class();
        let queue = state.queues.entry(class).or_default();
        entry.ready = Some((queue.next, since));
        queue.ready.insert(queue.next, id);
        queue.next += 1;
        let deadline = entry.job.deadline_after(since);
        let has_deadline = entry.deadline.is_some();
        // A worker that has been woken counts as idle until it runs.
        let has_worker = if queue.ready.len() <= queue.idle {
            queue.wake.notify_one();
            true
        } else if queue.workers < self.limits.threads {
            let shared = Arc::clone(self);
            let spawned =
                thread::Builder::new().name(self.name.to_owned()).spawn(move || shared.work(class));
            match spawned {
                Ok(_) => {
                    queue.workers += 1;
                    true
                }
                // Others will come to it.
                Err(_) if queue.workers > 0 => false,
                Err(error) => return Err(Refused::NoThread(error.to_string())),
            }
        } else {
            false
        };
        if !has_worker || has_deadline {
            state.set_deadline(id, deadline);
        }
        Ok(())
    }

    /// What a thread that runs jobs does.
    fn work(&self, class: J::Class) {
        let mut state = self.lock();
        loop {
            // It is there as long as it has a thread.
            let Some(queue) = state.queues.get_mut(&class) else { return };
            let next = queue.ready.first_key_value().map(|(_, id)| *id);
            if let Some(entry) = next.and_then(|id| self.take(&mut state, id)) {
                drop(state);
                let since = entry.ready.map_or_else(Instant::now, |(_, since)| since);
                let _ = catch_unwind(AssertUnwindSafe(|| entry.job.run(since)));
                state = self.lock();
                continue;
            }
            let is_closed = state.is_closed;
            let Some(queue) = state.queues.get_mut(&class) else { return };
            let mut timed_out = is_closed;
            if !is_closed {
                queue.idle += 1;
                let wake = Arc::clone(&queue.wake);
                let waited = wake.wait_timeout(state, self.limits.idle);
                let timeout;
                (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                timed_out = timeout.timed_out();
            }
            let Some(queue) = state.queues.get_mut(&class) else { return };
            queue.idle -= usize::from(!is_closed);
            if timed_out && queue.ready.is_empty() {
                queue.workers -= 1;
                state.forget_if_unused(class);
                return;
            }
        }
    }
}

impl<J: Job> State<J> {
    fn has_nothing_to_poll(&self) -> bool {
        self.watches.is_empty() && self.deadlines.is_empty()
    }

    /// Ends a job that no one runs by then.
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

    /// Classes come and go, as clients do.
    fn forget_if_unused(&mut self, class: J::Class) {
        if self.queues.get(&class).is_some_and(|queue| queue.waiting == 0 && queue.workers == 0) {
            self.queues.remove(&class);
        }
    }
}
