//! [`Scheduler`]: who may compute now (contract: QOS-1, QOS-10).
//!
//! Work runs on the thread that asks for it and takes a turn here first. There are so many turns
//! at once; when all are taken, the highest priority that waits gets the next, and within a
//! priority whoever came first. Work that runs gives its turn up between two operations
//! ([`Budget::check`](crate::Budget::check)) when somebody of a higher priority waits, and goes on
//! when it is its turn again. So a high priority waits for one operation of a lower one at most, and
//! a lower one may starve, as the interface allows.
//!
//! Keeping to the caller's thread spares an execution two switches between threads, which
//! cost more than a small model.

use crate::budget::Interruption;
use crate::sync::{Arc, AtomicBool, AtomicU8, Condvar, Mutex, MutexGuard, Ordering};
use nnhal_hal::{Cancellation, Deadline, Priority};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

/// How often someone who waits looks at the switch that cancels.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(10);

/// Gives turns. Clones share them.
#[derive(Debug, Clone)]
pub struct Scheduler(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// [`rank`] of the highest priority that waits, 0 if nobody does: a copy of what `state` says,
    /// to be read without locking it.
    highest_waiting: AtomicU8,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: BTreeMap<Ticket, Arc<Waiter>>,
    next_arrival: u64,
}

/// The order in which those who wait are served.
type Ticket = (Reverse<u8>, u64);

#[derive(Debug)]
struct Waiter {
    called: AtomicBool,
    wake: Condvar,
}

/// A turn at computing; given up when dropped.
#[derive(Debug)]
pub struct Turn {
    scheduler: Arc<Inner>,
    ticket: Ticket,
    /// Whether a thread of the work is giving the turn up for a while. Its other threads go on with
    /// what they have in hand.
    yielding: AtomicBool,
}

impl Scheduler {
    /// So many turns at once, one at least.
    pub fn new(turns: usize) -> Self {
        let state = State { free: turns.max(1), waiting: BTreeMap::new(), next_arrival: 0 };
        Self(Arc::new(Inner { state: Mutex::new(state), highest_waiting: AtomicU8::new(0) }))
    }

    /// Whether both give the same turns.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// [`Interruption`] if the deadline passes or the work is cancelled before.
    pub fn take_turn(
        &self,
        priority: Priority,
        deadline: Option<Deadline>,
        cancellation: Option<&Cancellation>,
    ) -> Result<Turn, Interruption> {
        let mut state = self.0.lock();
        let ticket = (Reverse(rank(priority)), state.next_arrival);
        state.next_arrival += 1;
        self.0.wait(state, ticket, deadline, cancellation)?;
        Ok(Turn { scheduler: Arc::clone(&self.0), ticket, yielding: AtomicBool::new(false) })
    }

    /// How many wait for a turn.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting.len()
    }
}

/// 1 for the lowest.
fn rank(priority: Priority) -> u8 {
    match priority {
        Priority::Low => 1,
        Priority::Medium => 2,
        Priority::High => 3,
    }
}

