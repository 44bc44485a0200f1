//! What all convolutions and FULLY_CONNECTED share: rules on filter and bias, the loops, and how a
//! sum of products becomes an output element.

use crate::call::{Argument, Call, Output, Since};
use crate::error::Fault;
use crate::rules::activation_range;
use crate::rules::layout::Layout;
use crate::rules::padding::Slide;
use crate::rules::real;
use crate::rules::requantize::Multiplier;
use crate::shape::Shape;
use crate::signature::Row;
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    TensorQuant8SymmPerChannel,
};
use nnhal_hal::{FusedActivation, HalVersion, OperandType};

/// The types of a convolution. Columns: input and output, filter, bias. What an operation that is
/// itself newer than a row has from the beginning, it has since its own version.
pub const ROWS: &[Row] = &[
    Row::new(HalVersion::V1_0, &[TensorFloat32, TensorFloat32, TensorFloat32]),
    Row::new(HalVersion::V1_0, &[TensorQuant8Asymm, TensorQuant8Asymm, TensorInt32]),
    Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16, TensorFloat16]),
    Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorQuant8SymmPerChannel, TensorInt32]),
    Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorQuant8AsymmSigned, TensorInt32]),
    Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorQuant8SymmPerChannel, TensorInt32]),
];

/// The version that the output scale asks for: up to 1.1 it had to be above the product of input
/// and filter scale.
pub fn since(call: &Call<'_>) -> Since {
    let (input, filter, output) = (call.input(0), call.input(1), call.output(0));
    let is_restricted =
        input.operand_type == TensorQuant8Asymm && filter.operand_type == TensorQuant8Asymm;
    Since::ALWAYS.and(
        HalVersion::V1_2,
        "an output scale that is not above input scale times filter scale",
        is_restricted && output.scale <= input.scale * filter.scale,
    )
}

/// Checks a call whose first three inputs are input, filter and bias: images have rank 4, and
/// what [`validate_quantization`] asks for.
///
/// # Errors
/// [`Fault::Invalid`]
pub fn validate(call: &Call<'_>, channel_axis: u32) -> Result<(), Fault> {
    call.input(0).expect_rank(4)?;
    call.input(1).expect_rank(4)?;
    validate_quantization(call, channel_axis)
}

/// Checks a call whose first three inputs are input, filter and bias: the bias has rank 1; channel
/// scales are along `channel_axis` of the filter; the bias has zero point 0 and, unless the filter
/// has a scale per channel, the scale `input scale * filter scale`.
///
/// # Errors
/// [`Fault::Invalid`]
pub fn validate_quantization(call: &Call<'_>, channel_axis: u32) -> Result<(), Fault> {
    let (input, filter, bias) = (call.input(0), call.input(1), call.input(2));
    bias.expect_rank(1)?;
    if let Some(quant) = filter.channel_quant() {
        if quant.channel_dim != channel_axis {
            return Err(filter.wrong("channel dimension", quant.channel_dim, channel_axis));
        }
        return bias.expect_quantization(0.0, 0);
    }
    if bias.operand_type != TensorInt32 {
        return Ok(());
    }
    let product = f64::from(input.scale * filter.scale);
    let scale = f64::from(bias.scale);
    // The tolerance of the reference implementation: scales are products of rounded numbers.
    let is_product = (product - scale).abs() <= 1e-6 * product.min(scale);
    if !is_product {
        return Err(bias.wrong("scale", bias.scale, format!("{product} (input times filter)")));
    }
    if bias.zero_point != 0 {
        return Err(bias.wrong("zero point", bias.zero_point, 0));
    }
    Ok(())
}

/// The lengths of a filter, as far as they are known.
///
/// # Errors
/// The rank is another, or a length is 0.
pub fn filter_lengths<const N: usize>(filter: &Argument<'_>) -> Result<[Option<u32>; N], Fault> {
    let lengths = filter.known_lengths_of()?;
    if lengths.contains(&Some(0)) {
        return Err(filter.wrong("shape", &filter.shape, "no length of 0"));
    }
    Ok(lengths)
}

