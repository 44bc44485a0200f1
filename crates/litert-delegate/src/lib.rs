//! `libnnhal_delegate.so`: an external delegate for LiteRT and TensorFlow Lite. An interpreter that loads it
//! runs the operators that nnhal knows on nnhal's devices, and the others itself.
//!
//! One library serves hosts of all ages: it exports the two classic functions of external delegates, imports nothing
//! of TensorFlow Lite, and uses the structures of the C API as they have stood (see `abi`).
//!
//! A partition of nodes becomes a graph as a file has it (`gather`, `params`), which the importer of
//! `.tflite` files reads; an `nnhal::Session` runs it in the interpreter's own memory (`kernel`). Whatever
//! the interpreter hands over is looked up (`Registry`), no panic crosses the border (`exports`), and errors go to
//! the interpreter's error reporter.

mod abi;
mod delegate;
mod error;
mod exports;
mod gather;
mod host;
mod kernel;
mod params;
mod profiler;
mod select;
mod subgraph;
#[cfg(test)]
mod tests;

pub use exports::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};
