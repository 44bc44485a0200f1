//! [`Ledger`]: how much memory a model, a client and the process may take, and how much they take.
//!
//! Whatever a model's or a request's numbers decide the size of is charged before it is allocated,
//! and stays charged for as long as it is held: constants, packed weights, plans, the memory of
//! executions. A charge counts for the model, for its client and for the process.
//!
//! ```
//! use nnhal_driver::{Ledger, MemoryUse};
//!
//! let ledger = Ledger::of_model(1000);
//! let charge = ledger.charge(600, MemoryUse::Inputs)?;
//! assert!(ledger.charge(600, MemoryUse::Inputs).is_err());
//! drop(charge);
//! assert_eq!(ledger.charge(600, MemoryUse::Inputs)?.bytes(), 600);
//! # Ok::<(), nnhal_driver::EngineError>(())
//! ```

use crate::error::{EngineError, MemoryHolder, MemoryUse};
use nnhal_hal::Client;
use nnhal_hal::client::{ClientError, Held, Holding};
use nnhal_hal::memory::machine_memory;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// Bytes that a model may take where an embedder does not say otherwise: half of what the machine
/// has, or of what the least limit of the process's control groups (version 1 or 2) allows.
pub fn default_model_limit() -> u64 {
    machine_memory() / 2
}

/// Bytes that all models of a process may take together: three quarters of what
/// [`default_model_limit`] is a half of. The rest is for the process itself.
pub fn default_process_limit() -> u64 {
    machine_memory() / 4 * 3
}

/// Counts bytes that are held, against a limit. Clones count together.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    holder: MemoryHolder,
    limit: u64,
    live: Live,
    /// Counts everything that this one counts.
    parent: Option<Ledger>,
}

/// The bytes that are held.
#[derive(Debug)]
enum Live {
    Here(AtomicU64),
    /// All that the client holds, of which this is what was charged here.
    Client(Held),
}

/// Memory that is charged, and not used at the moment.
pub trait Idle: Send + Sync {
    /// Frees it. Charges nothing, and takes no lock that is held while something is charged.
    fn let_go(&self);

    /// When it was last used, if making it again takes long: it is freed only where all else is not enough, what has not been
    /// used for longest first. Takes no lock but those of [`let_go`](Self::let_go).
    fn last_used(&self) -> Option<Instant> {
        None
    }
}

/// Idle memory that may be let go of where there is no room for something else.
struct Kept {
    /// The client's id whose it is, if it is one's.
    client: Option<u64>,
    idle: Weak<dyn Idle>,
}

/// All of the process. What is gone stays until there is no room for another.
static ALL_IDLE: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn all_idle() -> MutexGuard<'static, Vec<Kept>> {
    ALL_IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that count until this is dropped.
#[derive(Debug)]
#[must_use = "what is dropped does not count"]
pub struct Charge {
    ledger: Ledger,
    bytes: u64,
}

/// Of fewer bytes it is not asked whether they can be allocated: that costs more than they are worth.
const LARGE: u64 = 1 << 20;

