//! What is only looked at: health, metadata, statistics, metrics.

use super::{Answer, OfModel, Path, Shared, json_response};
use crate::blocking::blocking;
use crate::data_type;
use crate::error::{Error, Result};
use crate::model::{BatchCounts, Counts, Durations, Served, TensorMeta, wire_shape};
use crate::service::NAME;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use prost::Message as _;
use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

pub(super) async fn live() -> Response {
    json_response(&json!({ "live": true }))
}

pub(super) async fn ready(State(service): Shared) -> Answer {
    match service.is_ready() {
        true => Ok(json_response(&json!({ "ready": true }))),
        false => Err(Error::Unavailable("not all models are ready".into()).into()),
    }
}

pub(super) async fn server_metadata(State(service): Shared) -> Response {
    let version = env!("CARGO_PKG_VERSION");
    json_response(&json!({ "name": NAME, "version": version, "extensions": service.extensions() }))
}

fn tensors(all: &[TensorMeta]) -> Value {
    let tensor = |it: &TensorMeta| {
        let datatype = data_type::name(it.data_type).unwrap_or_default();
        json!({ "name": it.name, "datatype": datatype, "shape": wire_shape(&it.shape) })
    };
    all.iter().map(tensor).collect()
}

pub(super) async fn model_metadata(State(service): Shared, Path(of): Path<OfModel>) -> Answer {
    let served = service.repository.get(&of.model, of.version()?)?;
    let all = service.repository.all(Some(&of.model));
    let versions: Vec<String> = all.iter().map(|it| it.version.to_string()).collect();
    Ok(json_response(&json!({
        "name": served.name,
        "versions": versions,
        "platform": "tensorflow_lite",
        "inputs": tensors(&served.inputs),
        "outputs": tensors(&served.outputs),
    })))
}

pub(super) async fn model_ready(State(service): Shared, Path(of): Path<OfModel>) -> Answer {
    let served = service.repository.get(&of.model, of.version()?)?;
    Ok(json_response(&json!({ "name": served.name, "ready": true })))
}

pub(super) async fn model_config(State(service): Shared, Path(of): Path<OfModel>) -> Answer {
    let served = service.repository.get(&of.model, of.version()?)?;
    Ok(json_response(&config_json(&served)?))
}

/// A model's configuration as protobuf's JSON, with the names of the `.proto` file.
fn config_json(served: &Served) -> Result<Value> {
    let failed = |error: &dyn std::fmt::Display| Error::Internal(error.to_string());
    let bytes = crate::grpc::config(served).encode_to_vec();
    let message = DynamicMessage::decode(crate::config::descriptor()?, &*bytes)
        .map_err(|error| failed(&error))?;
    // With all fields that are no messages, as Triton's: clients look for those that have their defaults too.
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false)
        .skip_default_fields(false);
    message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| failed(&error))
}

fn durations(it: Durations) -> Value {
    json!({ "count": it.count, "ns": it.nanoseconds })
}

pub(super) fn statistics(served: &Served) -> Value {
    let counts = served.counts();
    let Counts { success, fail, queue, work, .. } = counts;
    let batch = |(rows, it): (&usize, &BatchCounts)| {
        json!({
            "batch_size": rows,
            "compute_input": durations(it.input),
            "compute_infer": durations(it.compute),
            "compute_output": durations(it.output),
        })
    };
    json!({
        "name": served.name,
        "version": served.version.to_string(),
        "last_inference": counts.last_inference,
        "inference_count": counts.inferences,
        "execution_count": counts.executions,
        "inference_stats": {
            "success": durations(success),
            "fail": durations(fail),
            "queue": durations(queue),
            "compute_input": durations(work.input),
            "compute_infer": durations(work.compute),
            "compute_output": durations(work.output),
            "cache_hit": durations(Durations::default()),
            "cache_miss": durations(Durations::default()),
        },
        "response_stats": {},
        "batch_stats": counts.batches.iter().map(batch).collect::<Vec<_>>(),
        "memory_usage": [{ "type": "CPU", "id": 0, "byte_size": served.memory }],
    })
}

fn all_statistics(all: &[Arc<Served>]) -> Response {
    let all: Vec<Value> = all.iter().map(|served| statistics(served)).collect();
    json_response(&json!({ "model_stats": all }))
}

pub(super) async fn all_stats(State(service): Shared) -> Response {
    all_statistics(&service.repository.all(None))
}

pub(super) async fn model_stats(State(service): Shared, Path(of): Path<OfModel>) -> Answer {
    let found = service.repository.get(&of.model, of.version()?)?;
    Ok(match of.version()? {
        Some(_) => all_statistics(&[found]),
        None => all_statistics(&service.repository.all(Some(&of.model))),
    })
}

pub(super) async fn metrics(State(service): Shared, headers: HeaderMap) -> Response {
    let text = service.metrics.text(service.receiving.used());
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let (kind, text) = if accepted.any(|it| it.contains("application/openmetrics-text")) {
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", text)
    } else {
        ("text/plain; version=0.0.4; charset=utf-8", crate::metrics::older_text(&text))
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// What the page shows of all models.
pub(super) async fn overview(State(service): Shared) -> Answer {
    let repository = Arc::clone(&service.repository);
    let index = blocking(move || Ok(repository.index(false))).await?;
    let all = service.repository.all(None);
    let models: Vec<Value> = index
        .iter()
        .map(|entry| {
            let served = all
                .iter()
                .find(|it| it.name == entry.name && it.version.to_string() == entry.version);
            let shown = served.map(|served| {
                let since = served.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                json!({
                    "since": since,
                    "waiting": served.waiting(),
                    "memory": served.memory,
                    "max_batch_size": served.config.max_batch_size,
                    "row_by_row": served.row_by_row(),
                    "instances": served.config.instances,
                    "threads": served.config.threads_of_a_run(),
                    "device": served.config.device,
                    "inputs": tensors(&served.inputs),
                    "outputs": tensors(&served.outputs),
                    "statistics": statistics(served),
                    // Microseconds and how many took about as long.
                    "latencies": served.counts().latencies.ranges().collect::<Vec<_>>(),
                })
            });
            json!({
                "name": entry.name,
                "version": entry.version,
                "state": entry.state,
                "reason": entry.reason,
                "serving": shown,
            })
        })
        .collect();
    Ok(json_response(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": service.is_ready(),
        "resident": crate::metrics::resident_bytes(),
        "models": models,
    })))
}

/// Where a run spends its time.
pub(super) async fn profile(State(service): Shared, Path(of): Path<OfModel>) -> Answer {
    let profile = service.profile(&of.model).await?;
    let steps: Vec<Value> = profile
        .steps
        .iter()
        .map(|it| {
            let time = it.time.map(|time| time.as_secs_f64() * 1e6);
            let origin = it.origin.as_ref().map(ToString::to_string);
            json!({ "kernel": it.step.kernel, "us": time, "operator": origin })
        })
        .collect();
    let total = profile.total().as_secs_f64() * 1e6;
    Ok(json_response(&json!({ "total_us": total, "steps": steps })))
}
