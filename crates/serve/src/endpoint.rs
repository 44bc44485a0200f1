//! [`EndpointKind`]: the two ways in, and what a connection says of each request to whoever handles it.

use crate::service::Charge;
use std::sync::{Arc, Mutex};
use std::time::Instant;

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
