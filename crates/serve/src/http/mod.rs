//! The endpoint for HTTP: paths, JSON, and bytes behind it.

mod compressed;
mod json;
mod views;

pub(crate) use compressed::{compressed, encoding as wanted_encoding};
pub(crate) use json::{Received, read as read_request};

use self::json::{AnyText, Members, Object};
use crate::blocking::blocking;
use crate::charge::{SharedCharge, take};
use crate::compressed::{Encoding, decompress};
use crate::endpoint::{AnswerCharge, Arrival, Limits};
use crate::error::{Error, Result};
use crate::input_memory::InputMemory;
use crate::page;
use crate::pieces::{Joining, Pieces};
use crate::repository::Overrides;
use crate::request::{InferRequest, InferResponse, MOST_PARAMETERS, version};
use crate::service::Service;
use crate::shared_memory::RegionStatus;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Where the JSON of a request ends and bytes begin.
const HEADER_LENGTH: &str = "inference-header-content-length";
/// JSON of this many bytes is read beside the other requests.
const MUCH_JSON: usize = 128 << 10;

type Shared = State<Arc<Service>>;

/// Hands on the name of the endpoint with an error.
pub(crate) struct Refusal(Error);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// Names in a path. Axum's own refuses what is no UTF-8 in words that are no JSON.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let names = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        names.map(|names| Self(names.0)).map_err(|error| Error::invalid(error.body_text()).into())
    }
}

type Answer<T = Response> = std::result::Result<T, Refusal>;

