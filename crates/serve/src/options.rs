//! [`Options`]: where and how a server serves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where and how a server serves.
///
/// ```
/// use nnhal_serve::Options;
///
/// let options = Options::new("models").http("127.0.0.1:8000".parse()?);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The model repository.
    pub models: PathBuf,
    /// Where to listen for HTTP.
    pub http: Option<SocketAddr>,
    /// Where to listen for gRPC.
    pub grpc: Option<SocketAddr>,
    /// A file of bearer tokens, one a line; a request needs one of them.
    pub token_file: Option<PathBuf>,
    /// Whether an address that other machines reach needs no token.
    pub allow_anybody: bool,
    /// Certificate chain and key, as PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether clients may register shared memory.
    pub shared_memory: bool,
    /// Whether clients may load and unload models.
    pub control: bool,
    /// How often to look for changes on disk; `None`: never.
    pub poll: Option<Duration>,
    /// Where prepared models are kept from one start to the next.
    pub cache: Option<PathBuf>,
    /// Bytes that one request may have.
    pub most_request: usize,
    /// Bytes that all requests in progress may have together.
    pub most_receiving: usize,
    /// Connections at a time, through each endpoint.
    pub most_connections: usize,
    /// For how long a client may send or take nothing where it should, and for how long a connection may
    /// be idle.
    pub client_timeout: Duration,
    /// The longest time from a request's arrival to the end of computing.
    pub request_timeout: Duration,
    /// For how long requests that are in progress are waited for at the end.
    pub shutdown_timeout: Duration,
}

impl Options {
    /// The defaults: nowhere to listen yet.
    pub fn new(models: impl Into<PathBuf>) -> Self {
        Self {
            models: models.into(),
            http: None,
            grpc: None,
            token_file: None,
            allow_anybody: false,
            tls: None,
            shared_memory: false,
            control: true,
            poll: Some(Duration::from_secs(1)),
            cache: None,
            most_request: 64 << 20,
            most_receiving: 1 << 30,
            most_connections: 10_240,
            client_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(30),
        }
    }

    /// Listens for HTTP there.
    #[must_use]
    pub fn http(self, address: SocketAddr) -> Self {
        Self { http: Some(address), ..self }
    }

    /// Listens for gRPC there.
    #[must_use]
    pub fn grpc(self, address: SocketAddr) -> Self {
        Self { grpc: Some(address), ..self }
    }
}
