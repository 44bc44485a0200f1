//! [`Server`]: both endpoints, from the start to an orderly end.

use crate::access::{Tls, Tokens};
use crate::browser::SiteGuard;
use crate::charge::Receiving;
use crate::endpoint::EndpointKind;
use crate::error::StartError;
use crate::listen::{AllRequests, Endpoint, LastToSpeak, Windows};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::repository::Repository;
use crate::service::Service;
use crate::shared_memory::SharedMemory;
use crate::{grpc, http};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Threads that wait for connections; computing has its own, but for what is short.
const THREADS: RangeInclusive<usize> = 2..=4;
/// Threads for what takes its time: much JSON, loading.
const MOST_BLOCKING: usize = 8;
/// Connections that the system takes before they are accepted: with fewer, a client of a burst tries again a second
/// later. The system has a limit of its own (`net.core.somaxconn`).
const BACKLOG: u32 = 4096;
/// To wait longer for the end is to wait for ever.
const LONGEST_END: Duration = Duration::from_secs(365 * 24 * 3600);
/// What a request takes that waits, without its body: of this size there may be as many as fit into the memory for requests.
const BYTES_OF_REQUEST: usize = 16 << 10;
/// Descriptors that are kept for other things than connections.
const KEPT_DESCRIPTORS: usize = 128;

/// Both endpoints, open. Dropped, it ends without waiting for what is in progress.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    service: Arc<Service>,
    ending: watch::Sender<bool>,
    endpoints: Vec<JoinHandle<()>>,
    http: Option<SocketAddr>,
    grpc: Option<SocketAddr>,
    shutdown_timeout: Duration,
}

