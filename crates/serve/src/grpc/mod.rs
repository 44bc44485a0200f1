//! The endpoint for gRPC: the protocol's messages, and what becomes of them.

mod compressed;
mod convert;
mod decoding;
mod decompressed;
mod health;

pub(crate) use compressed::{compressed, encoding as wanted_encoding};
pub(crate) use convert::{config, request as read_request};
pub(crate) use decoding::{Decoding, Messages};

use crate::charge::SharedCharge;
use crate::endpoint::{AnswerCharge, Arrival, MessageCharges};
use crate::error::Error;
use crate::metrics::Metrics;
use crate::proto::{self, grpc_inference_service_server as generated};
use crate::repository::Overrides;
use crate::request::{InferResponse, version};
use crate::service::{NAME, Service};
use crate::shared_memory::RegionStatus;
use axum::Router;
use futures_core::Stream;
use proto::model_repository_parameter::ParameterChoice;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_health::pb::health_server::HealthServer;

/// How messages may be compressed that whoever says so reads.
const ACCEPTED: &str = "grpc-accept-encoding";
/// What an answer in a stream says if no other follows it for the same request.
const FINAL_RESPONSE: &str = "triton_final_response";
/// How the library for gRPC begins to say that bytes are no message, that they end too early, and that they are compressed in a
/// way that was not said. To the last it answers as the protocol demands; the others it calls errors of the server.
const MALFORMED: [&str; 3] = [
    "failed to decode Protobuf message",
    "Unexpected EOF decoding stream",
    "Missing request message",
];
const WRONGLY_COMPRESSED: &str = "protocol error: received message with";
/// Requests of a stream that are computed at the same time.
const MOST_OF_STREAM: usize = 32;

type Answer<T> = Result<Response<T>, Status>;

/// An error as gRPC's status, with a time to wait for in the trailers.
pub(crate) fn status(error: &Error) -> Status {
    let mut status = Status::new(error.grpc_code(), error.to_string());
    if let Some(after) = error.retry_after()
        && let Ok(value) = after.as_millis().max(1).to_string().parse()
    {
        // As gRPC's clients know it.
        status.metadata_mut().insert("grpc-retry-pushback-ms", value);
    }
    status
}

#[derive(Debug)]
struct Endpoint {
    service: Arc<Service>,
    /// Bytes that a message may have.
    most_request: usize,
}

/// All methods.
pub(crate) fn router(
    service: Arc<Service>,
    most_request: usize,
    ending: watch::Receiver<bool>,
) -> Router {
    let metrics = Arc::clone(&service.metrics);
    let health = HealthServer::new(health::Health { service: Arc::clone(&service), ending });
    let server = generated::GrpcInferenceServiceServer::new(Endpoint { service, most_request })
        .max_decoding_message_size(most_request)
        .max_encoding_message_size(usize::MAX);
    let mut routes = tonic::service::Routes::new(server).add_service(health);
    // The descriptors are those of the build, and their tests read them.
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    if let Ok(reflection) = reflection().build_v1() {
        routes = routes.add_service(reflection);
    }
    if let Ok(reflection) = reflection().build_v1alpha() {
        routes = routes.add_service(reflection);
    }
    let refused = Arc::clone(&metrics);
    let router = routes.prepare().into_axum_router();
    router
        .layer(axum::middleware::map_request(move |request| {
            let outcome = decompressed::decompressed(request, most_request, &refused);
            std::future::ready(outcome.map_err(|error| {
                refused.failed("grpc", &error);
                let mut status = status(&error);
                let encodings =
                    tonic::metadata::MetadataValue::from_static("identity,deflate,gzip");
                status.metadata_mut().insert(ACCEPTED, encodings);
                status.into_http::<axum::body::Body>()
            }))
        }))
        .layer(axum::middleware::map_response(
            move |mut response: http::Response<axum::body::Body>| {
                let headers = response.headers_mut();
                let of_library = Status::from_header_map(headers)
                    .and_then(|status| fault_of_library(&status, most_request));
                if let Some((error, code)) = of_library {
                    metrics.failed("grpc", &error);
                    headers.insert("grpc-status", http::HeaderValue::from(code as i32));
                }
                std::future::ready(response)
            },
        ))
}

