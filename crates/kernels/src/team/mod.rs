//! [`Team`]: the threads that share the tasks of one kernel after the other.
#![allow(unsafe_code)]

#[cfg(all(test, loom))]
mod all_orders;
mod processors;
mod share;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;

use processors::Allowed;
pub(crate) use share::part;
use share::{End, MOST_TASKS, Round, Share};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc as StdArc, PoisonError};
use std::time::{Duration, Instant};
use sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, JoinHandle, Mutex, Ordering, Thread, UnsafeCell, pause,
};

/// How long an idle helper looks for work before it sleeps. Steps of one execution follow each other
/// within a microsecond or two, executions within some tens; waking a sleeper costs about as much.
const TIMEOUT: Duration = Duration::from_micros(100);

/// Looks at the clock once in this many looks for work.
const LOOKS_PER_CLOCK: u32 = 64;

/// The target of the spans of tasks, for subscribers that leave them out: a step has several.
pub const TASK_SPANS: &str = "nnhal_kernels::tasks";

/// A closure that exists as long as [`Team::run`] is inside it.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// Two cache lines, which processors fetch together: what different threads write is not to share one.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

/// Says whether to stop. Asked now and then, by whichever thread.
// Not of the `Arc` of `sync`: the caller makes it, who knows nothing of loom.
pub type KeptQuestion = StdArc<dyn Fn() -> bool + Send + Sync>;

/// What is asked whether to go on.
type Question<'a> = &'a (dyn Fn() -> bool + Sync);

/// Whether the tasks that are left are still wanted.
pub struct Stop {
    /// Asked as long as this exists.
    kept: Option<KeptQuestion>,
    /// Written while no round is on, read by whoever has taken a task.
    question: UnsafeCell<Option<Question<'static>>>,
    is_stopped: AtomicBool,
}

impl Stop {
    #[allow(clippy::arc_with_non_send_sync)] // Threads share it as a part of `Shared` only.
    fn new() -> Arc<Padded<Self>> {
        Arc::new(Padded(Self::asking(None)))
    }

    /// For work that no team does.
    pub(crate) fn asking(kept: Option<KeptQuestion>) -> Self {
        Self { kept, question: UnsafeCell::new(None), is_stopped: AtomicBool::new(false) }
    }

    /// Whether what a task has still to do is no longer wanted. To be asked in tasks, once in some
    /// microseconds of work.
    pub(crate) fn is_due(&self) -> bool {
        if self.is_stopped.load(Ordering::Relaxed) {
            return true;
        }
        // SAFETY: there is a reference to it in tasks only, of a round that is on, and in a `Pace` that
        // borrows the team: it is written by who has that exclusively.
        let question = self.question.with(|place| unsafe { *place });
        let is_due = question.is_some_and(|is_over| is_over())
            || self.kept.as_ref().is_some_and(|is_over| is_over());
        if is_due {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        is_due
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stop").field("is_stopped", &self.is_stopped).finish_non_exhaustive()
    }
}

/// Asks [`Stop`] now and then while work is done in a task.
#[derive(Clone)]
pub(crate) struct Pace<'a> {
    stop: &'a Stop,
    done: usize,
    is_over: bool,
}

/// Runs of a single task from one question to the next.
const RUNS_BETWEEN: u32 = 16;

/// This many multiplications take some tens of microseconds, or of plain code a millisecond.
pub(crate) const WORK_BETWEEN: usize = 1 << 20;

/// Elements of a row's block. A multiple of what any kernel takes at once, so that sums go on in the next
/// block as they would in the same one.
pub(crate) const BLOCK: usize = 1 << 17;

impl<'a> Pace<'a> {
    pub(crate) fn new(stop: &'a Stop) -> Self {
        Self { stop, done: 0, is_over: false }
    }

