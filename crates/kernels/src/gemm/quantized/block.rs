//! [`Block`]: channels that are computed together.

use crate::requantize::{Form, LANES};

/// Channels that are computed together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// The first channel.
    pub channel: usize,
    /// How many there are.
    pub channels: usize,
    /// Vectors of 16 lanes that they take.
    pub vectors: usize,
    /// Where the packed weights begin, in bytes.
    pub weights: usize,
    /// The first of the channels' constants.
    pub lanes: usize,
    /// How sums become outputs.
    pub form: Form,
}

impl Block {
    /// The vector and the lane of the block's channel `index`. Narrowing takes four outputs of each
    /// vector in turn; sums stay in order.
    pub(super) fn place(&self, index: usize) -> (usize, usize) {
        if self.form == Form::Sums {
            return (index / LANES, index % LANES);
        }
        let run = index / 4;
        (run % self.vectors, run / self.vectors * 4 + index % 4)
    }
}
