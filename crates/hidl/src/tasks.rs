//! [`Tasks`]: what goes on in the background.
//!
//! Every asynchronous method is a task here, and tasks are jobs of a [`Background`]. Each [`Kind`] and
//! priority has threads of its own, so that many tasks of low priority, or many models that are prepared,
//! each waiting for a processor, do not keep one of high priority, or an execution, from asking for
//! it (contract: CONC-4). Who computes is the driver's affair.

use nnhal_hal::background::{Background, Job, NotRun};
use nnhal_hal::{Deadline, Priority, Result};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

pub use nnhal_hal::background::{Limits, Refused};

/// What a task is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Preparing or loading a model.
    Preparing,
    /// An execution.
    Executing,
}

/// How many models are prepared at a time, of each priority: each takes a thread and, for as long, processors and memory
/// that no execution gets.
pub const PREPARED_AT_ONCE: usize = 8;

/// Runs tasks in the background, each kind and priority within its own limits. Dropping it waits for
/// nothing: what was started goes on, and what waits is run in its order (contract: CONC-3).
#[derive(Debug)]
pub struct Tasks {
    preparing: Background<Task>,
    executing: Background<Task>,
}

struct Task {
    priority: Priority,
    deadline: Option<Deadline>,
    work: Box<Work>,
}

/// What a task does, given why it is not to be done, if it is not.
type Work = dyn FnOnce(Option<NotRun>) + Send;

impl Job for Task {
    type Class = Priority;

    fn class(&self) -> Self::Class {
        self.priority
    }

    fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    fn run(self, _: Instant) {
        self.conclude(None);
    }

    fn end(self, why: NotRun) {
        tracing::debug!(%why, "a background task was given up");
        self.conclude(Some(why));
    }
}

impl Task {
    fn conclude(self, not_run: Option<NotRun>) {
        if catch_unwind(AssertUnwindSafe(|| (self.work)(not_run))).is_err() {
            tracing::error!("a background task has panicked");
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Task({:?})", self.priority)
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Tasks {
    /// No threads yet. Of those that prepare there are [`PREPARED_AT_ONCE`] at most.
    pub fn new(limits: Limits) -> Self {
        let few = Limits { threads: limits.threads.min(PREPARED_AT_ONCE), ..limits };
        let [preparing, executing] = [few, limits].map(|it| Background::new("nnhal-task", it));
        Self { preparing, executing }
    }

    /// Runs a task in the background. One that panics ends, and harms no one.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED_TRANSIENT`, see [`Refused`]. The task is dropped before this returns.
    pub fn spawn(
        &self,
        kind: Kind,
        priority: Priority,
        task: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        // What is not to be done is dropped.
        self.spawn_until(kind, priority, None, move |not_run| {
            if not_run.is_none() {
                task();
            }
        })
    }

    /// The same; where it still waits for a thread at the deadline it is given why it is not to be done.
    ///
    /// # Errors
    /// As [`Tasks::spawn`].
    pub fn spawn_until(
        &self,
        kind: Kind,
        priority: Priority,
        deadline: Option<Deadline>,
        task: impl FnOnce(Option<NotRun>) + Send + 'static,
    ) -> Result<()> {
        let background = match kind {
            Kind::Preparing => &self.preparing,
            Kind::Executing => &self.executing,
        };
        background.start(Task { priority, deadline, work: Box::new(task) }, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::ErrorStatus;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier, mpsc};
    use std::thread;
    use std::time::Duration;

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
    }

    #[test]
    fn conc_4_beyond_the_limit_of_a_kind_and_priority_tasks_are_refused_and_dropped() {
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
        let mut refused = Vec::new();
        for _ in 0..3 {
            let (sender, held) = (sender.clone(), Arc::clone(&held));
            let task = move || {
                let _held = held;
                sender.send(()).unwrap();
            };
            refused.extend(tasks.spawn(Kind::Executing, Priority::Medium, task).err());
        }
        assert_eq!((refused.len(), Arc::strong_count(&held)), (1, 3));
        assert_eq!(refused[0].status(), ErrorStatus::ResourceExhaustedTransient);
        // The other priorities and kinds have capacity, and threads.
        let (other, others) = mpsc::channel();
        let of = [(Kind::Executing, Priority::High), (Kind::Preparing, Priority::Medium)];
        for (kind, priority) in of {
            let other = other.clone();
            tasks.spawn(kind, priority, move || other.send(()).unwrap()).unwrap();
            others.recv_timeout(LONG).unwrap();
        }
        assert!(receiver.try_recv().is_err());
        gate.wait();
        for _ in 0..2 {
            receiver.recv_timeout(LONG).unwrap();
        }
    }

    #[test]
    fn conc_4_few_models_are_prepared_at_a_time() {
        let tasks = Tasks::new(limits(64, 1000));
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (sender, receiver) = mpsc::channel();
        for _ in 0..40 {
            let (sender, now, most) = (sender.clone(), Arc::clone(&now), Arc::clone(&most));
            let task = move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(5));
                now.fetch_sub(1, Ordering::SeqCst);
                sender.send(()).unwrap();
            };
            tasks.spawn(Kind::Preparing, Priority::Medium, task).unwrap();
        }
        for _ in 0..40 {
            receiver.recv_timeout(LONG).unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), PREPARED_AT_ONCE);
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
