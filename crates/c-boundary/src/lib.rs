//! What the C libraries of nnhal (`libneuralnetworks.so`, `libtensorflowlite_c.so`) share.
//!
//! - [`handle`]: what C holds of an object, which is looked up and never followed, and [`opaque!`], which declares such types;
//! - [`calls`]: the calls that are being made, for processes that are forked in the middle of one;
//! - [`names!`]: names that the linker gives versions;
//! - [`linking`]: for their build scripts, the options of the linker;
//! - [`mod@log`] (feature `log`): log lines on standard error.

pub mod calls;
pub mod handle;
pub mod linking;
#[cfg(feature = "log")]
pub mod log;
mod names;
