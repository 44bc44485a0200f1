//! Tests any [`nnhal_hal::Device`]: with test vectors, with broken models, and by the requirements of the
//! contract.
//!
//! For developers of drivers, who run it on their own machine: as `nnhal conformance`, or from their
//! tests. A vector is a small model with the values to feed it and the values it must produce, or the
//! statement that it must be refused.
//!
//! | module | contents |
//! |---|---|
//! | [`vectors`] | [`Vectors`] and [`Case`]: the format of test vectors |
//! | [`suite`], [`verdict`] | [`Suite`]: what is done with a vector and what is demanded; runs one |
//! | [`paths`] | [`Path`]: by which path the interfaces execute it |
//! | [`runner`], [`report`] | [`run`] with a [`Selection`]; the [`Report`] by operation, suite and path |
//! | [`compare`] | the comparison of outputs with what is expected, with tolerances |
//! | [`mutation`] | valid models with one thing changed, which must be refused |
//! | [`contract`] | the requirements that no vector shows, checked with models of their own |
//! | `command`, `cli` | with feature `cli`: the program that judges a device, its own `main` |
//! | `shared_object` | with feature `shared-object`: a driver in a shared object, as a device |
//! | [`instance`] | a vector's model and request, made for a device |
//!
//! The checks of a requirement, here of DEV-SUP-1:
//!
//! ```
//! let device = nnhal_reference::device();
//! let report = nnhal_conformance::contract::run(&device, "DEV-SUP-1", |_| ());
//! assert!(!report.outcomes.is_empty());
//! assert_eq!(report.violations().count(), 0);
//! ```
//!
//! All vectors of a folder:
//!
//! ```no_run
//! # fn run(device: &dyn nnhal_hal::Device) -> Result<(), nnhal_conformance::VectorError> {
//! let vectors = nnhal_conformance::Vectors::open("shared/conformance".as_ref())?;
//! let report = nnhal_conformance::run(device, &vectors, &nnhal_conformance::Selection::default(), |_| ())?;
//! println!("{report}");
//! # Ok(()) }
//! ```

#[cfg(feature = "cli")]
pub mod command;
pub mod compare;
pub mod contract;
pub mod instance;
pub mod mutation;
pub mod paths;
pub mod report;
pub mod runner;
#[cfg(feature = "shared-object")]
pub mod shared_object;
pub mod suite;
pub mod vectors;
pub mod verdict;

#[cfg(feature = "cli")]
pub use command::cli;
pub use paths::Path;
pub use report::Report;
pub use runner::{Selection, run};
pub use suite::Suite;
pub use vectors::{Case, VectorError, Vectors};
