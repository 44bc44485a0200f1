//! [`Scheduler`]: who may compute now (contract: QOS-1, QOS-10).
//!
//! Work runs on the thread that asks for it and takes a slot here first. The number of slots
//! is fixed; when all are taken, others wait.
//!
//! - **Between clients** slots are shared fairly. The next slot goes to the client that has the fewest
//!   now, and of those to the one that has computed for the least time. A client that did not want
//!   any for a while does not get that time back. Work that has computed for a time slice (4 ms)
//!   gives its slot up for a client that is behind.
//! - **Within a client** the highest priority that waits is next, and within a priority whoever came
//!   first. Work gives its slot up when a higher priority of its own client waits. So a high priority
//!   waits for one operation of a lower one at most, and a lower one may starve, as the interface
//!   allows.
//!
//! Slots are given up between two operations ([`Budget::check`](crate::Budget::check)). Work that gave
//! one up goes on when it gets one again.
//!
//! Keeping to the caller's thread spares an execution two switches between threads, which
//! cost more than a small model.

use crate::interruption::Interruption;
use crate::sync::{
    Arc, AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, SLICE,
    now,
};
use nnhal_hal::client::AtLeaving;
use nnhal_hal::{Cancellation, Client, Deadline, Priority};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

/// How often someone who waits looks at the switch that cancels.
const CANCELLATION_INTERVAL: Duration = Duration::from_millis(10);

/// Hands out slots. Clones share them.
#[derive(Debug, Clone)]
pub struct Scheduler(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// How many clients wait: a copy of what `state` says, to be read without locking it.
    waiting_clients: AtomicUsize,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// By the clients' ids.
    lines: BTreeMap<u64, Line>,
    next_arrival: u64,
    /// The least time that any client that wanted slots had computed, when last looked at. A client
    /// that comes or comes back counts as if it had computed for at least that long, less a time slice
    /// for those who only need a moment to ask again.
    least_used: u64,
}

/// What there is of one client.
#[derive(Debug)]
struct Line {
    waiting: BTreeMap<Ticket, Arc<Waiter>>,
    /// Slots that it has.
    slots: usize,
    /// For how long it has computed, in nanoseconds, all threads together.
    used: u64,
    highest: Arc<AtomicU8>,
    /// Wakes those who wait.
    _at_leaving: AtLeaving,
}

/// The order in which those who wait are served.
type Ticket = (Reverse<u8>, u64);

#[derive(Debug)]
struct Waiter {
    called: AtomicBool,
    wake: Condvar,
}

/// The right to compute now; given up when dropped.
#[derive(Debug)]
pub struct Slot {
    scheduler: Arc<Inner>,
    client: Client,
    ticket: Ticket,
    /// [`rank`] of the highest priority of this client that waits, 0 if none does: a copy of what the
    /// state says, to be read without locking it.
    highest: Arc<AtomicU8>,
    /// When it was taken, or taken again, in nanoseconds.
    since: AtomicU64,
    /// Whether a thread of the work is giving the slot up for a while. Its other threads go on with
    /// what they have in hand.
    yielding: AtomicBool,
}

impl Scheduler {
    /// With this number of slots, at least one.
    pub fn new(slots: usize) -> Self {
        let lines = BTreeMap::new();
        let state = State { free: slots.max(1), lines, next_arrival: 0, least_used: 0 };
        Self(Arc::new(Inner { state: Mutex::new(state), waiting_clients: AtomicUsize::new(0) }))
    }

    /// Whether both hand out the same slots.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// [`Interruption`] if the deadline passes, the work is cancelled or the client leaves before.
    pub fn take_slot(
        &self,
        client: &Client,
        priority: Priority,
        deadline: Option<Deadline>,
        cancellation: Option<&Cancellation>,
    ) -> Result<Slot, Interruption> {
        let mut state = self.0.lock();
        if !state.lines.contains_key(&client.id()) {
            drop(state);
            // Not under the lock, which is taken by what is to be done.
            let at_leaving = self.at_leaving(client);
            state = self.0.lock();
            state.enter(client, at_leaving);
        }
        let ticket = (Reverse(rank(priority)), state.next_arrival);
        state.next_arrival += 1;
        let highest = state.come_back(client);
        self.0.wait(state, client, ticket, deadline, cancellation)?;
        Ok(Slot {
            scheduler: Arc::clone(&self.0),
            client: client.clone(),
            ticket,
            highest,
            since: AtomicU64::new(now()),
            yielding: AtomicBool::new(false),
        })
    }

