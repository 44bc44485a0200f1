//! `libLiteRtDispatch_nnhal.so`: runs what `libLiteRtCompilerPlugin_nnhal.so` has chosen of LiteRT's compiled models. It is
//! for LiteRT 2.3, whose C API is 0.1.0, and 2.4.
//!
//! The byte code is a `.tflite` file, which is read where LiteRT has it; a partition is a subgraph of it (`partition`). It
//! runs in LiteRT's tensor buffers while they are locked (`runtime`). What LiteRT holds are handles that are looked up,
//! no panic crosses the border, and errors are LiteRT's statuses with a sentence on standard error (`exports`).

#![allow(non_snake_case, reason = "LiteRT finds the library by its name")]

mod exports;
mod partition;
mod runtime;
#[cfg(test)]
mod tests;
