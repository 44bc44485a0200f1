//! `libneuralnetworks.so`: the C functions of Android's Neural Networks API (NNAPI) up to feature
//! level 8, on any Linux machine.
//!
//! Everything that the functions do is done by the crate `runtime`; here is only what C needs: the
//! functions by their names (`border`), handles that cannot dangle (`handle`), the caller's
//! memory (`pointer`), and a sentence for each failure (`last_error`). The headers are in
//! `include/`, and what the library exports is listed in `neuralnetworks.map`.
//!
//! | module | functions |
//! |---|---|
//! | [`device`] | `ANeuralNetworks_getDevice...`, `ANeuralNetworksDevice_...` |
//! | [`model`] | `ANeuralNetworksModel_...` |
//! | [`compilation`] | `ANeuralNetworksCompilation_...` |
//! | [`execution`] | `ANeuralNetworksExecution_...` |
//! | [`memory`] | `ANeuralNetworksMemory_...`, `ANeuralNetworksMemoryDesc_...` |
//! | [`event`], [`burst`] | `ANeuralNetworksEvent_...`, `ANeuralNetworksBurst_...` |
//! | [`extension`] | types, operations and data of extensions |
//! | [`support_library`], [`diagnostics`] | `ANeuralNetworks_getSLDriverImpl` and what it leads to |
//! | [`own`] | `nnhal_...` |
//!
//! Which devices there are stands in [`devices`].
//!
//! Environment variables are those of `docs/settings.md`.

pub mod abi;
pub mod burst;
pub mod compilation;
pub mod device;
pub mod devices;
pub mod diagnostics;
pub mod event;
pub mod execution;
pub mod extension;
pub mod memory;
pub mod model;
pub mod own;
pub mod pointer;
pub mod support_library;

mod border;
mod exports;
mod handle;
mod last_error;
mod log;
mod outcome;
