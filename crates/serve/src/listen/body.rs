//! [`LimitedBody`]: the body of a request, of limited length, speed and memory.

use super::untaken::slowest_time;
use crate::charge::SharedCharge;
use crate::charge::take;
use crate::endpoint::{EndpointKind, Limits, MessageCharges};
use crate::error::Error;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// In front of each message of gRPC: whether it is compressed, and its length in four bytes, the highest first.
const HEAD: usize = 5;

type BoxedError = Box<dyn std::error::Error + Send + Sync>;
type Polled = Poll<Option<Result<Frame<Bytes>, BoxedError>>>;

/// The body of a request, of limited length, speed and memory.
pub(crate) struct LimitedBody {
    /// `None` when all of it was read, or can be.
    inner: Option<Incoming>,
    charge: SharedCharge,
    limits: Limits,
    kind: EndpointKind,
    /// Bytes in all.
    received: usize,
    /// Bytes of what has to come in time: the body, or the message of a stream that has begun.
    in_time: usize,
    /// How long the client was waited for, for the same.
    waited: Duration,
    /// Since when it is waited for.
    waiting: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    stream: Option<StreamOfMessages>,
}

/// What is known of a body that is a stream of messages. Between two of them a client may say nothing for as long as it likes.
pub(crate) struct StreamOfMessages {
    /// Where the bytes of each message are noted, if someone gives them back.
    charges: Option<MessageCharges>,
    /// In front of a message: whether it is compressed, and its length.
    head: [u8; HEAD],
    /// Bytes of the message that has begun, with its head; 0: none has.
    length: usize,
    /// When the server ends, no more messages are taken.
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl StreamOfMessages {
    pub(crate) fn new(
        charges: Option<MessageCharges>,
        ending: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { charges, head: [0; HEAD], length: 0, ending: Box::pin(ending) }
    }

    /// Bytes that the message which has begun is to have, as far as that is known.
    fn expected(&self) -> usize {
        match self.length.checked_sub(HEAD) {
            None => HEAD,
            Some(_) => {
                let [_, length @ ..] = self.head;
                HEAD + u32::from_be_bytes(length) as usize
            }
        }
    }

    /// Goes on by these bytes. Gives whether a message has ended.
    fn receive(&mut self, mut bytes: &[u8]) -> bool {
        let mut has_ended = false;
        while !bytes.is_empty() {
            if let Some(head) = self.head.get_mut(self.length..) {
                let count = head.len().min(bytes.len());
                head[..count].copy_from_slice(&bytes[..count]);
                self.length += count;
                bytes = &bytes[count..];
            }
            // What the head says is known when all of it is there.
            if self.length >= HEAD {
                let count = (self.expected() - self.length).min(bytes.len());
                self.length += count;
                bytes = &bytes[count..];
                if self.length == self.expected() {
                    if let Some(charges) = &self.charges {
                        charges.push(self.length);
                    }
                    self.length = 0;
                    has_ended = true;
                }
            }
        }
        has_ended
    }
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
        stream: Option<StreamOfMessages>,
    ) -> Self {
        Self {
            inner: Some(inner),
            charge,
            limits,
            kind,
            received: 0,
            in_time: 0,
            waited: Duration::ZERO,
            waiting: None,
            timer: None,
            stream,
        }
    }

    /// An error as the endpoint's reader of bodies hands it on.
    fn error(&self, error: Error) -> BoxedError {
        match self.kind {
            EndpointKind::Http => error.into(),
            EndpointKind::Grpc => crate::grpc::status(&error).into(),
        }
    }

