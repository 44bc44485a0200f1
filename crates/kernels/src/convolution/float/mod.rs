//! [`Convolution`] of float32 images.

mod narrow;
mod packed;
mod prepared;
pub(crate) mod taps;
#[cfg(test)]
pub(crate) mod tests;
mod winograd;

pub use packed::Convolution;
