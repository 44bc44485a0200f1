//! [`Sessions`]: the clients of a service, each of which is served separately.

use nnhal_hal::client::{ClientLimits, Holding};
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
    /// Those whose fenced executions go on, or did when someone last called.
    executing: Mutex<Vec<Arc<Session>>>,
}

/// A client, as long as it has anything: an object of the service, one that the service is to notify, or a fence that is to signal.
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
        let (by_process, executing) = Default::default();
        Arc::new(Self { device, limits, group, tasks, by_process, executing })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Weak<Session>>> {
        self.by_process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn executing(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.executing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of those whose fenced executions have ended.
    fn release_idle(&self) {
        let mut executing = self.executing();
        let idle: Vec<_> = executing.extract_if(.., |session| !session.is_executing()).collect();
        drop(executing);
        // With the last reference a client leaves, which takes locks of its own.
        drop(idle);
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The session of who calls.
    pub(crate) fn of(self: &Arc<Self>, caller: Caller) -> Arc<Session> {
        let process = caller.process;
        self.release_idle();
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
    fn is_executing(&self) -> bool {
        self.client.held(Holding::FencedExecutions) > 0
    }

    /// A fenced execution was launched. It goes on, and its fence signals, also where the client lets go of everything else
    /// (contract: CONC-3). Not where its process's end would not be noticed then.
    pub(crate) fn keep_while_executing(self: &Arc<Self>) {
        let Some(sessions) = self.sessions.upgrade().filter(|_| self.watch.get().is_some()) else {
            return;
        };
        sessions.release_idle();
        let mut executing = sessions.executing();
        let is_known = executing.iter().any(|one| Arc::ptr_eq(one, self));
        // Whoever leaves says so before taking the lock.
        if self.is_executing() && !self.client.has_left() && !is_known {
            executing.push(Arc::clone(self));
        }
    }

    /// The client's process has ended.
    pub(crate) fn leave(&self) {
        if self.process == UNSEEN {
            return;
        }
        let sessions = self.sessions.upgrade();
        if let Some(sessions) = &sessions {
            let mut by_process = sessions.lock();
            // The number may be another process's by now.
            let own = |known: &Weak<Self>| std::ptr::eq(known.as_ptr(), self);
            if by_process.get(&self.process).is_some_and(own) {
                by_process.remove(&self.process);
            }
        }
        self.client.leave();
        if let Some(sessions) = &sessions {
            let mut executing = sessions.executing();
            let own = |one: &mut Arc<Self>| std::ptr::eq(Arc::as_ptr(one), self);
            let kept: Vec<_> = executing.extract_if(.., own).collect();
            drop(executing);
            drop(kept);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{
        Capabilities, DeviceType, Error, HalVersion, Model, PerformanceInfo, PrepareOptions,
        PreparedModel, Support,
    };

    /// A device that no one prepares anything on.
    struct Nothing;

    impl Device for Nothing {
        fn name(&self) -> &str {
            "test-nothing"
        }
        fn version_string(&self) -> String {
            "1".to_owned()
        }
        fn device_type(&self) -> DeviceType {
            DeviceType::Other
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::uniform(PerformanceInfo::AS_CPU)
        }
        fn supported_operations(
            &self,
            _: &Model,
            _: HalVersion,
        ) -> nnhal_hal::Result<Vec<Support>> {
            Ok(Vec::new())
        }
        fn prepare_model(
            &self,
            _: &Model,
            _: HalVersion,
            _: PrepareOptions,
        ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
            Err(Error::failure("it prepares nothing"))
        }
    }

    #[test]
    fn conc_3_a_client_that_has_only_a_fence_stays_until_its_execution_has_ended() {
        let limits = ClientLimits::default();
        let group = ClientGroup::new(limits);
        let sessions = Sessions::new(Arc::new(Nothing), limits, group, Limits::default());
        let process = i32::try_from(std::process::id()).unwrap();
        let of_this = || sessions.of(Caller { process, user: 0 });
        let session = of_this();
        let client = session.client.clone();
        let execution = client.hold(Holding::FencedExecutions, 1).unwrap();
        session.keep_while_executing();
        session.keep_while_executing();
        drop(session);
        assert!(!client.has_left() && of_this().client.is_same(&client));
        // The next one to call finds that it has ended.
        drop(execution);
        let next = of_this();
        assert!(client.has_left() && !next.client.is_same(&client));

        // Who dies does not wait for it.
        let client = next.client.clone();
        let _execution = client.hold(Holding::FencedExecutions, 1).unwrap();
        next.keep_while_executing();
        next.leave();
        drop(next);
        assert!(client.has_left() && sessions.executing().is_empty());
        // Nothing goes on, so nothing is kept.
        let session = of_this();
        session.keep_while_executing();
        let client = session.client.clone();
        drop(session);
        assert!(client.has_left());
    }
}
