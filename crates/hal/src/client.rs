//! [`Client`]: who uses a device, and what of the device belongs to them.
//!
//! A service has many clients and is fair among them (contract: QOS-1, CONC-5, SEC-4). What a client
//! holds is counted and limited here, wherever it is: tasks, executions, buffers, bursts, memory.
//! When the client goes, [`Client::leave`] ends and releases all of it together. What all clients of a service hold together
//! is limited by their [`ClientGroup`].
//!
//! In a process that uses devices itself there is one client, [`Client::in_process`], and no one has
//! to name it.
//!
//! ```
//! use nnhal_hal::client::{Client, ClientLimits, Holding};
//!
//! let limits = ClientLimits { bursts: 2, ..ClientLimits::default() };
//! let client = Client::new("camera", limits);
//! let _first = client.hold(Holding::Bursts, 1)?;
//! let second = client.hold(Holding::Bursts, 1)?;
//! let refused = client.hold(Holding::Bursts, 1).unwrap_err();
//! assert_eq!(refused.to_string(), "client camera has 2 bursts, which leaves no room for 1 more of at most 2");
//! drop(second);
//! assert_eq!(client.held(Holding::Bursts), 1);
//! client.leave();
//! assert!(client.hold(Holding::Bursts, 1).is_err());
//! # Ok::<(), nnhal_hal::client::ClientError>(())
//! ```

use crate::cancellation::Cancellation;
use crate::codes::ErrorStatus;
use crate::error::Error;
use crate::time::Deadline;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How many clients there have been.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// Who uses a device. Clones are the same client.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    id: u64,
    name: String,
    limits: ClientLimits,
    held: [AtomicU64; Holding::ALL.len()],
    group: Option<ClientGroup>,
    /// Thrown when the client has left; the client of the process never does.
    left: Option<Cancellation>,
    hooks: Mutex<Hooks>,
}

/// Clients that are limited together, besides each alone: those of a service. Clones are the same group.
#[derive(Debug, Clone)]
pub struct ClientGroup(Arc<Group>);

#[derive(Debug)]
struct Group {
    limits: ClientLimits,
    held: [AtomicU64; Holding::ALL.len()],
}

type Hook = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Hooks {
    next: u64,
    hooks: BTreeMap<u64, Hook>,
}

/// What a client can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Holding {
    /// Executions that were begun and have not ended, whether they compute or wait for a slot.
    Executions,
    /// Fenced executions that were launched and have not ended.
    FencedExecutions,
    /// Executions that keep a thread which serves calls until they end: synchronous ones of other processes.
    Calls,
    /// Work of asynchronous methods, running or waiting for a thread.
    Tasks,
    /// Bursts.
    Bursts,
    /// Buffers that the driver manages, each of which has a token.
    Buffers,
    /// Bytes: models, what their executions take, the buffers' values.
    Memory,
    /// Prepared models that a service has given, and those that are being prepared.
    PreparedModels,
    /// Requests that a service keeps, to be executed again.
    ReusableExecutions,
    /// Descriptors that are kept when a call has returned: of the memory of prepared models, bursts, reusable executions, and
    /// executions that wait or run, and of the fences that these wait for.
    Descriptors,
    /// Fenced executions whose outcome a service's client can still ask for, also those that have ended.
    FencedOutcomes,
}

impl Holding {
    /// All there are.
    pub const ALL: [Self; 11] = [
        Self::Executions,
        Self::FencedExecutions,
        Self::Calls,
        Self::Tasks,
        Self::Bursts,
        Self::Buffers,
        Self::Memory,
        Self::PreparedModels,
        Self::ReusableExecutions,
        Self::Descriptors,
        Self::FencedOutcomes,
    ];
}

impl fmt::Display for Holding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Executions => "executions",
            Self::FencedExecutions => "fenced executions",
            Self::Calls => "synchronous calls",
            Self::Tasks => "tasks",
            Self::Bursts => "bursts",
            Self::Buffers => "buffers",
            Self::Memory => "bytes of memory",
            Self::PreparedModels => "prepared models",
            Self::ReusableExecutions => "reusable executions",
            Self::Descriptors => "descriptors",
            Self::FencedOutcomes => "outcomes of fenced executions",
        })
    }
}