    /// Wakes those of a client's work that wait when it leaves, and forgets it if there are none.
    fn at_leaving(&self, client: &Client) -> AtLeaving {
        #[cfg(not(loom))]
        let wake = {
            let (scheduler, id) = (Arc::downgrade(&self.0), client.id());
            move || {
                let Some(scheduler) = scheduler.upgrade() else { return };
                let mut state = scheduler.lock();
                let line = state.lines.get(&id);
                let waiting = line.into_iter().flat_map(|line| line.waiting.values());
                waiting.for_each(|waiter| waiter.wake.notify_one());
                if line.is_some_and(|line| !line.is_active()) {
                    state.lines.remove(&id);
                }
            }
        };
        // No client leaves there, and its `Arc` cannot be weak.
        #[cfg(loom)]
        let wake = || ();
        client.at_leaving(wake)
    }

    /// How many wait for a slot.
    pub fn waiting(&self) -> usize {
        self.0.lock().lines.values().map(|line| line.waiting.len()).sum()
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

impl Line {
    /// Whether it has a slot, or wants one.
    fn is_active(&self) -> bool {
        self.slots > 0 || !self.waiting.is_empty()
    }

    fn note_highest(&self) {
        let highest = self.waiting.first_key_value().map_or(0, |((Reverse(rank), _), _)| *rank);
        self.highest.store(highest, Ordering::Relaxed);
    }
}

impl State {
    /// Sees how far those that want slots have come at least. Where no one wants any, there is nothing
    /// to be made up for.
    fn catch_up(&mut self) {
        let active = self.lines.values().filter(|line| line.is_active());
        let least = active.map(|line| line.used).min();
        let least = least.or_else(|| self.lines.values().map(|line| line.used).max());
        self.least_used = self.least_used.max(least.unwrap_or(0));
    }

    /// Makes room for what there is of a client. Of others that want nothing, and have computed for no
    /// longer than anybody, there is nothing to remember.
    fn enter(&mut self, client: &Client, at_leaving: AtLeaving) {
        self.catch_up();
        let least = self.least_used;
        self.lines.retain(|_, line| line.is_active() || line.used > least);
        self.lines.entry(client.id()).or_insert_with(|| Line {
            waiting: BTreeMap::new(),
            slots: 0,
            used: least,
            highest: Arc::new(AtomicU8::new(0)),
            _at_leaving: at_leaving,
        });
    }

    /// The client wants a slot, maybe after it wanted none for a while.
    fn come_back(&mut self, client: &Client) -> Arc<AtomicU8> {
        self.catch_up();
        let least = self.least_used.saturating_sub(SLICE);
        let line = self.line(client);
        if !line.is_active() {
            line.used = line.used.max(least);
        }
        Arc::clone(&line.highest)
    }

    /// What there is of a client that has a slot or wants one.
    fn line(&mut self, client: &Client) -> &mut Line {
        self.lines.get_mut(&client.id()).expect("entered before, and active since")
    }

    /// The client that gets the next slot.
    fn next(&self) -> Option<u64> {
        let waiting = self.lines.iter().filter(|(_, line)| !line.waiting.is_empty());
        let next = waiting.min_by_key(|(_, line)| {
            let arrival = line.waiting.first_key_value().map(|((_, arrival), _)| *arrival);
            (line.slots, line.used, arrival)
        });
        next.map(|(id, _)| *id)
    }

    /// Whether another client should have a slot that this one has held for `elapsed` nanoseconds.
    fn is_due_elsewhere(&self, client: &Client, elapsed: u64) -> bool {
        let Some(own) = self.lines.get(&client.id()) else { return false };
        let used = own.used.saturating_add(elapsed);
        self.lines.iter().any(|(id, other)| {
            let is_other = *id != client.id() && !other.waiting.is_empty();
            let has_fewer = other.slots < own.slots;
            is_other && has_fewer && (own.slots - other.slots > 1 || other.used <= used)
        })
    }
}

impl Inner {
    /// Nothing is left half done under the lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot, now or later.
    fn wait(
        &self,
        mut state: MutexGuard<'_, State>,
        client: &Client,
        ticket: Ticket,
        deadline: Option<Deadline>,
        cancellation: Option<&Cancellation>,
    ) -> Result<(), Interruption> {
        // Slots are handed over directly, so one that is free has no one waiting for it.
        if state.free > 0 {
            state.free -= 1;
            state.line(client).slots += 1;
            return Ok(());
        }
        let waiter = Arc::new(Waiter { called: AtomicBool::new(false), wake: Condvar::new() });
        state.line(client).waiting.insert(ticket, Arc::clone(&waiter));
        self.note_waiting(&mut state, client);
        loop {
            // Looked at before the first wait too: who leaves wakes only those who wait already.
            let interruption =
                if client.has_left() || cancellation.is_some_and(Cancellation::is_cancelled) {
                    Some(Interruption::Cancelled)
                } else if deadline.is_some_and(Deadline::has_passed) {
                    Some(Interruption::DeadlinePassed)
                } else {
                    None
                };
            if let Some(interruption) = interruption {
                state.line(client).waiting.remove(&ticket);
                self.note_waiting(&mut state, client);
                return Err(interruption);
            }
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
        }
    }

    /// Hands a client's slot, which it has held for `elapsed` nanoseconds, over to whoever is next.
    fn give_up(&self, state: &mut State, client: &Client, elapsed: u64) {
        let line = state.line(client);
        line.slots -= 1;
        line.used = line.used.saturating_add(elapsed.max(1));
        let next = state.next().and_then(|id| state.lines.get_mut(&id));
        let Some(line) = next else {
            state.free += 1;
            return;
        };
        if let Some((_, next)) = line.waiting.pop_first() {
            line.slots += 1;
            next.called.store(true, Ordering::Relaxed);
            next.wake.notify_one();
        }
        line.note_highest();
        self.note_clients(state);
    }

    /// Who waits of this client has changed.
    fn note_waiting(&self, state: &mut State, client: &Client) {
        state.line(client).note_highest();
        self.note_clients(state);
    }

    fn note_clients(&self, state: &State) {
        let waiting = state.lines.values().filter(|line| !line.waiting.is_empty()).count();
        self.waiting_clients.store(waiting, Ordering::Relaxed);
    }
}

impl Slot {
    /// Gives the slot up for as long as somebody of a higher priority of the same client, or another
    /// client that is behind, wants it.
    ///
    /// # Errors
    /// As [`Scheduler::take_slot`]. The slot must then not be used any more, only be dropped.
    pub fn let_others_pass(
        &self,
        deadline: Option<Deadline>,
        cancellation: Option<&Cancellation>,
    ) -> Result<(), Interruption> {
        let (Reverse(rank), _) = self.ticket;
        let highest = self.highest.load(Ordering::Relaxed);
        let others = self.scheduler.waiting_clients.load(Ordering::Relaxed);
        let passes_own = highest > rank;
        let may_pass_others = others > usize::from(highest > 0) && self.elapsed() >= SLICE;
        if !(passes_own || may_pass_others) || self.yielding.swap(true, Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.scheduler.lock();
        let elapsed = self.elapsed();
        if !passes_own && !state.is_due_elsewhere(&self.client, elapsed) {
            drop(state);
            self.yielding.store(false, Ordering::Release);
            return Ok(());
        }
        self.scheduler.give_up(&mut state, &self.client, elapsed);
        let back = self.scheduler.wait(state, &self.client, self.ticket, deadline, cancellation);
        // After an interruption there is no slot to give back: `yielding` stays on, see `drop`.
        if back.is_ok() {
            self.since.store(now(), Ordering::Relaxed);
            self.yielding.store(false, Ordering::Release);
        }
        back
    }

    fn elapsed(&self) -> u64 {
        now().saturating_sub(self.since.load(Ordering::Relaxed))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.yielding.load(Ordering::Relaxed) {
            let elapsed = self.elapsed();
            let mut state = self.scheduler.lock();
            self.scheduler.give_up(&mut state, &self.client, elapsed);
        }
    }
}

#[cfg(all(test, loom))]
mod all_orders {
    use super::*;
    use loom::thread;
    use nnhal_hal::ClientLimits;
    use std::sync::atomic::AtomicU32;

    /// In every order in which three threads of three priorities can run (with up to three
    /// preemptions), each gets the slot, one at a time, and it is free at the end.
    #[test]
    fn qos_1_slots_are_never_lost_nor_doubled() {
        let client = Client::new("only", ClientLimits::default());
        check(&[Priority::Low, Priority::Medium, Priority::High].map(|it| (client.clone(), it)));
    }

    /// The same with two clients, between whom work gives way whenever it is asked.
    #[test]
    fn qos_1_slots_between_clients_are_never_lost_nor_doubled() {
        let [one, other] = ["one", "other"].map(|it| Client::new(it, ClientLimits::default()));
        check(&[(one.clone(), Priority::Low), (one, Priority::High), (other, Priority::Medium)]);
    }

    /// The first of them works on the thread that checks.
    fn check(workers: &[(Client, Priority); 3]) {
        let workers = workers.clone();
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let scheduler = Scheduler::new(1);
            let running = Arc::new(AtomicU32::new(0));
            let work = |(client, priority): (Client, Priority)| {
                let (scheduler, running) = (scheduler.clone(), running.clone());
                move || {
                    let slot = scheduler.take_slot(&client, priority, None, None).unwrap();
                    for _ in 0..2 {
                        assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "two at once");
                        assert_eq!(running.fetch_sub(1, Ordering::Relaxed), 1);
                        slot.let_others_pass(None, None).unwrap();
                    }
                }
            };
            let [first, second, third] = workers.clone();
            let others = [second, third].map(|it| thread::spawn(work(it)));
            work(first)();
            for other in others {
                other.join().unwrap();
            }
            let state = scheduler.0.lock();
            assert_eq!(state.free, 1);
            assert!(!state.lines.values().any(Line::is_active));
            assert_eq!(scheduler.0.waiting_clients.load(Ordering::Relaxed), 0);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use nnhal_hal::ClientLimits;
    use std::thread;

    fn slot(scheduler: &Scheduler, priority: Priority) -> Slot {
        slot_of(scheduler, &Client::in_process(), priority)
    }

    fn slot_of(scheduler: &Scheduler, client: &Client, priority: Priority) -> Slot {
        scheduler.take_slot(client, priority, None, None).unwrap()
    }

    fn client(name: &str) -> Client {
        Client::new(name, ClientLimits::default())
    }

    /// Threads of a client that all do the same.
    fn crowd<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        threads: usize,
        work: impl Fn() + Send + Sync + 'scope,
    ) -> Vec<thread::ScopedJoinHandle<'scope, ()>> {
        let work = Arc::new(work);
        (0..threads)
            .map(|_| {
                let work = Arc::clone(&work);
                scope.spawn(move || work())
            })
            .collect()
    }

    /// Keeps the processor busy. Returns how long that took, which is more if others had the processor meanwhile.
    fn compute(duration: Duration) -> Duration {
        let begin = std::time::Instant::now();
        while begin.elapsed() < duration {
            std::hint::spin_loop();
        }
        begin.elapsed()
    }

    #[test]
    fn qos_1_no_priority_of_one_client_starves_another_client() {
        let scheduler = Scheduler::new(1);
        let (greedy, modest) = (client("greedy"), client("modest"));
        let over = AtomicBool::new(false);
        let of_greedy = AtomicUsize::new(0);
        let mut waits = Vec::new();
        thread::scope(|scope| {
            crowd(scope, 8, || {
                while !over.load(Ordering::Relaxed) {
                    let _slot = slot_of(&scheduler, &greedy, Priority::High);
                    of_greedy.fetch_add(1, Ordering::Relaxed);
                    compute(Duration::from_micros(500));
                }
            });
            while scheduler.waiting() < 4 {
                thread::yield_now();
            }
            for _ in 0..100 {
                let before = of_greedy.load(Ordering::Relaxed);
                let slot = slot_of(&scheduler, &modest, Priority::Low);
                waits.push(of_greedy.load(Ordering::Relaxed) - before);
                compute(Duration::from_micros(500));
                drop(slot);
            }
            over.store(true, Ordering::Relaxed);
        });
        // It gets the next slot when the one that runs ends. Beginning another may be seen before that.
        waits.sort_unstable();
        assert!(waits[90] <= 2, "slots of the other client before one of this: {waits:?}");
    }

    #[test]
    fn qos_1_clients_get_the_same_time_however_many_threads_and_however_long_their_work() {
        let scheduler = Scheduler::new(1);
        let over = AtomicBool::new(false);
        let used = [const { AtomicU64::new(0) }; 3];
        let clients = ["many", "long", "short"].map(client);
        let run = |index: usize, part: u64, parts: u64| {
            let (scheduler, over, used) = (&scheduler, &over, &used);
            let client = &clients[index];
            move || {
                while !over.load(Ordering::Relaxed) {
                    let slot = slot_of(scheduler, client, Priority::Medium);
                    for _ in 0..parts {
                        let taken = compute(Duration::from_micros(part)).as_micros();
                        used[index].fetch_add(taken.try_into().unwrap(), Ordering::Relaxed);
                        slot.let_others_pass(None, None).unwrap();
                    }
                }
            }
        };
        thread::scope(|scope| {
            // One with many threads, one with work that gives way only between its parts, and one
            // that asks again and again for little.
            crowd(scope, 6, run(0, 300, 1));
            crowd(scope, 1, run(1, 500, 100));
            crowd(scope, 2, run(2, 100, 1));
            // Much more than a time slice of each, however little of the machine others leave to this test.
            let all = || used.iter().map(|it| it.load(Ordering::Relaxed)).sum::<u64>();
            while all() < 3_000_000 {
                thread::sleep(Duration::from_millis(10));
            }
            over.store(true, Ordering::Relaxed);
        });
        let used = used.map(AtomicU64::into_inner);
        let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
        assert!(least * 2 > *most, "microseconds of the clients: {used:?}");
    }

    /// Two run at once; a client with long work in both lets another have one of them.
    #[test]
    fn qos_1_a_client_that_comes_late_waits_for_a_time_slice_and_an_operation() {
        let scheduler = Scheduler::new(2);
        let (early, late) = (client("early"), client("late"));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            crowd(scope, 2, || {
                let slot = slot_of(&scheduler, &early, Priority::High);
                while !over.load(Ordering::Relaxed) {
                    compute(Duration::from_micros(200));
                    slot.let_others_pass(None, None).unwrap();
                }
            });
            while scheduler.0.lock().free > 0 {
                thread::yield_now();
            }
            drop(slot_of(&scheduler, &late, Priority::Low));
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(scheduler.0.lock().free, 2);
    }

    #[test]
    fn conc_5_who_leaves_waits_no_longer_and_is_forgotten() {
        let scheduler = Scheduler::new(1);
        let (stays, leaves) = (client("stays"), client("leaves"));
        let running = slot_of(&scheduler, &stays, Priority::Low);
        thread::scope(|scope| {
            let waits = scope
                .spawn(|| scheduler.take_slot(&leaves, Priority::Low, None, None).unwrap_err());
            expect_waiting(&scheduler, 1);
            leaves.leave();
            assert_eq!(waits.join().unwrap(), Interruption::Cancelled);
        });
        let refused = scheduler.take_slot(&leaves, Priority::High, None, None).unwrap_err();
        assert_eq!(refused, Interruption::Cancelled);
        drop(running);
        // Whoever comes next finds what is left of others that want nothing.
        drop(slot_of(&scheduler, &stays, Priority::Low));
        for _ in 0..100 {
            drop(slot_of(&scheduler, &client("passes"), Priority::Low));
        }
        assert!(scheduler.0.lock().lines.len() <= 3);
    }

    /// Waits until `count` threads wait for a slot.
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
            let first = slot(&scheduler, Priority::Low);
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
                    let _slot = slot(scheduler, priority);
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
            let running = slot(&scheduler, Priority::Medium);
            for (count, priority) in [Priority::Medium, Priority::High].into_iter().enumerate() {
                let (scheduler, order) = (&scheduler, &order);
                scope.spawn(move || {
                    let _slot = slot(scheduler, priority);
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
    fn there_are_never_more_slots_than_said() {
        let scheduler = Scheduler::new(2);
        let (running, most) = (Mutex::new(0_u32), Mutex::new(0_u32));
        thread::scope(|scope| {
            for index in 0..12_u32 {
                let (scheduler, running, most) = (&scheduler, &running, &most);
                scope.spawn(move || {
                    let priority =
                        [Priority::Low, Priority::Medium, Priority::High][index as usize % 3];
                    for _ in 0..50 {
                        let slot = slot(scheduler, priority);
                        slot.let_others_pass(None, None).unwrap();
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
        let running = slot(&scheduler, Priority::Low);
        let soon = Deadline::after(Duration::from_millis(5));
        let refused = scheduler
            .take_slot(&Client::in_process(), Priority::High, Some(soon), None)
            .unwrap_err();
        assert_eq!(refused, Interruption::DeadlinePassed);
        assert_eq!(scheduler.waiting(), 0);
        running.let_others_pass(None, None).unwrap();
        drop(running);
        drop(slot(&scheduler, Priority::Low));
        assert_eq!(scheduler.0.lock().free, 1);
    }

    #[test]
    fn a_slot_that_was_lost_while_others_passed_is_not_given_back_twice() {
        let scheduler = Scheduler::new(1);
        let running = slot(&scheduler, Priority::Low);
        thread::scope(|scope| {
            let high = scope.spawn(|| slot(&scheduler, Priority::High));
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
        let _running = slot(&scheduler, Priority::Low);
        let cancellation = Cancellation::new();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                scheduler
                    .take_slot(&Client::in_process(), Priority::Low, None, Some(&cancellation))
                    .unwrap_err()
            });
            expect_waiting(&scheduler, 1);
            cancellation.cancel();
            assert_eq!(waits.join().unwrap(), Interruption::Cancelled);
        });
    }
}