/// SIGTERM and SIGINT, kept for [`Server::run_until_signal`].
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Server {
    /// Loads all models, then listens. A model that cannot be loaded is an entry of the log and of the index;
    /// the others are served.
    ///
    /// # Errors
    /// There is nowhere to listen, an address is taken, or anybody could use the server from another machine
    /// and it was not said that they may.
    pub fn start(options: Options) -> Result<Self, StartError> {
        let tokens = options.token_file.as_deref().map(Tokens::read).transpose()?.map(Arc::new);
        let addresses: Vec<SocketAddr> = options.http.into_iter().chain(options.grpc).collect();
        if addresses.is_empty() {
            return Err(StartError::Nowhere);
        }
        let is_open = tokens.is_none() && !options.allow_anybody;
        if let Some(address) = addresses.iter().find(|it| is_open && !it.ip().is_loopback()) {
            return Err(StartError::Open { address: *address });
        }
        let tls = options.tls.as_ref().map(|(chain, key)| Tls::read(chain, key)).transpose()?;
        let models = &options.models;
        std::fs::read_dir(models)
            .map_err(|source| StartError::File { path: models.clone(), source })?;
        let metrics = Arc::new(Metrics::new());
        let cache = options.cache.as_deref();
        let repository =
            Arc::new(Repository::new(models, cache, Arc::clone(&metrics), options.most_uploaded));
        let service = Arc::new(Service::new(
            Arc::clone(&repository),
            SharedMemory::new(options.shared_memory),
            metrics,
            options.control,
            Receiving::new(options.most_receiving),
            options.request_timeout,
        ));
        let runtime = runtime()?;
        let most_connections = options.most_connections.min(descriptors());
        let (ending, ended) = watch::channel(false);
        // Addresses are taken before models are loaded, so that one that is in use is an error at once.
        let http = options.http.map(|at| listen(&runtime, at)).transpose()?;
        let grpc = options.grpc.map(|at| listen(&runtime, at)).transpose()?;
        repository.load_all();
        if let Some(interval) = options.poll {
            let watching = repository.watch(interval);
            watching.map_err(|source| StartError::System { what: "a thread", source })?;
        }
        let is_for_this_machine = addresses.iter().all(|it| it.ip().is_loopback());
        let guard =
            SiteGuard { is_for_this_machine: is_for_this_machine && !options.allow_anybody };
        let last = Arc::new(LastToSpeak::new());
        let requests = AllRequests::new(options.most_receiving / BYTES_OF_REQUEST);
        let windows = Windows::new(options.most_receiving / 2);
        let endpoint = |kind, router| Endpoint {
            kind,
            router,
            service: Arc::clone(&service),
            tokens: tokens.clone(),
            guard: Some(guard).filter(|_| tokens.is_none() && kind == EndpointKind::Http),
            tls: tls.clone(),
            most_request: options.most_request,
            most_connections,
            client_timeout: options.client_timeout,
            last: Arc::clone(&last),
            requests: Arc::clone(&requests),
            windows: Arc::clone(&windows),
            ending: ended.clone(),
        };
        let mut endpoints = Vec::new();
        let address =
            |listener: &Option<(TcpListener, SocketAddr)>| listener.as_ref().map(|it| it.1);
        let (http_address, grpc_address) = (address(&http), address(&grpc));
        let timeout = options.shutdown_timeout;
        if let Some((listener, _)) = http {
            let endpoint = endpoint(EndpointKind::Http, http::router(Arc::clone(&service)));
            endpoints.push(runtime.spawn(endpoint.serve(listener, timeout)));
        }
        if let Some((listener, _)) = grpc {
            let router = grpc::router(Arc::clone(&service), options.most_request, ended.clone());
            let endpoint = endpoint(EndpointKind::Grpc, router);
            endpoints.push(runtime.spawn(endpoint.serve(listener, timeout)));
        }
        let shutdown_timeout = options.shutdown_timeout;
        let (http, grpc) = (http_address, grpc_address);
        Ok(Self { runtime, service, ending, endpoints, http, grpc, shutdown_timeout })
    }

    /// Where it listens for HTTP.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Where it listens for gRPC.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc
    }

    /// From here on SIGTERM and SIGINT do not end the process, but are kept for [`Self::run_until_signal`]. To be called
    /// before others learn that the server is there, so that whoever ends it at once ends it in order.
    ///
    /// # Errors
    /// Signals cannot be waited for.
    pub fn signals(&self) -> Result<Signals, StartError> {
        let _entered = self.runtime.enter();
        let failed = |source| StartError::System { what: "signals", source };
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        Ok(Signals { terminate, interrupt })
    }

    /// Serves until the process is asked to end, then ends in order.
    pub fn run_until_signal(self, mut signals: Signals) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = signals.terminate.recv() => {}
                _ = signals.interrupt.recv() => {}
            }
        });
        self.end();
    }

    /// Takes no more connections, answers what is in progress, and ends; what takes longer than
    /// [`Options::shutdown_timeout`] is cut off.
    pub fn end(self) {
        tracing::info!("ending");
        let Self { runtime, service, ending, endpoints, shutdown_timeout, .. } = self;
        // One for all that is waited for.
        let now = Instant::now();
        let deadline = now.checked_add(shutdown_timeout).unwrap_or(now + LONGEST_END);
        // Doors first: a request that has come in is still answered.
        let _ = ending.send(true);
        runtime.block_on(async {
            for endpoint in endpoints {
                let _ = endpoint.await;
            }
            service.drained(deadline).await;
            service.end();
        });
        let left = deadline.saturating_duration_since(Instant::now());
        runtime.shutdown_timeout(left.min(Duration::from_secs(1)));
        tracing::info!("ended");
    }
}

fn runtime() -> Result<Runtime, StartError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(processors.clamp(*THREADS.start(), *THREADS.end()))
        .max_blocking_threads(MOST_BLOCKING)
        .thread_name("serve")
        .enable_all()
        .build()
        .map_err(|source| StartError::System { what: "threads", source })
}

fn listen(runtime: &Runtime, address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listen = async {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As others do: a server that starts again need not wait for old connections of its address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    runtime.block_on(listen).map_err(|source| StartError::Listen { address, source })
}

/// How many connections each endpoint may have by the limit of open files, which is raised as far as it may be.
fn descriptors() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit.current = limit.maximum;
        }
    }
    let most = limit.current.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    (most.saturating_sub(KEPT_DESCRIPTORS) / 2).max(1)
}
