//! Convolution of float32 images.

mod narrow;
mod packed;
mod prepared;
mod shape;
pub(crate) mod taps;
#[cfg(test)]
pub(crate) mod tests;
mod winograd;

pub use crate::gemm::float::Epilogue;
pub use packed::Convolution;
pub use shape::Shape;