    /// Whether the client, which is waited for, is too slow; otherwise it will be looked at when it may be.
    fn is_too_slow(&mut self, context: &mut Context<'_>) -> bool {
        let since = *self.waiting.get_or_insert_with(Instant::now);
        loop {
            let allowed = self.limits.timeout + slowest_time(self.in_time as u64);
            let until = since + allowed.saturating_sub(self.waited);
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

    /// Counts what was received. Only what the client is waited for takes of its time.
    fn receive(&mut self, bytes: &[u8]) {
        self.received = self.received.saturating_add(bytes.len());
        self.in_time = self.in_time.saturating_add(bytes.len());
        if let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        if let Some(stream) = &mut self.stream
            && stream.receive(bytes)
        {
            (self.in_time, self.waited, self.timer) = (stream.length, Duration::ZERO, None);
        }
    }

    /// Whether the body is a stream that is between two messages.
    fn is_between_messages(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.length == 0)
    }

    /// Whether the server ends and no message has begun.
    fn is_ending(&mut self, context: &mut Context<'_>) -> bool {
        let is_between = self.is_between_messages();
        let stream = self.stream.as_mut().filter(|_| is_between);
        stream.is_some_and(|stream| stream.ending.as_mut().poll(context).is_ready())
    }

    /// The body cannot be read on.
    fn fail(&mut self, error: Error) -> Polled {
        self.inner = None;
        Poll::Ready(Some(Err(self.error(error))))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        // A future that has ended is not asked again: neither is a body.
        if self.inner.is_some() && self.is_ending(context) {
            self.inner = None;
        }
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        // What is known to be too long is not asked for. A client that sends it unasked may not look at answers before it has.
        if self.limits.is_asked_for && inner.size_hint().lower() > self.limits.most as u64 {
            let limit = self.limits.most;
            return self.fail(Error::TooLarge { limit });
        }
        let polled = Pin::new(inner).poll_frame(context);
        if polled.is_pending() && !self.is_between_messages() && self.is_too_slow(context) {
            return self.fail(Error::SlowClient);
        }
        let Some(frame) = ready!(polled) else {
            self.inner = None;
            return Poll::Ready(None);
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                tracing::debug!(%error, "a body ended too early");
                return self.fail(of_reader(&error));
            }
        };
        if let Some(data) = frame.data_ref() {
            self.receive(data);
            if self.received > self.limits.most {
                let limit = self.limits.most;
                return Poll::Ready(Some(Err(self.error(Error::TooLarge { limit }))));
            }
            if let Err(error) = take(&self.charge, data.len()) {
                return Poll::Ready(Some(Err(self.error(error))));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl Drop for LimitedBody {
    /// An answer that comes before its request was read is lost if the connection ends with unread bytes: many clients
    /// look at the answer when they have sent all. So what is left is read, as far as a request may be long, and thrown away.
    fn drop(&mut self) {
        let Some(mut rest) = self.inner.take() else { return };
        let is_waiting_to_send = self.limits.is_asked_for && self.received == 0;
        if self.kind == EndpointKind::Grpc || rest.is_end_stream() || is_waiting_to_send {
            return;
        }
        let Limits { most, timeout, .. } = self.limits;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(tokio::time::timeout(timeout, async move {
            let mut left = most;
            while let Some(Ok(frame)) = rest.frame().await
                && let Some(less) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len))
            {
                left = less;
            }
        }));
    }
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = BoxedError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        self.poll(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_stream_are_found_however_they_are_cut() {
        let message = |length: u8| [&[0, 0, 0, 0, length][..], &vec![7; length.into()]].concat();
        let lengths = [3, 0, 200, 0, 0, 1];
        let all = lengths.map(message).concat();
        for piece in [1, 2, 5, 6, 7, 100, all.len()] {
            let charges = MessageCharges::default();
            let mut stream = StreamOfMessages::new(Some(charges.clone()), std::future::pending());
            for piece in all.chunks(piece) {
                stream.receive(piece);
            }
            assert_eq!(stream.length, 0, "nothing has begun after the last one");
            assert_eq!(lengths.map(|_| charges.pop()), lengths.map(|it| HEAD + usize::from(it)));
            assert!(!stream.receive(&[0, 255, 255, 255, 255, 1]));
            assert_eq!((stream.length, charges.pop()), (6, 0));
        }
    }
}