/// An error as a response.
pub(crate) fn refusal(error: &Error) -> Response {
    let body = serde_json::json!({ "error": error.to_string() }).to_string();
    let mut response =
        (error.http_status(), [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if let Some(after) = error.retry_after() {
        // Whole seconds, rounded up, for everyone; milliseconds for those who can wait for them.
        let seconds = after.as_millis().div_ceil(1000).max(1);
        let milliseconds = after.as_millis().max(1);
        let headers = response.headers_mut();
        for (name, value) in [("retry-after", seconds), ("retry-after-ms", milliseconds)] {
            if let Ok(value) = value.to_string().parse() {
                headers.insert(name, value);
            }
        }
    }
    if matches!(error, Error::Unauthenticated(_)) {
        let scheme = header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    if matches!(error, Error::Encoding) {
        let encodings = header::HeaderValue::from_static("gzip, deflate");
        response.headers_mut().insert(header::ACCEPT_ENCODING, encodings);
    }
    if matches!(error, Error::TooLarge { .. } | Error::SlowClient) {
        let close = header::HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = refusal(&self.0);
        // The layer counts it.
        response.extensions_mut().insert(self.0);
        response
    }
}

pub(crate) fn json_response(value: &serde_json::Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// All paths.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let model = Router::new()
        .route("/", get(views::model_metadata))
        .route("/ready", get(views::model_ready))
        .route("/config", get(views::model_config))
        .route("/stats", get(views::model_stats))
        .route("/infer", post(infer));
    let all = Router::new()
        .route("/", get(page::page))
        .route("/page.js", get(page::script))
        .route("/page.css", get(page::style))
        .route("/metrics", get(views::metrics))
        .route("/nnhal/models", get(views::overview))
        // A page of another site cannot make a browser ask so without saying where it is from.
        .route("/nnhal/models/{model}/profile", post(views::profile))
        .route("/v2", get(views::server_metadata))
        .route("/v2/", get(views::server_metadata))
        .route("/v2/health/live", get(views::live))
        .route("/v2/health/ready", get(views::ready))
        .route("/v2/models/stats", get(views::all_stats))
        .route("/v2/repository/index", post(index))
        .route("/v2/repository/models/{model}/load", post(load))
        .route("/v2/repository/models/{model}/unload", post(unload))
        .route("/v2/systemsharedmemory/status", get(memory_status))
        .route("/v2/systemsharedmemory/unregister", post(memory_unregister))
        .route("/v2/systemsharedmemory/region/{region}/status", get(memory_status))
        .route("/v2/systemsharedmemory/region/{region}/register", post(memory_register))
        .route("/v2/systemsharedmemory/region/{region}/unregister", post(memory_unregister))
        // Clients ask these before and after everything: there is no such memory.
        .route("/v2/cudasharedmemory/status", get(async || json_response(&serde_json::json!([]))))
        .route("/v2/cudasharedmemory/unregister", post(async || StatusCode::OK));
    let counted = Arc::clone(&service);
    all.nest("/v2/models/{model}", model.clone())
        .nest("/v2/models/{model}/versions/{version}", model)
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(axum::middleware::map_response(move |response: Response| {
            let service = Arc::clone(&counted);
            async move {
                if let Some(error) = response.extensions().get::<Error>() {
                    service.metrics.failed("http", error);
                }
                response
            }
        }))
        .with_state(service)
}

async fn unknown(request: Request<Body>) -> Refusal {
    let path = crate::parameters::shortened(request.uri().path());
    let missing = [
        ("/v2/logging", "settings of logs"),
        ("/v2/trace", "settings of traces"),
        ("/v2/cudasharedmemory", "CUDA's memory"),
    ];
    if let Some((_, what)) = missing.into_iter().find(|(prefix, _)| path.starts_with(prefix)) {
        return Refusal(Error::Unsupported(what));
    }
    Refusal(Error::NotFound { what: "path", name: path.to_owned() })
}

async fn not_allowed(request: Request<Body>) -> Response {
    let method = crate::parameters::shortened(request.method().as_str());
    let error = format!("the path has other methods than {method}");
    let body = serde_json::json!({ "error": error }).to_string();
    (StatusCode::METHOD_NOT_ALLOWED, [(header::CONTENT_TYPE, "application/json")], body)
        .into_response()
}

/// Names in a path.
#[derive(Deserialize)]
pub(crate) struct OfModel {
    pub(crate) model: String,
    #[serde(default)]
    version: String,
}

impl OfModel {
    pub(crate) fn version(&self) -> Result<Option<u64>> {
        version(&self.version)
    }
}

/// All bytes of a body.
async fn read(body: Body) -> Result<Pieces> {
    receive(body, usize::MAX, None).await
}

/// The bytes of a body, but for those from `from` on if there is memory for them, which they fill.
async fn receive(mut body: Body, from: usize, memory: Option<&InputMemory>) -> Result<Pieces> {
    let mut all = Joining::default();
    let mut received = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let inner = error.into_inner();
            inner.downcast::<Error>().map_or(Error::Cancelled, |error| *error)
        })?;
        let Ok(mut piece) = frame.into_data() else { continue };
        let begin = received;
        received += piece.len();
        if let Some(memory) = memory
            && received > from
        {
            let rest = piece.split_off(from.saturating_sub(begin));
            memory.write(begin.max(from) - from, &rest)?;
        }
        all.push(piece);
    }
    Ok(all.end())
}

/// The length of a request's JSON, if bytes follow it.
fn header_length(headers: &HeaderMap) -> Result<Option<usize>> {
    let Some(value) = headers.get(HEADER_LENGTH) else { return Ok(None) };
    // Digits alone, as in Content-Length: a sign would be read as part of the number.
    let digits = value.to_str().ok().map(str::trim);
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|text| text.parse().ok());
    let wrong = || Error::invalid("Inference-Header-Content-Length is no number");
    number.map(Some).ok_or_else(wrong)
}

