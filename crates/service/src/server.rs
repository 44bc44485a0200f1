//! [`Server`]: listens, lets clients in and serves them.

use crate::clients::{Clients, Peer};
use crate::listening::Listening;
use crate::settings::Settings;
use crate::status::{Status, metrics};
use crate::transport::Counted;
use nnhal_aidl::interface::nn::IDevice::IDevice;
use nnhal_aidl::interface::nnhal::IService::{BnService, IService};
use nnhal_aidl::serve::{self, Guests};
use nnhal_aidl::version::Version;
use nnhal_hal::{Device, ErrorStatus};
use rsbinder::rpc::transport::UnixTransport;
use rsbinder::rpc::{FileDescriptorTransportMode, PeerIdentity, RpcServer, RpcTransport};
use rsbinder::{BinderResult, Interface, Status as BinderStatus, StatusCode, Strong};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{SocketFlags, accept_with};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked whether executions have ended, once the service is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long no connection is accepted after the system had nothing left for one.
const AGAIN: Duration = Duration::from_millis(100);

/// Why a service cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is nothing to offer.
    #[error("there is no device to offer")]
    NoDevice,
    /// A device lacks operations that the oldest version of the interface has.
    #[error("{name} offers version {version} of the HAL, which is older than the AIDL interface")]
    TooOld {
        /// The device.
        name: String,
        /// Its version.
        version: &'static str,
    },
    /// The system refuses.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Kernel binder's service manager refuses.
    #[error("{name}: {source}")]
    Registration {
        /// The device's instance name.
        name: String,
        /// Why.
        source: nnhal_hal::Error,
    },
    /// Binder refuses.
    #[error("{what}: {code}")]
    Binder {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        code: StatusCode,
    },
}

impl ServiceError {
    fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    fn binder(what: &'static str) -> impl Fn(StatusCode) -> Self {
        move |code| Self::Binder { what, code }
    }
}

/// A service that runs.
pub struct Server {
    rpc: Arc<RpcServer>,
    clients: Arc<Clients>,
    stopping: Arc<Stopping>,
    accepting: Mutex<Option<JoinHandle<()>>>,
    devices: Vec<String>,
    started: Instant,
}

impl Server {
    /// Offers devices, the first as the socket's root object, to all who may connect.
    ///
    /// # Errors
    /// There is no device, or one is too old for the interface; the system refuses.
    pub fn start(
        devices: Vec<Arc<dyn Device>>,
        listening: Listening,
        settings: Settings,
    ) -> Result<Arc<Self>, ServiceError> {
        let clients = Clients::new(settings);
        let started = Instant::now();
        let guests = {
            let clients = Arc::clone(&clients);
            Guests::new(move || clients.calling())
        };
        let offered = devices.into_iter().map(|device| offer(device, &guests));
        let offered: Vec<(String, Strong<dyn IDevice>)> =
            offered.collect::<Result<_, ServiceError>>()?;
        let (_, root) = offered.first().ok_or(ServiceError::NoDevice)?;
        let root = root.as_binder();
        let names: Vec<String> = offered.iter().map(|(name, _)| name.clone()).collect();

        let rpc = quiet_server()?;
        rpc.set_android13plus(nnhal_aidl::socket::PROTOCOL);
        rpc.set_supported_fd_modes(&[FileDescriptorTransportMode::Unix]);
        let io_timeout = clients.settings().io_timeout;
        rpc.set_handshake_timeout(Some(io_timeout));
        // Also how long a client may take nothing of what it is sent: nothing else ends who reads nothing.
        rpc.set_reply_timeout(Some(io_timeout));
        rpc.set_max_threads(u32::try_from(clients.settings().connections).unwrap_or(u32::MAX));
        let devices_of = |(_, device): &(String, Strong<dyn IDevice>)| device.as_binder();
        let objects: Vec<_> = offered.iter().map(devices_of).collect();
        let service =
            Service { offered, names: names.clone(), clients: Arc::clone(&clients), started };
        let service = BnService::new_binder(service).as_binder();
        for object in objects {
            object.set_extension(&service).map_err(ServiceError::binder("set_extension"))?;
        }
        rpc.set_root(root).map_err(ServiceError::binder("set_root"))?;

        let stopping = Arc::new(Stopping::new().map_err(ServiceError::system("eventfd"))?);
        let accepting = {
            let (rpc, clients) = (Arc::clone(&rpc), Arc::clone(&clients));
            let stopping = Arc::clone(&stopping);
            std::thread::Builder::new()
                .name("nnhal-accept".to_owned())
                .spawn(move || accept(&listening, &rpc, &clients, &stopping))
                .map_err(ServiceError::system("a thread"))?
        };
        let accepting = Mutex::new(Some(accepting));
        Ok(Arc::new(Self { rpc, clients, stopping, accepting, devices: names, started }))
    }

    /// Who is connected.
    pub fn clients(&self) -> &Arc<Clients> {
        &self.clients
    }

    /// What it is doing.
    pub fn status(&self) -> Status {
        Status::of(&self.devices, &self.clients, self.started)
    }

