//! [`LimitedBody`]: the body of a request, of limited length, speed and memory.

use super::untaken::slowest_time;
use crate::charge::SharedCharge;
use crate::charge::take;
use crate::endpoint::{EndpointKind, Limits, MessageCharges};
use crate::error::Error;
use crate::grpc::{Decoding, Messages};
use crate::metrics::Metrics;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
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
    metrics: Arc<Metrics>,
    /// Bytes in all.
    received: usize,
    /// Bytes of what has to come in time: the body, or the message of a stream that has begun.
    in_time: usize,
    /// How long the client was waited for, for the same.
    waited: Duration,
    /// Since when it is waited for.
    waiting: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    /// By gRPC.
    messages: Option<BodyOfMessages>,
}

/// What is known of a body of messages.
pub(crate) struct BodyOfMessages {
    /// Of which method they are.
    messages: Messages,
    /// Where the bytes of each message are noted, if someone gives them back.
    charges: Option<MessageCharges>,
    /// In front of a message: whether it is compressed, and its length.
    head: [u8; HEAD],
    /// Bytes of the message that has begun, with its head; 0: none has.
    length: usize,
    /// What the message that has begun takes when it is decoded. One that is compressed is looked at when it no longer is.
    decoding: Option<Decoding>,
    /// Bytes that it takes beside its own.
    decoded: usize,
    /// Of a stream: when the server ends, no more messages are taken. Between two of them a client may say nothing for as long as
    /// it likes.
    ending: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What was received of a body of messages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    /// Whether a message has ended.
    has_ended: bool,
    /// Bytes that messages take when they are decoded, beside their own.
    decoded: usize,
}

impl BodyOfMessages {
    /// The one message of a request.
    pub(crate) fn one(messages: Messages) -> Self {
        Self {
            messages,
            charges: None,
            head: [0; HEAD],
            length: 0,
            decoding: None,
            decoded: 0,
            ending: None,
        }
    }