async fn infer(State(service): Shared, Path(of): Path<OfModel>, request: Request<Body>) -> Answer {
    let arrived =
        request.extensions().get::<Arrival>().map_or_else(std::time::Instant::now, |it| it.0);
    let span = crate::telemetry::request_span("http", &of.model, request.headers());
    let (head, body) = request.into_parts();
    let work = async {
        let encoding = Encoding::of(&head.headers, header::CONTENT_ENCODING)?;
        let header = header_length(&head.headers)?;
        let version = of.version()?;
        let length = body.size_hint().exact().and_then(|it| usize::try_from(it).ok());
        let memory = length.zip(header).filter(|_| encoding.is_none());
        let memory = memory.and_then(|(length, header)| {
            service.memory_for(&of.model, version, length.checked_sub(header)?)
        });
        let mut front = receive(body, header.unwrap_or(0), memory.as_ref()).await?;
        if let Some(encoding) = encoding {
            let limits = head.extensions.get::<Limits>().copied();
            let charge = head.extensions.get::<SharedCharge>().cloned();
            let (limits, charge) = limits.zip(charge).ok_or_else(unlimited)?;
            front = blocking(move || decompress(encoding, &front, limits.most, &charge)).await?;
        }
        let body = Received { front, header, memory };
        let (request, all_binary) = if header == Some(0) {
            let served = service.repository.get(&of.model, version)?;
            let is_batched = served.is_batched();
            let data = body.into_data();
            let request = json::read_raw(&of.model, version, &served.inputs, is_batched, data)?;
            (request, true)
        } else {
            let charge = head.extensions.get::<SharedCharge>().ok_or_else(unlimited)?;
            parse(&service, &of.model, version, body, charge).await?
        };
        let binary: Vec<bool> = match request.outputs.is_empty() {
            true => Vec::new(),
            false => request.outputs.iter().map(|it| it.binary.unwrap_or(all_binary)).collect(),
        };
        let charge = head.extensions.get::<AnswerCharge>().ok_or_else(unlimited)?;
        let response = service.infer(request, arrived, &charge.0).await?;
        let binary = match binary.is_empty() {
            true => vec![all_binary; response.outputs.len()],
            false => binary,
        };
        let (body, length) = write(response, binary, &charge.0).await?;
        Ok(match length {
            None => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Some(length) => {
                let kind = (header::CONTENT_TYPE.as_str(), "application/octet-stream".to_owned());
                let headers = [kind, (HEADER_LENGTH, length.to_string())];
                (headers, body).into_response()
            }
        })
    };
    tracing::Instrument::instrument(work, span).await
}

/// A request that no endpoint has limited.
fn unlimited() -> Error {
    Error::Internal("a request without limits".into())
}

/// Reads a request; much JSON on a thread of its own, so that others are answered meanwhile.
async fn parse(
    service: &Arc<Service>,
    model: &str,
    version: Option<u64>,
    body: Received,
    charge: &SharedCharge,
) -> Result<(InferRequest, bool)> {
    let (own, model, charge) = (Arc::clone(service), model.to_owned(), Arc::clone(charge));
    let length = body.header.unwrap_or(body.front.len());
    let read = move || json::read(&model, version, body, &own.shared_memory, &charge);
    if length < MUCH_JSON {
        return read();
    }
    let failed = |error: tokio::task::JoinError| Error::Internal(error.to_string());
    tokio::task::spawn_blocking(read).await.map_err(failed)?
}

/// Writes an answer; much JSON on a thread of its own, as it is read.
async fn write(
    response: InferResponse,
    binary: Vec<bool>,
    charge: &SharedCharge,
) -> Result<(bytes::Bytes, Option<usize>)> {
    if !json::is_much(&response, &binary) {
        return json::write(&response, &binary, charge);
    }
    let charge = Arc::clone(charge);
    blocking(move || json::write(&response, &binary, &charge)).await
}

/// A body that may be empty, or is JSON.
async fn optional_json<T: for<'de> Deserialize<'de> + Default>(
    request: Request<Body>,
) -> Result<T> {
    let charge = request.extensions().get::<SharedCharge>().cloned().ok_or_else(unlimited)?;
    let mut body = read(request.into_body()).await?;
    let length = body.len();
    let body = json::joined(&mut body, length, &charge)?;
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    // Texts of it are copied.
    take(&charge, length)?;
    let wrong = |error: serde_json::Error| Error::invalid(format!("the body: {error}"));
    serde_json::from_slice(&body).map(|Object(it)| it).map_err(wrong)
}

