//! What nnhal's libraries for LiteRT share: the delegate (`nnhal-litert-delegate`) and the two libraries for compiled
//! models (`nnhal-litert-compiler`, `nnhal-litert-dispatch`).
//!
//! - [`Options`], as pairs of texts, and what they lead to: [`Shared`], with device, log and trace;
//! - [`select`]: which operators of a graph that LiteRT shows ([`Nodes`]) are taken;
//! - [`guarded`]: a call through which no panic gets;
//! - [`compiled`]: the facts of the C API for compiled models;
//! - [`Registry`]: things that C holds by a number.
//!
//! ```
//! use nnhal_litert_common::{DELEGATE_KEYS, Options, Shared};
//!
//! let options = Options::parse(&[("threads".into(), "2".into())], &DELEGATE_KEYS)?;
//! let shared = Shared::new(options);
//! assert_eq!(shared.threads(Some(4)), 2);
//!
//! let error = Options::parse(&[("treads".into(), "2".into())], &DELEGATE_KEYS).unwrap_err();
//! assert!(error.to_string().contains("threads (number"));
//! # Ok::<(), nnhal_litert_common::Error>(())
//! ```

mod border;
pub mod compiled;
mod error;
mod options;
mod registry;
mod select;
mod shared;
mod types;

pub use border::{guarded, telling};
pub use error::{Error, Result};
pub use options::{COMPILED_KEYS, DELEGATE_KEYS, Options};
pub use registry::Registry;
pub use select::{Nodes, Refused, TensorState, from_elsewhere, select};
pub use shared::{Shared, copy_of};
pub use types::type_code;
