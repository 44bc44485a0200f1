//! The fast engine against the reference engine, on models drawn by chance.
//!
//! | what | file |
//! |---|---|
//! | every operation alone, in the types of every row of its signature | [`alone`] |
//! | graphs of many layers, as passes and the layout of memory meet them | [`graphs`] |
//!
//! Each model runs with every instruction set that this processor has, on one thread and on two.
//! Integers and quantized numbers must be equal, but for one step where the definition leaves the
//! rounding open; floats may differ as far as [`compare::Tolerance`] says.
//!
//! `NNHAL_TEST_OPERATION` names a single operation to test, `NNHAL_TEST_CASES` says how often,
//! `NNHAL_TEST_SEED` draws one graph alone.

mod alone;
#[path = "../../../reference/tests/calls/mod.rs"]
mod calls;
mod compare;
mod devices;
mod graphs;
