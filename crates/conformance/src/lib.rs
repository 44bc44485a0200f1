//! Runs test vectors against any [`nnhal_hal::Device`].
//!
//! A vector is a small model with the values to feed it and the values it must produce, or the
//! statement that it must be refused ([`vectors`] reads the format). Each vector is run in several
//! [`suites`]; [`compare`] judges the outputs; a [`Report`] sums up by operation and by suite.
//!
//! What no vector shows, the contract's own requirements, is checked by [`contract`].
//!
//! ```no_run
//! # fn run(device: &dyn nnhal_hal::Device) -> Result<(), nnhal_conformance::VectorError> {
//! let vectors = nnhal_conformance::Vectors::open("shared/conformance".as_ref())?;
//! let report = nnhal_conformance::run(device, &vectors, &nnhal_conformance::Selection::default(), |_| ())?;
//! println!("{report}");
//! # Ok(()) }
//! ```

pub mod compare;
pub mod contract;
pub mod instance;
pub mod mutation;
pub mod paths;
pub mod report;
pub mod runner;
pub mod suites;
pub mod vectors;

pub use paths::Path;
pub use report::Report;
pub use runner::{Selection, run};
pub use suites::Suite;
pub use vectors::{Case, VectorError, Vectors};