    /// What is asked.
    pub(crate) fn stop(&self) -> &'a Stop {
        self.stop
    }

    /// Whether to stop, before this number of multiplications is done. Once it is yes, it stays so:
    /// loops around the one that asked end too.
    pub(crate) fn is_over(&mut self, work: usize) -> bool {
        self.done = self.done.saturating_add(work);
        if self.done >= WORK_BETWEEN && !self.is_over {
            self.done = 0;
            self.is_over = self.stop.is_due();
        }
        self.is_over
    }

    /// `0..length` in parts that begin at multiples of [`BLOCK`], as long as they are wanted, where each index
    /// is this much work. Most rows are a single part.
    pub(crate) fn blocks(
        &mut self,
        length: usize,
        each: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<'_, 'a> {
        let mut next = 0;
        std::iter::from_fn(move || {
            if next >= length {
                return None;
            }
            let block = next..length.min(next.saturating_add(BLOCK));
            next = block.end;
            (!self.is_over(block.len().saturating_mul(each))).then_some(block)
        })
    }
}

/// What the caller and the helpers share.
struct Shared {
    round: Padded<Announcement>,
    /// Kept where [`Team::run_round`] replaces a team whose numbers of rounds have run out.
    stop: Arc<Padded<Stop>>,
    /// By thread, the caller's first.
    shares: Vec<Padded<Share>>,
    /// By helper.
    states: Vec<Padded<State>>,
    /// What the first task that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The round that is on, written by the caller.
struct Announcement {
    /// Its number, times [`ONE_ROUND`], with [`DISSOLVED`], and how many tasks it has.
    word: AtomicU64,
    /// What its tasks do. Written while all tasks of the round before are done and the next is not
    /// announced, read by whoever has taken a task.
    work: UnsafeCell<Option<Work<'static>>>,
    /// The processor that the caller ran on when it last began an execution.
    processor: AtomicUsize,
}

/// How many tasks there are.
const TASKS: u64 = MOST_TASKS as u64;
/// There will be no more rounds.
const DISSOLVED: u64 = 1 << 16;
const ONE_ROUND: u64 = 1 << 32;

/// Of a helper, written by it.
struct State {
    /// The number of a round, times [`ONE_ROUND`], and how many of its tasks the helper has done.
    done: AtomicU64,
    /// Whether it sleeps, or is about to.
    asleep: AtomicBool,
}

// SAFETY: `work` and `question` are the only parts that are not `Sync`. They are written by who has the
// team, while no helper has a task; helpers read them when they have one. `Share::take` orders the two.
// The helpers that had the same `question` in a team before this one have ended with that.
unsafe impl Sync for Shared {}
// SAFETY: as above; all that it holds may be sent.
unsafe impl Send for Shared {}

/// A thread that runs jobs, and a number of helpers. Helpers that have nothing to do look for work
/// for about a tenth of a millisecond and then sleep.
///
/// A team serves one execution at a time; who runs several at once has several teams.
pub struct Team {
    shared: Arc<Shared>,
    round: u32,
    helpers: Vec<(Thread, Option<JoinHandle<()>>)>,
    /// Whether helpers sleep through this execution.
    is_alone: bool,
    /// Runs of a single task, for which nothing was asked.
    unasked: u32,
    /// When the last execution did.
    ended: Option<Instant>,
}

impl fmt::Debug for Team {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Team").field("threads", &self.threads()).finish()
    }
}

impl Team {
    /// The calling thread alone.
    pub fn alone() -> Self {
        Self::with_helpers(0, Stop::new())
    }

    /// This many threads, the calling one among them. Fewer if the system does not grant more.
    pub fn new(threads: usize) -> Self {
        Self::with_helpers(threads.saturating_sub(1), Stop::new())
    }

