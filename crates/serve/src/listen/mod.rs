//! Connections of both endpoints: how many, how slow, who may, encrypted or not, and how they end.

mod ahead;
mod body;
mod busy_poll;
mod open_requests;
mod poll_again;
mod timed;

use crate::access::{Tls, Tokens};
use crate::browser::SiteGuard;
use crate::endpoint::{Arrival, EndpointKind, Limits, SharedCharge};
use crate::error::Error;
use crate::service::{Charge, Service};
use ahead::ReadAhead;
use axum::Router;
use axum::response::Response;
use body::LimitedBody;
use busy_poll::BusyPoll;
pub(crate) use busy_poll::LastToSpeak;
use http::header::{EXPECT, HOST};
use http::{Request, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use open_requests::{AnswerBody, OpenRequests};
use poll_again::poll_again;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timed::Timed;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower_service::Service as _;

/// Headers of a request, and their bytes.
const MOST_HEADERS: usize = 64;
const MOST_HEADER_BYTES: usize = 32 << 10;
/// Requests at a time in a connection of HTTP/2.
const MOST_STREAMS: u32 = 256;
/// Bytes that a client may send before they are taken.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// Bytes of a frame of HTTP/2 that clients may send: with more, large tensors come in fewer pieces.
const LONGEST_FRAME: u32 = 256 << 10;
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
}

impl Endpoint {
    /// Takes connections until `ending` says so, then waits until they are done, for at most `timeout`.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        mut ending: watch::Receiver<bool>,
        timeout: Duration,
    ) {
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
        let requests = OpenRequests::default();
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
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.client_timeout)
            .max_headers(MOST_HEADERS)
            .max_buf_size(MOST_HEADER_BYTES.max(64 << 10));
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MOST_STREAMS)
            .max_frame_size(LONGEST_FRAME)
            .max_header_list_size(u32::try_from(MOST_HEADER_BYTES).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(Some(self.client_timeout))
            .keep_alive_timeout(self.client_timeout);
        let stream = Timed::new(stream, self.client_timeout);
        match self.kind {
            EndpointKind::Http => {
                self.answer(builder.http1_only(), stream, requests, watcher).await
            }
            EndpointKind::Grpc => {
                let stream = ReadAhead::new(stream);
                self.answer(builder.http2_only(), stream, requests, watcher).await;
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
        let endpoint = Arc::clone(&self);
        let service = hyper::service::service_fn(move |request| {
            let (endpoint, open) = (Arc::clone(&endpoint), requests.open());
            async move {
                let response = endpoint.request(request).await;
                Ok::<_, Infallible>(response.map(|body| AnswerBody::new(body, open)))
            }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        if let Err(error) = poll_again(watcher.watch(connection)).await {
            tracing::debug!(%error, endpoint = self.kind.name(), "a connection ended");
        }
    }

    /// Whether a request may go on, by its head.
    fn admit(&self, request: &Request<Incoming>) -> Result<(), Error> {
        if let Some(tokens) = &self.tokens {
            tokens.check(request.uri().path(), request.headers())?;
        }
        check_host(request)?;
        self.guard.map_or(Ok(()), |guard| guard.check(request.headers()))
    }

    async fn request(&self, request: Request<Incoming>) -> Response {
        let arrived = Arrival(Instant::now());
        if let Err(error) = self.admit(&request) {
            self.service.metrics.failed(self.kind.name(), &error);
            return refuse(self.kind, &error);
        }
        let encoding = match self.kind {
            EndpointKind::Http => crate::http::wanted_encoding(&request),
            EndpointKind::Grpc => crate::grpc::wanted_encoding(&request),
        };
        let is_stream = request.uri().path().ends_with("/ModelStreamInfer");
        let limits = Limits {
            most: if is_stream { usize::MAX } else { self.most_request },
            is_asked_for: request.headers().contains_key(EXPECT),
            timeout: (!is_stream).then_some(self.client_timeout),
        };
        let charge: SharedCharge =
            Arc::new(Mutex::new(Charge::new(Arc::clone(&self.service.receiving))));
        let (mut head, body) = request.into_parts();
        head.extensions.insert(arrived);
        head.extensions.insert(limits);
        head.extensions.insert(Arc::clone(&charge));
        let body = LimitedBody::new(body, Arc::clone(&charge), limits, self.kind);
        let request = Request::from_parts(head, axum::body::Body::new(body));
        let mut router = self.router.clone();
        match router.call(request).await {
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
