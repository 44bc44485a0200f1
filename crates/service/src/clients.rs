//! [`Clients`]: who is connected. A process is one client, with its connections together.

use crate::settings::Settings;
use nnhal_aidl::serve::{Executions, Guest};
use nnhal_hal::departure::Watch;
use nnhal_hal::{Client, ClientGroup, Error, ErrorStatus};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fmt;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// How many connections it has, with those that it has closed and that still work for it.
    pub connections: usize,
    /// Those of the guest that the client has not closed.
    open: usize,
    /// Since when.
    pub since: Instant,
    /// Notices its process's end, where there are no connections.
    process: Option<Arc<Watch>>,
}

/// All clients of a service.
#[derive(Debug)]
pub struct Clients {
    settings: Mutex<Arc<Settings>>,
    executions: Arc<Executions>,
    group: ClientGroup,
    connected: Mutex<HashMap<Peer, Connected>>,
    admitted: AtomicU64,
    refused: AtomicU64,
}

/// A connection that was let in, until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    place: Arc<Place>,
    /// Notices that the client has closed the connection while a call of it goes on.
    _watch: Option<Watch>,
}

/// What a connection is counted as.
#[derive(Debug)]
struct Place {
    clients: Arc<Clients>,
    peer: Peer,
    guest: Arc<Guest>,
    is_open: AtomicBool,
}

impl Clients {
    /// No one yet.
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            executions: Arc::default(),
            group: ClientGroup::new(settings.all),
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