/// How much a client may hold at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// [`Holding::Executions`]
    pub executions: u64,
    /// [`Holding::FencedExecutions`]; each costs its record and the descriptors of its fences.
    pub fenced_executions: u64,
    /// [`Holding::Calls`]
    pub calls: u64,
    /// [`Holding::Tasks`]
    pub tasks: u64,
    /// [`Holding::Bursts`]; each has a thread.
    pub bursts: u64,
    /// [`Holding::Buffers`]
    pub buffers: u64,
    /// [`Holding::Memory`], in bytes. The limit of the process holds besides.
    pub memory: u64,
    /// [`Holding::PreparedModels`]
    pub prepared_models: u64,
    /// [`Holding::ReusableExecutions`]
    pub reusable_executions: u64,
    /// [`Holding::Descriptors`]
    pub descriptors: u64,
    /// [`Holding::FencedOutcomes`]
    pub fenced_outcomes: u64,
    /// How long preparing a model may take, from the call on; of a group it means nothing.
    pub preparing: Duration,
}

impl Default for ClientLimits {
    /// 100,000 executions of each kind, calls and tasks, 1024 bursts, 65,536 buffers, of memory what the process may
    /// have, and no limits for the rest.
    fn default() -> Self {
        Self {
            executions: 100_000,
            fenced_executions: 100_000,
            calls: 100_000,
            tasks: 100_000,
            bursts: 1024,
            buffers: 65_536,
            memory: u64::MAX,
            prepared_models: u64::MAX,
            reusable_executions: u64::MAX,
            descriptors: u64::MAX,
            fenced_outcomes: u64::MAX,
            preparing: Duration::MAX,
        }
    }
}

impl ClientLimits {
    /// The same for a client of a service in which this number of threads serve calls, and for all of its clients together: three quarters
    /// of them for one, all but one for all, so that other calls are answered meanwhile.
    #[must_use]
    pub fn beside_threads(self, threads: usize) -> [Self; 2] {
        let threads = u64::try_from(threads).unwrap_or(u64::MAX);
        let [one, all] = [(threads / 4).saturating_mul(3), threads.saturating_sub(1)];
        [one, all].map(|calls| Self { calls: calls.max(1).min(self.calls), ..self })
    }

    fn of(&self, what: Holding) -> u64 {
        match what {
            Holding::Executions => self.executions,
            Holding::FencedExecutions => self.fenced_executions,
            Holding::Calls => self.calls,
            Holding::Tasks => self.tasks,
            Holding::Bursts => self.bursts,
            Holding::Buffers => self.buffers,
            Holding::Memory => self.memory,
            Holding::PreparedModels => self.prepared_models,
            Holding::ReusableExecutions => self.reusable_executions,
            Holding::Descriptors => self.descriptors,
            Holding::FencedOutcomes => self.fenced_outcomes,
        }
    }
}

/// Why a client cannot have more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It has left.
    #[error("client {client} has left")]
    Left {
        /// Its name.
        client: String,
    },
    /// It holds as much as it may, or wants more than that.
    #[error(
        "client {client} has {held} {what}, which leaves no room for {wanted} more of at most \
         {limit}"
    )]
    Limit {
        /// Its name.
        client: String,
        /// What it wanted more of.
        what: Holding,
        /// How much more.
        wanted: u64,
        /// How much it had.
        held: u64,
        /// How much it may have.
        limit: u64,
    },
    /// All clients of its group together hold as much as they may.
    #[error(
        "all clients together have {held} {what}, which leaves no room for {wanted} more of at most \
         {limit}"
    )]
    GroupLimit {
        /// What was wanted more of.
        what: Holding,
        /// How much more.
        wanted: u64,
        /// How much they had.
        held: u64,
        /// How much they may have.
        limit: u64,
    },
}

impl ClientError {
    /// The status that the client sees: it may try again when it holds less.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Left { .. } => ErrorStatus::GeneralFailure,
            Self::Limit { .. } | Self::GroupLimit { .. } => ErrorStatus::ResourceExhaustedTransient,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Self::new(error.status(), error)
    }
}

