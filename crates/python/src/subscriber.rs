//! What the process does with the library's spans and events: nothing, until lines or a trace are asked for.

use crate::log::Collector;
use nnhal::trace::Trace;
use pyo3::prelude::*;
use std::sync::OnceLock;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, reload};

/// The process' only subscriber.
pub(crate) struct Installed {
    /// What becomes a line.
    pub(crate) lines: reload::Handle<Targets, Registry>,
    /// What the trace keeps.
    pub(crate) spans: reload::Handle<LevelFilter, Registry>,
    pub(crate) trace: Trace,
}

/// The subscriber, which is installed when it is first wanted. `None`: the process has another one.
pub(crate) fn installed() -> Option<&'static Installed> {
    static INSTALLED: OnceLock<Option<Installed>> = OnceLock::new();
    let install = || {
        let (filter, lines) = reload::Layer::new(Targets::new());
        let collector = Collector.with_filter(filter).boxed();
        let (filter, spans) = reload::Layer::new(LevelFilter::OFF);
        let trace = Trace::new();
        let recording = trace.layer().with_filter(filter).boxed();
        let subscriber = tracing_subscriber::registry().with(vec![collector, recording]);
        tracing::subscriber::set_global_default(subscriber).ok()?;
        Some(Installed { lines, spans, trace })
    };
    INSTALLED.get_or_init(install).as_ref()
}

/// Begins to collect lines, as a filter of `tracing` chooses them (`debug`, `nnhal_cpu=trace`). False: the
/// process has another collector already.
///
/// # Errors
/// The filter cannot be read.
#[pyfunction]
pub(crate) fn start_log(filter: &str) -> PyResult<bool> {
    let wrong = pyo3::exceptions::PyValueError::new_err::<String>;
    let filter = nnhal_settings::log_filter(filter).map_err(wrong)?;
    let filter = filter.parse::<Targets>().map_err(|error| wrong(error.to_string()))?;
    Ok(installed().is_some_and(|it| it.lines.reload(filter).is_ok()))
}
