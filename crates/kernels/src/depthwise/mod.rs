//! Depthwise convolution, in which an output channel sees one input channel, of images of float32 ([`float`]) and
//! of quantized values ([`quantized`]).

pub mod float;
pub mod quantized;
