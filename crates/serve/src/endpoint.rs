//! [`EndpointKind`]: the two ways in, and what a connection says of each request to whoever handles it.

use crate::charge::SharedCharge;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// What the answer to a request has taken of the memory for requests.
#[derive(Debug, Clone)]
pub(crate) struct AnswerCharge(pub(crate) SharedCharge);

/// By message of a stream that was received and not read yet: the bytes that it has taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageCharges(Arc<Mutex<VecDeque<usize>>>);

impl MessageCharges {
    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message was received.
    pub(crate) fn push(&self, bytes: usize) {
        self.lock().push_back(bytes);
    }

    /// What the first message took that was not read yet.
    pub(crate) fn pop(&self) -> usize {
        self.lock().pop_front().unwrap_or(0)
    }
}

/// What a body may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes.
    pub(crate) most: usize,
    /// Whether the client waits until it is asked for them.
    pub(crate) is_asked_for: bool,
    /// Time to send it, or each message of a stream, and as much more as the slowest client needs.
    pub(crate) timeout: Duration,
}
