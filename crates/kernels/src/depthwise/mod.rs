//! Depthwise convolution, in which an output channel sees one input channel, of images of float32 ([`float`]) and
//! of quantized values ([`quantized`]).

pub mod float;
pub mod quantized;

use crate::convolution::Shape;
use crate::{Preparation, TooLarge};
use bytemuck::Zeroable;

/// The filter `[1, filter height, filter width, output_channels]` of a depthwise convolution as other convolutions take it:
/// `[output_channels, filter height, filter width, 1]`. Empty where weights are not looked at.
fn by_channel<T: Zeroable + Copy>(
    filter: &[T],
    shape: &Shape,
    preparation: &mut Preparation,
) -> Result<Vec<T>, TooLarge> {
    let (taps, channels) = (shape.taps(), shape.output_channels);
    let mut values = preparation.zeros(filter.len(), "weights by channel")?;
    for at in preparation.pace().blocks(filter.len(), 4).flatten() {
        values[at] = filter[at % taps * channels + at / taps];
    }
    Ok(values)
}
