//! Recurrent networks of float32: what a step needs from the step before is little work, done at
//! once; what it does not need is done for all steps together, as a matrix product.

mod lstm;
mod packed;
mod step;
#[cfg(test)]
mod tests;

pub use lstm::{Activation, Gate, Lstm, Settings, Shape, Weights};
