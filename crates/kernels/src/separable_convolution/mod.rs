//! Separable convolution: a depthwise convolution with a 1x1 convolution before it, behind it, or both, of images of
//! float32 ([`float`]).

pub mod float;

#[cfg(test)]
mod tests;
