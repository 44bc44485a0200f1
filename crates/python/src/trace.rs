//! Traces of what happens when, for the viewers of Chrome and Perfetto.

use crate::error::Outcome;
use crate::subscriber;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::level_filters::LevelFilter;

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Begins to keep what happens. False: another trace is being kept, or the process has another collector of
/// spans.
#[pyfunction]
pub(crate) fn start_trace() -> bool {
    let Some(installed) = subscriber::installed() else { return false };
    if IS_ON.swap(true, Ordering::AcqRel) {
        return false;
    }
    installed.trace.clear();
    installed.spans.reload(LevelFilter::TRACE).is_ok()
}

/// Ends it, and writes it into a file.
///
/// # Errors
/// The file cannot be written.
#[pyfunction]
pub(crate) fn end_trace(py: Python<'_>, path: PathBuf) -> Outcome {
    let Some(installed) = subscriber::installed() else { return Ok(()) };
    py.detach(|| {
        // The filter cannot be missing: the subscriber stays.
        let _ = installed.spans.reload(LevelFilter::OFF);
        let saved = installed.trace.save(path);
        installed.trace.clear();
        IS_ON.store(false, Ordering::Release);
        Ok(saved?)
    })
}