    fn with_helpers(helpers: usize, stop: Arc<Padded<Stop>>) -> Self {
        let state = || State { done: AtomicU64::new(0), asleep: AtomicBool::new(false) };
        let helpers = helpers.min(usize::from(u16::MAX));
        let shared = Arc::new(Shared {
            round: Padded(Announcement {
                word: AtomicU64::new(0),
                work: UnsafeCell::new(None),
                processor: AtomicUsize::new(usize::MAX),
            }),
            stop,
            shares: (0..=helpers).map(|_| Padded(Share::new())).collect(),
            states: (0..helpers).map(|_| Padded(state())).collect(),
            panic: Mutex::new(None),
        });
        let helpers = (0..helpers)
            .map_while(|index| {
                let shared = Arc::clone(&shared);
                sync::thread::Builder::new()
                    .name(format!("nnhal-team-{}", index + 1))
                    .spawn(move || help(&shared, index))
                    .ok()
            })
            .map(|handle| (handle.thread().clone(), Some(handle)))
            .collect();
        Self { shared, round: 0, helpers, is_alone: false, unasked: 0, ended: None }
    }

    /// How many threads there are, the caller's among them.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// To be called before an execution: wakes those who sleep, and tells them which processor to
    /// leave to the caller. No one is woken for a small execution, which would be over before they
    /// come, unless executions follow each other closely.
    pub fn begin(&mut self, is_small: bool) {
        if self.helpers.is_empty() {
            return;
        }
        let is_close = self.ended.is_some_and(|ended| ended.elapsed() < TIMEOUT);
        let sleeps = |state: &Padded<State>| state.0.asleep.load(Ordering::Relaxed);
        self.is_alone = is_small && !is_close && self.shared.states.iter().any(sleeps);
        if !self.is_alone {
            self.shared.round.0.processor.store(processors::current(), Ordering::Relaxed);
            self.wake_sleepers();
        }
    }

    /// To be called after an execution.
    pub fn end(&mut self) {
        self.is_alone = false;
        if !self.helpers.is_empty() {
            self.ended = Some(Instant::now());
        }
    }

    /// Calls `work` with the team, whose tasks are only run as long as `is_over` says no, which is asked
    /// before each of many tasks and within long ones. [`Self::is_stopped`] tells `work` whether some
    /// were left out, so that what they should have written is not there.
    ///
    /// The process ends if `work` puts another team in the place of the one that it is called with: the
    /// one that was taken away would ask when `is_over` is no longer there.
    pub fn until<R>(&mut self, is_over: Question<'_>, work: impl FnOnce(&mut Self) -> R) -> R {
        /// Takes the question away, also if the work panics.
        struct Asked<'a> {
            team: &'a mut Team,
            /// Where that of the team is. Only compared: as long as the team is somewhere, no other one's can be there.
            stop: *const Padded<Stop>,
        }

