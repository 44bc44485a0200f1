//! CONV_2D: `output[b, y, x, d] = activation(bias[d] + sum(input[b, y', x', k] * filter[d, i, j, k]))`
//! with `y' = y * stride + i * dilation - padding`, and likewise `x'`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth_in]`, or NCHW | float32, float16, quantised |
//! | input 1 | filter | `[depth_out, height, width, depth_in]` | as the input, or per channel |
//! | input 2 | bias | `[depth_out]` | as the input; int32 if quantised |
//! | explicit 3 to 6 | padding left, right, top, bottom | scalar | INT32, 0 or more |
//! | implicit 3 | padding scheme | scalar | INT32: 1 SAME, 2 VALID |
//! | next two | stride width, height | scalar | INT32, above 0 |
//! | next | activation | scalar | INT32 |
//! | next, from 1.2 | NCHW? | scalar | BOOL, default false |
//! | next two, from 1.2 | dilation width, height | scalar | INT32, above 0, default 1 |
//! | output 0 | output | `[batch, out height, out width, depth_out]`, or NCHW | as the input |
//!
//! Source: `types.hal` 1.0, 1.2 (layout, dilation, float16, channel scales, zero batch), 1.3 (signed).

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::activation_range;
use crate::rules::convolution::{self, Requantizer};
use crate::rules::layout::Layout;
use crate::rules::padding::Window2d;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{FusedActivation, HalVersion, OperandType, OperationType};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    TensorQuant8SymmPerChannel,
};

/// CONV_2D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conv2d {
    /// Padding, strides and dilation.
    pub window: Window2d,
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Of input and output.
    pub layout: Layout,
}

/// Columns: input and output, filter, bias.
pub(super) const CONVOLUTION_ROWS: &[Row] = &[
    Row::new(HalVersion::V1_0, &[TensorFloat32, TensorFloat32, TensorFloat32]),
    Row::new(HalVersion::V1_0, &[TensorQuant8Asymm, TensorQuant8Asymm, TensorInt32]),
    Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16, TensorFloat16]),
    Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorQuant8SymmPerChannel, TensorInt32]),
    Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorQuant8AsymmSigned, TensorInt32]),
    Row::new(
        HalVersion::V1_3,
        &[TensorQuant8AsymmSigned, TensorQuant8SymmPerChannel, TensorInt32],
    ),
];

static SIGNATURE: Signature = Signature {
    operation: OperationType::Conv2d,
    rows: CONVOLUTION_ROWS,
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
                Parameter::int32("activation"),
                Parameter::bool("NCHW").trailing(HalVersion::V1_2),
                Parameter::int32("dilation width").trailing(HalVersion::V1_2),
                Parameter::int32("dilation height"),
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
                Parameter::int32("activation"),
                Parameter::bool("NCHW").trailing(HalVersion::V1_2),
                Parameter::int32("dilation width").trailing(HalVersion::V1_2),
                Parameter::int32("dilation height"),
            ],
            &[Parameter::column("output", 0)],
        ),
    ],
};

/// Whether the argument list is the one with explicit padding.
fn is_explicit(call: &Call<'_>) -> bool {
    call.inputs().get(7).is_some_and(|input| input.operand_type == OperandType::Int32)
}