/// Something that a client holds, until this is dropped.
#[derive(Debug)]
#[must_use = "what is dropped is not held"]
pub struct Held {
    client: Client,
    what: Holding,
    amount: AtomicU64,
}

/// Something that is done when a client leaves, unless this is dropped before.
#[must_use = "what is dropped is not done"]
#[derive(Debug)]
pub struct AtLeaving {
    client: Client,
    number: Option<u64>,
}

impl Client {
    /// A client of a service. Names need not differ, clients always do.
    pub fn new(name: impl Into<String>, limits: ClientLimits) -> Self {
        Self::with(name.into(), limits, None, Some(Cancellation::new()))
    }

    /// A client that is limited together with the others of a group, too.
    pub fn in_group(name: impl Into<String>, limits: ClientLimits, group: &ClientGroup) -> Self {
        Self::with(name.into(), limits, Some(group.clone()), Some(Cancellation::new()))
    }

    /// The process itself, for devices that are used in it. It leaves with the process.
    pub fn in_process() -> Self {
        static PROCESS: OnceLock<Client> = OnceLock::new();
        let process =
            || Self::with("of the process".to_owned(), ClientLimits::default(), None, None);
        PROCESS.get_or_init(process).clone()
    }

    fn with(
        name: String,
        limits: ClientLimits,
        group: Option<ClientGroup>,
        left: Option<Cancellation>,
    ) -> Self {
        let id = CLIENTS.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Inner {
            id,
            name,
            limits,
            held: Default::default(),
            group,
            left,
            hooks: Mutex::default(),
        }))
    }

    /// Tells it from all other clients of the process; never used again.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// For people.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether both are clones of one client.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How much it holds.
    pub fn held(&self, what: Holding) -> u64 {
        self.counter(what).load(Ordering::Acquire)
    }

    /// How much it may hold.
    pub fn limit(&self, what: Holding) -> u64 {
        self.0.limits.of(what)
    }

    /// When a preparation that begins now has to have ended: at what it asks for, or earlier where the client may not
    /// take as long.
    pub fn preparation_deadline(&self, wanted: Option<Deadline>) -> Option<Deadline> {
        let allowed = match self.0.limits.preparing {
            Duration::MAX => None,
            longest => Some(Deadline::after(longest)),
        };
        wanted.into_iter().chain(allowed).min()
    }

    /// The clients that it is limited together with.
    pub fn group(&self) -> Option<&ClientGroup> {
        self.0.group.as_ref()
    }

    fn counter(&self, what: Holding) -> &AtomicU64 {
        &self.0.held[what as usize]
    }

    /// Counts something that it is about to hold.
    ///
    /// # Errors
    /// [`ClientError`]
    pub fn hold(&self, what: Holding, amount: u64) -> Result<Held, ClientError> {
        if self.has_left() {
            return Err(ClientError::Left { client: self.0.name.clone() });
        }
        let held = Held { client: self.clone(), what, amount: AtomicU64::new(0) };
        held.grow(amount)?;
        Ok(held)
    }

    /// Whether it is gone.
    pub fn has_left(&self) -> bool {
        self.0.left.as_ref().is_some_and(Cancellation::is_cancelled)
    }

    /// A switch that is thrown when it leaves; `None` if it never does.
    pub fn leaving(&self) -> Option<&Cancellation> {
        self.0.left.as_ref()
    }

    /// The client is gone: what it had running is cancelled, and what it held is released (contract:
    /// CONC-5). It gets nothing more. Executions that compute notice between two operations.
    /// The client of the process never leaves.
    pub fn leave(&self) {
        let Some(left) = &self.0.left else { return };
        left.cancel();
        let hooks = std::mem::take(&mut self.hooks().hooks);
        for hook in hooks.into_values() {
            hook();
        }
    }

    /// Does something when the client leaves; at once if it has left. Whatever it does must not wait,
    /// and holds on to nothing that the client is to release.
    pub fn at_leaving(&self, hook: impl Fn() + Send + Sync + 'static) -> AtLeaving {
        let mut number = None;
        if self.0.left.is_some() {
            let mut hooks = self.hooks();
            // Whoever leaves says so before taking the lock.
            if self.has_left() {
                drop(hooks);
                hook();
            } else {
                number = Some(hooks.next);
                let next = hooks.next;
                hooks.hooks.insert(next, Arc::new(hook));
                hooks.next += 1;
            }
        }
        AtLeaving { client: self.clone(), number }
    }

    /// Nothing is left half done under the lock, so a panic elsewhere does not spoil it.
    fn hooks(&self) -> MutexGuard<'_, Hooks> {
        self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientGroup {
    /// No clients yet, that may hold so much together.
    pub fn new(limits: ClientLimits) -> Self {
        Self(Arc::new(Group { limits, held: Default::default() }))
    }

    /// How much they hold.
    pub fn held(&self, what: Holding) -> u64 {
        self.0.held[what as usize].load(Ordering::Acquire)
    }

    /// How much they may hold.
    pub fn limit(&self, what: Holding) -> u64 {
        self.0.limits.of(what)
    }
}