        impl Drop for Asked<'_> {
            fn drop(&mut self) {
                let stop = &self.team.shared.stop;
                if !std::ptr::eq(&raw const **stop, self.stop) {
                    // Who has it now may be running tasks.
                    std::process::abort();
                }
                self.team.ask(None);
                self.team.shared.stop.0.is_stopped.store(false, Ordering::Relaxed);
            }
        }

        let stop = &raw const *self.shared.stop;
        let asked = Asked { team: self, stop };
        // SAFETY: the reference is used by tasks of this team only, whose rounds end before `Asked` is
        // dropped, because that has the team; and `Asked` takes it away before this function ends, or
        // ends the process if it does not have the team any more.
        let endless = unsafe { std::mem::transmute::<Question<'_>, Question<'static>>(is_over) };
        asked.team.ask(Some(endless));
        work(asked.team)
    }

    fn ask(&mut self, question: Option<Question<'static>>) {
        // SAFETY: no round is on, and so no one reads it.
        self.shared.stop.0.question.with_mut(|place| unsafe { *place = question });
    }

    /// Whether tasks have been left out since [`Self::until`] began.
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.0.is_stopped.load(Ordering::Relaxed)
    }

    /// For work of the calling thread that is no task.
    pub(crate) fn pace(&self) -> Pace<'_> {
        // What is asked cannot be taken away meanwhile: that takes the team exclusively.
        Pace::new(&self.shared.stop.0)
    }

    /// As [`Self::run`], for tasks that take long: they can ask whether to stop.
    pub(crate) fn run_long(&mut self, tasks: usize, work: &(dyn Fn(usize, &Stop) + Sync)) {
        if tasks == 1 && !is_traced() {
            // Many of them are over within some tens of nanoseconds.
            if self.wants_single_task() {
                work(0, &self.shared.stop.0);
            }
            return;
        }
        let shared = Arc::clone(&self.shared);
        self.run(tasks, &|task| work(task, &shared.stop.0));
    }

    /// Calls `work` once with each number below `tasks`, on all threads, and returns when all calls
    /// have. Each thread begins with its own even part of the numbers, in their order, the same in
    /// every run: so tasks that go through an image in order find what the thread's tasks of the run
    /// before have written still in its cache. Then it takes the last ones from others that are not
    /// as far. Tasks of similar size, a few for each thread, share best. Those that come after what
    /// [`Self::until`] asks has been answered are left out.
    ///
    /// # Panics
    /// If a task does; the others are finished first.
    pub fn run(&mut self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        if !is_traced() {
            return self.run_untraced(tasks, work);
        }
        let parent = tracing::Span::current();
        self.run_untraced(tasks, &|task| {
            let _task =
                tracing::trace_span!(target: TASK_SPANS, parent: &parent, "task", task).entered();
            work(task);
        });
    }

    fn run_untraced(&mut self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 {
            if self.wants_single_task() {
                (0..tasks).for_each(work);
            }
        } else if self.helpers.is_empty() || self.is_alone {
            let stop = &self.shared.stop.0;
            (0..tasks).take_while(|_| !stop.is_due()).for_each(work);
        } else if tasks <= MOST_TASKS {
            self.run_round(tasks, work);
        } else {
            let by_task = tasks.div_ceil(MOST_TASKS);
            let shared = Arc::clone(&self.shared);
            self.run_round(tasks.div_ceil(by_task), &|task| {
                let tasks = task * by_task..tasks.min((task + 1) * by_task);
                tasks.take_while(|_| !shared.stop.0.is_due()).for_each(work);
            });
        }
    }

    /// Whether a round of a single task is still wanted. Many of them are over sooner than that is answered, and so it is not
    /// asked each time.
    #[inline]
    fn wants_single_task(&mut self) -> bool {
        self.unasked = (self.unasked + 1) % RUNS_BETWEEN;
        let is_over = self.unasked == 0 && self.shared.stop.0.is_due();
        !is_over && !self.is_stopped()
    }

    fn run_round(&mut self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        if self.round == u32::MAX {
            // Round numbers must not come again while a helper could still look for an old one.
            *self = Self::with_helpers(self.helpers.len(), Arc::clone(&self.shared.stop));
        }
        self.round += 1;
        let shared = &*self.shared;
        let round = Round { number: self.round, tasks };
        // SAFETY: the reference is used by tasks only, and they are done before this function ends.
        let endless = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(work) };
        // SAFETY: helpers read it when they have taken a task, and no round is on.
        shared.round.0.work.with_mut(|place| unsafe { *place = Some(endless) });
        let word = u64::from(round.number) * ONE_ROUND + tasks as u64;
        // Sequentially consistent, as the helper's store to `asleep` and its look at the round: of
        // the two, one sees the other.
        shared.round.0.word.store(word, Ordering::SeqCst);
        self.wake_sleepers();
        let mut done = 0;
        take_tasks(shared, round, 0, &mut done);
        // No task is left to be taken: a helper that comes now finds nothing to do.
        self.wait_for_helpers(round, tasks - done);
        if let Some(said) = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            resume_unwind(said);
        }
    }

    fn wake_sleepers(&self) {
        for ((helper, _), state) in self.helpers.iter().zip(&self.shared.states) {
            if state.0.asleep.load(Ordering::SeqCst) {
                helper.unpark();
            }
        }
    }

    /// Until helpers have done this many tasks.
    fn wait_for_helpers(&self, round: Round, tasks: usize) {
        let done = || {
            let done_by = |state: &Padded<State>| {
                let word = state.0.done.load(Ordering::Acquire);
                let is_of_round = word / ONE_ROUND == u64::from(round.number);
                if is_of_round { word & TASKS } else { 0 }
            };
            self.shared.states.iter().map(done_by).sum::<u64>()
        };
        let mut looks = 0_u32;
        while done() < tasks as u64 {
            looks = looks.wrapping_add(1);
            // With more threads than processors a helper may not be running.
            if looks.is_multiple_of(1024) { sync::thread::yield_now() } else { pause() }
        }
    }
}

