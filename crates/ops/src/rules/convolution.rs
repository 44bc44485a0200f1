//! What all convolutions and FULLY_CONNECTED share: rules on filter and bias, and how a sum of
//! products becomes an output element.

use crate::call::{Argument, Call};
use crate::error::Fault;
use crate::rules::activation_range;
use crate::rules::requantize::Multiplier;
use hal::{FusedActivation, OperandType};

/// Checks the quantisation of filter and bias: channel scales lie along `channel_axis` of the
/// filter; the bias has zero point 0 and, unless the filter has a scale per channel, the scale
/// `input scale * filter scale`.
///
/// # Errors
/// [`Fault::Invalid`]
pub fn validate(
    input: &Argument<'_>,
    filter: &Argument<'_>,
    bias: &Argument<'_>,
    channel_axis: u32,
) -> Result<(), Fault> {
    bias.expect_rank(1)?;
    if let Some(quant) = filter.channel_quant() {
        if quant.channel_dim != channel_axis {
            return Err(filter.wrong("channel dimension", quant.channel_dim, channel_axis));
        }
        return bias.expect_quantization(0.0, 0);
    }
    if bias.operand_type != OperandType::TensorInt32 {
        return Ok(());
    }
    let product = f64::from(input.scale * filter.scale);
    let scale = f64::from(bias.scale);
    // The tolerance of the reference implementation: scales are products of rounded numbers.
    if (product - scale).abs() > 1e-6 * product.min(scale) {
        return Err(bias.wrong("scale", bias.scale, format!("{product} (input times filter)")));
    }
    if bias.zero_point != 0 {
        return Err(bias.wrong("zero point", bias.zero_point, 0));
    }
    Ok(())
}

/// The version that a convolution needs for its output scale: up to 1.1 it had to be above the
/// product of input and filter scale.
pub fn needs_free_output_scale(call: &Call<'_>) -> bool {
    let (input, filter, output) = (call.input(0), call.input(1), call.output(0));
    input.operand_type == OperandType::TensorQuant8Asymm
        && filter.operand_type == OperandType::TensorQuant8Asymm
        && output.scale <= input.scale * filter.scale
}

/// Turns sums of products of stored values into stored outputs.
#[derive(Debug, Clone)]
pub struct Requantizer {
    /// One for all channels, or one each.
    multipliers: Vec<Multiplier>,
    zero_point: i32,
    range: (i32, i32),
}

impl Requantizer {
    /// For an output whose sums have the scale `input scale * filter scale`.
    pub fn new(
        input: &Argument<'_>,
        filter: &Argument<'_>,
        output: &Argument<'_>,
        activation: FusedActivation,
    ) -> Self {
        let multiplier =
            |product: f64| Multiplier::from_real(product / f64::from(output.scale));
        let multipliers = match filter.channel_quant() {
            Some(quant) => quant
                .scales
                .iter()
                .map(|scale| multiplier(f64::from(input.scale) * f64::from(*scale)))
                .collect(),
            None => vec![multiplier(f64::from(input.scale * filter.scale))],
        };
        Self {
            multipliers,
            zero_point: output.zero_point,
            range: activation_range::stored(activation, output),
        }
    }

    /// The stored output for a sum in `channel`.
    pub fn stored(&self, sum: i32, channel: usize) -> i32 {
        let multiplier = match &*self.multipliers {
            [one] => one,
            each => &each[channel],
        };
        multiplier
            .apply(sum)
            .saturating_add(self.zero_point)
            .clamp(self.range.0, self.range.1)
    }
}
