//! [`Lines`]: the connections of a client over a Unix socket.

use crate::interface::nn::IDevice::IDevice;
use crate::interface::nnhal::IService::IService;
use crate::status::gone;
use nnhal_hal::Result;
use rsbinder::rpc::{FileDescriptorTransportMode, RpcClientConfig, RpcSession};
use rsbinder::{EXTENSION_TRANSACTION, FromIBinder, Interface, SIBinder, StatusCode, Strong};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The newest version of binder's protocol for sockets that is offered, that of Android 16; the other end
/// may choose an older one, back to that of Android 14, the first with descriptors.
pub const PROTOCOL: u32 = 2;

/// The most connections of one client.
pub const MOST_CONNECTIONS: usize = 16;

/// How long a service may take to greet: systemd may have to start it first, on a machine that is busy.
const GREETING: Duration = Duration::from_secs(30);

/// The connections of a client, over which its calls go.
pub struct Lines {
    session: RpcSession,
    path: PathBuf,
    open: AtomicUsize,
    busy: AtomicUsize,
    id: Vec<u8>,
}

/// A call that is going on.
pub(crate) struct Busy<'a>(&'a Lines);

impl Lines {
    /// Connects to a service.
    ///
    /// # Errors
    /// `DEVICE_UNAVAILABLE` where no one listens, or what listens is no such service.
    pub fn connect(path: &Path) -> Result<Arc<Self>> {
        let refused = |why: StatusCode| gone("connect", why);
        let session = RpcSession::setup_client_android13plus_with_config(
            RpcClientConfig::unix(path, PROTOCOL)
                .fd_mode(FileDescriptorTransportMode::Unix)
                .timeout(GREETING),
        );
        let session = session.map_err(refused)?;
        let id = session.get_session_id().map_err(refused)?;
        // Executions take as long as they take. A service that dies is noticed by its connections' end.
        session.set_timeout(None);
        let (open, busy) = (AtomicUsize::new(1), AtomicUsize::new(0));
        Ok(Arc::new(Self { session, path: path.to_owned(), open, busy, id }))
    }

    /// What the service offers first.
    ///
    /// # Errors
    /// `DEVICE_UNAVAILABLE` where it has gone.
    pub fn root(&self) -> Result<SIBinder> {
        self.session.get_root().map_err(|why| gone("getRootObject", why))
    }

    /// What the service says beyond `IDevice`; `None` if it is not one of ours.
    ///
    /// # Errors
    /// `DEVICE_UNAVAILABLE` where it has gone.
    pub fn service(&self) -> Result<Option<Strong<dyn IService>>> {
        let root = self.device()?.as_binder();
        let ask = || -> rsbinder::Result<Option<SIBinder>> {
            let remote = root.as_remote().ok_or(StatusCode::BadType)?;
            // With the interface's name: services of `rsbinder` expect it before every question, others do
            // not look at what this one carries.
            let question = remote.prepare_transact(true)?;
            let answer = remote.submit_transact(EXTENSION_TRANSACTION, &question, 0)?;
            answer.ok_or(StatusCode::UnexpectedNull)?.read()
        };
        match ask() {
            Ok(extension) => Ok(extension
                .and_then(|extension| <dyn IService as FromIBinder>::try_from(extension).ok())),
            Err(StatusCode::UnknownTransaction) => Ok(None),
            Err(why) => Err(gone("getExtension", why)),
        }
    }

    /// Whether the session has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.session.is_ended()
    }

    /// The first device of the service, as the interface has it.
    ///
    /// # Errors
    /// `DEVICE_UNAVAILABLE` where the service has gone.
    pub fn device(&self) -> Result<Strong<dyn IDevice>> {
        interface(self.root()?)
    }

    /// Begins a call, with a connection more if all are busy. Where it cannot be had, the call waits for
    /// one of the others.
    pub(crate) fn enter(&self) -> Busy<'_> {
        let busy = self.busy.fetch_add(1, Ordering::AcqRel) + 1;
        let open = self.open.load(Ordering::Acquire);
        let more = busy > open && open < MOST_CONNECTIONS;
        if more
            && self
                .open
                .compare_exchange(open, open + 1, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        {
            let config = RpcClientConfig::unix(&self.path, PROTOCOL).session_id(&self.id);
            if let Err(why) = self.session.add_outgoing_connection_with_config(config) {
                tracing::debug!(%why, "no further connection");
            }
        }
        Busy(self)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.session.close_session();
    }
}

/// The `IDevice` behind an object.
fn interface(object: SIBinder) -> Result<Strong<dyn IDevice>> {
    <dyn IDevice as FromIBinder>::try_from(object).map_err(|why| gone("getRootObject", why))
}