    /// A stream of them.
    pub(crate) fn stream(
        messages: Messages,
        charges: Option<MessageCharges>,
        ending: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { charges, ending: Some(Box::pin(ending)), ..Self::one(messages) }
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

    /// Goes on by these bytes.
    ///
    /// # Errors
    /// Those of [`Decoding::receive`]
    fn receive(&mut self, mut bytes: &[u8]) -> Result<Progress, Error> {
        let mut progress = Progress::default();
        while !bytes.is_empty() {
            if let Some(head) = self.head.get_mut(self.length..) {
                let count = head.len().min(bytes.len());
                head[..count].copy_from_slice(&bytes[..count]);
                self.length += count;
                bytes = &bytes[count..];
                if self.length == HEAD && self.head[0] == 0 {
                    let length = self.expected() - HEAD;
                    self.decoding = Some(Decoding::new(self.messages, length));
                }
            }
            // What the head says is known when all of it is there.
            if self.length >= HEAD {
                let count = (self.expected() - self.length).min(bytes.len());
                if let Some(decoding) = &mut self.decoding {
                    let decoded = decoding.receive(&bytes[..count])?;
                    self.decoded = self.decoded.saturating_add(decoded);
                    progress.decoded = progress.decoded.saturating_add(decoded);
                }
                self.length += count;
                bytes = &bytes[count..];
                if self.length == self.expected() {
                    if let Some(charges) = &self.charges {
                        charges.push(self.length.saturating_add(self.decoded));
                    }
                    (self.length, self.decoded, self.decoding) = (0, 0, None);
                    progress.has_ended = true;
                }
            }
        }
        Ok(progress)
    }

    /// Whether it is a stream that is between two messages.
    fn is_between(&self) -> bool {
        self.ending.is_some() && self.length == 0
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
        metrics: Arc<Metrics>,
        messages: Option<BodyOfMessages>,
    ) -> Self {
        Self {
            inner: Some(inner),
            charge,
            limits,
            kind,
            metrics,
            received: 0,
            in_time: 0,
            waited: Duration::ZERO,
            waiting: None,
            timer: None,
            messages,
        }
    }

    /// An error as the endpoint's reader of bodies hands it on. By HTTP it is counted with the answer that it becomes; by gRPC it is
    /// a status from here on, which does not say what it was.
    fn error(&self, error: Error) -> BoxedError {
        match self.kind {
            EndpointKind::Http => error.into(),
            EndpointKind::Grpc => {
                // No one waits for that answer.
                if error != Error::Cancelled {
                    self.metrics.failed(self.kind.name(), &error);
                }
                crate::grpc::status(&error).into()
            }
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

    /// Counts what was received, and gives how many bytes it takes beside its own. Only what the client is waited for takes of its
    /// time.
    ///
    /// # Errors
    /// [`Error::Invalid`]
    fn receive(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.received = self.received.saturating_add(bytes.len());
        self.in_time = self.in_time.saturating_add(bytes.len());
        if let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        let Some(messages) = &mut self.messages else { return Ok(0) };
        let Progress { has_ended, decoded } = messages.receive(bytes)?;
        if has_ended && messages.ending.is_some() {
            (self.in_time, self.waited, self.timer) = (messages.length, Duration::ZERO, None);
        }
        Ok(decoded)
    }

    /// Whether the body is a stream that is between two messages.
    fn is_between_messages(&self) -> bool {
        self.messages.as_ref().is_some_and(BodyOfMessages::is_between)
    }

    /// Whether the server ends and no message has begun.
    fn is_ending(&mut self, context: &mut Context<'_>) -> bool {
        let messages = self.messages.as_mut().filter(|messages| messages.is_between());
        let ending = messages.and_then(|messages| messages.ending.as_mut());
        ending.is_some_and(|ending| ending.as_mut().poll(context).is_ready())
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
            let outcome = self.receive(data);
            if self.received > self.limits.most {
                let limit = self.limits.most;
                return Poll::Ready(Some(Err(self.error(Error::TooLarge { limit }))));
            }
            let taken =
                outcome.and_then(|decoded| take(&self.charge, data.len().saturating_add(decoded)));
            if let Err(error) = taken {
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
        // A field that the protocol does not have.
        let message = |length: u8| match length.checked_sub(3) {
            None => vec![0; HEAD],
            Some(rest) => {
                let head = [0, 0, 0, 0, length, 0xfa, 0x01, rest];
                [&head[..], &vec![7; rest.into()]].concat()
            }
        };
        let lengths = [3, 0, 130, 0, 0, 4];
        let all = lengths.map(message).concat();
        let messages = Messages::of("ModelStreamInfer");
        for piece in [1, 2, 5, 6, 7, 100, all.len()] {
            let charges = MessageCharges::default();
            let ending = std::future::pending();
            let mut stream = BodyOfMessages::stream(messages, Some(charges.clone()), ending);
            for piece in all.chunks(piece) {
                stream.receive(piece).unwrap();
            }
            assert_eq!(stream.length, 0, "nothing has begun after the last one");
            assert_eq!(lengths.map(|_| charges.pop()), lengths.map(|it| HEAD + usize::from(it)));
            assert!(!stream.receive(&[0, 255, 255, 255, 255, 0xfa]).unwrap().has_ended);
            assert_eq!((stream.length, charges.pop()), (6, 0));
        }
    }

    #[test]
    fn sec_what_a_message_takes_when_it_is_decoded_is_given_back_with_it() {
        let outputs = [&[0, 0, 0, 0, 20][..], &b"\x32\x00".repeat(10)].concat();
        let of = |bytes: &[u8]| {
            let charges = MessageCharges::default();
            let messages = Messages::of("ModelStreamInfer");
            let ending = std::future::pending();
            let mut stream = BodyOfMessages::stream(messages, Some(charges.clone()), ending);
            let progress = stream.receive(bytes).unwrap();
            (progress, charges)
        };
        let (progress, charges) = of(&outputs.repeat(2));
        assert!(progress.has_ended && progress.decoded > 1000, "{progress:?}");
        let each = outputs.len() + progress.decoded / 2;
        assert_eq!([charges.pop(), charges.pop(), charges.pop()], [each, each, 0]);
        // What is compressed is none yet.
        let (progress, charges) = of(&[&[1, 0, 0, 0, 3][..], b"xyz"].concat());
        assert_eq!((progress, charges.pop()), (Progress { has_ended: true, decoded: 0 }, 8));
    }
}