/// The client of the process.
impl Default for Client {
    fn default() -> Self {
        Self::in_process()
    }
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.name)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { id, name, .. } = &*self.0;
        formatter.debug_struct("Client").field("id", id).field("name", name).finish_non_exhaustive()
    }
}

impl Held {
    /// Whose it is.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How much it is.
    pub fn amount(&self) -> u64 {
        self.amount.load(Ordering::Acquire)
    }

    /// Counts more.
    ///
    /// # Errors
    /// [`ClientError::Limit`], [`ClientError::GroupLimit`]; what was held before stays so.
    pub fn grow(&self, wanted: u64) -> Result<(), ClientError> {
        let Self { client, what, amount } = self;
        let limit = client.limit(*what);
        add(client.counter(*what), wanted, limit).map_err(|held| {
            let client = client.0.name.clone();
            ClientError::Limit { client, what: *what, wanted, held, limit }
        })?;
        if let Some(group) = &client.0.group {
            let limit = group.limit(*what);
            add(&group.0.held[*what as usize], wanted, limit).map_err(|held| {
                client.counter(*what).fetch_sub(wanted, Ordering::AcqRel);
                ClientError::GroupLimit { what: *what, wanted, held, limit }
            })?;
        }
        amount.fetch_add(wanted, Ordering::AcqRel);
        Ok(())
    }

    /// Gives so much of it back, or all of it if it is less.
    pub fn shrink(&self, unwanted: u64) {
        let less = |amount: u64| Some(amount.saturating_sub(unwanted));
        let before = self.amount.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        let given_back = before.map_or(0, |before| before.min(unwanted));
        self.client.counter(self.what).fetch_sub(given_back, Ordering::AcqRel);
        if let Some(group) = &self.client.0.group {
            group.0.held[self.what as usize].fetch_sub(given_back, Ordering::AcqRel);
        }
    }
}

/// Counts more, unless that exceeds the limit: then how much it was is the error.
fn add(counter: &AtomicU64, wanted: u64, limit: u64) -> Result<u64, u64> {
    let fits = |held: u64| held.checked_add(wanted).filter(|sum| *sum <= limit);
    counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(u64::MAX);
    }
}

impl Drop for AtLeaving {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let hook = self.client.hooks().hooks.remove(&number);
        // What it holds may do anything when it is dropped, so not under the lock.
        drop(hook);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    fn limited(tasks: u64) -> Client {
        Client::new("test", ClientLimits { tasks, ..ClientLimits::default() })
    }

    #[test]
    fn threads_never_hold_more_than_the_limit_together() {
        let client = limited(3);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let held = client.hold(Holding::Tasks, 2);
                        assert!(client.held(Holding::Tasks) <= 3);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(client.held(Holding::Tasks), 0);
        assert!(client.hold(Holding::Tasks, u64::MAX).is_err());
        // Another client has limits of its own.
        let _held = client.hold(Holding::Tasks, 3).unwrap();
        assert!(limited(3).hold(Holding::Tasks, 3).is_ok());
    }

