//! `libLiteRtCompilerPlugin_nnhal.so`: chooses operators of models that LiteRT compiles, for `libLiteRtDispatch_nnhal.so`
//! to run. It is for LiteRT 2.3, whose C API is 0.1.0, and 2.4.
//!
//! LiteRT shows the graph by a table of functions (`context`), which is read at once (`subgraph`). The operators become
//! a graph for the importer of `.tflite` files, with their options (`options`), which says what it takes
//! (`nnhal_litert_common::select`). What LiteRT then cuts out is written by LiteRT as a `.tflite` file, which is the byte
//! code, and imported once, so that nothing is compiled that cannot be run (`compile`).

#![allow(non_snake_case, reason = "LiteRT finds the library by its name")]

mod compile;
mod context;
mod exports;
mod options;
mod subgraph;
#[cfg(test)]
mod tests;
