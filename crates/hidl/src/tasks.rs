//! [`Tasks`]: threads for what goes on in the background.
//!
//! Every asynchronous method is a task here. Threads are started as tasks come, up to a limit;
//! beyond it tasks wait in the order in which they came, and beyond a second limit they are refused.
//! Threads that have had nothing to do for a while end.
//!
//! Each [`Kind`] and priority has threads of its own, so that no crowd of low tasks, or of models that
//! are prepared, each waiting for its turn at the processor, keeps a high one, or an execution, from
//! even asking for it (contract: CONC-4). Who computes is the driver's affair.

use nnhal_hal::Priority;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How much goes on at once, for each kind and priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Threads.
    pub threads: usize,
    /// Tasks that wait for a thread.
    pub waiting: usize,
    /// How long a thread without task waits for one.
    pub idle: Duration,
}

impl Default for Limits {
    /// 64 threads, 4096 waiting tasks, 2 s.
    fn default() -> Self {
        Self { threads: 64, waiting: 4096, idle: Duration::from_secs(2) }
    }
}

/// Why a task was not started. It has been dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many wait already.
    #[error("{0} tasks wait already")]
    Full(usize),
    /// The system gives no thread, and there is none that could do it later.
    #[error("no thread can be started: {0}")]
    NoThread(String),
}

type Task = Box<dyn FnOnce() + Send>;

/// What a task is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Preparing or loading a model.
    Preparing,
    /// An execution.
    Executing,
}

/// Runs tasks in the background. Dropping it waits for nothing: what was started goes on, and what
/// waits gets its turn (contract: CONC-3).
#[derive(Debug)]
pub struct Tasks {
    preparing: Rooms,
    executing: Rooms,
}

/// The threads of one kind of tasks.
#[derive(Debug)]
struct Rooms {
    low: Room,
    medium: Room,
    high: Room,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Tasks {
    /// No threads yet.
    pub fn new(limits: Limits) -> Self {
        let room = || Room(Arc::new(Shared::new(limits)));
        let rooms = || Rooms { low: room(), medium: room(), high: room() };
        Self { preparing: rooms(), executing: rooms() }
    }

    /// Runs a task in the background. One that panics ends, and harms no one.
    ///
    /// # Errors
    /// See [`Refused`]. The task is dropped before this returns.
    pub fn spawn(
        &self,
        kind: Kind,
        priority: Priority,
        task: impl FnOnce() + Send + 'static,
    ) -> Result<(), Refused> {
        let rooms = match kind {
            Kind::Preparing => &self.preparing,
            Kind::Executing => &self.executing,
        };
        let room = match priority {
            Priority::Low => &rooms.low,
            Priority::Medium => &rooms.medium,
            Priority::High => &rooms.high,
        };
        room.0.spawn(Box::new(task))
    }
}

/// The threads of one priority.
#[derive(Debug)]
struct Room(Arc<Shared>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.wake.notify_all();
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    limits: Limits,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Task>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { waiting, threads, idle, closed } = self;
        formatter
            .debug_struct("State")
            .field("waiting", &waiting.len())
            .field("threads", threads)
            .field("idle", idle)
            .field("closed", closed)
            .finish()
    }
}

impl Shared {
    fn new(limits: Limits) -> Self {
        Self { state: Mutex::default(), wake: Condvar::new(), limits }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Self>, task: Task) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.waiting.len() >= self.limits.waiting.max(1) {
            return Err(Refused::Full(state.waiting.len()));
        }
        state.waiting.push_back(task);
        // A thread that has been woken counts as idle until it runs.
        if state.waiting.len() <= state.idle {
            self.wake.notify_one();
            return Ok(());
        }
        if state.threads >= self.limits.threads.max(1) {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let started = thread::Builder::new()
            .name("nnhal-task".to_owned())
            .spawn(move || shared.work())
            .map(drop);
        match started {
            Ok(()) => state.threads += 1,
            Err(error) if state.threads == 0 => {
                let task = state.waiting.pop_back();
                // Outside the lock: what a task holds may do anything when it is dropped.
                drop(state);
                drop(task);
                return Err(Refused::NoThread(error.to_string()));
            }
            // Others will come to it.
            Err(_) => {}
        }
        Ok(())
    }

