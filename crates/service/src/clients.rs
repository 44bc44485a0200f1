//! [`Clients`]: who is connected. A process is one client, with its connections together.

use crate::settings::Settings;
use nnhal_aidl::serve::{Guest, Totals};
use nnhal_hal::{Client, Error, ErrorStatus};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Who a process is, as the kernel says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer {
    /// The user's number.
    pub uid: u32,
    /// The process's number; 0 if it is not of our namespace.
    pub pid: i32,
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} of user {}", self.pid, self.uid)
    }
}

/// Why somebody is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The user is none of those who may.
    #[error("user {0} may not connect")]
    User(u32),
    /// There are as many clients as there may be.
    #[error("there are {0} clients, as many as there may be")]
    Clients(usize),
    /// The client has as many connections as it may have.
    #[error("{peer} has {connections} connections, as many as it may have")]
    Connections {
        /// The client.
        peer: Peer,
        /// How many it has.
        connections: usize,
    },
}

/// A client that is connected.
#[derive(Debug, Clone)]
pub struct Connected {
    /// Its process.
    pub peer: Peer,
    /// What it holds.
    pub guest: Arc<Guest>,
    /// How many connections it has.
    pub connections: usize,
    /// Since when.
    pub since: Instant,
}

/// All clients of a service.
#[derive(Debug)]
pub struct Clients {
    settings: Mutex<Arc<Settings>>,
    totals: Arc<Totals>,
    connected: Mutex<HashMap<Peer, Connected>>,
    admitted: AtomicU64,
    refused: AtomicU64,
}

/// A connection that was let in, until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    clients: Arc<Clients>,
    peer: Peer,
}

impl Clients {
    /// No one yet.
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            totals: Totals::new(settings.all),
            settings: Mutex::new(Arc::new(settings)),
            connected: Mutex::default(),
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Other settings for clients that come from now on.
    pub fn reload(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// What all hold together.
    pub fn totals(&self) -> &Arc<Totals> {
        &self.totals
    }

    /// Those that are connected, in the order of users and processes.
    pub fn list(&self) -> Vec<Connected> {
        let mut list: Vec<Connected> = self.connected().values().cloned().collect();
        list.sort_by_key(|client| client.peer);
        list
    }

    /// How many clients there have been.
    pub fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::Relaxed)
    }

    /// How many connections were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Lets a connection in, or does not.
    pub(crate) fn admit(self: &Arc<Self>, peer: Peer) -> Result<Admission, Refusal> {
        let admitted = self.enter(peer);
        if let Err(refusal) = &admitted {
            self.refused.fetch_add(1, Ordering::Relaxed);
            tracing::info!(%peer, %refusal, "refused a connection");
        }
        admitted
    }

    fn enter(self: &Arc<Self>, peer: Peer) -> Result<Admission, Refusal> {
        let settings = self.settings();
        if settings.users.as_ref().is_some_and(|users| !users.contains(&peer.uid)) {
            return Err(Refusal::User(peer.uid));
        }
        let mut connected = self.connected();
        let count = connected.len();
        match connected.get_mut(&peer) {
            Some(client) if client.connections >= settings.connections => {
                return Err(Refusal::Connections { peer, connections: client.connections });
            }
            Some(client) => client.connections += 1,
            None if count >= settings.clients => return Err(Refusal::Clients(count)),
            None => {
                let client = Client::new(peer.to_string(), settings.client);
                let guest = Guest::new(client, settings.objects, Arc::clone(&self.totals));
                let client = Connected { peer, guest, connections: 1, since: Instant::now() };
                connected.insert(peer, client);
                self.admitted.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(Admission { clients: Arc::clone(self), peer })
    }

    /// The guest that is calling over kernel binder, which has no connections: who calls first is admitted,
    /// and stays until [`Clients::gone`].
    pub(crate) fn calling_or_new(self: &Arc<Self>) -> nnhal_hal::Result<Arc<Guest>> {
        if let Ok(guest) = self.calling() {
            return Ok(guest);
        }
        let pid = rsbinder::get_calling_pid();
        let peer = Peer { uid: rsbinder::get_calling_uid(), pid };
        let refused = |error| Error::new(ErrorStatus::ResourceExhaustedTransient, error);
        // It lasts until the process has died.
        std::mem::forget(self.admit(peer).map_err(refused)?);
        self.calling()
    }

    /// A process has died.
    pub(crate) fn gone(&self, guest: &Arc<Guest>) {
        let mut connected = self.connected();
        connected.retain(|_, client| !Arc::ptr_eq(&client.guest, guest));
        drop(connected);
        guest.client().leave();
    }

    /// The guest that is calling, on the thread of its call.
    pub(crate) fn calling(&self) -> nnhal_hal::Result<Arc<Guest>> {
        let pid = rsbinder::get_calling_pid();
        let peer = Peer { uid: rsbinder::get_calling_uid(), pid };
        let connected = self.connected();
        let client = connected.get(&peer).map(|client| Arc::clone(&client.guest));
        client.ok_or_else(|| {
            Error::new(ErrorStatus::GeneralFailure, format!("{peer} is no longer connected"))
        })
    }

    /// Nothing is left half done under the lock.
    fn connected(&self) -> MutexGuard<'_, HashMap<Peer, Connected>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut connected = self.clients.connected();
        let Some(client) = connected.get_mut(&self.peer) else { return };
        client.connections -= 1;
        if client.connections > 0 {
            return;
        }
        let gone = connected.remove(&self.peer);
        // What its leaving ends may take locks of its own.
        drop(connected);
        if let Some(gone) = gone {
            gone.guest.client().leave();
            tracing::debug!(peer = %self.peer, "a client has gone");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(settings: Settings) -> Arc<Clients> {
        Clients::new(settings)
    }

    fn peer(pid: i32) -> Peer {
        Peer { uid: 1000, pid }
    }

    #[test]
    fn a_process_is_one_client_until_its_last_connection_ends() {
        let clients = clients(Settings { connections: 2, clients: 2, ..Settings::default() });
        let first = clients.admit(peer(1)).unwrap();
        let second = clients.admit(peer(1)).unwrap();
        let refused = clients.admit(peer(1)).unwrap_err();
        assert_eq!(refused, Refusal::Connections { peer: peer(1), connections: 2 });
        let _other = clients.admit(peer(2)).unwrap();
        assert_eq!(clients.admit(peer(3)).unwrap_err(), Refusal::Clients(2));
        let guest = Arc::clone(&clients.list()[0].guest);
        drop(first);
        assert!(!guest.client().has_left());
        drop(second);
        assert!(guest.client().has_left());
        assert_eq!((clients.list().len(), clients.admitted(), clients.refused()), (1, 2, 2));
        let _again = clients.admit(peer(1)).unwrap();
        assert!(!clients.list()[0].guest.client().has_left());
    }

    #[test]
    fn users_can_be_named_and_settings_changed() {
        let clients = clients(Settings::default());
        let _one = clients.admit(peer(1)).unwrap();
        let users = Some([0].into_iter().collect());
        clients.reload(Settings { users, ..Settings::default() });
        assert_eq!(clients.admit(peer(2)).unwrap_err(), Refusal::User(1000));
        assert!(clients.admit(Peer { uid: 0, pid: 2 }).is_ok());
    }
}