/// What is wrong with a request of which the library for gRPC says this status, with the code that is to be answered; `None`: it is
/// not the library that says it. One that is too large the library calls out of range; other servers, and clients that decide
/// whether to try again, call that exhausted. A method that there is not it refuses without words. Nothing of ours is called out
/// of range, has no words, or begins with these.
fn fault_of_library(status: &Status, most_request: usize) -> Option<(Error, Code)> {
    let message = status.message();
    let begins = |words: &str| message.starts_with(words);
    match status.code() {
        Code::OutOfRange => {
            Some((Error::TooLarge { limit: most_request }, Code::ResourceExhausted))
        }
        Code::Internal if MALFORMED.into_iter().any(begins) => {
            Some((Error::invalid(message), Code::InvalidArgument))
        }
        Code::Internal if begins(WRONGLY_COMPRESSED) => {
            Some((Error::invalid(message), Code::Internal))
        }
        Code::Unimplemented if message.is_empty() => {
            Some((Error::Unsupported("this method"), Code::Unimplemented))
        }
        _ => None,
    }
}

/// A status that the reader of messages of a stream gives, as it is answered. What the library itself refuses is counted here.
fn of_reader(status: Status, metrics: &Metrics, most_request: usize) -> Status {
    match fault_of_library(&status, most_request) {
        Some((error, code)) => {
            metrics.failed("grpc", &error);
            Status::new(code, status.message())
        }
        None => status,
    }
}

impl Endpoint {
    /// Counts an error, and gives it as a status.
    fn refuse(&self, error: &Error) -> Status {
        self.service.metrics.failed("grpc", error);
        status(error)
    }

    /// Something that takes its time, on a thread of its own.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Status> {
        crate::blocking::blocking(work).await.map_err(|error| self.refuse(&error))
    }
}

async fn infer(
    service: &Service,
    request: proto::ModelInferRequest,
    arrived: Instant,
    deadline: Option<Duration>,
    charge: &SharedCharge,
) -> Result<proto::ModelInferResponse, Error> {
    let mut request = convert::request(request, &service.shared_memory)?;
    request.client_deadline = deadline;
    let response: InferResponse = service.infer(request, arrived, charge).await?;
    Ok(convert::response(response))
}

