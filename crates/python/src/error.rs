//! Errors of the library as `nnhal.Error`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Why a call failed: the library's error, or one that is Python's already.
#[derive(Debug)]
pub(crate) enum Failure {
    Library(nnhal::Error),
    Python(PyErr),
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl From<nnhal::Error> for Failure {
    fn from(error: nnhal::Error) -> Self {
        Self::Library(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Library(error) => Python::attach(|py| raise(py, &error)),
        }
    }
}

/// `nnhal.Error(message, status, operation)`
fn raise(py: Python<'_>, error: &nnhal::Error) -> PyErr {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let status = error.status().map(|status| status.to_string());
    let operation = error.operation().map(|operation| match &operation.origin {
        Some(origin) => format!("{} (from {origin})", operation.place),
        None => operation.place.to_string(),
    });
    match TYPE.import(py, "nnhal._errors", "Error") {
        Ok(class) => PyErr::from_type(class.clone(), (error.to_string(), status, operation)),
        Err(error) => error,
    }
}