/// The number of output channels, of which `along_filter` is what the filter's shape says, if
/// anything of filter and bias tells it.
///
/// # Errors
/// The bias has another rank than 1 or another length, or the filter has more or fewer scales.
pub fn output_channels(
    filter: &Argument<'_>,
    bias: &Argument<'_>,
    along_filter: Option<u32>,
) -> Result<Option<u32>, Fault> {
    let [along_bias] = bias.known_lengths_of()?;
    bias.expect_length(0, along_filter)?;
    let channels = along_filter.or(along_bias);
    if let (Some(channels), Some(quant)) = (channels, filter.channel_quant())
        && quant.scales.len() != channels as usize
    {
        return Err(filter.wrong("number of scales", quant.scales.len(), channels));
    }
    Ok(channels)
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
        let multiplier = |product: f64| Multiplier::from_real(product / f64::from(output.scale));
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

    /// What sums are multiplied with: one factor for all channels, or one each.
    pub fn multipliers(&self) -> &[Multiplier] {
        &self.multipliers
    }

    /// The least and the greatest stored output.
    pub fn range(&self) -> (i32, i32) {
        self.range
    }

    /// The stored output for a sum in `channel`.
    pub fn stored(&self, sum: i32, channel: usize) -> i32 {
        let multiplier = match &*self.multipliers {
            [one] => one,
            each => &each[channel],
        };
        multiplier.apply(sum).saturating_add(self.zero_point).clamp(self.range.0, self.range.1)
    }
}

/// Which channels of the input an output channel sums over, and where in the filter their weights
/// are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// The filter is `[depth_out, height, width, depth_in / groups]`. Input and output channels
    /// are cut into one run for each group, and each run of the output sees one of the input. With one
    /// group every output channel sees all of the input.
    Grouped {
        /// Number of runs.
        groups: usize,
    },
    /// The filter is `[1, height, width, depth_out]`. Each output channel sees one channel of the
    /// input; `multiplier` of them, one after the other, see the same.
    Depthwise {
        /// Output channels for each input channel.
        multiplier: usize,
    },
}

/// A convolution of any kind: CONV_2D and its relatives differ in how places of the window meet
/// elements ([`Slide`]) and in which channels are connected.
#[derive(Debug, Clone, Copy)]
pub struct Convolution<S> {
    /// Along height and width.
    pub window: [S; 2],
    /// Between channels.
    pub connection: Connection,
    /// Of input and output.
    pub layout: Layout,
    /// What the result is clamped to.
    pub activation: FusedActivation,
}

/// All lengths, in the order batch, height, width, channels; of the filter as it is in memory.
struct Sizes {
    input: [usize; 4],
    filter: [usize; 4],
    output: [usize; 4],
}