    /// What was executed for all together.
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    /// What all hold together.
    pub fn group(&self) -> &ClientGroup {
        &self.group
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
    pub(crate) fn admit(
        self: &Arc<Self>,
        peer: Peer,
        socket: &impl AsFd,
    ) -> Result<Admission, Refusal> {
        let place = self.enter(peer)?;
        let watched = Arc::clone(&place);
        let watch = Watch::connection(socket, move || watched.close());
        // Without descriptors for it, what the client has begun goes on until someone reads its connection.
        let watch =
            watch.inspect_err(|error| tracing::debug!(%error, "a connection is not observed"));
        Ok(Admission { place, _watch: watch.ok() })
    }

    /// Counts one connection more, or does not.
    fn enter(self: &Arc<Self>, peer: Peer) -> Result<Arc<Place>, Refusal> {
        let entered = self.count(peer).map(|guest| {
            let (clients, is_open) = (Arc::clone(self), AtomicBool::new(true));
            Arc::new(Place { clients, peer, guest, is_open })
        });
        if let Err(refusal) = &entered {
            self.refused.fetch_add(1, Ordering::Relaxed);
            tracing::info!(%peer, %refusal, "refused a connection");
        }
        entered
    }

    fn count(&self, peer: Peer) -> Result<Arc<Guest>, Refusal> {
        let settings = self.settings();
        if settings.users.as_ref().is_some_and(|users| !users.contains(&peer.uid)) {
            return Err(Refusal::User(peer.uid));
        }
        let guest = || {
            let client = Client::in_group(peer.to_string(), settings.client, &self.group);
            self.admitted.fetch_add(1, Ordering::Relaxed);
            Guest::new(client, Arc::clone(&self.executions))
        };
        let mut connected = self.connected();
        let count = connected.len();
        match connected.get_mut(&peer) {
            Some(client) if client.connections >= settings.connections => {
                Err(Refusal::Connections { peer, connections: client.connections })
            }
            Some(client) => {
                client.connections += 1;
                if client.open == 0 {
                    // It had gone, and comes again before what worked for it has ended.
                    client.guest = guest();
                }
                client.open += 1;
                Ok(Arc::clone(&client.guest))
            }
            None if count >= settings.clients => Err(Refusal::Clients(count)),
            None => {
                let guest = guest();
                let client = Connected {
                    peer,
                    guest: Arc::clone(&guest),
                    connections: 1,
                    open: 1,
                    since: Instant::now(),
                    process: None,
                };
                connected.insert(peer, client);
                Ok(guest)
            }
        }
    }

    /// The guest that is calling over kernel binder, which has no connections: who calls first is admitted,
    /// and stays until its process has ended.
    pub(crate) fn calling_or_new(self: &Arc<Self>) -> nnhal_hal::Result<Arc<Guest>> {
        if let Ok(guest) = self.calling() {
            return Ok(guest);
        }
        let pid = rsbinder::get_calling_pid();
        let peer = Peer { uid: rsbinder::get_calling_uid(), pid };
        let refused = |error| Error::new(ErrorStatus::ResourceExhaustedTransient, error);
        let guest = Arc::clone(&self.enter(peer).map_err(refused)?.guest);
        self.watch(peer, &guest)?;
        Ok(guest)
    }

    /// Notices the end of a client's process.
    ///
    /// # Errors
    /// It has ended already. Nothing else would say so any more, and its place would be taken for ever.
    fn watch(self: &Arc<Self>, peer: Peer, guest: &Arc<Guest>) -> nnhal_hal::Result<()> {
        let (clients, gone) = (Arc::clone(self), Arc::clone(guest));
        match Watch::process(peer.pid, move || clients.gone(&gone)) {
            Ok(watch) => {
                let mut connected = self.connected();
                if let Some(client) = connected.get_mut(&peer) {
                    client.process = Some(Arc::new(watch));
                }
            }
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {
                self.gone(guest);
                return Err(Error::failure(format!("{peer} has ended")));
            }
            // Its callback's death says it then.
            Err(error) => tracing::debug!(%error, %peer, "a process cannot be observed"),
        }
        Ok(())
    }

    /// A process has died.
    pub(crate) fn gone(&self, guest: &Arc<Guest>) {
        let mut connected = self.connected();
        let is_gone = |_: &Peer, client: &mut Connected| Arc::ptr_eq(&client.guest, guest);
        let gone: Vec<_> = connected.extract_if(is_gone).collect();
        drop(connected);
        drop(gone);
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

impl Place {
    /// The client has closed the connection. If it was its last, it has gone, and its work is ended.
    fn close(&self) {
        if !self.is_open.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut connected = self.clients.connected();
        let Some(client) = connected.get_mut(&self.peer) else { return };
        if !Arc::ptr_eq(&client.guest, &self.guest) {
            return;
        }
        client.open -= 1;
        let is_last = client.open == 0;
        // What its leaving ends may take locks of its own.
        drop(connected);
        if is_last {
            self.guest.client().leave();
            tracing::debug!(peer = %self.peer, "a client has gone");
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.place.close();
        let mut connected = self.place.clients.connected();
        let Some(client) = connected.get_mut(&self.place.peer) else { return };
        client.connections -= 1;
        if client.connections == 0 {
            let gone = connected.remove(&self.place.peer);
            drop(connected);
            drop(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn clients(settings: Settings) -> Arc<Clients> {
        Clients::new(settings)
    }

    fn peer(pid: i32) -> Peer {
        Peer { uid: 1000, pid }
    }

    /// Lets in what is connected to the other socket.
    fn admit(clients: &Arc<Clients>, peer: Peer) -> Result<(Admission, UnixStream), Refusal> {
        let (own, other) = UnixStream::pair().unwrap();
        Ok((clients.admit(peer, &own)?, other))
    }

    #[test]
    fn who_closes_its_last_connection_has_gone_and_may_come_again() {
        let clients = clients(Settings { connections: 2, ..Settings::default() });
        let (first, end) = admit(&clients, peer(1)).unwrap();
        let guest = Arc::clone(&clients.list()[0].guest);
        drop(end);
        let until = Instant::now() + Duration::from_secs(10);
        while !guest.client().has_left() {
            assert!(Instant::now() < until, "it was not noticed");
            std::thread::sleep(Duration::from_millis(1));
        }
        // The call that goes on counts until it has ended.
        assert_eq!(clients.list()[0].connections, 1);
        let (second, _end) = admit(&clients, peer(1)).unwrap();
        let again = Arc::clone(&clients.list()[0].guest);
        assert!(!again.client().has_left() && clients.list()[0].connections == 2);
        assert!(matches!(admit(&clients, peer(1)), Err(Refusal::Connections { .. })));
        drop(first);
        assert!(!again.client().has_left());
        drop(second);
        assert!(again.client().has_left() && clients.list().is_empty());
    }

    #[test]
    fn a_process_is_one_client_until_its_last_connection_ends() {
        let clients = clients(Settings { connections: 2, clients: 2, ..Settings::default() });
        let first = admit(&clients, peer(1)).unwrap();
        let second = admit(&clients, peer(1)).unwrap();
        let refused = admit(&clients, peer(1)).unwrap_err();
        assert_eq!(refused, Refusal::Connections { peer: peer(1), connections: 2 });
        let _other = admit(&clients, peer(2)).unwrap();
        assert_eq!(admit(&clients, peer(3)).unwrap_err(), Refusal::Clients(2));
        let guest = Arc::clone(&clients.list()[0].guest);
        drop(first);
        assert!(!guest.client().has_left());
        drop(second);
        assert!(guest.client().has_left());
        assert_eq!((clients.list().len(), clients.admitted(), clients.refused()), (1, 2, 2));
        let _again = admit(&clients, peer(1)).unwrap();
        assert!(!clients.list()[0].guest.client().has_left());
    }

    /// Over kernel binder a call may be looked at when its process has ended.
    #[test]
    fn sec_a_process_that_ended_before_it_was_noticed_takes_no_place() {
        let clients = clients(Settings { clients: 1, ..Settings::default() });
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ended = peer(i32::try_from(child.id()).unwrap());
        for _ in 0..3 {
            let guest = Arc::clone(&clients.enter(ended).unwrap().guest);
            clients.watch(ended, &guest).unwrap_err();
            assert!(guest.client().has_left() && clients.list().is_empty());
        }
        // Of others, and where it cannot be said, the place is kept.
        for pid in [i32::try_from(std::process::id()).unwrap(), 0] {
            let guest = Arc::clone(&clients.enter(peer(pid)).unwrap().guest);
            clients.watch(peer(pid), &guest).unwrap();
            assert_eq!(clients.list().len(), 1);
            clients.gone(&guest);
        }
    }

    #[test]
    fn users_can_be_named_and_settings_changed() {
        let clients = clients(Settings::default());
        let _one = admit(&clients, peer(1)).unwrap();
        let users = Some([0].into_iter().collect());
        clients.reload(Settings { users, ..Settings::default() });
        assert_eq!(admit(&clients, peer(2)).unwrap_err(), Refusal::User(1000));
        assert!(admit(&clients, Peer { uid: 0, pid: 2 }).is_ok());
    }
}
