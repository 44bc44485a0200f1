//! [`Remote`]: an object of another process.

use crate::driver::Process;
use crate::error::Error;
use crate::parcel::{Reader, Writer};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object of another process. It exists there as long as this does.
pub struct Remote {
    process: Arc<Process>,
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
    pub(crate) fn new(process: Arc<Process>, handle: u32) -> Self {
        Self { process, handle, death: Mutex::default() }
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

    /// This process, as the object's device sees it.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
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
        self.process.call(self.handle, code, request, read)
    }

    /// Calls a method whose results no one waits for.
    ///
    /// # Errors
    /// [`Error::Dead`]; [`Error::Refused`] also if the object has too many calls waiting.
    pub fn call_one_way(&self, code: u32, request: Writer) -> Result<(), Error> {
        self.process.call_one_way(self.handle, code, request)
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
            death.cookie = Some(self.process.watch(self));
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
        let process = Arc::clone(&self.process);
        process.forget(self);
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
