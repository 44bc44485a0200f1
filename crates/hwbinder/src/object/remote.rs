//! [`Remote`]: an object of another process.

use super::{Binder, Reader, Writer};
use crate::error::Error;
use crate::parcel::Parcel;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What carries calls to objects of other processes, which it knows by handles.
pub(crate) trait Carrier: Send + Sync {
    /// Calls a method and waits for the reply.
    fn call(
        self: Arc<Self>,
        handle: u32,
        code: u32,
        request: Writer,
    ) -> Result<Box<dyn Incoming>, Error>;

    /// Calls a method whose results no one waits for.
    fn call_one_way(self: Arc<Self>, handle: u32, code: u32, request: Writer) -> Result<(), Error>;

    /// Asks to be notified when an object's process ends. Returns what the notice will name.
    fn watch(&self, remote: &Arc<Remote>) -> u64;

    /// Lets go of an object.
    fn forget(&self, remote: &Remote);
}

/// A parcel that has arrived, in memory that is given back when this is dropped.
pub(crate) trait Incoming {
    /// The parcel, after its objects have been checked.
    fn parcel(&self) -> Result<Parcel<'_, Binder>, Error>;
}

/// An object of another process. It exists there as long as this does.
pub struct Remote {
    carrier: Arc<dyn Carrier>,
    handle: u32,
    death: Mutex<Death>,
}

#[derive(Default)]
struct Death {
    /// What the kernel's notice will name, if one was asked for.
    cookie: Option<u64>,
    dead: bool,
    next: u64,
    links: BTreeMap<u64, Box<dyn FnOnce() + Send>>,
}

/// What is done when an object's process ends, unless this is dropped before.
#[must_use = "what is dropped is not done"]
pub struct DeathLink {
    remote: Arc<Remote>,
    number: u64,
}

impl Remote {
    pub(crate) fn new(carrier: Arc<dyn Carrier>, handle: u32) -> Self {
        Self { carrier, handle, death: Mutex::default() }
    }

    pub(crate) fn handle(&self) -> u32 {
        self.handle
    }

    fn death(&self) -> MutexGuard<'_, Death> {
        self.death.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cookie(&self) -> Option<u64> {
        self.death().cookie
    }

    /// Calls a method and reads the results of its reply.
    ///
    /// # Errors
    /// [`Error::Dead`] if the object's process is gone, also when it ends during the call; what the reply says; what
    /// `read` says.
    pub fn call<T>(
        &self,
        code: u32,
        request: Writer,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let reply = Arc::clone(&self.carrier).call(self.handle, code, request)?;
        let parcel = reply.parcel()?;
        let mut reader = Reader::new(&parcel);
        reader.expect_no_exception()?;
        read(&mut reader)
    }

    /// Calls a method whose results no one waits for.
    ///
    /// # Errors
    /// [`Error::Dead`]; [`Error::Refused`] also if the object has too many calls waiting.
    pub fn call_one_way(&self, code: u32, request: Writer) -> Result<(), Error> {
        Arc::clone(&self.carrier).call_one_way(self.handle, code, request)
    }

    /// Whether a notice said that the object's process is gone. Without a link there are no notices.
    pub fn is_known_dead(&self) -> bool {
        self.death().dead
    }

    /// Does something when the object's process ends; at once, if it has ended. It is done on a thread that is called
    /// by others, and must not take long.
    pub fn link_to_death(self: &Arc<Self>, action: impl FnOnce() + Send + 'static) -> DeathLink {
        let mut death = self.death();
        let number = death.next;
        death.next += 1;
        if death.dead {
            drop(death);
            action();
            return DeathLink { remote: Arc::clone(self), number };
        }
        death.links.insert(number, Box::new(action));
        if death.cookie.is_none() {
            death.cookie = Some(self.carrier.watch(self));
        }
        drop(death);
        DeathLink { remote: Arc::clone(self), number }
    }

    /// The kernel's notice.
    pub(crate) fn died(&self) {
        let mut death = self.death();
        death.dead = true;
        let links = std::mem::take(&mut death.links);
        drop(death);
        for action in links.into_values() {
            if catch_unwind(AssertUnwindSafe(action)).is_err() {
                tracing::error!("what was to be done at a death has panicked");
            }
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.carrier.forget(self);
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Remote({})", self.handle)
    }
}

impl Drop for DeathLink {
    fn drop(&mut self) {
        let link = self.remote.death().links.remove(&self.number);
        drop(link);
    }
}

impl fmt::Debug for DeathLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DeathLink({:?})", self.remote)
    }
}
