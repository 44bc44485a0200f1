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

    /// The block's channel that has a [place](Self::place), if all lanes have one.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn index(&self, vector: usize, lane: usize) -> usize {
        if self.form == Form::Sums {
            return vector * LANES + lane;
        }
        (lane / 4 * self.vectors + vector) * 4 + lane % 4
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn each_channel_is_where_its_place_is() {
        for vectors in 1..=4 {
            for form in [Form::Plain, Form::Sums] {
                let channels = vectors * LANES;
                let block = Block { channel: 0, channels, vectors, weights: 0, lanes: 0, form };
                for index in 0..channels {
                    let (vector, lane) = block.place(index);
                    assert!(vector < vectors && lane < LANES, "{index}: {vector}, {lane}");
                    assert_eq!(block.index(vector, lane), index);
                }
            }
        }
    }
}
