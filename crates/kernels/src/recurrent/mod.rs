//! Recurrent networks: what a step needs from the step before is little work, done at once; what it
//! does not need is done for all steps together, as a matrix product.

mod activation;
mod contribution;
pub mod integer;
mod layer;
mod lstm;
mod packed;
mod prepared;
mod rnn;
mod sequences;
mod svdf;
#[cfg(test)]
mod tests;

pub use activation::Activation;
pub use layer::{Layer, Outputs, States, run, run_both, scratch_elements};
pub use lstm::{Gate, Lstm, Settings, Shape, Weights};
pub use prepared::{Auxiliary, BothDirections, Form, OneDirection};
pub use rnn::{Rnn, RnnShape, RnnWeights};
pub use sequences::{Sequences, Steps};
pub use svdf::{Svdf, SvdfShape};
