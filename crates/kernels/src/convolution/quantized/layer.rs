//! [`Layer`]: what a convolution multiplies and adds.

use crate::quantization::{Activations, Weights};
use crate::{Preparation, Requantization};

/// What a convolution of quantized values multiplies and adds, and what becomes of the sums.
#[derive(Debug, Clone)]
pub struct Layer<'a> {
    /// As the kernel takes them.
    pub weights: Weights<'a>,
    /// One for each output channel.
    pub bias: &'a [i32],
    /// Of the images. Input pixels in the padding are the zero point.
    pub activations: Activations,
    /// With a multiplier for all output channels, or one for each.
    pub requantization: Requantization,
}

impl Layer<'_> {
    /// # Panics
    /// If there are not this many weights, or biases for this many output channels, or a number is out of
    /// its type's range.
    pub(crate) fn check(&self, weights: usize, channels: usize, preparation: &Preparation) {
        self.weights.check(weights, preparation);
        assert_eq!(self.bias.len(), channels, "biases");
        self.activations.check();
        self.requantization.check(channels, self.activations.signedness);
    }

    /// A pixel's byte in the padding.
    pub(crate) fn padding(&self) -> u8 {
        self.activations.signedness.byte(self.activations.zero_point)
    }
}
