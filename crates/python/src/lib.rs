//! `nnhal._nnhal`, the compiled part of the Python package `nnhal`: models, prepared models, runs, and
//! NumPy's memory, over the Rust crate `nnhal`.
//!
//! Users import the modules in `python/nnhal`, which use this one; the README has examples, and
//! `tests/` runs them.

mod array;
mod duration;
mod error;
mod log;
mod model;
mod session;
mod subscriber;
mod tools;
mod trace;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_nnhal", gil_used = true)]
mod module {
    #[pymodule_export]
    use crate::log::log_lines;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::session::{Runner, Session, Variables};
    #[pymodule_export]
    use crate::subscriber::start_log;
    #[pymodule_export]
    use crate::tools::{bench_session, compare_sessions, default_threads, devices};

    #[pymodule_export]
    use crate::trace::{end_trace, start_trace};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
