//! Products of matrices that are both known only when they are to be multiplied, of float32 ([`float`]) and of
//! quantized values ([`quantized`]).

pub mod float;
pub mod quantized;
#[cfg(test)]
mod tests;
