//! [`Team`]: the threads that share the tasks of one kernel after the other.
#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long an idle helper looks for work before it sleeps. Steps of one execution follow each other
/// within a microsecond or two; waking a sleeper costs tens of them.
const PATIENCE: Duration = Duration::from_micros(40);

/// Looks at the clock once in so many looks for work.
const LOOKS_PER_CLOCK: u32 = 64;

/// A job on its way to the helpers: a closure that lives as long as [`Team::run`] is inside it.
struct Job<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    tasks: usize,
}

/// What the caller and the helpers share.
struct Shared {
    /// The number of the round, times [`ONE_ROUND`], with [`DISSOLVED`] and [`OPEN`], and in the
    /// lowest bits the number of helpers that take part.
    state: AtomicU64,
    /// The job of this round; valid while the round is open or helpers take part.
    job: AtomicPtr<Job<'static>>,
    /// The next task that nobody has taken.
    next: AtomicUsize,
    /// By helper: whether it sleeps, or is about to.
    asleep: Vec<AtomicBool>,
    /// What the first task that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Helpers that take part in a round.
const HELPERS: u64 = 0xFFFF;
/// Helpers may still join the round.
const OPEN: u64 = 1 << 16;
/// There will be no more rounds.
const DISSOLVED: u64 = 1 << 17;
const ONE_ROUND: u64 = 1 << 18;

/// A thread that runs jobs, and a number of helpers. Helpers that have nothing to do look for work
/// for a few dozen microseconds and then sleep.
///
/// A team serves one execution at a time; who runs several at once has several teams.
pub struct Team {
    shared: Arc<Shared>,
    helpers: Vec<(Thread, Option<JoinHandle<()>>)>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Team").field("threads", &self.threads()).finish()
    }
}

impl Team {
    /// The calling thread alone.
    pub fn alone() -> Self {
        Self::with_helpers(0)
    }

    /// So many threads, the calling one among them. Fewer if the system does not grant more.
    pub fn new(threads: usize) -> Self {
        Self::with_helpers(threads.saturating_sub(1))
    }

    fn with_helpers(helpers: usize) -> Self {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            next: AtomicUsize::new(0),
            asleep: (0..helpers).map(|_| AtomicBool::new(false)).collect(),
            panic: Mutex::new(None),
        });
        let helpers = (0..helpers.min(usize::from(u16::MAX)))
            .map_while(|index| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name(format!("nnhal-team-{}", index + 1))
                    .spawn(move || help(&shared, index))
                    .ok()
            })
            .map(|handle| (handle.thread().clone(), Some(handle)))
            .collect();
        Self { shared, helpers }
    }

    /// How many threads there are, the caller's among them.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Calls `work` once with each number below `tasks`, in any order, on all threads, and returns
    /// when all calls have. Tasks of similar size, a few for each thread, share best.
    ///
    /// # Panics
    /// If a task does; the others are finished first.
    pub fn run(&mut self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        if self.helpers.is_empty() || tasks <= 1 {
            (0..tasks).for_each(work);
            return;
        }
        let shared = &*self.shared;
        let job = Job { work, tasks };
        shared.next.store(0, Ordering::Relaxed);
        shared.job.store((&raw const job).cast_mut().cast(), Ordering::Relaxed);
        // Sequentially consistent, as the helper's store to `asleep` and its look at the state: of
        // the two, one sees the other.
        shared.state.fetch_add(ONE_ROUND | OPEN, Ordering::SeqCst);
        for ((helper, _), asleep) in self.helpers.iter().zip(&shared.asleep) {
            if asleep.load(Ordering::SeqCst) {
                helper.unpark();
            }
        }
        take_tasks(shared, &job);
        // Those who have not come by now, being asleep, are not waited for. Those who have must be
        // done with the job before it goes out of scope.
        shared.state.fetch_and(!OPEN, Ordering::Relaxed);
        let mut looks = 0_u32;
        while shared.state.load(Ordering::Acquire) & HELPERS != 0 {
            looks = looks.wrapping_add(1);
            // With more threads than processors a helper may not be running.
            if looks.is_multiple_of(1024) {
                std::thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
        if let Some(said) = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            resume_unwind(said);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.state.fetch_or(DISSOLVED, Ordering::SeqCst);
        for (helper, handle) in &mut self.helpers {
            helper.unpark();
            // A helper's panics were caught and have been reported by `run`.
            let _ = handle.take().map(JoinHandle::join);
        }
    }
}

/// Runs tasks until none is left; keeps what the first one that panics says.
fn take_tasks(shared: &Shared, job: &Job<'_>) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        loop {
            let task = shared.next.fetch_add(1, Ordering::Relaxed);
            if task >= job.tasks {
                break;
            }
            (job.work)(task);
        }
    }));
    if let Err(said) = result {
        shared.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(said);
        // The remaining tasks are still somebody's: this thread goes on with them.
        take_tasks(shared, job);
    }
}