    /// The same for Prometheus.
    pub fn metrics(&self) -> String {
        metrics(&self.status(), self.clients.executions())
    }

    /// Accepts no connections any more, waits at most so long for clients to go, and ends those that do
    /// not.
    pub fn stop(&self, wait: Duration) {
        self.stopping.begin();
        let accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(accepting) = accepting {
            let _ = accepting.join();
        }
        let until = Instant::now() + wait;
        let running = || self.status().all.running > 0;
        while Instant::now() < until && running() {
            std::thread::sleep(LOOK.min(wait));
        }
        for client in self.clients.list() {
            client.guest.client().leave();
        }
        self.rpc.terminate();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

/// A device with its name, behind the newest version of the interface that it has all of.
pub(crate) fn offer(
    device: Arc<dyn Device>,
    guests: &Guests,
) -> Result<(String, Strong<dyn IDevice>), ServiceError> {
    let name = device.name().to_owned();
    let version = Version::of_hal(device.version()).ok_or_else(|| {
        let (name, version) = (name.clone(), device.version().name());
        ServiceError::TooOld { name, version }
    })?;
    Ok((name, serve::device(device, version, guests.clone())))
}

/// A server of binder's protocol whose own socket no one can connect to: connections come from ours, whose
/// permissions, peers and number are checked before. It cannot be made without one.
fn quiet_server() -> Result<Arc<RpcServer>, ServiceError> {
    let folder = tempfile::tempdir().map_err(ServiceError::system("a folder"))?;
    let server = RpcServer::setup_unix_server(folder.path().join("unused"));
    server.map_err(ServiceError::binder("setup_unix_server"))
    // The folder goes, and the socket's name with it.
}

/// Tells systemd, if it listens, that the service is ready.
pub(crate) fn notify_ready() {
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::debug!(%error, "systemd was not notified");
    }
}

/// Says once to a thread that waits for descriptors that the service is to stop.
struct Stopping(OwnedFd);

impl Stopping {
    fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// From now on whoever waits for it does not wait.
    fn begin(&self) {
        // It fails only where the count is at its maximum, and then it is not 0 either.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits for this for a time, and returns whether it has come.
    fn wait(&self, time: Duration) -> bool {
        let mut waiting = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut waiting, Timespec::try_from(time).ok().as_ref()), Ok(1..))
    }
}

/// Accepts connections until it is to stop.
fn accept(
    listening: &Listening,
    rpc: &Arc<RpcServer>,
    clients: &Arc<Clients>,
    stopping: &Stopping,
) {
    let listener = listening.listener();
    loop {
        let mut waiting =
            [PollFd::new(&stopping.0, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        let polled = poll(&mut waiting, None);
        if !waiting[0].revents().is_empty() {
            return;
        }
        let accepted = match polled {
            Ok(_) => accept_with(listener, SocketFlags::CLOEXEC),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => Err(error),
        };
        match accepted {
            Ok(socket) => {
                if let Err(why) = serve(socket, rpc, clients) {
                    tracing::debug!(%why, "a connection was not served");
                }
            }
            Err(error) => {
                // Out of descriptors or memory: what is going on gives some back.
                tracing::debug!(%error, "no connection was accepted");
                if stopping.wait(AGAIN) {
                    return;
                }
            }
        }
    }
}

/// Serves a connection on a thread of its own, if its client is let in.
fn serve(socket: OwnedFd, rpc: &Arc<RpcServer>, clients: &Arc<Clients>) -> Result<(), String> {
    let watched = socket.try_clone().map_err(|error| error.to_string())?;
    let transport = UnixTransport::from_owned_fd(socket).map_err(|error| error.to_string())?;
    let PeerIdentity::Local { uid, pid } = transport.peer_identity() else {
        return Err("the peer is not known".to_owned());
    };
    let admission = clients.admit(Peer { uid, pid }, &watched);
    let admission = admission.map_err(|refusal| refusal.to_string())?;
    rpc.serve_connection(Box::new(Counted::new(transport, admission)));
    Ok(())
}

/// The service beyond its devices.
struct Service {
    offered: Vec<(String, Strong<dyn IDevice>)>,
    names: Vec<String>,
    clients: Arc<Clients>,
    started: Instant,
}

impl Interface for Service {}

#[allow(non_snake_case)] // The methods' names are the file's.
impl IService for Service {
    fn getDevices(&self) -> BinderResult<Vec<String>> {
        Ok(self.names.clone())
    }

    fn getDevice(&self, name: &str) -> BinderResult<Strong<dyn IDevice>> {
        let found = self.offered.iter().find(|(offered, _)| offered == name);
        found.map(|(_, device)| device.clone()).ok_or_else(|| {
            let reason =
                format!("there is no device {name:?}; there are: {}", self.names.join(", "));
            let code = ErrorStatus::InvalidArgument.code();
            BinderStatus::new_service_specific_error(code, Some(reason))
        })
    }

    fn getStatus(&self) -> BinderResult<String> {
        let status = Status::of(&self.names, &self.clients, self.started);
        serde_json::to_string(&status).map_err(|_| StatusCode::Unknown.into())
    }
}
