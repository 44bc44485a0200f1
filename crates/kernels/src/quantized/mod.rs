//! Matrix products and convolutions of quantized values.

pub mod batch_matmul;
pub mod convolution;
pub mod depthwise;
#[cfg(target_arch = "aarch64")]
mod dot;
pub mod dynamic;
mod gemm;
mod prepared;
pub mod transposed_convolution;
