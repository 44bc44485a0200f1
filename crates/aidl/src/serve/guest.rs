//! [`Guest`]: a client of a service, what it holds and how much it may.

use nnhal_hal::client::ClientLimits;
use nnhal_hal::{Client, Error, ErrorStatus};
use nnhal_hidl::serve::Tokens;
use nnhal_hidl::tasks::{Limits as TaskLimits, Tasks};
use rsbinder::SIBinder;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// What is counted besides what [`Client`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Object {
    /// Prepared models.
    PreparedModels,
    /// Reusable executions.
    Executions,
    /// Descriptors of memory that is kept from call to call.
    Descriptors,
}

impl Object {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::PreparedModels, Self::Executions, Self::Descriptors];
}

impl fmt::Display for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PreparedModels => "prepared models",
            Self::Executions => "reusable executions",
            Self::Descriptors => "descriptors",
        })
    }
}

/// How much one may hold at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// [`Object::PreparedModels`]
    pub prepared_models: u64,
    /// [`Object::Executions`]
    pub executions: u64,
    /// [`Object::Descriptors`]
    pub descriptors: u64,
    /// How long preparing a model may take.
    pub preparing: Duration,
}

impl Default for Limits {
    /// 256 prepared models, 1024 reusable executions, 4096 descriptors, ten minutes.
    fn default() -> Self {
        Self {
            prepared_models: 256,
            executions: 1024,
            descriptors: 4096,
            preparing: Duration::from_secs(600),
        }
    }
}

impl Limits {
    fn of(&self, what: Object) -> u64 {
        match what {
            Object::PreparedModels => self.prepared_models,
            Object::Executions => self.executions,
            Object::Descriptors => self.descriptors,
        }
    }
}

/// What all guests of a service hold together, and what was executed for them.
#[derive(Debug)]
pub struct Totals {
    limits: Limits,
    held: [AtomicU64; Object::ALL.len()],
    executions: Executions,
}

/// How many executions there were, and how long they took.
#[derive(Debug)]
pub struct Executions {
    failed: AtomicU64,
    /// By the binary logarithm of microseconds: under 1, under 2, under 4, and so on.
    ended: [AtomicU64; DURATIONS],
    microseconds: AtomicU64,
}

/// The number of durations that are distinguished; the last is a day and longer.
pub const DURATIONS: usize = 38;

impl Default for Executions {
    fn default() -> Self {
        let ended = std::array::from_fn(|_| AtomicU64::new(0));
        Self { failed: AtomicU64::new(0), ended, microseconds: AtomicU64::new(0) }
    }
}

impl Executions {
    /// Counts one that has ended.
    pub(super) fn record(&self, took: Duration, succeeded: bool) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bits = (u64::BITS - took.leading_zeros()) as usize;
        self.ended[bits.min(DURATIONS - 1)].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(took, Ordering::Relaxed);
        if !succeeded {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Microseconds that all took together.
    pub fn microseconds(&self) -> u64 {
        self.microseconds.load(Ordering::Relaxed)
    }

    /// How many took less than 2 to the power of the index microseconds, and not less than half of it.
    pub fn by_duration(&self) -> [u64; DURATIONS] {
        std::array::from_fn(|index| self.ended[index].load(Ordering::Relaxed))
    }

    /// How many there were, failed ones included.
    pub fn count(&self) -> u64 {
        self.by_duration().iter().sum()
    }

    /// A duration that this part of them, from 0 to 1, did not exceed, to a factor of two; `None` if there
    /// were none.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let by_duration = self.by_duration();
        let count: u64 = by_duration.iter().sum();
        #[allow(clippy::cast_precision_loss)] // A quantile of that many is not exact anyway.
        let wanted = part * count as f64;
        let mut below = 0;
        by_duration.iter().enumerate().filter(|_| count > 0).find_map(|(index, ended)| {
            below += ended;
            #[allow(clippy::cast_precision_loss)]
            let reached = below as f64 >= wanted;
            reached.then(|| Duration::from_micros(1 << index))
        })
    }
}

impl Totals {
    /// Nothing, of at most so much.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, held: Default::default(), executions: Executions::default() })
    }

    /// What was executed.
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    /// How much they hold.
    pub fn held(&self, what: Object) -> u64 {
        self.held[what as usize].load(Ordering::Acquire)
    }
}

/// Who cannot have more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{who} has {held} {what}, which leaves no room for {wanted} more of at most {limit}")]
pub struct LimitReached {
    who: String,
    held: u64,
    what: Object,
    wanted: u64,
    limit: u64,
}

/// A client of a service.
#[derive(Debug)]
pub struct Guest {
    client: Client,
    limits: Limits,
    held: [AtomicU64; Object::ALL.len()],
    totals: Arc<Totals>,
    executions: Executions,
    /// Of the buffers that it was given, by the device.
    tokens: Mutex<HashMap<usize, Arc<Tokens>>>,
    /// What is prepared after the call, on threads that no other guest can take away.
    tasks: OnceLock<Tasks>,
}

/// How many models are prepared for a guest at a time, of each priority, where this is done after the call.
const PREPARED_AT_ONCE: usize = 8;

impl Guest {
    /// A guest that counts as this client.
    pub fn new(client: Client, limits: Limits, totals: Arc<Totals>) -> Arc<Self> {
        let (held, tokens, executions, tasks) = Default::default();
        Arc::new(Self { client, limits, held, totals, executions, tokens, tasks })
    }