/// Whether somebody wants spans of tasks.
#[inline]
fn is_traced() -> bool {
    tracing::enabled!(target: TASK_SPANS, tracing::Level::TRACE)
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.round.0.word.fetch_or(DISSOLVED, Ordering::SeqCst);
        for (helper, handle) in &mut self.helpers {
            helper.unpark();
            // A helper's panics were caught and have been reported by `run`.
            let _ = handle.take().map(JoinHandle::join);
        }
    }
}

/// Runs tasks, a thread's own first, until none is left; keeps what the first one that panics says.
/// Counts those that are done, and tells a helper's number before it looks at the shares of others.
fn take_tasks(shared: &Shared, round: Round, thread: usize, done: &mut usize) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let shares = shared.shares.len();
        for distance in 0..shares {
            let owner = (thread + distance) % shares;
            let end = if distance == 0 { End::First } else { End::Last };
            let before = *done;
            while let Some(task) = shared.shares[owner].0.take(round, (owner, shares), end) {
                // Also if it panics.
                *done += 1;
                // SAFETY: the round cannot end before this task has.
                let work = shared.round.0.work.with(|place| unsafe { *place });
                if !shared.stop.0.is_due() {
                    work.expect("a round has work")(task);
                }
            }
            if *done > before {
                tell(shared, round, thread, *done);
            }
        }
    }));
    if let Err(said) = result {
        shared.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(said);
        tell(shared, round, thread, *done);
        // The remaining tasks are still somebody's: this thread goes on with them.
        take_tasks(shared, round, thread, done);
    }
}

/// Says how many tasks a helper has done.
fn tell(shared: &Shared, round: Round, thread: usize, done: usize) {
    if thread > 0 {
        let word = u64::from(round.number) * ONE_ROUND + done as u64;
        shared.states[thread - 1].0.done.store(word, Ordering::Release);
    }
}

fn help(shared: &Shared, index: usize) {
    let allowed = Allowed::of_this_thread();
    let mut seen = 0;
    loop {
        let word = wait_for_round(shared, index, seen, &allowed);
        if word & DISSOLVED != 0 {
            return;
        }
        seen = word;
        #[allow(clippy::cast_possible_truncation)] // Parts of the word.
        let round = Round { number: (word / ONE_ROUND) as u32, tasks: (word & TASKS) as usize };
        let mut done = 0;
        take_tasks(shared, round, index + 1, &mut done);
        if done == 0 {
            // It came late.
            allowed.leave(shared.round.0.processor.load(Ordering::Relaxed));
        }
    }
}

/// Waits until the announcement is another one than `seen`, and gives it.
fn wait_for_round(shared: &Shared, index: usize, seen: u64, allowed: &Allowed) -> u64 {
    let news = || {
        let word = shared.round.0.word.load(Ordering::SeqCst);
        (word != seen).then_some(word)
    };
    // How long this has been looking for work. Time does not pass in a model.
    let (mut looks, mut since) = (0_u32, None);
    loop {
        if let Some(word) = news() {
            return word;
        }
        looks = looks.wrapping_add(1);
        if !cfg!(loom) && !looks.is_multiple_of(LOOKS_PER_CLOCK) {
            pause();
            continue;
        }
        allowed.leave(shared.round.0.processor.load(Ordering::Relaxed));
        if !cfg!(loom) && since.get_or_insert_with(Instant::now).elapsed() < TIMEOUT {
            continue;
        }
        let asleep = &shared.states[index].0.asleep;
        asleep.store(true, Ordering::SeqCst);
        if news().is_none() {
            sync::thread::park();
        }
        asleep.store(false, Ordering::SeqCst);
        // Who was woken is about to get work.
        since = None;
    }
}
