//! [`LimitedBody`]: the body of a request, of limited length, speed and memory.

use crate::endpoint::{EndpointKind, Limits, SharedCharge};
use crate::error::Error;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// A client that sends more slowly than this, in bytes a second, is cut off when its timeout is over.
const SLOWEST: u64 = 16 << 10;

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request, of limited length, speed and memory.
pub(crate) struct LimitedBody {
    inner: Incoming,
    charge: SharedCharge,
    limits: Limits,
    kind: EndpointKind,
    received: usize,
    begun: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

/// A body that is none, or ends before it should, is the client's fault; what else ends one is that no one waits for the answer.
fn of_reader(error: &hyper::Error) -> Error {
    use std::io::ErrorKind as Kind;
    let inner = std::error::Error::source(error).and_then(|it| it.downcast_ref::<std::io::Error>());
    let is_malformed = inner.is_some_and(|it| {
        matches!(it.kind(), Kind::InvalidInput | Kind::InvalidData | Kind::UnexpectedEof)
    });
    if is_malformed || error.is_parse() || error.is_incomplete_message() {
        Error::invalid(format!("the body is broken off, or is none: {error}"))
    } else {
        Error::Cancelled
    }
}

impl LimitedBody {
    pub(crate) fn new(
        inner: Incoming,
        charge: SharedCharge,
        limits: Limits,
        kind: EndpointKind,
    ) -> Self {
        Self { inner, charge, limits, kind, received: 0, begun: Instant::now(), timer: None }
    }

    /// An error as the endpoint's reader of bodies hands it on.
    fn error(&self, error: Error) -> BoxedError {
        match self.kind {
            EndpointKind::Http => error.into(),
            EndpointKind::Grpc => crate::grpc::status(&error).into(),
        }
    }

    /// Whether the client is too slow; otherwise it will be looked at when it may be.
    fn is_too_slow(&mut self, context: &mut Context<'_>) -> bool {
        let Some(timeout) = self.limits.timeout else { return false };
        loop {
            let more = Duration::from_secs(self.received as u64 / SLOWEST);
            let until = self.begun + timeout + more;
            let timer =
                self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until.into())));
            if timer.as_mut().poll(context).is_pending() {
                return false;
            }
            // What it has sent since the timer was set gives it more time.
            if Instant::now() >= until {
                return true;
            }
            self.timer = None;
        }
    }
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = BoxedError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // What is known to be too long is not asked for. A client that sends it unasked may not look at answers before it has.
        if self.limits.is_asked_for && self.inner.size_hint().lower() > self.limits.most as u64 {
            let limit = self.limits.most;
            return Poll::Ready(Some(Err(self.error(Error::TooLarge { limit }))));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if polled.is_pending() && self.is_too_slow(context) {
            return Poll::Ready(Some(Err(self.error(Error::SlowClient))));
        }
        let Some(frame) = ready!(polled) else { return Poll::Ready(None) };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                tracing::debug!(%error, "a body ended too early");
                return Poll::Ready(Some(Err(self.error(of_reader(&error)))));
            }
        };
        if let Some(data) = frame.data_ref() {
            let length = data.len();
            self.received = self.received.saturating_add(length);
            if self.received > self.limits.most {
                let limit = self.limits.most;
                return Poll::Ready(Some(Err(self.error(Error::TooLarge { limit }))));
            }
            let charged = self.charge.lock().unwrap_or_else(PoisonError::into_inner).take(length);
            if let Err(error) = charged {
                return Poll::Ready(Some(Err(self.error(error))));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