/// The client's deadline: `grpc-timeout`, at most eight digits and a unit.
fn deadline(metadata: &tonic::metadata::MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

fn arrival<T>(request: &Request<T>) -> Instant {
    request.extensions().get::<Arrival>().map_or_else(Instant::now, |it| it.0)
}

#[tonic::async_trait]
impl generated::GrpcInferenceService for Endpoint {
    async fn server_live(
        &self,
        _: Request<proto::ServerLiveRequest>,
    ) -> Answer<proto::ServerLiveResponse> {
        Ok(Response::new(proto::ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _: Request<proto::ServerReadyRequest>,
    ) -> Answer<proto::ServerReadyResponse> {
        Ok(Response::new(proto::ServerReadyResponse { ready: self.service.is_ready() }))
    }

    async fn model_ready(
        &self,
        request: Request<proto::ModelReadyRequest>,
    ) -> Answer<proto::ModelReadyResponse> {
        let proto::ModelReadyRequest { name, version: wanted } = request.into_inner();
        let served =
            version(&wanted).and_then(|version| self.service.repository.get(&name, version));
        Ok(Response::new(proto::ModelReadyResponse { ready: served.is_ok() }))
    }

    async fn server_metadata(
        &self,
        _: Request<proto::ServerMetadataRequest>,
    ) -> Answer<proto::ServerMetadataResponse> {
        Ok(Response::new(proto::ServerMetadataResponse {
            name: NAME.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            extensions: self.service.extensions().into_iter().map(Into::into).collect(),
        }))
    }

    async fn model_metadata(
        &self,
        request: Request<proto::ModelMetadataRequest>,
    ) -> Answer<proto::ModelMetadataResponse> {
        let proto::ModelMetadataRequest { name, version: wanted } = request.into_inner();
        let served =
            version(&wanted).and_then(|version| self.service.repository.get(&name, version));
        let served = served.map_err(|error| self.refuse(&error))?;
        let all = self.service.repository.all(Some(&name));
        Ok(Response::new(convert::metadata(&served, &all)))
    }

    async fn model_infer(
        &self,
        request: Request<proto::ModelInferRequest>,
    ) -> Answer<proto::ModelInferResponse> {
        let (arrived, deadline) = (arrival(&request), deadline(request.metadata()));
        let headers = request.metadata().clone().into_headers();
        let charge = request.extensions().get::<AnswerCharge>().cloned();
        let charge = charge.map_or_else(|| self.service.charge().shared(), |charge| charge.0);
        let request = request.into_inner();
        let span = crate::telemetry::request_span("grpc", &request.model_name, &headers);
        let work = infer(&self.service, request, arrived, deadline, &charge);
        let response = tracing::Instrument::instrument(work, span).await;
        response.map(Response::new).map_err(|error| self.refuse(&error))
    }

    type ModelStreamInferStream =
        Pin<Box<dyn Stream<Item = Result<proto::ModelStreamInferResponse, Status>> + Send>>;

    /// Several requests of a stream are computed at the same time; answers come in the order of requests.
    async fn model_stream_infer(
        &self,
        request: Request<Streaming<proto::ModelInferRequest>>,
    ) -> Answer<Self::ModelStreamInferStream> {
        let charge = request.extensions().get::<SharedCharge>().cloned();
        let charges = request.extensions().get::<MessageCharges>().cloned().unwrap_or_default();
        let mut requests = request.into_inner();
        let (service, most_request) = (Arc::clone(&self.service), self.most_request);
        // With an answer goes what it takes, until it is written.
        type Task = JoinHandle<(String, Result<proto::ModelInferResponse, Error>, SharedCharge)>;
        let (sender, tasks) =
            mpsc::channel::<Result<AbortWhenDropped<Task>, Status>>(MOST_OF_STREAM);
        tokio::spawn(async move {
            loop {
                let place = tokio::select! {
                    place = sender.reserve() => place,
                    () = sender.closed() => return,
                };
                let Ok(place) = place else { return };
                let message = tokio::select! {
                    message = requests.next() => message,
                    () = sender.closed() => return,
                };
                let request = match message {
                    None => return,
                    Some(Err(status)) => {
                        place.send(Err(of_reader(status, &service.metrics, most_request)));
                        return;
                    }
                    Some(Ok(request)) => request,
                };
                let received = charge.as_ref().map(|charge| {
                    charge.lock().unwrap_or_else(PoisonError::into_inner).split(charges.pop())
                });
                let service = Arc::clone(&service);
                let task = tokio::spawn(async move {
                    // A stream has any number of messages: each gives back what it has taken.
                    let _received = received;
                    let (id, answer) = (request.id.clone(), service.charge().shared());
                    let outcome = infer(&service, request, Instant::now(), None, &answer).await;
                    (id, outcome, answer)
                });
                place.send(Ok(AbortWhenDropped(task)));
            }
        });
        let metrics = Arc::clone(&self.service.metrics);
        let answers = ReceiverStream::new(tasks).then(move |task| {
            let metrics = Arc::clone(&metrics);
            async move {
                let mut task = task?;
                let failed = |error: tokio::task::JoinError| Status::internal(error.to_string());
                let (id, outcome, _taken) = (&mut task.0).await.map_err(failed)?;
                let (error_message, mut response) = match outcome {
                    Ok(response) => (String::new(), response),
                    Err(error) => {
                        metrics.failed("grpc", &error);
                        let response = proto::ModelInferResponse { id, ..Default::default() };
                        (error.to_string(), response)
                    }
                };
                // Each request has one answer, which is its last one.
                let parameter_choice =
                    Some(proto::infer_parameter::ParameterChoice::BoolParam(true));
                response
                    .parameters
                    .insert(FINAL_RESPONSE.into(), proto::InferParameter { parameter_choice });
                let infer_response = Some(response);
                Ok(proto::ModelStreamInferResponse { error_message, infer_response })
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn model_config(
        &self,
        request: Request<proto::ModelConfigRequest>,
    ) -> Answer<proto::ModelConfigResponse> {
        let proto::ModelConfigRequest { name, version: wanted } = request.into_inner();
        let served =
            version(&wanted).and_then(|version| self.service.repository.get(&name, version));
        let served = served.map_err(|error| self.refuse(&error))?;
        Ok(Response::new(proto::ModelConfigResponse { config: Some(config(&served)) }))
    }

    async fn model_statistics(
        &self,
        request: Request<proto::ModelStatisticsRequest>,
    ) -> Answer<proto::ModelStatisticsResponse> {
        let proto::ModelStatisticsRequest { name, version: wanted } = request.into_inner();
        let number = version(&wanted).map_err(|error| self.refuse(&error))?;
        let found = match (name.as_str(), number) {
            ("", _) => self.service.repository.all(None),
            (name, wanted) => {
                let served = self.service.repository.get(name, wanted);
                let served = served.map_err(|error| self.refuse(&error))?;
                match wanted {
                    Some(_) => vec![served],
                    None => self.service.repository.all(Some(name)),
                }
            }
        };
        let model_stats = found.iter().map(|served| convert::statistics(served)).collect();
        Ok(Response::new(proto::ModelStatisticsResponse { model_stats }))
    }

    async fn repository_index(
        &self,
        request: Request<proto::RepositoryIndexRequest>,
    ) -> Answer<proto::RepositoryIndexResponse> {
        let is_ready_only = request.into_inner().ready;
        let repository = Arc::clone(&self.service.repository);
        let index = self.blocking(move || Ok(repository.index(is_ready_only))).await?;
        let models = index.into_iter().map(|it| proto::repository_index_response::ModelIndex {
            name: it.name,
            version: it.version,
            state: it.state.into(),
            reason: it.reason,
        });
        Ok(Response::new(proto::RepositoryIndexResponse { models: models.collect() }))
    }

    async fn repository_model_load(
        &self,
        request: Request<proto::RepositoryModelLoadRequest>,
    ) -> Answer<proto::RepositoryModelLoadResponse> {
        self.service.check_control().map_err(|error| self.refuse(&error))?;
        let proto::RepositoryModelLoadRequest { model_name, parameters, .. } = request.into_inner();
        let mut overrides = Overrides::default();
        for (name, value) in parameters {
            let outcome = match (name.as_str(), name.strip_prefix("file:"), value.parameter_choice)
            {
                ("config", _, Some(ParameterChoice::StringParam(text))) => {
                    overrides.config = Some(text);
                    Ok(())
                }
                (_, Some(path), Some(ParameterChoice::BytesParam(bytes))) => {
                    overrides.file(path, bytes)
                }
                _ => Err(Error::invalid(format!("parameter {name:?} is not known"))),
            };
            outcome.map_err(|error| self.refuse(&error))?;
        }
        let loaded = self.service.repository.load(model_name, overrides).await;
        loaded.map_err(|error| self.refuse(&error))?;
        Ok(Response::new(proto::RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<proto::RepositoryModelUnloadRequest>,
    ) -> Answer<proto::RepositoryModelUnloadResponse> {
        self.service.check_control().map_err(|error| self.refuse(&error))?;
        let name = request.into_inner().model_name;
        let unloaded = self.service.repository.unload(name).await;
        unloaded.map_err(|error| self.refuse(&error))?;
        Ok(Response::new(proto::RepositoryModelUnloadResponse {}))
    }

    async fn system_shared_memory_status(
        &self,
        request: Request<proto::SystemSharedMemoryStatusRequest>,
    ) -> Answer<proto::SystemSharedMemoryStatusResponse> {
        let name = request.into_inner().name;
        let regions =
            self.service.shared_memory.status(Some(&*name).filter(|name| !name.is_empty()));
        let regions = regions.map_err(|error| self.refuse(&error))?;
        let region = |RegionStatus { name, key, offset, byte_size }: RegionStatus| {
            use proto::system_shared_memory_status_response::RegionStatus;
            (name.clone(), RegionStatus { name, key, offset, byte_size })
        };
        let regions = regions.into_iter().map(region).collect();
        Ok(Response::new(proto::SystemSharedMemoryStatusResponse { regions }))
    }

    async fn system_shared_memory_register(
        &self,
        request: Request<proto::SystemSharedMemoryRegisterRequest>,
    ) -> Answer<proto::SystemSharedMemoryRegisterResponse> {
        let proto::SystemSharedMemoryRegisterRequest { name, key, offset, byte_size } =
            request.into_inner();
        let status = RegionStatus { name, key, offset, byte_size };
        let registered = self.service.shared_memory.register(status);
        registered.map_err(|error| self.refuse(&error))?;
        Ok(Response::new(proto::SystemSharedMemoryRegisterResponse {}))
    }

    async fn system_shared_memory_unregister(
        &self,
        request: Request<proto::SystemSharedMemoryUnregisterRequest>,
    ) -> Answer<proto::SystemSharedMemoryUnregisterResponse> {
        let name = request.into_inner().name;
        let outcome =
            self.service.shared_memory.unregister(Some(&*name).filter(|name| !name.is_empty()));
        outcome.map_err(|error| self.refuse(&error))?;
        Ok(Response::new(proto::SystemSharedMemoryUnregisterResponse {}))
    }

    async fn cuda_shared_memory_status(
        &self,
        _: Request<proto::CudaSharedMemoryStatusRequest>,
    ) -> Answer<proto::CudaSharedMemoryStatusResponse> {
        Ok(Response::new(proto::CudaSharedMemoryStatusResponse::default()))
    }

    async fn cuda_shared_memory_register(
        &self,
        _: Request<proto::CudaSharedMemoryRegisterRequest>,
    ) -> Answer<proto::CudaSharedMemoryRegisterResponse> {
        Err(self.refuse(&Error::Unsupported("CUDA's memory")))
    }

    async fn cuda_shared_memory_unregister(
        &self,
        _: Request<proto::CudaSharedMemoryUnregisterRequest>,
    ) -> Answer<proto::CudaSharedMemoryUnregisterResponse> {
        Ok(Response::new(proto::CudaSharedMemoryUnregisterResponse {}))
    }

    async fn trace_setting(
        &self,
        _: Request<proto::TraceSettingRequest>,
    ) -> Answer<proto::TraceSettingResponse> {
        Err(self.refuse(&Error::Unsupported("settings of traces")))
    }

    async fn log_settings(
        &self,
        _: Request<proto::LogSettingsRequest>,
    ) -> Answer<proto::LogSettingsResponse> {
        Err(self.refuse(&Error::Unsupported("settings of logs")))
    }
}

/// A task that ends with whoever waits for it.
struct AbortWhenDropped<T: Abort>(T);

trait Abort {
    fn abort(&self);
}

impl<T> Abort for JoinHandle<T> {
    fn abort(&self) {
        Self::abort(self);
    }
}

impl<T: Abort> Drop for AbortWhenDropped<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
