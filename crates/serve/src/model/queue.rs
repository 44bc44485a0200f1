//! [`Queue`]: requests that wait for a model, and how they are put together.

use crate::error::{Error, Result};
use crate::request::{Data, InferRequest, OutputData};
use nnhal::hal::{Cancellation, Priority};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A request that waits, or is computed.
#[derive(Debug)]
pub(crate) struct Job {
    /// Already found to fit the model.
    pub(crate) request: InferRequest,
    /// By input of the model: which of the request's.
    pub(crate) inputs: Vec<usize>,
    /// Rows of the batch that it is.
    pub(crate) rows: usize,
    pub(crate) priority: Priority,
    pub(crate) arrived: Instant,
    pub(crate) deadline: Option<Instant>,
    /// Thrown when no one waits for the answer any more.
    pub(crate) cancellation: Cancellation,
    pub(crate) answer: oneshot::Sender<Result<Computed>>,
    /// The request's span, for what is traced.
    pub(crate) span: tracing::Span,
}

/// What a job gave: by output of the model its shape and elements.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) outputs: Vec<(Vec<usize>, OutputData)>,
}

impl Job {
    /// The elements of an input of the model.
    pub(crate) fn data(&self, input: usize) -> &Data {
        &self.request.inputs[self.inputs[input]].data
    }

    /// Gives the answer; whoever asked may have gone.
    pub(crate) fn finish(self, answer: Result<Computed>) {
        let _ = self.answer.send(answer);
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    fn has_same_shapes(&self, other: &Self) -> bool {
        let shape =
            |job: &Self, at: &usize| job.request.inputs[*at].shape.get(1..).map(<[_]>::to_vec);
        self.inputs
            .iter()
            .zip(&other.inputs)
            .all(|(one, two)| shape(self, one) == shape(other, two))
    }
}

/// How requests are put together.
#[derive(Debug, Clone)]
pub(crate) struct Batching {
    /// Rows.
    pub(crate) most: usize,
    /// In ascending order; batches of these sizes do not wait.
    pub(crate) preferred: Vec<usize>,
    pub(crate) delay: Duration,
}

/// Requests that wait for a model.
#[derive(Debug)]
pub(crate) struct Queue {
    model: String,
    capacity: usize,
    workers: usize,
    batching: Option<Batching>,
    state: Mutex<State>,
    changed: Condvar,
    /// How many wait, without the lock.
    waiting: AtomicUsize,
    /// Of a job, lately, in nanoseconds.
    typical: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// By priority, the highest first.
    levels: [VecDeque<Job>; 3],
    is_closed: bool,
    /// Runs that may begin.
    free: usize,
    /// When a full queue is looked at again for jobs that need not be computed any more.
    next_look: Option<Instant>,
}

/// Jobs that need not be computed any more, and why.
pub(crate) type Dropped = Vec<(Job, Error)>;

/// Jobs whose time is over, or that no one waits for, and a batch with the right to run it.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) batch: Vec<Job>,
    pub(crate) dropped: Dropped,
    pub(crate) permit: Option<Permit>,
}

/// The right to run something: there are as many at a time as the model has instances.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Queue>);

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.free += 1;
        let (is_closed, is_waited) = (state.is_closed, state.waiting() > 0);
        drop(state);
        if is_closed {
            // Workers end when nothing is left, which they have to see.
            self.0.changed.notify_all();
        } else if is_waited {
            self.0.changed.notify_one();
        }
    }
}

fn level(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Medium => 1,
        Priority::Low => 2,
    }
}

