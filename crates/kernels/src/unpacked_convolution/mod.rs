//! Convolution, depthwise or not, by weights that are known only when it is run, of images of float32 ([`float`])
//! and of quantized values ([`quantized`]).
//!
//! With weights that are known before, see [`convolution`](crate::convolution) and
//! [`depthwise`](crate::depthwise).

pub mod float;
pub mod quantized;
