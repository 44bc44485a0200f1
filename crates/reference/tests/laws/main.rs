//! Laws: what holds for every operation, whatever its arguments are.
//!
//! [`calls`] draws calls of every operation. A law takes such calls to the reference device, each as
//! a model of its own, and compares two ways to the same result:
//!
//! | law | file |
//! |---|---|
//! | a quantized operation is within a step of the float one | [`quantized`] |
//! | NCHW is NHWC transposed | [`layout`] |
//! | float16 is float32, rounded | [`half_precision`] |
//! | what a model leaves open changes nothing | [`dynamic`] |
//! | what is not given is as the default | [`defaults`] |
//! | IF is its branch, WHILE is its rounds | [`control_flow`] |
//!
//! `NNHAL_TEST_OPERATION` names a single operation to test, `NNHAL_TEST_CASES` says how often.

#[path = "../calls/mod.rs"]
mod calls;
mod control_flow;
mod defaults;
mod dynamic;
mod half_precision;
mod layout;
mod quantized;
mod run;

use calls::{config, each_sample, random, sample, samples};
