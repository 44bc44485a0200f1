//! DEPTHWISE_CONV_2D: each channel of the input has filters of its own,
//! `output[b, y, x, k * m + q] = activation(bias[k * m + q] + sum(input[b, y', x', k] * filter[0, i, j, k * m + q]))`
//! with the depth multiplier `m`, `y' = y * stride + i * dilation - padding`, and likewise `x'`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth_in]`, or NCHW | float32, float16, quantized |
//! | input 1 | filter | `[1, height, width, depth_in * multiplier]` | as the input, or per channel along axis 3 |
//! | input 2 | bias | `[depth_in * multiplier]` | as the input; int32 if quantized |
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
use crate::rules::padding::{Window2d, padded_forms};
use crate::shape::Shape;
use crate::signature::{Parameter, Signature};
use nnhal_hal::{FusedActivation, HalVersion, OperandType, OperationType};

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
    forms: padded_forms!(
        HalVersion::V1_0,
        [
            Parameter::column("input", 0),
            Parameter::column("filter", 1),
            Parameter::column("bias", 2)
        ],
        [
            Parameter::int32("stride width"),
            Parameter::int32("stride height"),
            Parameter::int32("depth multiplier"),
            Parameter::int32("activation"),
            Parameter::bool("NCHW").trailing(HalVersion::V1_2),
            Parameter::int32("dilation width").trailing(HalVersion::V1_2).defaults_to(1),
            Parameter::int32("dilation height").defaults_to(1)
        ]
    ),
};

/// Whether the argument list is the one with explicit padding.
fn is_explicit(call: &Call<'_>) -> bool {
    call.inputs().get(8).is_some_and(|input| input.operand_type == OperandType::Int32)
}