    #[test]
    fn calls_of_one_client_and_of_all_leave_threads_for_others() {
        let limits = ClientLimits { calls: u64::MAX, ..ClientLimits::default() };
        let calls = |threads| limits.beside_threads(threads).map(|it| it.calls);
        assert_eq!(calls(16), [12, 15]);
        // With one thread there is nothing to share.
        assert_eq!((calls(1), calls(2)), ([1, 1], [1, 1]));
        let few = ClientLimits { calls: 3, ..limits };
        assert_eq!(few.beside_threads(16).map(|it| it.calls), [3, 3]);
    }

    #[test]
    fn what_is_held_grows_and_shrinks() {
        let client = limited(10);
        let held = client.hold(Holding::Tasks, 4).unwrap();
        held.grow(6).unwrap();
        let refused = held.grow(1).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
        held.shrink(9);
        assert_eq!((held.amount(), client.held(Holding::Tasks)), (1, 1));
        held.shrink(9);
        drop(held);
        assert_eq!(client.held(Holding::Tasks), 0);
    }

    #[test]
    fn a_preparation_ends_at_the_earlier_of_what_it_asks_and_what_its_client_may() {
        let client =
            |preparing| Client::new("test", ClientLimits { preparing, ..ClientLimits::default() });
        let (soon, late) =
            (Deadline::after(Duration::from_secs(5)), Deadline::after(Duration::from_secs(500)));
        let free = client(Duration::MAX);
        assert_eq!(
            (free.preparation_deadline(None), free.preparation_deadline(Some(late))),
            (None, Some(late))
        );
        let limited = client(Duration::from_secs(50));
        assert_eq!(limited.preparation_deadline(Some(soon)), Some(soon));
        for wanted in [None, Some(late)] {
            let deadline = limited.preparation_deadline(wanted).unwrap();
            assert!(soon < deadline && deadline < late, "{deadline:?}");
        }
    }

    #[test]
    fn a_group_is_limited_together() {
        let group = ClientGroup::new(ClientLimits { tasks: 3, ..ClientLimits::default() });
        let limits = ClientLimits { tasks: 2, ..ClientLimits::default() };
        let (one, other) =
            (Client::in_group("a", limits, &group), Client::in_group("b", limits, &group));
        let held = one.hold(Holding::Tasks, 2).unwrap();
        let refused = one.hold(Holding::Tasks, 1).unwrap_err();
        assert!(matches!(refused, ClientError::Limit { .. }), "{refused}");
        let second = other.hold(Holding::Tasks, 1).unwrap();
        let refused = second.grow(1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "all clients together have 3 tasks, which leaves no room for 1 more of at most 3"
        );
        assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
        // What was refused is not counted.
        assert_eq!((other.held(Holding::Tasks), group.held(Holding::Tasks)), (1, 3));
        drop(held);
        second.grow(1).unwrap();
        drop(second);
        assert_eq!(group.held(Holding::Tasks), 0);
        // Of other groups nothing is counted.
        let _alone = limited(5).hold(Holding::Tasks, 5).unwrap();
        assert_eq!(group.held(Holding::Tasks), 0);
    }

    #[test]
    fn conc_5_leaving_does_once_what_is_to_be_done() {
        let client = limited(1);
        let count = Arc::new(AtomicUsize::new(0));
        let hook = || {
            let count = Arc::clone(&count);
            move || {
                count.fetch_add(1, Ordering::SeqCst);
            }
        };
        let _kept = client.at_leaving(hook());
        drop(client.at_leaving(hook()));
        assert_eq!(Arc::strong_count(&count), 2);
        client.leave();
        client.leave();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        // Who comes too late is notified at once.
        let _late = client.at_leaving(hook());
        assert_eq!(count.load(Ordering::SeqCst), 2);
        let refused = client.hold(Holding::Tasks, 1).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
        assert!(client.leaving().unwrap().is_cancelled());
    }

    #[test]
    fn the_client_of_the_process_stays() {
        let process = Client::in_process();
        process.leave();
        assert!(!process.has_left() && process.leaving().is_none());
        assert!(process.is_same(&Client::default()));
        assert!(process.hold(Holding::Memory, 1).is_ok());
    }
}
