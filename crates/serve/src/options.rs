//! [`Options`]: where and how a server serves.

use nnhal::hal::memory::machine_memory;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// The part of the machine's memory, or of what its control groups grant the process, that requests in progress may have, and as much
/// again that files may have which clients upload.
const SHARE: u64 = 16;
/// The most that requests in progress have unless more is said.
const MOST_RECEIVING: usize = 1 << 30;
/// The part of the same memory that connections may have, if there is one of each endpoint for each place.
const SHARE_OF_CONNECTIONS: u64 = 4;
/// What two connections can hold, one of each endpoint: docs/serving.md has the parts of it.
const BYTES_OF_CONNECTIONS: u64 = 360 << 10;
/// Connections through each endpoint unless more is said, whatever memory there is.
const CONNECTIONS: RangeInclusive<u64> = 64..=10_240;

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
    /// Bytes that all requests in progress may have together; see [`Options::with_most_request`].
    pub most_receiving: usize,
    /// Bytes that files of models may have together that clients upload with requests to load, as long as these models are loaded.
    pub most_uploaded: usize,
    /// Connections at a time, through each endpoint; no more than the limit of open files allows. Unless it is set, as many as a
    /// quarter of the memory suffices for that the machine has or the process's control groups allow, from 64 to 10,240.
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
    /// The defaults: nowhere to listen yet. How much memory there is decides what requests and uploads may have, see
    /// [`Options::with_most_request`], and how many connections there may be.
    pub fn new(models: impl Into<PathBuf>) -> Self {
        let options = Self {
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
            most_receiving: 0,
            most_uploaded: 0,
            most_connections: connections(machine_memory()),
            client_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(30),
        };
        let most_request = options.most_request;
        options.with_most_request(most_request)
    }

    /// One request may have this many bytes, and the others what goes with it: all in progress a sixteenth of the memory that the machine
    /// has, or that the least limit of the process's control groups allows, but no more than 1 GiB; uploads a
    /// sixteenth; both as much as one request at least.
    #[must_use]
    pub fn with_most_request(self, most_request: usize) -> Self {
        let [most_receiving, most_uploaded] = shares(machine_memory(), most_request);
        Self { most_request, most_receiving, most_uploaded, ..self }
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

/// What all requests in progress may have of this memory, and what uploads may have.
fn shares(memory: u64, most_request: usize) -> [usize; 2] {
    let share = usize::try_from(memory / SHARE).unwrap_or(usize::MAX);
    [share.min(MOST_RECEIVING), share].map(|share| share.max(most_request))
}

/// How many connections each endpoint may have with this memory.
fn connections(memory: u64) -> usize {
    let most = memory / SHARE_OF_CONNECTIONS / BYTES_OF_CONNECTIONS;
    usize::try_from(most.clamp(*CONNECTIONS.start(), *CONNECTIONS.end())).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_connections_have_a_share_of_the_memory_that_there_is() {
        let connections = |mib: u64| connections(mib << 20);
        assert_eq!([65_536, 16_384].map(connections), [10_240, 10_240]);
        assert_eq!([4096, 1024, 256].map(connections), [2912, 728, 182]);
        assert_eq!([64, 0].map(connections), [64, 64]);
        let options = Options::new("models");
        assert_eq!(options.most_connections, super::connections(machine_memory()));
    }

    #[test]
    fn sec_requests_and_uploads_have_a_share_of_the_memory_that_there_is() {
        const MIB: usize = 1 << 20;
        let shares = |mib: u64, request| shares(mib << 20, request * MIB).map(|it| it / MIB);
        assert_eq!(shares(65_536, 64), [1024, 4096]);
        assert_eq!(shares(16_384, 64), [1024, 1024]);
        assert_eq!(shares(4096, 64), [256, 256]);
        // Whatever there is, a request can be taken.
        assert_eq!(shares(512, 64), [64, 64]);
        assert_eq!(shares(4096, 2048), [2048, 2048]);
        let options = Options::new("models");
        let expected = super::shares(machine_memory(), options.most_request);
        assert_eq!([options.most_receiving, options.most_uploaded], expected);
    }
}