    /// What a thread does.
    fn work(&self) {
        while let Some(task) = self.next() {
            // A task takes nothing of ours with it when it panics.
            if catch_unwind(AssertUnwindSafe(task)).is_err() {
                tracing::error!("a background task has panicked");
            }
        }
    }

    /// The next task; `None` if the thread is not needed any more.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.waiting.pop_front() {
                return Some(task);
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let (guard, timeout) = self
                .wake
                .wait_timeout(state, self.limits.idle)
                .unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if timeout.timed_out() && state.waiting.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};

    const LONG: Duration = Duration::from_secs(20);

    fn limits(threads: usize, waiting: usize) -> Limits {
        Limits { threads, waiting, idle: Duration::from_millis(20) }
    }

    #[test]
    fn every_task_runs_once_and_threads_stay_few() {
        let tasks = Tasks::new(limits(4, 100_000));
        let (sender, receiver) = mpsc::channel();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for number in 0..10_000 {
            let (sender, now, most) = (sender.clone(), Arc::clone(&now), Arc::clone(&most));
            let task = move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                now.fetch_sub(1, Ordering::SeqCst);
                sender.send(number).unwrap();
            };
            tasks.spawn(Kind::Executing, Priority::Medium, task).unwrap();
        }
        let mut seen: Vec<i32> =
            (0..10_000).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..10_000));
        assert!(most.load(Ordering::SeqCst) <= 4);
        assert!(tasks.executing.medium.0.lock().threads <= 4);
    }

    #[test]
    fn threads_idle_out_and_come_back() {
        let tasks = Tasks::new(limits(4, 10));
        let (sender, receiver) = mpsc::channel();
        for _ in 0..2 {
            let sender = sender.clone();
            tasks.spawn(Kind::Executing, Priority::Low, move || sender.send(()).unwrap()).unwrap();
            receiver.recv_timeout(LONG).unwrap();
            while tasks.executing.low.0.lock().threads > 0 {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn beyond_the_limit_tasks_are_refused_and_dropped() {
        let tasks = Tasks::new(limits(1, 2));
        let gate = Arc::new(Barrier::new(2));
        let (entered, has_entered) = mpsc::channel();
        let waiting = Arc::clone(&gate);
        let blocks = move || {
            entered.send(()).unwrap();
            waiting.wait();
        };
        tasks.spawn(Kind::Executing, Priority::Medium, blocks).unwrap();
        has_entered.recv_timeout(LONG).unwrap();
        let (sender, receiver) = mpsc::channel();
        let held = Arc::new(());
        let mut refused = 0;
        for _ in 0..3 {
            let (sender, held) = (sender.clone(), Arc::clone(&held));
            let task = move || {
                let _held = held;
                sender.send(()).unwrap();
            };
            refused += usize::from(tasks.spawn(Kind::Executing, Priority::Medium, task).is_err());
        }
        assert_eq!((refused, Arc::strong_count(&held)), (1, 3));
        // The other priorities and kinds have room.
        tasks.spawn(Kind::Executing, Priority::High, || ()).unwrap();
        tasks.spawn(Kind::Preparing, Priority::Medium, || ()).unwrap();
        gate.wait();
        for _ in 0..2 {
            receiver.recv_timeout(LONG).unwrap();
        }
    }

    #[test]
    fn a_panic_ends_the_task_and_nothing_else() {
        let tasks = Tasks::new(limits(1, 10));
        let (sender, receiver) = mpsc::channel();
        tasks.spawn(Kind::Executing, Priority::Medium, || panic!("on purpose")).unwrap();
        tasks.spawn(Kind::Executing, Priority::Medium, move || sender.send(()).unwrap()).unwrap();
        receiver.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn conc_3_what_was_started_goes_on_when_the_tasks_are_dropped() {
        let tasks = Tasks::new(limits(1, 10));
        let (sender, receiver) = mpsc::channel();
        for _ in 0..5 {
            let sender = sender.clone();
            let task = move || {
                thread::sleep(Duration::from_millis(2));
                sender.send(()).unwrap();
            };
            tasks.spawn(Kind::Executing, Priority::Medium, task).unwrap();
        }
        drop(tasks);
        for _ in 0..5 {
            receiver.recv_timeout(LONG).unwrap();
        }
    }
}