impl Queue {
    pub(crate) fn new(
        model: &str,
        capacity: usize,
        workers: usize,
        batching: Option<Batching>,
    ) -> Self {
        Self {
            model: model.to_owned(),
            capacity,
            workers,
            batching,
            state: Mutex::new(State {
                levels: Default::default(),
                is_closed: false,
                free: workers,
                next_look: None,
            }),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            typical: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Remembers how long a job took a worker.
    pub(crate) fn took(&self, time: Duration, jobs: usize) {
        let jobs = u128::from(jobs.max(1) as u64);
        let each = u64::try_from(time.as_nanos() / jobs).unwrap_or(u64::MAX);
        let before = self.typical.load(Ordering::Relaxed);
        let now = if before == 0 { each } else { before / 8 * 7 + each / 8 };
        self.typical.store(now, Ordering::Relaxed);
    }

    /// When a request that is refused now could be taken.
    fn retry_after(&self, state: &State) -> Duration {
        let waiting = state.waiting() as u64;
        let all = self.typical.load(Ordering::Relaxed).saturating_mul(waiting);
        let running = Duration::from_nanos(all / self.workers.max(1) as u64);
        // The first ones may wait for others before they run.
        let first =
            state.levels.iter().filter_map(|level| level.front()).map(|job| job.arrived).min();
        let delay = self.batching.as_ref().map_or(Duration::ZERO, |batching| batching.delay);
        let held = first.map_or(Duration::ZERO, |first| delay.saturating_sub(first.elapsed()));
        (held + running).clamp(Duration::from_millis(1), Duration::from_secs(60))
    }

    /// Puts a job at the end of those of its priority. Gives those that made room for it: they need not be computed any more.
    ///
    /// # Errors
    /// With the job: [`Error::QueueFull`], or `None`, if no more are taken because another model has taken
    /// this one's place.
    pub(crate) fn push(&self, job: Job) -> std::result::Result<Dropped, Box<(Job, Option<Error>)>> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Box::new((job, None)));
        }
        let mut dropped = Vec::new();
        let mut waiting = state.waiting();
        if waiting >= self.capacity {
            dropped = state.make_room(Instant::now());
            waiting = state.waiting();
        }
        if waiting >= self.capacity {
            let (model, retry_after) = (self.model.clone(), self.retry_after(&state));
            let full = Error::QueueFull { model, waiting, retry_after };
            return Err(Box::new((job, Some(full))));
        }
        state.levels[level(job.priority)].push_back(job);
        self.waiting.store(waiting + 1, Ordering::Relaxed);
        let is_free = state.free > 0;
        drop(state);
        // Otherwise whoever ends a run wakes a worker.
        if is_free {
            self.changed.notify_one();
        }
        Ok(dropped)
    }

    /// The right to run a job at once on the caller's thread: if a permit is free, no one waits, jobs are not put together,
    /// and they have taken no longer than `most` lately.
    pub(crate) fn begin(self: &Arc<Self>, most: Duration) -> Option<Permit> {
        if !self.is_for_callers(most) {
            return None;
        }
        let mut state = self.lock();
        if state.is_closed || state.free == 0 || state.waiting() > 0 {
            return None;
        }
        state.free -= 1;
        Some(Permit(Arc::clone(self)))
    }

    /// Whether jobs are not put together, and have taken no longer than `most` lately.
    pub(crate) fn is_for_callers(&self, most: Duration) -> bool {
        let typical = self.typical.load(Ordering::Relaxed);
        self.batching.is_none() && typical > 0 && u128::from(typical) <= most.as_nanos()
    }

    /// The next job for whoever has a permit, if any waits.
    pub(crate) fn next(&self, permit: Permit) -> Taken {
        let mut state = self.lock();
        let dropped = state.take_dropped(Instant::now());
        let next = state.levels.iter_mut().find_map(VecDeque::pop_front);
        self.waiting.store(state.waiting(), Ordering::Relaxed);
        drop(state);
        Taken { batch: next.into_iter().collect(), dropped, permit: Some(permit) }
    }

    /// Takes no more jobs; those that wait are still computed.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for a batch; `None` if the queue is closed and empty.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Taken> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let dropped = state.take_dropped(now);
            let mut taken = Taken { batch: Vec::new(), dropped, permit: None };
            let (is_closed, is_free) = (state.is_closed, state.free > 0);
            let wait = match state.levels.iter_mut().find(|jobs| !jobs.is_empty()) {
                None if is_closed && taken.dropped.is_empty() => return None,
                None => None,
                Some(_) if !is_free => None,
                Some(jobs) => match self.ready(jobs, now, is_closed) {
                    Ok(count) => {
                        taken.batch.extend(jobs.drain(..count));
                        None
                    }
                    Err(wait) => Some(wait),
                },
            };
            if !taken.batch.is_empty() || !taken.dropped.is_empty() {
                let waiting = state.waiting();
                self.waiting.store(waiting, Ordering::Relaxed);
                if !taken.batch.is_empty() {
                    state.free -= 1;
                    taken.permit = Some(Permit(Arc::clone(self)));
                }
                let is_free = state.free > 0;
                drop(state);
                // A job that came while this one looked has woken only one.
                if waiting > 0 && is_free {
                    self.changed.notify_one();
                }
                return Some(taken);
            }
            state = match wait {
                Some(wait) => {
                    let waited = self.changed.wait_timeout(state, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// How many of these jobs are a batch now, or how long to wait for more.
    fn ready(
        &self,
        jobs: &VecDeque<Job>,
        now: Instant,
        is_closed: bool,
    ) -> std::result::Result<usize, Duration> {
        let (Some(batching), Some(first)) = (&self.batching, jobs.front()) else { return Ok(1) };
        let (mut rows, mut count, mut preferred) = (0_usize, 0, 0);
        for job in jobs {
            if count > 0 && (rows + job.rows > batching.most || !job.has_same_shapes(first)) {
                break;
            }
            rows += job.rows;
            count += 1;
            if batching.preferred.contains(&rows) {
                preferred = count;
            }
        }
        // What could not take another one need not wait for it either.
        let is_full = rows >= batching.most || count < jobs.len();
        let waited = now.saturating_duration_since(first.arrived);
        if preferred > 0 {
            Ok(preferred)
        } else if is_full || is_closed || waited >= batching.delay {
            Ok(count)
        } else {
            let until_deadline = first.deadline.map(|it| it.saturating_duration_since(now) / 2);
            let wait = batching.delay - waited;
            Err(until_deadline.map_or(wait, |it| it.min(wait)).max(Duration::from_micros(50)))
        }
    }
}

impl State {
    /// How many jobs wait.
    fn waiting(&self) -> usize {
        self.levels.iter().map(VecDeque::len).sum()
    }

    /// The same of a full queue. To look takes time while no one else can, so that it is done for a small part of the time.
    fn make_room(&mut self, now: Instant) -> Dropped {
        if self.next_look.is_some_and(|next| now < next) {
            return Dropped::new();
        }
        let dropped = self.take_dropped(now);
        self.next_look = Some(Instant::now() + now.elapsed() * 10);
        dropped
    }

    /// Jobs that need not be computed any more.
    fn take_dropped(&mut self, now: Instant) -> Dropped {
        let mut dropped = Vec::new();
        for jobs in &mut self.levels {
            let is_over = |job: &Job| job.is_expired(now) || job.answer.is_closed();
            if !jobs.iter().any(is_over) {
                continue;
            }
            for job in std::mem::take(jobs) {
                if job.answer.is_closed() {
                    dropped.push((job, Error::Cancelled));
                } else if job.is_expired(now) {
                    dropped.push((job, Error::Timeout("while it waited")));
                } else {
                    jobs.push_back(job);
                }
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answer = oneshot::Receiver<Result<Computed>>;

    fn job(id: &str, rows: usize, priority: Priority) -> (Job, Answer) {
        let (answer, receiver) = oneshot::channel();
        let request = InferRequest { id: id.to_owned(), ..InferRequest::default() };
        let job = Job {
            request,
            inputs: Vec::new(),
            rows,
            priority,
            arrived: Instant::now(),
            deadline: None,
            cancellation: Cancellation::new(),
            answer,
            span: tracing::Span::none(),
        };
        (job, receiver)
    }

    fn queue(capacity: usize, batching: Option<(usize, &[usize], u64)>) -> Arc<Queue> {
        let batching = batching.map(|(most, preferred, delay)| Batching {
            most,
            preferred: preferred.to_vec(),
            delay: Duration::from_millis(delay),
        });
        Arc::new(Queue::new("m", capacity, 1, batching))
    }

    fn ids(taken: &Taken) -> Vec<&str> {
        taken.batch.iter().map(|job| job.request.id.as_str()).collect()
    }

    #[test]
    fn high_priorities_come_first_and_equal_ones_in_order() {
        let queue = queue(10, None);
        let mut answers = Vec::new();
        for (id, priority) in [
            ("a", Priority::Low),
            ("b", Priority::Medium),
            ("c", Priority::High),
            ("d", Priority::Medium),
        ] {
            let (job, answer) = job(id, 1, priority);
            queue.push(job).unwrap();
            answers.push(answer);
        }
        for expected in ["c", "b", "d", "a"] {
            assert_eq!(ids(&queue.take().unwrap()), [expected]);
        }
    }

    #[test]
    fn a_full_queue_refuses_at_once() {
        let queue = queue(2, None);
        let _answers = ["a", "b"].map(|id| {
            let (job, answer) = job(id, 1, Priority::Medium);
            queue.push(job).unwrap();
            answer
        });
        queue.took(Duration::from_millis(40), 2);
        let refused = queue.push(job("c", 1, Priority::High).0).unwrap_err();
        let Some(Error::QueueFull { waiting: 2, retry_after, .. }) = refused.1 else {
            panic!("{:?}", refused.1)
        };
        assert_eq!(retry_after, Duration::from_millis(40), "two jobs of 20 ms before it");
    }

    #[test]
    fn a_full_queue_that_waits_for_others_says_how_long() {
        let queue = queue(1, Some((4, &[], 2_000_000)));
        let (first, _answer) = job("a", 1, Priority::Medium);
        queue.push(first).unwrap();
        let refused = queue.push(job("b", 1, Priority::Medium).0).unwrap_err().1;
        let retry_after = refused.and_then(|error| error.retry_after()).unwrap();
        assert!(retry_after > Duration::from_secs(1), "{retry_after:?}");
    }

    #[test]
    fn a_batch_takes_no_more_rows_than_it_may() {
        let queue = queue(10, Some((4, &[], 0)));
        let _answers: Vec<_> = [("a", 1), ("b", 2), ("c", 3), ("d", 1)]
            .map(|(id, rows)| {
                let (job, answer) = job(id, rows, Priority::Medium);
                queue.push(job).unwrap();
                answer
            })
            .into();
        assert_eq!(ids(&queue.take().unwrap()), ["a", "b"]);
        assert_eq!(ids(&queue.take().unwrap()), ["c", "d"]);
    }

    #[test]
    fn a_batch_of_a_preferred_size_does_not_wait_and_others_do() {
        let queue = queue(10, Some((8, &[2], 1000)));
        let _answers = ["a", "b", "c"].map(|id| {
            let (job, answer) = job(id, 1, Priority::Medium);
            queue.push(job).unwrap();
            answer
        });
        let begun = Instant::now();
        assert_eq!(ids(&queue.take().unwrap()), ["a", "b"]);
        assert!(begun.elapsed() < Duration::from_millis(700), "at once");
        assert_eq!(ids(&queue.take().unwrap()), ["c"]);
        assert!(begun.elapsed() >= Duration::from_millis(950), "after the delay");
    }

    #[test]
    fn what_is_too_late_or_not_waited_for_is_dropped() {
        let queue = queue(10, None);
        let (mut late, _late) = job("late", 1, Priority::High);
        late.deadline = Some(Instant::now());
        let (gone, answer) = job("gone", 1, Priority::High);
        drop(answer);
        let (good, _good) = job("good", 1, Priority::Low);
        for job in [late, gone, good] {
            queue.push(job).unwrap();
        }
        let taken = queue.take().unwrap();
        assert_eq!(ids(&taken), ["good"]);
        let why: Vec<_> = taken.dropped.iter().map(|(_, error)| error.kind()).collect();
        assert_eq!(why, ["timeout", "cancelled"]);
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn a_full_queue_has_room_when_what_waits_is_too_late() {
        let queue = queue(2, None);
        let (mut late, _late) = job("late", 1, Priority::Medium);
        late.deadline = Some(Instant::now());
        let (gone, answer) = job("gone", 1, Priority::Medium);
        drop(answer);
        for job in [late, gone] {
            assert!(queue.push(job).unwrap().is_empty());
        }
        let (good, _good) = job("good", 1, Priority::Medium);
        let dropped = queue.push(good).unwrap();
        let why: Vec<_> = dropped.iter().map(|(_, error)| error.kind()).collect();
        assert_eq!((why, queue.waiting()), (vec!["timeout", "cancelled"], 1));
        assert_eq!(ids(&queue.take().unwrap()), ["good"]);
    }

    #[test]
    fn what_is_short_is_run_by_the_caller_if_a_permit_is_free_and_nothing_waits() {
        const MOST: Duration = Duration::from_millis(2);
        let queue = queue(10, None);
        assert!(queue.begin(MOST).is_none(), "how long a run takes is not known");
        queue.took(Duration::from_millis(1), 1);
        let permit = queue.begin(MOST).expect("a permit is free");
        assert!(queue.begin(MOST).is_none(), "there is one instance");
        let (waiting, _waiting) = job("a", 1, Priority::Medium);
        queue.push(waiting).unwrap();
        drop(permit);
        assert!(queue.begin(MOST).is_none(), "someone else is first");
        let taken = queue.take().unwrap();
        assert_eq!(ids(&taken), ["a"]);
        assert!(queue.begin(MOST).is_none(), "a worker has the permit");
        drop(taken);
        assert!(queue.begin(Duration::from_micros(999)).is_none(), "runs take longer");
        drop(queue.begin(MOST).expect("the worker gave it back"));
        queue.close();
        assert!(queue.begin(MOST).is_none(), "closed");
    }

    #[test]
    fn jobs_that_are_put_together_are_not_run_by_the_caller() {
        let queue = queue(10, Some((8, &[], 0)));
        queue.took(Duration::from_millis(1), 1);
        assert!(queue.begin(Duration::from_millis(2)).is_none());
    }

    #[test]
    fn a_worker_waits_for_a_permit_and_ends_after_the_last_job() {
        let queue = queue(10, None);
        queue.took(Duration::from_millis(1), 1);
        let permit = queue.begin(Duration::from_millis(2)).expect("a permit is free");
        let (waiting, _waiting) = job("a", 1, Priority::Medium);
        queue.push(waiting).unwrap();
        queue.close();
        let (sender, seen) = std::sync::mpsc::channel();
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, sender) = (Arc::clone(&queue), sender.clone());
                std::thread::spawn(move || {
                    while let Some(taken) = queue.take() {
                        sender.send(ids(&taken).len()).unwrap();
                    }
                })
            })
            .collect();
        let soon = Duration::from_millis(50);
        assert!(seen.recv_timeout(soon).is_err(), "the caller's run is still on");
        drop(permit);
        assert_eq!(seen.recv_timeout(Duration::from_secs(10)), Ok(1));
        for worker in workers {
            worker.join().unwrap();
        }
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_takes_no_more() {
        let queue = queue(10, Some((8, &[], 10_000)));
        let (waiting, _waiting) = job("a", 1, Priority::Medium);
        queue.push(waiting).unwrap();
        queue.close();
        assert!(queue.push(job("b", 1, Priority::Medium).0).unwrap_err().1.is_none());
        assert_eq!(ids(&queue.take().unwrap()), ["a"]);
        assert!(queue.take().is_none());
    }
}
