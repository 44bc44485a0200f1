//! [`OpenRequests`]: how many requests of a connection are not answered yet.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// How many requests of a connection are not answered yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRequests(Arc<AtomicUsize>);

impl OpenRequests {
    /// One more, until what is given is dropped.
    pub(crate) fn open(&self) -> OpenRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenRequest(self.clone())
    }

    /// Whether all are answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct OpenRequest(OpenRequests);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer: at its end its request is answered.
pub(crate) struct AnswerBody {
    inner: axum::body::Body,
    _request: OpenRequest,
}

impl AnswerBody {
    pub(crate) fn new(inner: axum::body::Body, request: OpenRequest) -> Self {
        Self { inner, _request: request }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_open_until_the_body_of_its_answer_is_dropped() {
        let open = OpenRequests::default();
        assert!(open.is_empty());
        let [first, second] = [open.open(), open.open()];
        let body = AnswerBody::new(axum::body::Body::from("answer"), first);
        assert_eq!(body.size_hint().exact(), Some(6), "its length is known");
        // One that is given up, of a client that has gone.
        drop(second);
        assert!(!open.is_empty());
        drop(body);
        assert!(open.is_empty());
    }
}
