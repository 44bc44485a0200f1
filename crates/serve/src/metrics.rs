//! [`Metrics`]: numbers for Prometheus.

use crate::error::Error;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfModel {
    model: String,
    version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfError {
    endpoint: &'static str,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfEndpoint {
    endpoint: &'static str,
}

type Histograms = Family<OfModel, Histogram, fn() -> Histogram>;

/// Numbers of the whole server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<OfModel, Counter>,
    failed: Family<OfModel, Counter>,
    rows: Family<OfModel, Counter>,
    waiting: Family<OfModel, Gauge>,
    memory: Family<OfModel, Gauge>,
    latency: Histograms,
    queue: Histograms,
    compute: Histograms,
    batch: Histograms,
    errors: Family<OfError, Counter>,
    connections: Family<OfEndpoint, Gauge>,
    resident: Gauge,
    receiving: Gauge,
}

/// Numbers of one model, to be counted without looking for them.
#[derive(Debug, Clone)]
pub(crate) struct ModelMetrics {
    pub(crate) requests: Counter,
    pub(crate) failed: Counter,
    pub(crate) rows: Counter,
    pub(crate) waiting: Gauge,
    pub(crate) memory: Gauge,
    pub(crate) latency: Histogram,
    pub(crate) queue: Histogram,
    pub(crate) compute: Histogram,
    pub(crate) batch: Histogram,
}

/// From 50 µs to 26 s.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(50e-6, 2.0, 20))
}

/// From 1 to 1024 rows.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 11))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("nnhal");
        let metrics = Self {
            requests: Family::default(),
            failed: Family::default(),
            rows: Family::default(),
            waiting: Family::default(),
            memory: Family::default(),
            latency: Family::new_with_constructor(times),
            queue: Family::new_with_constructor(times),
            compute: Family::new_with_constructor(times),
            batch: Family::new_with_constructor(sizes),
            errors: Family::default(),
            connections: Family::default(),
            resident: Gauge::default(),
            receiving: Gauge::default(),
            registry: Mutex::default(),
        };
        let all = &mut registry;
        all.register("requests", "Requests that were computed", metrics.requests.clone());
        all.register("requests_failed", "Requests that failed", metrics.failed.clone());
        all.register("rows", "Rows that were computed", metrics.rows.clone());
        all.register("queue_length", "Requests that wait", metrics.waiting.clone());
        let help = "Packed weights, and memory that runs work in";
        all.register("model_memory_bytes", help, metrics.memory.clone());
        let help = "From arrival to the end of computing";
        all.register("request_duration_seconds", help, metrics.latency.clone());
        all.register("queue_duration_seconds", "Waiting", metrics.queue.clone());
        all.register("compute_duration_seconds", "Runs of the model", metrics.compute.clone());
        all.register("batch_rows", "Rows that ran together", metrics.batch.clone());
        let help = "Answers that are errors, by kind and endpoint";
        all.register("errors", help, metrics.errors.clone());
        all.register("connections", "Open connections", metrics.connections.clone());
        let help = "Memory of the process that is resident";
        all.register("resident_memory_bytes", help, metrics.resident.clone());
        let help = "Bytes of requests that are in progress";
        all.register("requests_in_progress_bytes", help, metrics.receiving.clone());
        Self { registry: Mutex::new(registry), ..metrics }
    }

    pub(crate) fn of_model(&self, model: &str, version: u64) -> ModelMetrics {
        let labels = OfModel { model: model.to_owned(), version };
        ModelMetrics {
            requests: self.requests.get_or_create(&labels).clone(),
            failed: self.failed.get_or_create(&labels).clone(),
            rows: self.rows.get_or_create(&labels).clone(),
            waiting: self.waiting.get_or_create(&labels).clone(),
            memory: self.memory.get_or_create(&labels).clone(),
            latency: self.latency.get_or_create(&labels).clone(),
            queue: self.queue.get_or_create(&labels).clone(),
            compute: self.compute.get_or_create(&labels).clone(),
            batch: self.batch.get_or_create(&labels).clone(),
        }
    }

    /// Forgets a model that is not served any more, so that models that come and go take no memory.
    pub(crate) fn forget(&self, model: &str, version: u64) {
        let labels = OfModel { model: model.to_owned(), version };
        for counters in [&self.requests, &self.failed, &self.rows] {
            counters.remove(&labels);
        }
        for gauges in [&self.waiting, &self.memory] {
            gauges.remove(&labels);
        }
        for histograms in [&self.latency, &self.queue, &self.compute, &self.batch] {
            histograms.remove(&labels);
        }
    }

    pub(crate) fn failed(&self, endpoint: &'static str, error: &Error) {
        self.errors.get_or_create(&OfError { endpoint, kind: error.kind() }).inc();
    }

    pub(crate) fn connections(&self, endpoint: &'static str) -> Gauge {
        self.connections.get_or_create(&OfEndpoint { endpoint }).clone()
    }

    /// All numbers as text.
    pub(crate) fn text(&self, in_progress: usize) -> String {
        self.resident.set(i64::try_from(resident_bytes()).unwrap_or(i64::MAX));
        self.receiving.set(i64::try_from(in_progress).unwrap_or(i64::MAX));
        let mut all = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing into a text cannot fail.
        let _ = text::encode(&mut all, &registry);
        all
    }
}

/// The same in Prometheus' own format, which is older than OpenMetrics: there a counter is called as its numbers are, with
/// `_total`, and there is neither a unit nor an end.
pub(crate) fn older_text(text: &str) -> String {
    let counters: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut older = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(name) => {
                older.extend(["# ", what, " ", name, "_total ", rest]);
            }
            _ => older.push_str(line),
        }
        older.push('\n');
    }
    older
}

/// Memory of this process that is resident, in bytes; 0 where the system does not say.
pub(crate) fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| {
        text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok())
    });
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

impl ModelMetrics {
    /// A request was computed.
    pub(crate) fn computed(&self, latency: Duration, waited: Duration) {
        self.requests.inc();
        self.latency.observe(latency.as_secs_f64());
        self.queue.observe(waited.as_secs_f64());
    }
}
