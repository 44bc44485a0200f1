//! Matrix products and convolutions of quantized values.

pub mod batch_matmul;
pub mod convolution;
pub mod depthwise;
pub mod dynamic;
mod prepared;
pub mod transposed_convolution;
