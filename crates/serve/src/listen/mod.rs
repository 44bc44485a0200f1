//! Connections of both endpoints: how many, how slow, who may, encrypted or not, and how they end.

mod ahead;
mod answer_body;
mod body;
mod busy_poll;
mod open_requests;
mod poll_again;
mod timed;
mod untaken;
mod windows;

use crate::access::{Tls, Tokens};
use crate::browser::SiteGuard;
use crate::charge::take;
use crate::endpoint::{AnswerCharge, Arrival, EndpointKind, Limits, MessageCharges};
use crate::error::Error;
use crate::grpc::Messages;
use crate::service::Service;
use ahead::ReadAhead;
use answer_body::AnswerBody;
use axum::Router;
use axum::response::Response;
use body::{BodyOfMessages, LimitedBody};
use busy_poll::BusyPoll;
pub(crate) use busy_poll::LastToSpeak;
use http::header::{EXPECT, HOST, HeaderName, HeaderValue};
use http::{Request, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
pub(crate) use open_requests::AllRequests;
use open_requests::{OpenRequest, OpenRequests};
use poll_again::poll_again;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use timed::Timed;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower_service::Service as _;
use untaken::Untaken;
pub(crate) use windows::Windows;

/// Headers of a request, and their bytes.
const MOST_HEADERS: usize = 64;
const MOST_HEADER_BYTES: usize = 32 << 10;
/// Requests at a time in a connection of HTTP/2.
const MOST_STREAMS: u32 = 256;
/// Bytes of the headers of a request that do not count: each request has so much beside them.
const SHORT_HEADERS: usize = 4 << 10;
/// Bytes of a header beside its name and its value.
const HEADER: usize = 128;
/// After an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(20);

/// An error as the clients of an endpoint understand it.
fn refuse(kind: EndpointKind, error: &Error) -> Response {
    match kind {
        EndpointKind::Http => crate::http::refusal(error),
        EndpointKind::Grpc => crate::grpc::status(error).into_http::<axum::body::Body>(),
    }
}

/// HTTP/1.1 asks for one host in a request, no less and no more (RFC 9112, 3.2).
fn check_host<B>(request: &Request<B>) -> Result<(), Error> {
    let count = request.headers().get_all(HOST).iter().count();
    let least = usize::from(request.version() == Version::HTTP_11);
    match (least..=1).contains(&count) {
        true => Ok(()),
        false => Err(Error::invalid(format!("a request has one Host, and this one has {count}"))),
    }
}

/// Bytes that the head of a request takes.
fn length_of_head<B>(request: &Request<B>) -> usize {
    let fields = request.headers().iter();
    let length =
        |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + HEADER;
    let path = request.uri().path_and_query().map_or(0, |it| it.as_str().len());
    fields.map(length).sum::<usize>() + path
}

/// A way in, with what it needs.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) kind: EndpointKind,
    pub(crate) router: Router,
    pub(crate) service: Arc<Service>,
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// Where clients need no token.
    pub(crate) guard: Option<SiteGuard>,
    pub(crate) tls: Option<Tls>,
    pub(crate) most_request: usize,
    pub(crate) most_connections: usize,
    pub(crate) client_timeout: Duration,
    pub(crate) last: Arc<LastToSpeak>,
    pub(crate) requests: Arc<AllRequests>,
    pub(crate) windows: Arc<Windows>,
    /// Whether the server ends.
    pub(crate) ending: watch::Receiver<bool>,
}

