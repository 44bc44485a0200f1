//! Lines of the log, and traces of requests, which are children of those that clients name.

use crate::error::StartError;
use http::HeaderMap;
use std::io::{Error, ErrorKind};
use tracing::Span;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// What is logged unless the environment says otherwise.
const DEFAULT_LOG: &str = "warn,nnhal_serve=info";

/// What spans of requests are by name: a log has them only if it is asked for them, since each costs some microseconds.
const REQUESTS: &str = "nnhal_serve::requests";

/// What a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// A JSON object for programs.
    Json,
}

/// Sends what is left of the traces when dropped.
#[derive(Debug)]
#[must_use = "dropped, it ends the traces"]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    traces: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Logs to standard error what `wanted` names (as `NNHAL_LOG` does), and sends traces where the standard
/// variables of OpenTelemetry say: `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, unless
/// `OTEL_SDK_DISABLED` or `OTEL_TRACES_EXPORTER` say otherwise. `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and
/// `OTEL_TRACES_SAMPLER` are what they are elsewhere.
///
/// # Errors
/// [`StartError::System`]: what is wanted makes no sense, or something else of the process logs already.
pub fn start(wanted: Option<&str>, format: LogFormat) -> Result<Telemetry, StartError> {
    let failed = |what, error: &dyn std::fmt::Display| {
        let source = Error::new(ErrorKind::InvalidInput, error.to_string());
        StartError::System { what, source }
    };
    let filter: Targets =
        wanted.unwrap_or(DEFAULT_LOG).parse().map_err(|error| failed("the log", &error))?;
    // Complaints would panic where standard error is full or closed.
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
    };
    let registry = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otel")]
    {
        use opentelemetry::trace::TracerProvider;
        let traces = traces().map_err(|error| failed("traces", &error))?;
        let layer = traces.as_ref().map(|traces| {
            let of_requests = Targets::new()
                .with_target("nnhal_serve", tracing::Level::INFO)
                .with_target(REQUESTS, tracing::Level::TRACE)
                .with_target("nnhal_driver", tracing::Level::DEBUG);
            let tracer = traces.tracer("nnhal");
            tracing_opentelemetry::layer().with_tracer(tracer).with_filter(of_requests)
        });
        registry.with(layer).try_init().map_err(|error| failed("the log", &error))?;
        Ok(Telemetry { traces })
    }
    #[cfg(not(feature = "otel"))]
    {
        registry.try_init().map_err(|error| failed("the log", &error))?;
        Ok(Telemetry {})
    }
}

/// What sends traces, if the environment says where to.
#[cfg(feature = "otel")]
fn traces() -> Result<
    Option<opentelemetry_sdk::trace::SdkTracerProvider>,
    opentelemetry_otlp::ExporterBuildError,
> {
    let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_disabled = value("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"))
        || value("OTEL_TRACES_EXPORTER").is_some_and(|it| it != "otlp");
    let places = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    if is_disabled || !places.into_iter().any(|name| value(name).is_some()) {
        return Ok(None);
    }
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().build()?;
    let mut resource = opentelemetry_sdk::Resource::builder();
    if value("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("nnhal");
    }
    let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder()
        .with_resource(resource.build())
        .with_batch_exporter(exporter)
        .build();
    Ok(Some(provider))
}

#[cfg(feature = "otel")]
impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(traces) = self.traces.take()
            && let Err(error) = traces.shutdown()
        {
            tracing::warn!(%error, "traces were not all sent");
        }
    }
}

/// The span of a request; with the trace that its headers name, if traces are sent anywhere.
pub(crate) fn request_span(endpoint: &'static str, model: &str, headers: &HeaderMap) -> Span {
    let model = crate::parameters::shortened(model);
    let span = tracing::trace_span!(target: REQUESTS, "infer", endpoint, model);
    #[cfg(feature = "otel")]
    if !span.is_disabled() {
        use opentelemetry::propagation::TextMapPropagator;
        use opentelemetry_sdk::propagation::TraceContextPropagator;
        use tracing_opentelemetry::OpenTelemetrySpanExt;
        let extractor = opentelemetry_http::HeaderExtractor(headers);
        let _ = span.set_parent(TraceContextPropagator::new().extract(&extractor));
    }
    #[cfg(not(feature = "otel"))]
    let _ = headers;
    span
}
