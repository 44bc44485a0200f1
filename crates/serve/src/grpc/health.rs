//! [`Health`]: gRPC's own protocol of health, which Kubernetes' probes and load balancers speak.

use crate::service::Service;
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::IntervalStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

/// How often a stream of statuses looks for another one.
const INTERVAL: Duration = Duration::from_secs(1);

/// Whether the server is ready, as the protocol's own question for that says.
#[derive(Debug, Clone)]
pub(super) struct Health {
    pub(super) service: Arc<Service>,
    /// Whether the server ends.
    pub(super) ending: watch::Receiver<bool>,
}

impl Health {
    /// What is known of a service: the server as a whole, or the one that it has.
    fn status(&self, name: &str) -> Option<ServingStatus> {
        if !matches!(name, "" | "inference.GRPCInferenceService") {
            return None;
        }
        let is_ready = self.service.repository.is_ready() && !self.is_ending();
        Some(if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing })
    }

    fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let name = request.into_inner().service;
        let status = self.status(&name);
        let shown = crate::parameters::shortened(&name);
        let status =
            status.ok_or_else(|| Status::not_found(format!("there is no service {shown:?}")))?;
        Ok(Response::new(response(status)))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// The status now, and each other one that it becomes, until the server ends, which would wait for the stream.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (health, name) = (self.clone(), request.into_inner().service);
        let (mut last, ending) = (None, self.clone());
        let times = IntervalStream::new(tokio::time::interval(INTERVAL));
        let changes = times.take_while(move |_| !ending.is_ending()).filter_map(move |_| {
            let status = health.status(&name).unwrap_or(ServingStatus::ServiceUnknown);
            (last.replace(status) != Some(status)).then(|| Ok(response(status)))
        });
        Ok(Response::new(Box::pin(changes)))
    }
}
