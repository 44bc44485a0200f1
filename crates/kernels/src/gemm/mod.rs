//! Matrix products, which most of the other kernels come down to: of float32 ([`float`]) and of quantized values
//! ([`quantized`]).

pub(crate) mod float;
pub(crate) mod quantized;
