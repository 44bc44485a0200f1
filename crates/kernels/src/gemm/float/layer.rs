//! [`Layer`]: what products multiply and add.

use super::Epilogue;
use crate::Preparation;

/// What a convolution, or another layer that is a product, multiplies and adds, and what becomes of the sums.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    /// As the kernel takes it.
    pub filter: &'a [f32],
    /// One for each output channel.
    pub bias: &'a [f32],
    /// What becomes of the sums.
    pub epilogue: Epilogue,
}

impl Layer<'_> {
    /// # Panics
    /// If the filter has not this many values, or the bias not one for each of this many output channels.
    pub(crate) fn check(&self, values: usize, channels: usize, preparation: &Preparation) {
        preparation.check_count(self.filter.len(), values, "values of the filter");
        assert_eq!(self.bias.len(), channels, "values of the bias");
    }
}
