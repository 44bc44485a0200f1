//! Times as Python gives them.

use pyo3::prelude::*;
use std::time::Duration;

/// # Errors
/// It is negative, or more than can be counted.
pub(crate) fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(format!("{seconds} s: {error}")))
}