impl Inner {
    /// Nothing is left half done under the lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn, now or later.
    fn wait(
        &self,
        mut state: MutexGuard<'_, State>,
        ticket: Ticket,
        deadline: Option<Deadline>,
        cancellation: Option<&Cancellation>,
    ) -> Result<(), Interruption> {
        // Turns are handed over directly, so one that is free has nobody waiting for it.
        if state.free > 0 {
            state.free -= 1;
            return Ok(());
        }
        let waiter = Arc::new(Waiter { called: AtomicBool::new(false), wake: Condvar::new() });
        state.waiting.insert(ticket, Arc::clone(&waiter));
        self.note_highest(&state);
        loop {
            let interval = cancellation.map(|_| CANCELLATION_INTERVAL);
            let until_deadline = deadline.map(Deadline::remaining);
            state = match interval.into_iter().chain(until_deadline).min() {
                None => waiter.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let waited = waiter.wake.wait_timeout(state, timeout);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if waiter.called.load(Ordering::Relaxed) {
                return Ok(());
            }
            let interruption = if cancellation.is_some_and(Cancellation::is_cancelled) {
                Interruption::Cancelled
            } else if deadline.is_some_and(Deadline::has_passed) {
                Interruption::DeadlinePassed
            } else {
                continue;
            };
            state.waiting.remove(&ticket);
            self.note_highest(&state);
            return Err(interruption);
        }
    }

    /// Hands a turn over to whoever is next.
    fn give_up(&self, state: &mut State) {
        match state.waiting.pop_first() {
            None => state.free += 1,
            Some((_, next)) => {
                self.note_highest(state);
                next.called.store(true, Ordering::Relaxed);
                next.wake.notify_one();
            }
        }
    }

    fn note_highest(&self, state: &State) {
        let highest = state.waiting.first_key_value().map_or(0, |((Reverse(rank), _), _)| *rank);
        self.highest_waiting.store(highest, Ordering::Relaxed);
    }
}

impl Turn {
    /// Gives the turn up for as long as somebody of a higher priority wants it.
    ///
    /// # Errors
    /// As [`Scheduler::take_turn`]. The turn must then not be used any more, only be dropped.
    pub fn let_others_pass(
        &self,
        deadline: Option<Deadline>,
        cancellation: Option<&Cancellation>,
    ) -> Result<(), Interruption> {
        let (Reverse(rank), _) = self.ticket;
        if self.scheduler.highest_waiting.load(Ordering::Relaxed) <= rank
            || self.yielding.swap(true, Ordering::Acquire)
        {
            return Ok(());
        }
        let mut state = self.scheduler.lock();
        self.scheduler.give_up(&mut state);
        let back = self.scheduler.wait(state, self.ticket, deadline, cancellation);
        // After an interruption there is no turn to give back: `yielding` stays on, see `drop`.
        if back.is_ok() {
            self.yielding.store(false, Ordering::Release);
        }
        back
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.yielding.load(Ordering::Relaxed) {
            let mut state = self.scheduler.lock();
            self.scheduler.give_up(&mut state);
        }
    }
}

#[cfg(all(test, loom))]
mod all_orders {
    use super::*;
    use loom::thread;
    use std::sync::atomic::AtomicU32;

    /// In every order in which three threads of three priorities can run (with up to three
    /// preemptions), each gets its turn, one at a time, and the turn is free at the end.
    #[test]
    fn qos_1_turns_are_never_lost_nor_doubled() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let scheduler = Scheduler::new(1);
            let running = Arc::new(AtomicU32::new(0));
            let work = |priority| {
                let (scheduler, running) = (scheduler.clone(), running.clone());
                move || {
                    let turn = scheduler.take_turn(priority, None, None).unwrap();
                    for _ in 0..2 {
                        assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "two at once");
                        assert_eq!(running.fetch_sub(1, Ordering::Relaxed), 1);
                        turn.let_others_pass(None, None).unwrap();
                    }
                }
            };
            let others = [Priority::Medium, Priority::High].map(|it| thread::spawn(work(it)));
            work(Priority::Low)();
            for other in others {
                other.join().unwrap();
            }
            let state = scheduler.0.lock();
            assert_eq!((state.free, state.waiting.len()), (1, 0));
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    fn turn(scheduler: &Scheduler, priority: Priority) -> Turn {
        scheduler.take_turn(priority, None, None).unwrap()
    }

    /// Until so many wait.
    fn expect_waiting(scheduler: &Scheduler, count: usize) {
        while scheduler.waiting() != count {
            thread::yield_now();
        }
    }