    /// The client, as devices know it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How much it may hold.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How much it holds.
    pub fn held(&self, what: Object) -> u64 {
        self.held[what as usize].load(Ordering::Acquire)
    }

    /// Counts `wanted` more as held until what is returned is dropped.
    pub(super) fn hold(self: &Arc<Self>, what: Object, wanted: u64) -> nnhal_hal::Result<Held> {
        let take = |counter: &AtomicU64, limit: u64, who: &dyn Fn() -> String| {
            let fits = |held: u64| held.checked_add(wanted).filter(|sum| *sum <= limit);
            counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).map_err(|held| {
                let reached = LimitReached { who: who(), held, what, wanted, limit };
                Error::new(ErrorStatus::ResourceExhaustedTransient, reached)
            })
        };
        let own = &self.held[what as usize];
        take(own, self.limits.of(what), &|| format!("client {}", self.client))?;
        let all = &self.totals.held[what as usize];
        if let Err(refused) = take(all, self.totals.limits.of(what), &|| "the service".to_owned()) {
            own.fetch_sub(wanted, Ordering::AcqRel);
            return Err(refused);
        }
        Ok(Held { guest: Arc::clone(self), what, amount: wanted })
    }

    pub(super) fn tasks(&self) -> &Tasks {
        let limits = TaskLimits { threads: PREPARED_AT_ONCE, ..TaskLimits::default() };
        self.tasks.get_or_init(|| Tasks::new(limits))
    }

    /// Counts an execution that has ended.
    pub(super) fn executed(&self, took: Duration, succeeded: bool) {
        self.executions.record(took, succeeded);
        self.totals.executions.record(took, succeeded);
    }

    /// What was executed for it.
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    /// The tokens that it was given by a device.
    pub(super) fn tokens(&self, device: usize) -> Arc<Tokens> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tokens.entry(device).or_default())
    }
}

/// Something that a guest holds, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    guest: Arc<Guest>,
    what: Object,
    amount: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        for counters in [&self.guest.held, &self.guest.totals.held] {
            counters[self.what as usize].fetch_sub(self.amount, Ordering::AcqRel);
        }
    }
}

/// Finds who is calling, on the thread of the call.
#[derive(Clone)]
pub struct Guests {
    find: Arc<Find>,
    met: Arc<Met>,
    notified: Notified,
}

/// When guests are notified of what they had prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notified {
    /// Before the call returns.
    InTheCall,
    /// When it is prepared, by another thread.
    Later,
}

type Find = dyn Fn() -> nnhal_hal::Result<Arc<Guest>> + Send + Sync;
type Met = dyn Fn(&Arc<Guest>, &SIBinder) + Send + Sync;

impl Guests {
    /// Whoever calls is what `find` says, or refused.
    pub fn new(find: impl Fn() -> nnhal_hal::Result<Arc<Guest>> + Send + Sync + 'static) -> Self {
        Self { find: Arc::new(find), met: Arc::new(|_, _| ()), notified: Notified::InTheCall }
    }

    /// Models are prepared after the call has returned: for transports that reach a guest's callback at any time, which
    /// sockets do not.
    #[must_use]
    pub fn notified_later(mut self) -> Self {
        self.notified = Notified::Later;
        self
    }

    pub(super) fn notified(&self) -> Notified {
        self.notified
    }

    /// `met` gets an object of each guest that prepares a model, whose death is the guest's: for transports
    /// on which nothing else says that a guest has gone.
    #[must_use]
    pub fn with_objects(
        mut self,
        met: impl Fn(&Arc<Guest>, &SIBinder) + Send + Sync + 'static,
    ) -> Self {
        self.met = Arc::new(met);
        self
    }

    pub(super) fn meet(&self, guest: &Arc<Guest>, object: &SIBinder) {
        (self.met)(guest, object);
    }

    /// All are one guest: the process itself, in which the device is used.
    pub fn one() -> Self {
        let limits =
            Limits { prepared_models: u64::MAX, executions: u64::MAX, ..Limits::default() };
        let guest = Guest::new(Client::in_process(), limits, Totals::new(limits));
        Self::new(move || Ok(Arc::clone(&guest)))
    }

    pub(super) fn find(&self) -> nnhal_hal::Result<Arc<Guest>> {
        (self.find)()
    }
}

/// A guest with a client of its own, for tests and for services with one kind of clients.
impl Guest {
    /// A client of this name with these limits.
    pub fn named(
        name: impl Into<String>,
        client: ClientLimits,
        limits: Limits,
        totals: &Arc<Totals>,
    ) -> Arc<Self> {
        Self::new(Client::new(name, client), limits, Arc::clone(totals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_limited_alone_and_together() {
        let limits = |prepared_models| Limits { prepared_models, ..Limits::default() };
        let totals = Totals::new(limits(3));
        let guest = || Guest::named("a", ClientLimits::default(), limits(2), &totals);
        let (one, other) = (guest(), guest());
        let what = Object::PreparedModels;
        let held = (one.hold(what, 1).unwrap(), one.hold(what, 1).unwrap());
        let refused = one.hold(what, 1).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
        assert!(refused.to_string().contains("client a has 2 prepared models"), "{refused}");
        let _third = other.hold(what, 1).unwrap();
        let refused = other.hold(what, 1).unwrap_err();
        assert!(refused.to_string().contains("the service has 3 prepared models"), "{refused}");
        assert_eq!(other.held(what), 1);
        drop(held);
        assert_eq!((one.held(what), totals.held(what)), (0, 1));
        assert!(other.hold(what, 1).is_ok());
    }
}
