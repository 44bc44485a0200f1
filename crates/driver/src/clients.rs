//! [`Clients`]: how many clients use a device at a time.

use nnhal_hal::{Client, Error, ErrorStatus};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many clients may have prepared models of a device where its maker does not say otherwise.
const MAXIMUM: usize = 1024;

/// A client cannot have models prepared, because too many others have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the device has {limit} clients, which leaves no room for client {client}")]
pub struct TooManyClients {
    /// Its name.
    pub client: String,
    /// How many there may be.
    pub limit: usize,
}

impl From<TooManyClients> for Error {
    fn from(error: TooManyClients) -> Self {
        Self::new(ErrorStatus::ResourceExhaustedTransient, error)
    }
}

/// The clients that have prepared models of a device, or are preparing some. Each may have threads of
/// its own for every priority, and its slots.
#[derive(Debug)]
pub(crate) struct Clients {
    limit: AtomicUsize,
    /// How many models each has, by the client's id.
    models: Mutex<BTreeMap<u64, usize>>,
}

/// A model of a client, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    clients: Arc<Clients>,
    client: u64,
}

impl Default for Clients {
    fn default() -> Self {
        Self { limit: AtomicUsize::new(MAXIMUM), models: Mutex::default() }
    }
}

impl Clients {
    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Counts a model of this client.
    pub(crate) fn admit(self: &Arc<Self>, client: &Client) -> Result<Admission, TooManyClients> {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut models = self.lock();
        // The process itself is no stranger, and there is one of it.
        let is_new = !models.contains_key(&client.id()) && client.leaving().is_some();
        let others = models.len() - usize::from(models.contains_key(&Client::in_process().id()));
        if is_new && others >= limit {
            return Err(TooManyClients { client: client.name().to_owned(), limit });
        }
        *models.entry(client.id()).or_default() += 1;
        Ok(Admission { clients: Arc::clone(self), client: client.id() })
    }

    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut models = self.clients.lock();
        if let Some(count) = models.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                models.remove(&self.client);
            }
        }
    }
}