impl Endpoint {
    /// Takes connections until the server ends, then waits until they are done, for at most `timeout`.
    pub(crate) async fn serve(self, listener: TcpListener, timeout: Duration) {
        let mut ending = self.ending.clone();
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(self.most_connections));
        let open = self.service.metrics.connections(self.kind.name());
        let endpoint = Arc::new(self);
        loop {
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, stream) = tokio::select! {
                accepted = accepted => accepted,
                _ = ending.wait_for(|it| *it) => break,
            };
            let stream = match stream {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, endpoint = endpoint.kind.name(), "a connection is not taken");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let (endpoint, open) = (Arc::clone(&endpoint), open.clone());
            let watcher = graceful.watcher();
            tokio::spawn(async move {
                let _place = place;
                open.inc();
                endpoint.connection(stream, watcher).await;
                open.dec();
            });
        }
        drop(listener);
        if tokio::time::timeout(timeout, graceful.shutdown()).await.is_err() {
            tracing::warn!(
                endpoint = endpoint.kind.name(),
                "connections are cut off: the time is over"
            );
        }
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        // Answers are small: none waits for another.
        let _ = stream.set_nodelay(true);
        let requests = self.requests.of_connection();
        let stream = BusyPoll::new(stream, &self.last, requests.clone(), self.kind);
        let timeout = self.client_timeout;
        match self.tls.clone() {
            None => self.talk(stream, requests, watcher).await,
            Some(tls) => match tokio::time::timeout(timeout, tls.accept(self.kind, stream)).await {
                Ok(Ok(stream)) => self.talk(stream, requests, watcher).await,
                Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
                Err(_) => tracing::debug!("TLS took too long"),
            },
        }
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self: Arc<Self>,
        stream: S,
        requests: OpenRequests,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let mut builder = Builder::new(TokioExecutor::new());
        let stream = Timed::new(stream, self.client_timeout);
        match self.kind {
            EndpointKind::Http => {
                builder
                    .http1()
                    .timer(TokioTimer::new())
                    .header_read_timeout(self.client_timeout)
                    .max_headers(MOST_HEADERS)
                    .max_buf_size(MOST_HEADER_BYTES.max(64 << 10));
                self.answer(builder.http1_only(), stream, requests, watcher).await;
            }
            EndpointKind::Grpc => {
                let window = self.windows.open();
                builder
                    .http2()
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(MOST_STREAMS)
                    .max_frame_size(window.frame())
                    .max_header_list_size(u32::try_from(MOST_HEADER_BYTES).unwrap_or(u32::MAX))
                    .initial_stream_window_size(window.stream())
                    .initial_connection_window_size(window.connection())
                    .keep_alive_interval(Some(self.client_timeout))
                    .keep_alive_timeout(self.client_timeout);
                let stream = ReadAhead::new(stream);
                self.answer(builder.http2_only(), stream, requests, watcher).await;
                drop(window);
            }
        }
    }

    async fn answer<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self: Arc<Self>,
        builder: Builder<TokioExecutor>,
        stream: S,
        requests: OpenRequests,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let untaken = Untaken::default();
        let (endpoint, answers) = (Arc::clone(&self), untaken.clone());
        let service = hyper::service::service_fn(move |request| {
            let (endpoint, open) = (Arc::clone(&endpoint), requests.open());
            let answers = answers.clone();
            async move { Ok::<_, Infallible>(endpoint.answered(request, open, answers).await) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = poll_again(watcher.watch(connection));
        let outcome = match self.kind {
            EndpointKind::Http => connection.await,
            EndpointKind::Grpc => tokio::select! {
                biased;
                outcome = connection => outcome,
                () = untaken.stalled(self.client_timeout) => {
                    tracing::debug!("a connection ends: its client does not take its answers");
                    return;
                }
            },
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, endpoint = self.kind.name(), "a connection ended");
        }
    }

    /// The answer to a request, whose bytes count until they are sent.
    async fn answered(
        &self,
        request: Request<Incoming>,
        open: OpenRequest,
        answers: Untaken,
    ) -> http::Response<AnswerBody> {
        let memory = &self.service.receiving;
        let charge = AnswerCharge(self.service.charge().shared());
        let response = match open.is_too_many {
            false => self.request(request, &charge).await,
            true => {
                let error = Error::Busy("there are as many requests at a time as there may be");
                self.service.metrics.failed(self.kind.name(), &error);
                refuse(self.kind, &error)
            }
        };
        let (mut head, body) = response.into_parts();
        let answers = Some(answers).filter(|_| self.kind == EndpointKind::Grpc);
        let mut body = AnswerBody::new(body, memory, answers, open);
        let charge = charge.0.lock().unwrap_or_else(PoisonError::into_inner).split(usize::MAX);
        if let Err(error) = body.begin(charge).await {
            self.service.metrics.failed(self.kind.name(), &error);
            let (head_of_error, inner) = refuse(self.kind, &error).into_parts();
            head = head_of_error;
            body.replace(inner);
        }
        http::Response::from_parts(head, body)
    }

    /// Whether a request may go on, by its head.
    fn admit<B>(&self, request: &Request<B>) -> Result<(), Error> {
        if let Some(tokens) = &self.tokens {
            tokens.check(request.uri().path(), request.headers())?;
        }
        check_host(request)?;
        self.guard.map_or(Ok(()), |guard| guard.check(request.headers()))
    }

    /// What is known of a body that is a stream of messages.
    fn stream(&self, messages: Messages, charges: Option<MessageCharges>) -> BodyOfMessages {
        let mut ending = self.ending.clone();
        // It ends with the server, also when that is gone already.
        let ending = async move { drop(ending.wait_for(|it| *it).await) };
        BodyOfMessages::stream(messages, charges, ending)
    }

    async fn request(&self, request: Request<Incoming>, answer: &AnswerCharge) -> Response {
        let arrived = Arrival(Instant::now());
        let path = request.uri().path();
        let is_grpc = self.kind == EndpointKind::Grpc;
        let is_stream = is_grpc && path.ends_with("/ModelStreamInfer");
        let limits = Limits {
            most: if is_stream { usize::MAX } else { self.most_request },
            is_asked_for: request.headers().contains_key(EXPECT),
            timeout: self.client_timeout,
        };
        let charges = is_stream.then(MessageCharges::default);
        let messages = is_grpc.then(|| {
            let messages = Messages::of(path);
            match is_stream || path.starts_with("/grpc.reflection.") {
                true => self.stream(messages, charges.clone()),
                false => BodyOfMessages::one(messages),
            }
        });
        let charge = self.service.charge().shared();
        let long = length_of_head(&request).saturating_sub(SHORT_HEADERS);
        let mut request = request.map(|body| {
            let (charge, metrics) = (Arc::clone(&charge), Arc::clone(&self.service.metrics));
            LimitedBody::new(body, charge, limits, self.kind, metrics, messages)
        });
        if let Err(error) = take(&charge, long).and_then(|()| self.admit(&request)) {
            self.service.metrics.failed(self.kind.name(), &error);
            return refuse(self.kind, &error);
        }
        let encoding = match self.kind {
            EndpointKind::Http => crate::http::wanted_encoding(&request),
            EndpointKind::Grpc => crate::grpc::wanted_encoding(&request),
        };
        let extensions = request.extensions_mut();
        extensions.insert(arrived);
        extensions.insert(limits);
        // It counts until there is an answer, also where a handler has read it.
        extensions.insert(Arc::clone(&charge));
        extensions.insert(answer.clone());
        if let Some(charges) = charges {
            extensions.insert(charges);
        }
        let request = request.map(axum::body::Body::new);
        let mut router = self.router.clone();
        let response = router.call(request).await;
        drop(charge);
        match response {
            Ok(response) => match (encoding, self.kind) {
                (None, _) => response,
                (Some(encoding), EndpointKind::Http) => {
                    crate::http::compressed(response, encoding).await
                }
                (Some(encoding), EndpointKind::Grpc) => {
                    crate::grpc::compressed(response, encoding).await
                }
            },
            Err(never) => match never {},
        }
    }
}
