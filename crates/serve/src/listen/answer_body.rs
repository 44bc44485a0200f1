//! [`AnswerBody`]: the body of an answer, whose bytes count until they are sent or given up.

use super::open_requests::OpenRequest;
use super::untaken::{PIECE, Taking, Untaken};
use crate::charge::{Charge, Receiving};
use crate::error::Result;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes of an answer that are there whatever others have taken: the metrics too. A connection by HTTP/1.1 has one answer at a time.
const FEW: usize = 64 << 10;
/// The same where a connection has many answers at a time.
const FEW_OF_MANY: usize = 4 << 10;

type Polled = Option<Result<Frame<Bytes>, axum::Error>>;

/// The body of an answer, whose bytes count until they are sent or given up. At its end its request is answered.
pub(crate) struct AnswerBody {
    inner: Body,
    memory: Arc<Receiving>,
    /// Of a client that asks for the bytes of each answer.
    untaken: Option<Untaken>,
    /// Bytes of a frame that were not asked for yet.
    rest: Option<(Bytes, Arc<Counted>)>,
    /// What `inner` gave when it was asked in advance, other than bytes.
    ahead: Option<Polled>,
    _request: OpenRequest,
}

/// What a frame takes until all its pieces are gone.
struct Counted {
    _charge: Charge,
    taking: Option<Taking>,
}

/// Bytes of a frame. What sends them drops it when it has done so, or has given it up.
struct Piece {
    bytes: Bytes,
    counted: Arc<Counted>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(taking) = &self.counted.taking {
            taking.moved(self.bytes.len());
        }
    }
}

impl AnswerBody {
    /// `untaken` are the answers of the connection, if the client has to ask for the bytes of each.
    pub(crate) fn new(
        inner: Body,
        memory: &Arc<Receiving>,
        untaken: Option<Untaken>,
        request: OpenRequest,
    ) -> Self {
        let memory = Arc::clone(memory);
        Self { inner, memory, untaken, rest: None, ahead: None, _request: request }
    }

    /// Makes the beginning of the answer, which is all of it but for streams, and settles what its request has taken for it:
    /// from here on it is there, whether its client asks for it or not.
    ///
    /// # Errors
    /// [`Error::NoMemory`](crate::Error::NoMemory)
    pub(crate) async fn begin(&mut self, mut charge: Charge) -> Result<()> {
        if self.inner.is_end_stream() {
            return Ok(());
        }
        let inner = &mut self.inner;
        let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut *inner).poll_frame(context)));
        let Poll::Ready(polled) = polled.await else { return Ok(()) };
        match polled.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(bytes))) => {
                let few = if self.untaken.is_some() { FEW_OF_MANY } else { FEW };
                charge.settle(bytes.len(), few)?;
                self.count(bytes, charge);
            }
            Some(Ok(Err(frame))) => self.ahead = Some(Some(Ok(frame))),
            Some(Err(error)) => self.ahead = Some(Some(Err(error))),
            None => self.ahead = Some(None),
        }
        Ok(())
    }

    /// The same with another answer, which is short.
    pub(crate) fn replace(&mut self, inner: Body) {
        (self.inner, self.rest, self.ahead) = (inner, None, None);
    }

    fn count(&mut self, bytes: Bytes, charge: Charge) {
        let taking = self.untaken.as_ref().map(|all| all.begin(bytes.len()));
        self.rest = Some((bytes, Arc::new(Counted { _charge: charge, taking })));
    }

    /// The next bytes of the frame that was begun.
    fn piece(&mut self) -> Option<Bytes> {
        let (rest, counted) = self.rest.as_mut()?;
        let length = if counted.taking.is_some() { rest.len().min(PIECE) } else { rest.len() };
        let bytes = rest.split_to(length);
        let counted = match rest.is_empty() {
            true => self.rest.take()?.1,
            false => Arc::clone(counted),
        };
        Some(Bytes::from_owner(Piece { bytes, counted }))
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Polled> {
        if let Some(piece) = self.piece() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(ahead) = self.ahead.take() {
            return Poll::Ready(ahead);
        }
        let polled = ready!(Pin::new(&mut self.inner).poll_frame(context));
        Poll::Ready(match polled.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(bytes))) if bytes.is_empty() => Some(Ok(Frame::data(bytes))),
            Some(Ok(Ok(bytes))) => {
                let charge = Charge::of(&self.memory, bytes.len());
                self.count(bytes, charge);
                self.piece().map(|piece| Ok(Frame::data(piece)))
            }
            Some(Ok(Err(frame))) => Some(Ok(frame)),
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        let is_over = matches!(self.ahead, Some(None)) || self.inner.is_end_stream();
        self.rest.is_none() && is_over && !matches!(self.ahead, Some(Some(_)))
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map_or(0, |(rest, _)| rest.len() as u64);
        let hint = self.inner.size_hint();
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper.saturating_add(rest));
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::open_requests::OpenRequests;
    use super::*;
    use http_body_util::BodyExt as _;

    #[test]
    fn a_request_is_open_until_the_body_of_its_answer_is_dropped() {
        let (open, memory) = (OpenRequests::default(), Receiving::new(100));
        assert!(open.is_empty());
        let [first, second] = [open.open(), open.open()];
        let body = AnswerBody::new(Body::from("answer"), &memory, None, first);
        assert_eq!(body.size_hint().exact(), Some(6), "its length is known");
        // One that is given up, of a client that has gone.
        drop(second);
        assert!(!open.is_empty());
        drop(body);
        assert!(open.is_empty());
    }

    fn begun(
        bytes: Vec<u8>,
        memory: &Arc<Receiving>,
        untaken: Option<Untaken>,
    ) -> Result<AnswerBody> {
        let open = OpenRequests::default().open();
        let mut body = AnswerBody::new(bytes.into(), memory, untaken, open);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(body.begin(Charge::new(Arc::clone(memory)))).map(|()| body)
    }

    #[test]
    fn bytes_count_until_the_last_piece_of_them_is_dropped() {
        for untaken in [None, Some(Untaken::default())] {
            let memory = Receiving::new(1 << 20);
            let expected: Vec<u8> = (0..200_000_u32).map(|it| (it % 251) as u8).collect();
            let mut body = begun(expected.clone(), &memory, untaken).unwrap();
            assert_eq!((memory.used(), body.size_hint().exact()), (200_000, Some(200_000)));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut pieces = Vec::new();
            while let Some(frame) = runtime.block_on(body.frame()) {
                pieces.push(frame.unwrap().into_data().unwrap());
            }
            assert!(body.is_end_stream());
            assert!(pieces.concat() == expected);
            drop(body);
            let last = pieces.pop();
            drop(pieces);
            assert_eq!(memory.used(), 200_000, "the last piece keeps all of them in memory");
            drop(last);
            assert_eq!(memory.used(), 0);
        }
    }

    #[test]
    fn sec_an_answer_for_which_there_is_no_memory_is_refused_and_a_short_one_is_not() {
        for (untaken, few) in [(None, FEW), (Some(Untaken::default()), FEW_OF_MANY)] {
            let memory = Receiving::new(150_000);
            let begun = |length| begun(vec![0; length], &memory, untaken.clone());
            let first = begun(100_000).unwrap();
            assert!(begun(few + 1).is_err() || few < 50_000);
            assert!(begun(100_000).is_err());
            let short = begun(few).unwrap();
            drop(first);
            assert_eq!(memory.used(), few, "it counts");
            drop(short);
            assert_eq!(memory.used(), 0);
        }
    }
}