impl Ledger {
    /// The one of this process, with [`default_process_limit`].
    pub fn process() -> &'static Self {
        static PROCESS: OnceLock<Ledger> = OnceLock::new();
        PROCESS.get_or_init(|| Self::with_process_limit(default_process_limit()))
    }

    /// The ledger of a model, which may take `limit` bytes. They count for the process too.
    pub fn of_model(limit: u64) -> Self {
        Self::process().model(limit)
    }

    /// The ledger of a process of its own, which may take `limit` bytes. For tests.
    pub fn with_process_limit(limit: u64) -> Self {
        Self::new(MemoryHolder::Process, limit, None)
    }

    /// The ledger of a model, which may take `limit` bytes. They count here too.
    pub fn model(&self, limit: u64) -> Self {
        Self::new(MemoryHolder::Model, limit, Some(self.clone()))
    }

    /// One for what is this client's, wherever it is charged. It counts for the process too.
    pub fn of_client(client: &Client) -> Self {
        let limit = client.limit(Holding::Memory);
        let parent = Some(Self::process().clone());
        let live = match client.hold(Holding::Memory, 0) {
            Ok(held) => Live::Client(held),
            // It has left, and can have nothing.
            Err(_) => {
                let holder = MemoryHolder::Client;
                let live = Live::Here(AtomicU64::new(0));
                return Self(Arc::new(Inner { holder, limit: 0, live, parent }));
            }
        };
        Self(Arc::new(Inner { holder: MemoryHolder::Client, limit, live, parent }))
    }

    fn new(holder: MemoryHolder, limit: u64, parent: Option<Self>) -> Self {
        Self(Arc::new(Inner { holder, limit, live: Live::Here(AtomicU64::new(0)), parent }))
    }

    /// Bytes that are held.
    pub fn live(&self) -> u64 {
        match &self.0.live {
            Live::Here(live) => live.load(Ordering::Relaxed),
            Live::Client(held) => held.client().held(Holding::Memory),
        }
    }

    /// Bytes that may be held.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Bytes that could be charged now.
    pub fn remaining(&self) -> u64 {
        self.levels().map(Self::remaining_here).min().unwrap_or(0)
    }

    fn remaining_here(&self) -> u64 {
        let remaining = self.limit().saturating_sub(self.live());
        match self.group() {
            Some(group) => remaining.min(group.limit.saturating_sub(group.live)),
            None => remaining,
        }
    }

    /// What the clients hold together of whom this one's is one, if there is a limit for that.
    fn group(&self) -> Option<GroupMemory> {
        let Live::Client(held) = &self.0.live else { return None };
        let group = held.client().group()?;
        let (live, limit) = (group.held(Holding::Memory), group.limit(Holding::Memory));
        Some(GroupMemory { live, limit })
    }

    /// This one, and those that count what it counts.
    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |ledger| ledger.0.parent.as_ref())
    }

    fn refusal(&self, user: MemoryUse, wanted: u64, live: u64) -> EngineError {
        let Inner { holder, limit, .. } = *self.0;
        EngineError::MemoryLimit { user, wanted, live, holder, limit }
    }

    /// Why a client, or all of them together, cannot have more.
    fn client_refusal(&self, user: MemoryUse, wanted: u64, error: &ClientError) -> EngineError {
        match *error {
            ClientError::GroupLimit { held, limit, .. } => {
                GroupMemory { live: held, limit }.refusal(user, wanted)
            }
            ClientError::Limit { held, .. } => self.refusal(user, wanted, held),
            ClientError::Left { .. } => self.refusal(user, wanted, self.live()),
        }
    }

    /// Refuses what could not be charged, or allocated in one piece, now. It is not charged yet.
    ///
    /// Collections of the standard library mostly end the process if there is no memory for them. Where
    /// a model's numbers say how large they get, this is asked before.
    ///
    /// # Errors
    /// [`EngineError::MemoryLimit`], and [`EngineError::Allocation`] where the operating system limits
    /// the addresses of the process (`ulimit -v`).
    pub fn expect_room(&self, wanted: u64, user: MemoryUse) -> Result<(), EngineError> {
        self.with_idle_memory(|| self.ask_for_room(wanted, user))
    }

    fn ask_for_room(&self, wanted: u64, user: MemoryUse) -> Result<(), EngineError> {
        for level in self.levels() {
            let live = level.live();
            if live.saturating_add(wanted) > level.limit() {
                return Err(level.refusal(user, wanted, live));
            }
            if let Some(group) = level.group().filter(|it| !it.has_room(wanted)) {
                return Err(group.refusal(user, wanted));
            }
        }
        if wanted >= LARGE {
            let bytes = usize::try_from(wanted).unwrap_or(usize::MAX);
            let found = Vec::<u8>::new().try_reserve_exact(bytes);
            found.map_err(|_| EngineError::Allocation { user, wanted })?;
        }
        Ok(())
    }

    /// What is idle and charged here is freed before something of the same client is refused for want of room, or anything at
    /// all because the process or all clients together have too much. What the model itself may have is its own matter.
    pub fn keep_idle(&self, idle: Weak<dyn Idle>) {
        let client = self.client();
        let mut all = all_idle();
        if all.len() == all.capacity() {
            all.retain(|kept| kept.idle.strong_count() > 0);
        }
        all.push(Kept { client, idle });
    }

    /// The id of the client whose ledger it is.
    fn client(&self) -> Option<u64> {
        self.levels().find_map(|level| match &level.0.live {
            Live::Client(held) => Some(held.client().id()),
            Live::Here(_) => None,
        })
    }

    /// Asks for room; where there is none, once more without idle memory.
    fn with_idle_memory(
        &self,
        ask: impl Fn() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let refused = match ask() {
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        let of_client = match &refused {
            EngineError::MemoryLimit { holder: MemoryHolder::Model, .. } => return Err(refused),
            // However much is freed, so no one loses anything for it.
            EngineError::MemoryLimit { wanted, limit, .. } if wanted > limit => {
                return Err(refused);
            }
            EngineError::MemoryLimit { holder: MemoryHolder::Client, .. } => self.client(),
            _ => None,
        };
        let all = all_idle();
        let wanted = all.iter().filter(|kept| of_client.is_none() || kept.client == of_client);
        let idle: Vec<_> = wanted.filter_map(|kept| kept.idle.upgrade()).collect();
        drop(all);
        let used = idle.into_iter().map(|idle| (idle.last_used(), idle));
        let (mut costly, cheap): (Vec<_>, Vec<_>) = used.partition(|(used, _)| used.is_some());
        costly.sort_by_key(|(used, _)| *used);
        let portions = std::iter::once(&cheap[..]).chain(costly.chunks(1));
        let mut answer = Err(refused);
        for portion in portions.filter(|portion| !portion.is_empty()) {
            portion.iter().for_each(|(_, idle)| idle.let_go());
            answer = ask();
            if answer.is_ok() {
                break;
            }
        }
        answer
    }

    /// Counts bytes that are about to be allocated.
    ///
    /// # Errors
    /// [`EngineError::MemoryLimit`] if they would exceed a limit; then nothing is charged.
    pub fn charge(&self, bytes: u64, user: MemoryUse) -> Result<Charge, EngineError> {
        let mut charge = Charge { ledger: self.clone(), bytes: 0 };
        charge.grow(bytes, user)?;
        Ok(charge)
    }

    /// Adds to what is held, here and above, or nowhere.
    fn add(&self, bytes: u64, user: MemoryUse) -> Result<(), EngineError> {
        match &self.0.live {
            Live::Here(live) => {
                let fits = |live: u64| live.checked_add(bytes).filter(|sum| *sum <= self.limit());
                let added = live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
                added.map_err(|live| self.refusal(user, bytes, live))?;
            }
            Live::Client(held) => {
                held.grow(bytes).map_err(|error| self.client_refusal(user, bytes, &error))?;
            }
        }
        let above = self.0.parent.as_ref().map_or(Ok(()), |parent| parent.add(bytes, user));
        above.inspect_err(|_| self.subtract(bytes))
    }

    /// Gives back what was added, here only.
    fn subtract(&self, bytes: u64) {
        match &self.0.live {
            Live::Here(live) => drop(live.fetch_sub(bytes, Ordering::Relaxed)),
            Live::Client(held) => held.shrink(bytes),
        }
    }

    /// Room for elements of a vector, charged and allocated.
    ///
    /// # Errors
    /// [`EngineError::MemoryLimit`], or [`EngineError::Allocation`] if the system refuses.
    pub fn vec<T>(&self, length: usize, user: MemoryUse) -> Result<(Vec<T>, Charge), EngineError> {
        // More than there can be exceeds every limit.
        let bytes = (length as u64).saturating_mul(size_of::<T>() as u64);
        let charge = self.charge(bytes, user)?;
        let mut vec = Vec::new();
        let wanted = bytes;
        vec.try_reserve_exact(length).map_err(|_| EngineError::Allocation { user, wanted })?;
        Ok((vec, charge))
    }
}

