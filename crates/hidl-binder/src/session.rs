//! [`Sessions`]: the clients of a service, each of which is served separately.

use nnhal_hal::client::ClientLimits;
use nnhal_hal::departure::Watch;
use nnhal_hal::{Client, ClientGroup, Device};
use nnhal_hidl::serve;
use nnhal_hidl::tasks::Limits;
use nnhal_hwbinder::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A client of whose process this one cannot see the number: one of another container. All such are one client, which
/// never leaves.
const UNSEEN: i32 = 0;

/// The clients of a service, by process.
pub(crate) struct Sessions {
    device: Arc<dyn Device>,
    limits: ClientLimits,
    group: ClientGroup,
    tasks: Limits,
    by_process: Mutex<HashMap<i32, Weak<Session>>>,
}

/// A client, as long as it has anything: an object of the service, or one that the service is to notify.
pub(crate) struct Session {
    pub(crate) served: Arc<serve::Device>,
    client: Client,
    process: i32,
    sessions: Weak<Sessions>,
    /// Notices the process's end while it waits for an answer, when nothing of it could be linked to.
    watch: OnceLock<Watch>,
}

impl Sessions {
    pub(crate) fn new(
        device: Arc<dyn Device>,
        limits: ClientLimits,
        group: ClientGroup,
        tasks: Limits,
    ) -> Arc<Self> {
        Arc::new(Self { device, limits, group, tasks, by_process: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Weak<Session>>> {
        self.by_process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The session of who calls.
    pub(crate) fn of(self: &Arc<Self>, caller: Caller) -> Arc<Session> {
        let process = caller.process;
        let mut by_process = self.lock();
        if let Some(session) = by_process.get(&process).and_then(Weak::upgrade) {
            return session;
        }
        let name = match process {
            UNSEEN => "of other containers".to_owned(),
            process => format!("process {process}"),
        };
        let client = Client::in_group(name, self.limits, &self.group);
        let served =
            serve::Device::for_client(Arc::clone(&self.device), client.clone(), self.tasks);
        let (sessions, watch) = (Arc::downgrade(self), OnceLock::new());
        let session = Arc::new(Session { served, client, process, sessions, watch });
        by_process.insert(process, Arc::downgrade(&session));
        drop(by_process);
        if process != UNSEEN {
            let ended = Arc::downgrade(&session);
            let ended = move || drop(ended.upgrade().inspect(|session| session.leave()));
            match Watch::process(process, ended) {
                Ok(watch) => drop(session.watch.set(watch)),
                // It is noticed by what it holds, or is to be notified of.
                Err(error) => tracing::debug!(%error, process, "a process cannot be observed"),
            }
        }
        session
    }

    /// Clients that have anything.
    pub(crate) fn len(&self) -> usize {
        self.lock().values().filter(|session| session.strong_count() > 0).count()
    }
}

impl Session {
    /// The client's process has ended.
    pub(crate) fn leave(&self) {
        if self.process == UNSEEN {
            return;
        }
        if let Some(sessions) = self.sessions.upgrade() {
            let mut by_process = sessions.lock();
            // The number may be another process's by now.
            let own = |known: &Weak<Self>| std::ptr::eq(known.as_ptr(), self);
            if by_process.get(&self.process).is_some_and(own) {
                by_process.remove(&self.process);
            }
        }
        self.client.leave();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave();
    }
}
