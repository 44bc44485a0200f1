//! `libneuralnetworks.so`: the C functions of Android's Neural Networks API (NNAPI) up to feature
//! level 8, on any Linux machine.
//!
//! For programs in C and C++, and all that load the library at run time. `examples/c/digits.c` and
//! `examples/c/four_ways.c` are complete programs; the README says how to build and install.
//!
//! The crate `runtime` does the work; this crate has what C needs: the functions by their names
//! (`exports`), the catching of panics (`border`), handles that cannot dangle (`handle`), the caller's
//! memory (`pointer`), and a sentence for each failure (`last_error`). The headers are in `include/`, and
//! `neuralnetworks.map` lists what the library exports. Lengths are in bytes, durations in nanoseconds.
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
//! [`devices`] is the list of devices that the library offers.
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
mod outcome;