/// Bytes that the clients of a group hold together, and may hold.
struct GroupMemory {
    live: u64,
    limit: u64,
}

impl GroupMemory {
    fn has_room(&self, wanted: u64) -> bool {
        self.live.checked_add(wanted).is_some_and(|sum| sum <= self.limit)
    }

    fn refusal(&self, user: MemoryUse, wanted: u64) -> EngineError {
        let (live, limit, holder) = (self.live, self.limit, MemoryHolder::AllClients);
        EngineError::MemoryLimit { user, wanted, live, holder, limit }
    }
}

impl Charge {
    /// How many they are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Charges more.
    ///
    /// # Errors
    /// As [`Ledger::charge`]; what was charged before stays so.
    pub fn grow(&mut self, bytes: u64, user: MemoryUse) -> Result<(), EngineError> {
        self.ledger.with_idle_memory(|| self.ledger.add(bytes, user))?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives back what is more than `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        for level in self.ledger.levels() {
            level.subtract(less);
        }
        self.bytes -= less;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::ErrorStatus;
    use nnhal_hal::client::ClientGroup;
    use proptest::prelude::*;

    #[test]
    fn what_is_dropped_does_not_count_any_more() {
        let ledger = Ledger::with_process_limit(1000).model(10);
        let charge = ledger.charge(6, MemoryUse::Inputs).unwrap();
        let error = ledger.charge(5, MemoryUse::Inputs).unwrap_err();
        assert_eq!(
            error.to_string(),
            "inputs: 5 more bytes beside 6 exceed the limit of 10 for the model"
        );
        assert_eq!(error.status(), ErrorStatus::ResourceExhaustedPersistent);
        drop(charge);
        drop(ledger.charge(10, MemoryUse::Inputs).unwrap());
        assert_eq!((ledger.live(), ledger.remaining()), (0, 10));
    }

    #[test]
    fn room_that_the_system_does_not_have_is_refused_before_it_is_taken() {
        let ledger = Ledger::with_process_limit(u64::MAX);
        let wanted = u64::MAX / 2;
        let refused = ledger.expect_room(wanted, MemoryUse::Constants).unwrap_err();
        assert!(
            matches!(refused, EngineError::Allocation { wanted: found, .. } if found == wanted)
        );
        assert_eq!(ledger.live(), 0);
    }

    #[test]
    fn models_share_the_limit_of_the_process() {
        let process = Ledger::with_process_limit(10);
        let (one, other) = (process.model(8), process.model(8));
        let charge = one.charge(6, MemoryUse::Constants).unwrap();
        let error = other.charge(5, MemoryUse::Constants).unwrap_err();
        assert_eq!(
            error.to_string(),
            "constants: 5 more bytes beside 6 exceed the limit of 10 for the process"
        );
        // Another model may give them back.
        assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient);
        assert!(other.expect_room(5, MemoryUse::Constants).is_err());
        assert_eq!((other.live(), other.remaining(), process.live()), (0, 4, 6));
        drop(charge);
        let mut charge = other.charge(3, MemoryUse::Constants).unwrap();
        charge.grow(5, MemoryUse::Constants).unwrap();
        assert_eq!(process.live(), 8);
        assert!(charge.grow(1, MemoryUse::Constants).is_err());
        charge.shrink_to(2);
        assert_eq!((charge.bytes(), other.live(), process.live()), (2, 2, 2));
    }

    #[test]
    fn all_that_is_charged_to_a_client_counts_together() {
        let limits = nnhal_hal::ClientLimits { memory: 10, ..Default::default() };
        let client = Client::new("test", limits);
        let (one, other) = (Ledger::of_client(&client).model(8), Ledger::of_client(&client));
        let charge = one.charge(6, MemoryUse::Constants).unwrap();
        let error = other.charge(5, MemoryUse::Inputs).unwrap_err();
        assert_eq!(
            error.to_string(),
            "inputs: 5 more bytes beside 6 exceed the limit of 10 for the client"
        );
        assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient);
        assert_eq!((client.held(Holding::Memory), other.remaining(), one.remaining()), (6, 4, 2));
        drop(charge);
        drop(other.charge(10, MemoryUse::Inputs).unwrap());
        assert_eq!(client.held(Holding::Memory), 0);
        client.leave();
        assert!(other.charge(1, MemoryUse::Inputs).is_ok(), "what goes on may end as it began");
        assert!(Ledger::of_client(&client).charge(1, MemoryUse::Inputs).is_err());
    }

    /// A charge that can be let go of.
    struct Spare(Mutex<Option<Charge>>);

    impl Spare {
        fn new(ledger: &Ledger, bytes: u64) -> Arc<Self> {
            let charge = ledger.charge(bytes, MemoryUse::Values).unwrap();
            let spare = Arc::new(Self(Mutex::new(Some(charge))));
            let weak: Weak<Self> = Arc::downgrade(&spare);
            ledger.keep_idle(weak);
            spare
        }

        fn is_kept(&self) -> bool {
            self.0.lock().unwrap().is_some()
        }
    }

    impl Idle for Spare {
        fn let_go(&self) {
            let freed = self.0.lock().unwrap().take();
            drop(freed);
        }
    }

    #[test]
    fn what_is_idle_makes_room_for_the_same_client() {
        let limits = nnhal_hal::ClientLimits { memory: 10, ..Default::default() };
        let [client, other] = ["one", "other"].map(|name| Client::new(name, limits));
        let model = || Ledger::of_client(&client).model(100);
        let (idle, of_other) =
            (Spare::new(&model(), 6), Spare::new(&Ledger::of_client(&other).model(100), 6));
        let charge = model().charge(4, MemoryUse::Inputs).unwrap();
        assert!(idle.is_kept(), "there was room");
        drop(model().charge(5, MemoryUse::Inputs).unwrap());
        assert!(!idle.is_kept() && of_other.is_kept());
        let idle = Spare::new(&model(), 6);
        model().expect_room(6, MemoryUse::Inputs).unwrap();
        assert!(!idle.is_kept() && of_other.is_kept());
        drop(charge);

        // What one model may have is its own matter.
        let idle = Spare::new(&model(), 6);
        let little = Ledger::of_client(&client).model(2);
        assert!(little.charge(3, MemoryUse::Inputs).is_err());
        assert!(idle.is_kept());

        // All clients together have too much.
        let group = ClientGroup::new(limits);
        let [first, second] = ["first", "second"]
            .map(|name| Ledger::of_client(&Client::in_group(name, limits, &group)));
        let idle = Spare::new(&first, 6);
        drop(second.charge(5, MemoryUse::Inputs).unwrap());
        assert!(!idle.is_kept());
    }

    /// A charge that takes long to make again.
    struct Costly(Arc<Spare>, Instant);

    impl Idle for Costly {
        fn let_go(&self) {
            self.0.let_go();
        }

        fn last_used(&self) -> Option<Instant> {
            Some(self.1)
        }
    }

    #[test]
    fn what_takes_long_to_make_again_is_freed_last_and_as_little_of_it_as_will_do() {
        let limits = nnhal_hal::ClientLimits { memory: 10, ..Default::default() };
        let client = Client::new("one", limits);
        let ledger = Ledger::of_client(&client).model(100);
        let (now, second) = (Instant::now(), std::time::Duration::from_secs(1));
        let costly = |bytes, used| {
            let charge = ledger.charge(bytes, MemoryUse::Plan).unwrap();
            let costly = Arc::new(Costly(Arc::new(Spare(Mutex::new(Some(charge)))), used));
            let weak: Weak<Costly> = Arc::downgrade(&costly);
            ledger.keep_idle(weak);
            costly
        };
        let (recent, old) = (costly(3, now + second), costly(3, now));
        let cheap = Spare::new(&ledger, 3);
        let kept = || (recent.0.is_kept(), old.0.is_kept(), cheap.is_kept());
        drop(ledger.charge(4, MemoryUse::Inputs).unwrap());
        assert_eq!(kept(), (true, true, false));
        drop(ledger.charge(6, MemoryUse::Inputs).unwrap());
        assert_eq!(kept(), (true, false, false));
        assert!(ledger.charge(11, MemoryUse::Inputs).is_err());
        assert_eq!(kept(), (true, false, false), "that is more than there can be");
        drop(ledger.charge(10, MemoryUse::Inputs).unwrap());
        assert_eq!(kept(), (false, false, false));
    }

    #[test]
    fn what_all_clients_have_together_is_refused_by_their_limit() {
        let memory = |memory| nnhal_hal::ClientLimits { memory, ..Default::default() };
        let group = ClientGroup::new(memory(10));
        let client = |name| Ledger::of_client(&Client::in_group(name, memory(8), &group));
        let (one, other) = (client("one"), client("other"));
        let charge = one.charge(6, MemoryUse::Constants).unwrap();
        assert_eq!((one.remaining(), other.remaining()), (2, 4));
        let expected =
            "inputs: 5 more bytes beside 6 exceed the limit of 10 for all clients together";
        let charged = other.charge(5, MemoryUse::Inputs).unwrap_err();
        let asked = other.expect_room(5, MemoryUse::Inputs).unwrap_err();
        for error in [charged, asked] {
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient);
        }
        assert_eq!(group.held(Holding::Memory), 6, "what was refused does not count");
        // Its own limit is the client's own matter.
        let error = one.charge(3, MemoryUse::Inputs).unwrap_err();
        assert_eq!(
            error.to_string(),
            "inputs: 3 more bytes beside 6 exceed the limit of 8 for the client"
        );
        drop(charge);
        drop(other.charge(8, MemoryUse::Inputs).unwrap());
    }

    #[test]
    fn numbers_that_wrap_are_refused() {
        let ledger = Ledger::with_process_limit(u64::MAX).model(u64::MAX);
        let _charge = ledger.charge(2, MemoryUse::Inputs).unwrap();
        assert!(ledger.charge(u64::MAX, MemoryUse::Inputs).is_err());
        assert!(ledger.vec::<u64>(usize::MAX, MemoryUse::Inputs).is_err());
        assert_eq!(ledger.live(), 2);
    }

    #[test]
    fn what_the_system_refuses_is_an_error_and_does_not_count() {
        let ledger = Ledger::with_process_limit(u64::MAX).model(u64::MAX);
        let bytes = usize::MAX / 2 - 1;
        let error = ledger.vec::<u8>(bytes, MemoryUse::Values).unwrap_err();
        assert!(
            matches!(error, EngineError::Allocation { user: MemoryUse::Values, .. }),
            "{error}"
        );
        assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient);
        assert_eq!(ledger.live(), 0);
    }

    #[test]
    fn threads_never_exceed_the_limit_together() {
        let process = Ledger::with_process_limit(100);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let model = process.model(60);
                    for _ in 0..2000 {
                        let charge = model.charge(30, MemoryUse::Inputs);
                        assert!(process.live() <= 100 && model.live() <= 60);
                        drop(charge);
                    }
                });
            }
        });
        assert_eq!(process.live(), 0);
    }

    proptest! {
        #[test]
        fn ledgers_agree_with_sums(charges in prop::collection::vec((any::<bool>(), 0..50_u64), 0..40)) {
            let process = Ledger::with_process_limit(400);
            let models = [process.model(200), process.model(250)];
            let mut held: [Vec<Charge>; 2] = Default::default();
            for (second, bytes) in charges {
                let index = usize::from(second);
                let sum = |charges: &[Charge]| charges.iter().map(Charge::bytes).sum::<u64>();
                let sums = [sum(&held[0]), sum(&held[1])];
                let fits = sums[index] + bytes <= models[index].limit()
                    && sums[0] + sums[1] + bytes <= 400;
                let charge = models[index].charge(bytes, MemoryUse::Inputs);
                prop_assert_eq!(charge.is_ok(), fits);
                match charge {
                    Ok(charge) => held[index].push(charge),
                    Err(_) => held[index].truncate(1),
                }
                prop_assert_eq!(process.live(), sum(&held[0]) + sum(&held[1]));
                prop_assert_eq!(models[index].live(), sum(&held[index]));
            }
        }
    }
}