impl Operation for Conv2d {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn since(call: &Call<'_>) -> Since {
        Since::ALWAYS.and(
            HalVersion::V1_2,
            "an output scale that is not above input scale times filter scale",
            convolution::needs_free_output_scale(call),
        )
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(4)?;
        call.input(1).expect_rank(4)?;
        convolution::validate(call.input(0), call.input(1), call.input(2), 0)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (mut window, next) = if is_explicit(call) {
            (Window2d::decode_explicit(call, 3)?, 9)
        } else {
            (Window2d::decode_scheme(call, 3)?, 6)
        };
        window.decode_dilation(call, next + 2)?;
        Ok(Self {
            window,
            activation: activation_range::decode(call.input(next))?,
            layout: Layout::from_flag(call.optional_bool(next + 1)?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, filter, bias) = (call.input(0), call.input(1), call.input(2));
        let [batch, height, width, depth] = self.layout.to_nhwc(input.known_lengths_of()?);
        let [depth_out, filter_height, filter_width, _] = filter.known_lengths_of()?;
        filter.expect_length(3, depth)?;
        bias.expect_length(0, depth_out)?;
        let [out_height, out_width] = self.window.output_lengths(
            call,
            [height, width],
            [filter_height, filter_width],
        )?;
        let lengths = [batch, out_height, out_width, depth_out];
        Ok(vec![Shape::new(self.layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, filter, bias, output) =
            (call.input(0), call.input(1), call.input(2), call.output(0));
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
        let sizes = Sizes {
            input: self.layout.to_nhwc(input.lengths_of()?),
            filter: filter.lengths_of()?,
            output: self.layout.to_nhwc(
                [0, 1, 2, 3].map(|axis: usize| dimensions[axis] as usize),
            ),
        };
        let nhwc = |elements| self.layout.elements_to_nhwc(elements, sizes.input);
        if output.is_float() {
            let (input, filter, bias) =
                (self.layout.elements_to_nhwc(input.f32s()?, sizes.input), filter.f32s()?, bias.f32s()?);
            let range = activation_range::real(self.activation);
            let mut elements = output.allocate(&dimensions)?;
            self.for_each_output(&sizes, |channel, taps| {
                // Summed in double precision: the result is the one nearest to the definition's.
                let mut sum = f64::from(bias[channel]);
                taps.for_each(|at_input, at_filter| {
                    sum += f64::from(input[at_input]) * f64::from(filter[at_filter]);
                });
                #[allow(clippy::cast_possible_truncation)]
                elements.push(activation_range::clamp(sum as f32, range));
            });
            let elements = self.layout.elements_from_nhwc(elements, sizes.output);
            return Ok(vec![output.with_f32s(dimensions, &elements)]);
        }
        let requantizer = Requantizer::new(input, filter, output, self.activation);
        let (zero_of_input, zero_of_filter) = (input.zero_point, filter.zero_point);
        let (input, filter, bias) = (nhwc(input.integers()?), filter.integers()?, bias.i32s()?);
        let mut elements = output.allocate(&dimensions)?;
        self.for_each_output(&sizes, |channel, taps| {
            let mut sum = bias[channel];
            taps.for_each(|at_input, at_filter| {
                let product =
                    (input[at_input] - zero_of_input) * (filter[at_filter] - zero_of_filter);
                sum = sum.wrapping_add(product);
            });
            elements.push(requantizer.stored(sum, channel));
        });
        let elements = self.layout.elements_from_nhwc(elements, sizes.output);
        Ok(vec![output.with_integers(dimensions, &elements)])
    }
}

/// Lengths in the order batch, height, width, channels; of the filter as it lies in memory.
struct Sizes {
    input: [usize; 4],
    filter: [usize; 4],
    output: [usize; 4],
}

/// The pairs of input and filter elements that one output element sums over.
struct Taps<'a> {
    window: &'a Window2d,
    sizes: &'a Sizes,
    place: [usize; 4],
}

impl Taps<'_> {
    fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        let [_, in_height, in_width, depth] = self.sizes.input;
        let [_, filter_height, filter_width, _] = self.sizes.filter;
        let [batch, y, x, channel] = self.place;
        let across = self.window.width.taps(x, in_width, filter_width);
        for (i, in_y) in self.window.height.taps(y, in_height, filter_height) {
            for (j, in_x) in across.clone() {
                let at_input = ((batch * in_height + in_y) * in_width + in_x) * depth;
                let at_filter = ((channel * filter_height + i) * filter_width + j) * depth;
                (0..depth).for_each(|k| visit(at_input + k, at_filter + k));
            }
        }
    }
}

impl Conv2d {
    /// Every output element in NHWC order: its channel, and what it sums over.
    fn for_each_output(&self, sizes: &Sizes, mut visit: impl FnMut(usize, &Taps<'_>)) {
        let [batches, height, width, channels] = sizes.output;
        for batch in 0..batches {
            for y in 0..height {
                for x in 0..width {
                    for channel in 0..channels {
                        let place = [batch, y, x, channel];
                        visit(channel, &Taps { window: &self.window, sizes, place });
                    }
                }
            }
        }
    }
}
