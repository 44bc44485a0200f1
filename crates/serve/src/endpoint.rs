//! [`EndpointKind`]: the two ways in, and what a connection says of each request to whoever handles it.

use crate::service::Charge;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One of the two ways in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointKind {
    Http,
    Grpc,
}

impl EndpointKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
        }
    }
}

/// When a request came, as the handlers see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival(pub(crate) Instant);

/// What a request has taken of the memory for requests; shared by whoever gives it back.
pub(crate) type SharedCharge = Arc<Mutex<Charge>>;

/// What a body may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes.
    pub(crate) most: usize,
    /// Whether the client waits until it is asked for them.
    pub(crate) is_asked_for: bool,
    /// Time to send, and as much more as the slowest client needs; `None`: any, of a stream.
    pub(crate) timeout: Option<Duration>,
}