    #[test]
    fn qos_1_the_highest_priority_is_served_first_then_whoever_came_first() {
        let scheduler = Scheduler::new(1);
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let first = turn(&scheduler, Priority::Low);
            let queue = [
                (Priority::Low, "low 1"),
                (Priority::Medium, "medium 1"),
                (Priority::High, "high 1"),
                (Priority::Low, "low 2"),
                (Priority::High, "high 2"),
            ];
            for (index, (priority, name)) in queue.into_iter().enumerate() {
                let (scheduler, order) = (&scheduler, &order);
                scope.spawn(move || {
                    let _turn = turn(scheduler, priority);
                    order.lock().unwrap().push(name);
                });
                expect_waiting(scheduler, index + 1);
            }
            drop(first);
        });
        let order = order.into_inner().unwrap();
        assert_eq!(order, ["high 1", "high 2", "medium 1", "low 1", "low 2"]);
    }

    #[test]
    fn qos_1_running_work_lets_only_higher_priorities_pass() {
        let scheduler = Scheduler::new(1);
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let running = turn(&scheduler, Priority::Medium);
            for (count, priority) in [Priority::Medium, Priority::High].into_iter().enumerate() {
                let (scheduler, order) = (&scheduler, &order);
                scope.spawn(move || {
                    let _turn = turn(scheduler, priority);
                    order.lock().unwrap().push(format!("{priority:?}"));
                });
                expect_waiting(scheduler, count + 1);
            }
            running.let_others_pass(None, None).unwrap();
            order.lock().unwrap().push("running".to_owned());
        });
        assert_eq!(order.into_inner().unwrap(), ["High", "running", "Medium"]);
    }

    #[test]
    fn there_are_never_more_turns_than_said() {
        let scheduler = Scheduler::new(2);
        let (running, most) = (Mutex::new(0_u32), Mutex::new(0_u32));
        thread::scope(|scope| {
            for index in 0..12_u32 {
                let (scheduler, running, most) = (&scheduler, &running, &most);
                scope.spawn(move || {
                    let priority =
                        [Priority::Low, Priority::Medium, Priority::High][index as usize % 3];
                    for _ in 0..50 {
                        let turn = turn(scheduler, priority);
                        turn.let_others_pass(None, None).unwrap();
                        *running.lock().unwrap() += 1;
                        let now = *running.lock().unwrap();
                        let mut most = most.lock().unwrap();
                        *most = now.max(*most);
                        drop(most);
                        *running.lock().unwrap() -= 1;
                    }
                });
            }
        });
        assert!((1..=2).contains(&*most.lock().unwrap()));
        assert_eq!(scheduler.0.lock().free, 2);
    }

    #[test]
    fn qos_5_a_deadline_ends_the_waiting_and_leaves_nothing_behind() {
        let scheduler = Scheduler::new(1);
        let running = turn(&scheduler, Priority::Low);
        let soon = Deadline::after(Duration::from_millis(5));
        let refused = scheduler.take_turn(Priority::High, Some(soon), None).unwrap_err();
        assert_eq!(refused, Interruption::DeadlinePassed);
        assert_eq!(scheduler.waiting(), 0);
        running.let_others_pass(None, None).unwrap();
        drop(running);
        drop(turn(&scheduler, Priority::Low));
        assert_eq!(scheduler.0.lock().free, 1);
    }

    #[test]
    fn a_turn_that_was_lost_while_others_passed_is_not_given_back_twice() {
        let scheduler = Scheduler::new(1);
        let running = turn(&scheduler, Priority::Low);
        thread::scope(|scope| {
            let high = scope.spawn(|| turn(&scheduler, Priority::High));
            expect_waiting(&scheduler, 1);
            let soon = Deadline::after(Duration::from_millis(5));
            let lost = running.let_others_pass(Some(soon), None).unwrap_err();
            assert_eq!(lost, Interruption::DeadlinePassed);
            drop(running);
            assert_eq!(scheduler.0.lock().free, 0);
            drop(high.join().unwrap());
        });
        assert_eq!(scheduler.0.lock().free, 1);
    }

    #[test]
    fn cancelled_work_stops_waiting() {
        let scheduler = Scheduler::new(1);
        let _running = turn(&scheduler, Priority::Low);
        let cancellation = Cancellation::new();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                scheduler.take_turn(Priority::Low, None, Some(&cancellation)).unwrap_err()
            });
            expect_waiting(&scheduler, 1);
            cancellation.cancel();
            assert_eq!(waits.join().unwrap(), Interruption::Cancelled);
        });
    }
}