impl Operation for DepthwiseConv2d {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_refused, float, tensor};
    use HalVersion::{V1_0, V1_2, V1_3};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandSpec;

    fn int32s(length: u32, scale: f32) -> OperandSpec {
        OperandSpec::tensor_int32([length]).quantized(scale, 0)
    }

    /// Two pixels, (1, 10) and (2, 20), under filters of two taps, two for each channel.
    fn two_pixels() -> Example {
        Example::new(OperationType::DepthwiseConv2d)
            .input(float([1, 1, 2, 2]), &[1.0, 10.0, 2.0, 20.0])
            .input(float([1, 1, 2, 4]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
            .input(float([4]), &[0.0, 100.0, 0.0, 0.0])
    }

    fn explicit(padding: [i32; 4], stride: [i32; 2]) -> Example {
        two_pixels().int32s(padding).int32s(stride).int32s([2, 0]).output(float([0; 4]))
    }

    fn implicit(scheme: i32) -> Example {
        two_pixels().int32s([scheme, 1, 1, 2, 0]).output(float([0; 4]))
    }

    #[test]
    fn values_by_hand() {
        // 1*1 + 2*5, 1*2 + 2*6 + 100, 10*3 + 20*7, 10*4 + 20*8
        let valid = implicit(2).result();
        assert_eq!(valid, (vec![1, 1, 1, 4], vec![11.0, 114.0, 170.0, 200.0]));
        assert_eq!(explicit([0; 4], [1, 1]).result(), valid);
        // SAME pads to the right, where the second tap meets nothing: 2*1, 2*2 + 100, 20*3, 20*4.
        let values = vec![11.0, 114.0, 170.0, 200.0, 2.0, 104.0, 60.0, 80.0];
        assert_eq!(implicit(1).result(), (vec![1, 1, 2, 4], values));
        // Padded on the left, in strides of two: only the second tap meets the first pixel.
        let left = explicit([1, 0, 0, 0], [2, 1]);
        assert_eq!(left.result(), (vec![1, 1, 1, 4], vec![5.0, 106.0, 70.0, 80.0]));
    }

    #[test]
    fn dilation_spreads_the_taps() {
        let example = |dilation| {
            Example::new(OperationType::DepthwiseConv2d)
                .input(float([1, 2, 3, 1]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
                .input(float([1, 2, 2, 1]), &[1.0, 10.0, 100.0, 1000.0])
                .input(float([1]), &[0.0])
                .int32s([2, 1, 1, 1, 0])
                .bool(false)
                .int32s(dilation)
                .output(float([0; 4]))
        };
        assert_eq!(example([1, 1]).result(), (vec![1, 1, 2, 1], vec![5421.0, 6532.0]));
        assert_eq!(example([2, 1]).result(), (vec![1, 1, 1, 1], vec![6431.0]));
        assert!(example([1, 2]).refusal().contains("window of the operation is 3 wide"));
    }

    #[test]
    fn layouts_differ_only_in_order() {
        let nchw =
            implicit(2).bool(true).with_input(0, float([1, 2, 1, 2]), &[1.0, 2.0, 10.0, 20.0]);
        assert_eq!(nchw.result(), (vec![1, 4, 1, 1], implicit(2).result().1));
    }

    #[test]
    fn quantized_values_by_hand() {
        // Sums of stored values less zero points: 2 * 4 + 1 = 9 and 2 * -6 + 1 = -11 quarters.
        let example = |operand_type, zero: f64| {
            Example::new(OperationType::DepthwiseConv2d)
                .input(tensor(operand_type, [1, 1, 1, 1]), &[zero + 2.0])
                .input(tensor(operand_type, [1, 1, 1, 2]), &[zero + 4.0, zero - 6.0])
                .input(int32s(2, 0.25), &[1.0, 1.0])
                .int32s([2, 1, 1, 2, 0])
                .output(tensor(operand_type, [0; 4]))
                .result()
                .1
        };
        // 4.5 and -5.5 steps: gemmlowp's high product rounds halves up.
        assert_eq!(example(TensorQuant8AsymmSigned, 0.0), [5.0, -5.0]);
        assert_eq!(example(TensorQuant8Asymm, 128.0), [133.0, 123.0]);
    }

    #[test]
    fn channel_scales_are_along_the_last_axis() {
        let filter = |scales: &[f32], axis| {
            OperandSpec::tensor_quant8_symm_per_channel([1, 1, 1, 2], scales, axis)
        };
        let example = |filter| {
            Example::new(OperationType::DepthwiseConv2d)
                .input(tensor(TensorQuant8Asymm, [1, 1, 1, 2]), &[130.0, 132.0])
                .input(filter, &[3.0, 3.0])
                .input(int32s(2, 0.0), &[0.0, -4.0])
                .int32s([2, 1, 1, 1, 0])
                .output(tensor(TensorQuant8Asymm, [0; 4]))
        };
        // 2 * 3 in steps of 1/2, and 4 * 3 - 4 in steps of 1.
        assert_eq!(example(filter(&[1.0, 2.0], 3)).result().1, [134.0, 144.0]);
        assert_eq!(
            example(filter(&[1.0, 2.0], 0)).refusal(),
            "DEPTHWISE_CONV_2D: channel dimension of input 1 (filter) is 0, expected 3"
        );
        assert_eq!(
            example(filter(&[1.0], 3)).refusal(),
            "DEPTHWISE_CONV_2D: number of scales of input 1 (filter) is 1, expected 2"
        );
    }

    #[test]
    fn an_empty_batch_gives_an_empty_batch() {
        let empty = implicit(2).with_input(0, float([0, 1, 2, 2]), &[]);
        assert_eq!(empty.result(), (vec![0, 1, 1, 4], vec![]));
    }

    #[test]
    fn what_is_known_of_the_shape_is_inferred() {
        let shape = |example: Example| example.shape();
        let input = |dimensions: &[u32]| implicit(2).with_input_to_come(0, float(dimensions));
        assert_eq!(shape(input(&[0, 1, 0, 2])), Shape::new([None, Some(1), None, Some(4)]));
        let unknown = implicit(2).with_input_to_come(1, float([]));
        assert_eq!(shape(unknown.clone()), Shape::new([Some(1), None, None, Some(4)]));
        let only_bias = unknown.with_input_to_come(0, float([]));
        assert_eq!(shape(only_bias), Shape::new([None, None, None, Some(4)]));
    }

    #[test]
    fn each_row_has_its_version() {
        let example = |input, filter: OperandSpec, bias: OperandSpec| {
            Example::new(OperationType::DepthwiseConv2d)
                .input_to_come(tensor(input, [1; 4]))
                .input_to_come(filter)
                .input_to_come(bias)
                .int32s([1, 1, 1, 1, 0])
                .output(tensor(input, [1; 4]))
        };
        let filter = |operand_type| tensor(operand_type, [1; 4]);
        let per_channel = OperandSpec::tensor_quant8_symm_per_channel([1; 4], &[0.5], 3);
        let unsigned = example(TensorQuant8Asymm, filter(TensorQuant8Asymm), int32s(1, 0.25));
        let signed = filter(TensorQuant8AsymmSigned);
        let rows = [
            (example(TensorFloat32, filter(TensorFloat32), float([1])), V1_0),
            (unsigned.clone(), V1_0),
            (example(TensorFloat16, filter(TensorFloat16), tensor(TensorFloat16, [1])), V1_2),
            (example(TensorQuant8Asymm, per_channel.clone(), int32s(1, 0.0)), V1_2),
            (example(TensorQuant8AsymmSigned, signed, int32s(1, 0.25)), V1_3),
            (example(TensorQuant8AsymmSigned, per_channel, int32s(1, 0.0)), V1_3),
        ];
        for (example, version) in rows {
            assert_eq!(example.since(), Ok(version));
            example.shapes().unwrap();
        }
        let narrow = OperandSpec::tensor_quant8_asymm([1; 4], 0.25, 0);
        assert_eq!(unsigned.clone().with_output(narrow).since(), Ok(V1_2));
        assert_eq!(unsigned.clone().bool(false).since(), Ok(V1_2));
        assert_eq!(unsigned.bool(false).int32s([1, 1]).since(), Ok(V1_2));
        let long = explicit([0; 4], [1, 1]);
        assert_eq!(long.since(), Ok(V1_0));
        assert_eq!(long.clone().bool(false).since(), Ok(V1_2));
        assert_eq!(long.bool(false).int32s([1, 1]).since(), Ok(V1_2));
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let table = [
            (implicit(2).with_int32(6, 0), "value of input 6 (depth multiplier) is 0"),
            (
                implicit(2).with_int32(6, 1),
                "shape of input 1 (filter) is [1, 1, 2, 4], expected length 2 along axis 3",
            ),
            (implicit(2).with_int32(7, 9), "value of input 7 (activation) is 9"),
            (
                implicit(2).with_input(1, float([2, 1, 1, 4]), &[0.0; 8]),
                "shape of input 1 (filter) is [2, 1, 1, 4], expected length 1 along axis 0",
            ),
            (
                implicit(2).with_input(2, float([2]), &[0.0; 2]),
                "shape of input 2 (bias) is [2], expected length 4 along axis 0",
            ),
            (
                implicit(2).with_input(0, float([1, 1, 2, 0]), &[]),
                "shape of input 0 (input) is [1, 1, 2, 0], expected no length of 0",
            ),
            (explicit([2, 0, 0, 0], [1, 1]), "padding of the operation is 2 and 0"),
            (explicit([0, 0, 0, 1], [1, 1]), "padding of the operation is 0 and 1"),
            (explicit([0, 0, 0, -1], [1, 1]), "value of input 6 (padding bottom) is -1"),
            (explicit([0; 4], [1, 0]), "value of input 8 (stride height) is 0"),
            (
                implicit(2).bool(false).int32s([1]),
                "number of arguments of the operation is 10 inputs and 1 outputs",
            ),
            (
                implicit(2)
                    .with_int32(6, i32::MAX)
                    .with_input_to_come(0, float([1, 1, 2, 1 << 30])),
                "output depth of the operation is 1073741824 * 2147483647, expected below 2^32",
            ),
        ];
        assert_refused(&table);
    }
}