fn help(shared: &Shared, index: usize) {
    let mut round = 0;
    loop {
        let state = wait_for_round(shared, index, round);
        if state & DISSOLVED != 0 {
            return;
        }
        round = state / ONE_ROUND;
        if !join(shared, state) {
            continue;
        }
        // SAFETY: `run` stored the address before it opened the round that was joined, and leaves
        // its job alone until nobody takes part in it.
        let job = unsafe { &*shared.job.load(Ordering::Relaxed) };
        take_tasks(shared, job);
        shared.state.fetch_sub(1, Ordering::Release);
    }
}

/// Takes part in the round of `state`, if it is still open.
fn join(shared: &Shared, mut state: u64) -> bool {
    let round = state / ONE_ROUND;
    while state & OPEN != 0 && state / ONE_ROUND == round {
        match shared.state.compare_exchange_weak(
            state,
            state + 1,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => return true,
            Err(now) => state = now,
        }
    }
    false
}

/// Waits for another round than `seen`, or the end, and gives the state.
fn wait_for_round(shared: &Shared, index: usize, seen: u64) -> u64 {
    let news = || {
        let state = shared.state.load(Ordering::SeqCst);
        (state / ONE_ROUND != seen || state & DISSOLVED != 0).then_some(state)
    };
    let mut since = None;
    let mut looks = 0_u32;
    loop {
        if let Some(state) = news() {
            return state;
        }
        looks = looks.wrapping_add(1);
        if !looks.is_multiple_of(LOOKS_PER_CLOCK) {
            std::hint::spin_loop();
            continue;
        }
        let start = *since.get_or_insert_with(Instant::now);
        if start.elapsed() < PATIENCE {
            continue;
        }
        shared.asleep[index].store(true, Ordering::SeqCst);
        while news().is_none() {
            std::thread::park();
        }
        shared.asleep[index].store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for threads in [1, 2, 3, 5] {
            let mut team = Team::new(threads);
            assert_eq!(team.threads(), threads);
            for tasks in [0, 1, 2, 7, 100] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                team.run(tasks, &|task| {
                    counts[task].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn jobs_follow_each_other_with_and_without_sleep() {
        let mut team = Team::new(2);
        let sum = AtomicUsize::new(0);
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        for round in 0..rounds {
            team.run(4, &|task| {
                sum.fetch_add(task, Ordering::Relaxed);
            });
            if round % 200 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(sum.load(Ordering::Relaxed), 6 * rounds);
    }

    #[test]
    fn a_panic_reaches_the_caller_after_the_other_tasks() {
        let mut team = Team::new(2);
        let done = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            team.run(10, &|task| {
                assert_ne!(task, 3, "three");
                done.fetch_add(1, Ordering::Relaxed);
            });
        }));
        assert!(caught.is_err());
        assert_eq!(done.load(Ordering::Relaxed), 9);
        // And it works on.
        team.run(10, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 19);
    }
}