async fn index(State(service): Shared, request: Request<Body>) -> Answer {
    #[derive(Deserialize, Default)]
    struct Wanted {
        #[serde(default)]
        ready: bool,
    }
    let Wanted { ready } = optional_json(request).await?;
    let repository = Arc::clone(&service.repository);
    let index = blocking(move || Ok(repository.index(ready))).await?;
    let entries: Vec<_> = index
        .into_iter()
        .map(|it| {
            let mut entry =
                serde_json::json!({ "name": it.name, "state": it.state, "reason": it.reason });
            if !it.version.is_empty() {
                entry["version"] = it.version.into();
            }
            entry
        })
        .collect();
    Ok(json_response(&entries.into()))
}

async fn load(
    State(service): Shared,
    Path(of): Path<OfModel>,
    request: Request<Body>,
) -> Answer<StatusCode> {
    #[derive(Deserialize, Default)]
    struct Wanted {
        #[serde(default)]
        parameters: Option<Members<AnyText, MOST_PARAMETERS>>,
    }
    service.check_control()?;
    let charge = request.extensions().get::<SharedCharge>().cloned().ok_or_else(unlimited)?;
    let wanted: Wanted = optional_json(request).await?;
    let mut overrides = Overrides::default();
    for (name, AnyText(text)) in wanted.parameters.unwrap_or_default().0 {
        match (name.as_str(), name.strip_prefix("file:"), text) {
            ("config", _, Some(text)) => overrides.config = Some(text),
            (_, Some(path), Some(text)) => {
                take(&charge, text.len())?;
                let decoded = base64::engine::general_purpose::STANDARD.decode(text);
                let bytes = decoded.map_err(|error| Error::invalid(format!("{name}: {error}")))?;
                overrides.file(path, bytes)?;
            }
            ("config", ..) | (_, Some(_), _) => {
                return Err(Error::invalid(format!("parameter {name:?} is not a text")).into());
            }
            _ => return Err(Error::invalid(format!("parameter {name:?} is not known")).into()),
        }
    }
    service.repository.load(of.model, overrides).await?;
    Ok(StatusCode::OK)
}

async fn unload(
    State(service): Shared,
    Path(of): Path<OfModel>,
    request: Request<Body>,
) -> Answer<StatusCode> {
    service.check_control()?;
    // Nothing depends on a model, so that it makes no difference what the body says of that.
    read(request.into_body()).await?;
    service.repository.unload(of.model).await?;
    Ok(StatusCode::OK)
}

/// A region in a path; empty where the path has none.
#[derive(Deserialize)]
struct OfRegion {
    #[serde(default)]
    region: String,
}

impl OfRegion {
    fn name(&self) -> Option<&str> {
        Some(self.region.as_str()).filter(|name| !name.is_empty())
    }
}

async fn memory_status(State(service): Shared, Path(of): Path<OfRegion>) -> Answer {
    let regions = service.shared_memory.status(of.name())?;
    let entries: Vec<_> = regions
        .into_iter()
        .map(|RegionStatus { name, key, offset, byte_size }| {
            serde_json::json!({ "name": name, "key": key, "offset": offset, "byte_size": byte_size })
        })
        .collect();
    Ok(json_response(&entries.into()))
}

async fn memory_register(
    State(service): Shared,
    Path(of): Path<OfRegion>,
    request: Request<Body>,
) -> Answer<StatusCode> {
    #[derive(Deserialize, Default)]
    struct Wanted {
        key: String,
        #[serde(default)]
        offset: u64,
        byte_size: u64,
    }
    service.shared_memory.check_allowed()?;
    let Wanted { key, offset, byte_size } = optional_json(request).await?;
    service.shared_memory.register(RegionStatus { name: of.region, key, offset, byte_size })?;
    Ok(StatusCode::OK)
}

async fn memory_unregister(State(service): Shared, Path(of): Path<OfRegion>) -> Answer<StatusCode> {
    service.shared_memory.unregister(of.name())?;
    Ok(StatusCode::OK)
}
