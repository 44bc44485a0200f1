//! [`Guest`]: a client of a service, and what was executed for it. What it holds its [`Client`] counts.

use nnhal_hal::Client;
use nnhal_hidl::serve::Tokens;
use nnhal_hidl::tasks::Tasks;
use rsbinder::SIBinder;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

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

/// A client of a service.
#[derive(Debug)]
pub struct Guest {
    client: Client,
    executions: Executions,
    /// Those of all guests.
    all: Arc<Executions>,
    /// Of the buffers that it was given, by the device.
    tokens: Mutex<HashMap<usize, Arc<Tokens>>>,
    /// What is prepared after the call, on threads that no other guest can take away.
    tasks: OnceLock<Tasks>,
}

impl Guest {
    /// A guest that counts as this client, whose executions count among `all`.
    pub fn new(client: Client, all: Arc<Executions>) -> Arc<Self> {
        let (executions, tokens, tasks) = Default::default();
        Arc::new(Self { client, executions, all, tokens, tasks })
    }

    /// The client, as devices know it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn tasks(&self) -> &Tasks {
        self.tasks.get_or_init(Tasks::default)
    }

    /// Counts an execution that has ended.
    pub(super) fn executed(&self, took: Duration, succeeded: bool) {
        self.executions.record(took, succeeded);
        self.all.record(took, succeeded);
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
        let guest = Guest::new(Client::in_process(), Arc::default());
        Self::new(move || Ok(Arc::clone(&guest)))
    }

    pub(super) fn find(&self) -> nnhal_hal::Result<Arc<Guest>> {
        (self.find)()
    }
}