impl<S: Slide> Convolution<S> {
    /// The output of a call whose first three inputs are input, filter and bias.
    ///
    /// Floats are summed in double precision and rounded once. Quantized sums have 32 bits and
    /// wrap, then [`Requantizer`] rounds them.
    ///
    /// # Errors
    /// [`Fault::NotKnown`] for a shape that is not known, [`Fault::OutOfMemory`],
    /// [`Fault::Interrupted`].
    pub fn reference(&self, call: &Call<'_>, shape: &Shape) -> Result<Output, Fault> {
        let (input, filter, bias, output) =
            (call.input(0), call.input(1), call.input(2), call.output(0));
        let dimensions = shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
        let lengths: Vec<_> = dimensions.iter().map(|length| *length as usize).collect();
        let lengths = lengths.try_into().map_err(|_| output.wrong("rank", shape, 4))?;
        let sizes = Sizes {
            input: self.layout.to_nhwc(input.lengths_of()?),
            filter: filter.lengths_of()?,
            output: self.layout.to_nhwc(lengths),
        };
        if output.is_float() {
            let images = self.layout.elements_to_nhwc(call, input.f32s()?, sizes.input)?;
            let (filter, bias) = (filter.f32s()?, bias.f32s()?);
            let range = activation_range::real(self.activation);
            let mut elements = output.allocate(&dimensions)?;
            self.for_each_output(&sizes, |channel, runs| {
                let mut sum = f64::from(bias[channel]);
                runs.for_each_product(call, |at_input, at_filter| {
                    sum += f64::from(images[at_input]) * f64::from(filter[at_filter]);
                })?;
                elements.push(activation_range::clamp(real::round(sum), range));
                Ok(())
            })?;
            let elements = self.layout.elements_from_nhwc(call, elements, sizes.output)?;
            return output.with_f32s(dimensions, &elements);
        }
        let requantizer = Requantizer::new(input, filter, output, self.activation);
        let images = self.layout.elements_to_nhwc(call, centred(input)?, sizes.input)?;
        let (filter, bias) = (centred(filter)?, bias.i32s()?);
        let mut elements = output.allocate(&dimensions)?;
        self.for_each_output(&sizes, |channel, runs| {
            let mut sum = bias[channel];
            runs.for_each_product(call, |at_input, at_filter| {
                let product = images[at_input].wrapping_mul(filter[at_filter]);
                sum = sum.wrapping_add(product);
            })?;
            elements.push(requantizer.stored(sum, channel));
            Ok(())
        })?;
        let elements = self.layout.elements_from_nhwc(call, elements, sizes.output)?;
        output.with_integers(dimensions, &elements)
    }

    /// Visits every output element in NHWC order: its channel, and what it sums over.
    fn for_each_output(
        &self,
        sizes: &Sizes,
        mut visit: impl FnMut(usize, &Products<'_, S>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let [batches, height, width, channels] = sizes.output;
        for batch in 0..batches {
            for y in 0..height {
                for x in 0..width {
                    for channel in 0..channels {
                        let place = [batch, y, x, channel];
                        visit(channel, &Products { convolution: self, sizes, place })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The products that one output element sums up.
struct Products<'a, S> {
    convolution: &'a Convolution<S>,
    sizes: &'a Sizes,
    place: [usize; 4],
}

impl<S: Slide> Products<'_, S> {
    /// Visits the positions of input and filter elements that are multiplied.
    fn for_each_product(
        &self,
        call: &Call<'_>,
        mut visit: impl FnMut(usize, usize),
    ) -> Result<(), Fault> {
        let [_, height, width, depth] = self.sizes.input;
        let [filters, filter_height, filter_width, filter_depth] = self.sizes.filter;
        let [batch, y, x, channel] = self.place;
        let [down, across] = &self.convolution.window;
        let across = across.taps(x, width, filter_width);
        for (i, in_y) in down.taps(y, height, filter_height) {
            for (j, in_x) in across.clone() {
                let pixel = ((batch * height + in_y) * width + in_x) * depth;
                match self.convolution.connection {
                    Connection::Grouped { groups } => {
                        let group = channel / (filters / groups);
                        let first = pixel + group * filter_depth;
                        let filter =
                            ((channel * filter_height + i) * filter_width + j) * filter_depth;
                        call.each(0..filter_depth, |k| visit(first + k, filter + k))?;
                    }
                    Connection::Depthwise { multiplier } => {
                        let filter = (i * filter_width + j) * filter_depth + channel;
                        call.work(1)?;
                        visit(pixel + channel / multiplier, filter);
                    }
                }
            }
        }
        // A window on padding only, too, takes time.
        call.work(1)
    }
}

/// The stored values of a quantized tensor, less its zero point.
///
/// # Errors
/// [`Fault::NotKnown`], or the argument is left out.
pub fn centred(argument: &Argument<'_>) -> Result<Vec<i32>, Fault> {
    argument.integers_as(|stored| stored.wrapping_sub(argument.zero_point))
}
