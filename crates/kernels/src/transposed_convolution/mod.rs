//! Transposed convolution of images of float32 ([`float`]) and of quantized values ([`quantized`]), which decoders
//! enlarge them by.
//!
//! Between two steps of the stride are as many output pixels along each axis as the stride is long,
//! and those at one of these places, a *phase*, are an ordinary convolution by the taps that reach them. Pixels
//! beside each other that see the same of the input are computed together, as if they were channels:
//! their channels are side by side.

pub mod float;
pub mod quantized;
mod shape;
#[cfg(test)]
pub(crate) mod tests;

pub use shape::Shape;
