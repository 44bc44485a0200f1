//! DEPTHWISE_CONV_2D: each channel of the input has filters of its own,
//! `output[b, y, x, k * m + q] = activation(bias[k * m + q] + sum(input[b, y', x', k] * filter[0, i, j, k * m + q]))`
//! with the depth multiplier `m`, `y' = y * stride + i * dilation - padding`, and likewise `x'`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth_in]`, or NCHW | float32, float16, quantised |
//! | input 1 | filter | `[1, height, width, depth_in * multiplier]` | as the input, or per channel along axis 3 |
//! | input 2 | bias | `[depth_in * multiplier]` | as the input; int32 if quantised |
//! | explicit 3 to 6 | padding left, right, top, bottom | scalar | INT32, from 0 to less than the window |
//! | implicit 3 | padding scheme | scalar | INT32: 0 NONE, 1 SAME, 2 VALID |
//! | next two | stride width, height | scalar | INT32, above 0 |
//! | next | depth multiplier | scalar | INT32, above 0 |
//! | next | activation | scalar | INT32 |
//! | next, from 1.2 | NCHW? | scalar | BOOL, default false |
//! | next two, from 1.2 | dilation width, height | scalar | INT32, above 0, default 1 |
//! | output 0 | output | `[batch, out height, out width, depth_in * multiplier]`, or NCHW | as the input |
//!
//! Only the batch may be 0. Up to 1.1 the output's scale must be above input scale times filter
//! scale.
//!
//! Source: `types.hal` 1.0, 1.2 (layout, dilation, float16, channel scales), 1.3 (signed).

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::activation_range;
use crate::rules::convolution::{self, Connection, Convolution};
use crate::rules::layout::Layout;
use crate::rules::padding::Window2d;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Signature};
use hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// DEPTHWISE_CONV_2D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DepthwiseConv2d {
    /// Padding, strides and dilation.
    pub window: Window2d,
    /// Output channels for each input channel; above 0.
    pub multiplier: u32,
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Of input and output.
    pub layout: Layout,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::DepthwiseConv2d,
    rows: convolution::ROWS,
    forms: &[
        Form::new(
            HalVersion::V1_0,
            &[
                Parameter::column("input", 0),
                Parameter::column("filter", 1),
                Parameter::column("bias", 2),
                Parameter::int32("padding left"),
                Parameter::int32("padding right"),
                Parameter::int32("padding top"),
                Parameter::int32("padding bottom"),
                Parameter::int32("stride width"),
                Parameter::int32("stride height"),
                Parameter::int32("depth multiplier"),
                Parameter::int32("activation"),
                Parameter::bool("NCHW").trailing(HalVersion::V1_2),
                Parameter::int32("dilation width").trailing(HalVersion::V1_2).defaults_to(1),
                Parameter::int32("dilation height").defaults_to(1),
            ],
            &[Parameter::column("output", 0)],
        ),
        Form::new(
            HalVersion::V1_0,
            &[
                Parameter::column("input", 0),
                Parameter::column("filter", 1),
                Parameter::column("bias", 2),
                Parameter::int32("padding scheme"),
                Parameter::int32("stride width"),
                Parameter::int32("stride height"),
                Parameter::int32("depth multiplier"),
                Parameter::int32("activation"),
                Parameter::bool("NCHW").trailing(HalVersion::V1_2),
                Parameter::int32("dilation width").trailing(HalVersion::V1_2).defaults_to(1),
                Parameter::int32("dilation height").defaults_to(1),
            ],
            &[Parameter::column("output", 0)],
        ),
    ],
};

/// Whether the argument list is the one with explicit padding.
fn is_explicit(call: &Call<'_>) -> bool {
    call.inputs().get(8).is_some_and(|input| input.operand_type == OperandType::Int32)
}

impl Operation for DepthwiseConv2d {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn since(call: &Call<'_>) -> Since {
        convolution::since(call)
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        convolution::validate(call, 3)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (mut window, next) = Window2d::decode(call, 3, is_explicit(call))?;
        window.decode_dilation(call, next + 3)?;
        Ok(Self {
            window,
            multiplier: call.input(next).positive()?,
            activation: activation_range::decode(call.input(next + 1))?,
            layout: Layout::from_flag(call.optional_bool(next + 2)?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, filter, bias) = (call.input(0), call.input(1), call.input(2));
        let [batch, height, width, depth] = self.layout.image_lengths(input)?;
        let [_, filter_height, filter_width, depth_out] = convolution::filter_lengths(filter)?;
        filter.expect_length(0, Some(1))?;
        let multiplied = depth.map(|depth| {
            depth.checked_mul(self.multiplier).ok_or_else(|| {
                call.wrong("output depth", format!("{depth} * {}", self.multiplier), "below 2^32")
            })
        });
        let multiplied = multiplied.transpose()?;
        filter.expect_length(3, multiplied)?;
        let depth_out = convolution::output_channels(filter, bias, depth_out.or(multiplied))?;
        let [out_height, out_width] =
            self.window.output_lengths(call, [height, width], [filter_height, filter_width])?;
        let lengths = [batch, out_height, out_width, depth_out];
        Ok(vec![Shape::new(self.layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let shape = self.output_shapes(call)?.swap_remove(0);
        let convolution = Convolution {
            window: [self.window.height, self.window.width],
            connection: Connection::Depthwise { multiplier: self.multiplier as usize },
            layout: self.layout,
            activation: self.activation,
        };
        Ok(vec![convolution.reference(call, &shape)?])
    }
}
