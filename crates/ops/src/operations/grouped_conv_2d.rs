//! GROUPED_CONV_2D: a convolution of each run of input channels by itself,
//! `output[b, y, x, d] = activation(bias[d] + sum(input[b, y', x', g * depth_group + k] * filter[d, i, j, k]))`
//! where `g` is the group of `d`: the first `depth_out / groups` channels are in group 0, and so
//! on; `y' = y * stride + i - padding`, and likewise `x'`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, groups * depth_group]`, or NCHW | float32, float16, quantized |
//! | input 1 | filter | `[depth_out, height, width, depth_group]` | as the input, or per channel along axis 0 |
//! | input 2 | bias | `[depth_out]` | as the input; int32 if quantized |
//! | explicit 3 to 6 | padding left, right, top, bottom | scalar | INT32, from 0 to less than the window |
//! | implicit 3 | padding scheme | scalar | INT32: 0 NONE, 1 SAME, 2 VALID |
//! | next two | stride width, height | scalar | INT32, above 0 |
//! | next | groups | scalar | INT32, above 0, divides `depth_out` |
//! | next | activation | scalar | INT32 |
//! | next | NCHW? | scalar | BOOL |
//! | output 0 | output | `[batch, out height, out width, depth_out]`, or NCHW | as the input |
//!
//! Only the batch may be 0.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::activation_range;
use crate::rules::convolution::{self, Connection, Convolution};
use crate::rules::layout::Layout;
use crate::rules::padding::{Window2d, padded_forms};
use crate::shape::Shape;
use crate::signature::{Parameter, Signature};
use nnhal_hal::{FusedActivation, HalVersion, OperationType};

/// GROUPED_CONV_2D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupedConv2d {
    /// Padding and strides.
    pub window: Window2d,
    /// Number of runs of channels; above 0.
    pub groups: u32,
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Of input and output.
    pub layout: Layout,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::GroupedConv2d,
    rows: convolution::ROWS,
    forms: padded_forms!(
        HalVersion::V1_2,
        [
            Parameter::column("input", 0),
            Parameter::column("filter", 1),
            Parameter::column("bias", 2)
        ],
        [
            Parameter::int32("stride width"),
            Parameter::int32("stride height"),
            Parameter::int32("groups"),
            Parameter::int32("activation"),
            Parameter::bool("NCHW")
        ]
    ),
};

impl Operation for GroupedConv2d {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        convolution::validate(call, 0)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let is_explicit = call.inputs().len() == 12;
        let (window, next) = Window2d::decode(call, 3, is_explicit)?;
        Ok(Self {
            window,
            groups: call.input(next).positive()?,
            activation: activation_range::decode(call.input(next + 1))?,
            layout: Layout::from_flag(call.input(next + 2).bool()?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, filter, bias) = (call.input(0), call.input(1), call.input(2));
        let [batch, height, width, depth] = self.layout.image_lengths(input)?;
        let [depth_out, filter_height, filter_width, depth_group] =
            convolution::filter_lengths(filter)?;
        let groups = self.groups;
        if let (Some(depth), Some(depth_group)) = (depth, depth_group)
            && u64::from(depth) != u64::from(depth_group) * u64::from(groups)
        {
            let expected = format!("{groups} groups of {depth_group}");
            return Err(input.wrong("number of channels", depth, expected));
        }
        if let Some(depth) = depth.filter(|depth| !depth.is_multiple_of(groups)) {
            return Err(input.wrong("number of channels", depth, format!("{groups} groups")));
        }
        let depth_out = convolution::output_channels(filter, bias, depth_out)?;
        if let Some(depth_out) = depth_out.filter(|depth_out| !depth_out.is_multiple_of(groups)) {
            return Err(filter.wrong("number of filters", depth_out, format!("{groups} groups")));
        }
        let [out_height, out_width] =
            self.window.output_lengths(call, [height, width], [filter_height, filter_width])?;
        let lengths = [batch, out_height, out_width, depth_out];
        Ok(vec![Shape::new(self.layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let shape = self.output_shapes(call)?.swap_remove(0);
        let convolution = Convolution {
            window: [self.window.height, self.window.width],
            connection: Connection::Grouped { groups: self.groups as usize },
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
    use HalVersion::{V1_2, V1_3};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::{OperandSpec, OperandType};
    use proptest::prelude::*;

    fn int32s(length: u32, scale: f32) -> OperandSpec {
        OperandSpec::tensor_int32([length]).quantized(scale, 0)
    }

    /// One pixel (1, 2, 3, 4) in two groups; filters [1, 10], [1, 1] for the first and [0, 1],
    /// [5, 0] for the second.
    fn one_pixel() -> Example {
        Example::new(OperationType::GroupedConv2d)
            .input(float([1, 1, 1, 4]), &[1.0, 2.0, 3.0, 4.0])
            .input(float([4, 1, 1, 2]), &[1.0, 10.0, 1.0, 1.0, 0.0, 1.0, 5.0, 0.0])
            .input(float([4]), &[0.0, 0.0, 100.0, 0.0])
    }

    fn implicit(scheme: i32) -> Example {
        one_pixel().int32s([scheme, 1, 1, 2, 0]).bool(false).output(float([0; 4]))
    }

    fn explicit(padding: [i32; 4]) -> Example {
        one_pixel().int32s(padding).int32s([1, 1, 2, 0]).bool(false).output(float([0; 4]))
    }

    #[test]
    fn values_by_hand() {
        let values = vec![21.0, 3.0, 104.0, 15.0];
        assert_eq!(implicit(2).result(), (vec![1, 1, 1, 4], values.clone()));
        assert_eq!(explicit([0; 4]).result(), (vec![1, 1, 1, 4], values.clone()));
        let nchw = one_pixel()
            .with_input(0, float([1, 4, 1, 1]), &[1.0, 2.0, 3.0, 4.0])
            .int32s([1, 1, 1, 2, 0])
            .bool(true)
            .output(float([0; 4]));
        assert_eq!(nchw.result(), (vec![1, 4, 1, 1], values));
        let empty = implicit(1).with_input(0, float([0, 1, 1, 4]), &[]);
        assert_eq!(empty.result(), (vec![0, 1, 1, 4], vec![]));
    }

    #[test]
    fn quantized_values_by_hand() {
        let filter = OperandSpec::tensor_quant8_symm_per_channel([2, 1, 1, 1], &[1.0, 2.0], 0);
        let example = |operand_type, zero: f64, filter, stored: &[f64], scale| {
            Example::new(OperationType::GroupedConv2d)
                .input(tensor(operand_type, [1, 1, 1, 2]), &[zero + 2.0, zero + 4.0])
                .input(filter, stored)
                .input(int32s(2, scale), &[0.0, -4.0])
                .int32s([2, 1, 1, 2, 0])
                .bool(false)
                .output(tensor(operand_type, [0; 4]))
                .result()
                .1
        };
        // 2 * 3 in steps of 1/2 and 4 * 3 - 4 in steps of 1, to steps of 1/2.
        let stored = [3.0, 3.0];
        assert_eq!(example(TensorQuant8Asymm, 128.0, filter.clone(), &stored, 0.0), [134.0, 144.0]);
        assert_eq!(example(TensorQuant8AsymmSigned, 0.0, filter, &stored, 0.0), [6.0, 16.0]);
        // Both in steps of 1/4.
        let filter = tensor(TensorQuant8Asymm, [2, 1, 1, 1]);
        let stored = [131.0, 131.0];
        assert_eq!(example(TensorQuant8Asymm, 128.0, filter, &stored, 0.25), [131.0, 132.0]);
    }

    #[test]
    fn what_is_known_of_the_shape_is_inferred() {
        let shape = |example: Example| example.shape();
        let input = implicit(2).with_input_to_come(0, float([0, 1, 0, 4]));
        assert_eq!(shape(input), Shape::new([None, Some(1), None, Some(4)]));
        let filter = implicit(2).with_input_to_come(1, float([]));
        assert_eq!(shape(filter), Shape::new([Some(1), None, None, Some(4)]));
    }

    #[test]
    fn each_row_has_its_version() {
        let example = |input, filter: OperandSpec, bias: OperandSpec| {
            Example::new(OperationType::GroupedConv2d)
                .input_to_come(tensor(input, [1; 4]))
                .input_to_come(filter)
                .input_to_come(bias)
                .int32s([1, 1, 1, 1, 0])
                .bool(false)
                .output(tensor(input, [1; 4]))
        };
        let filter = |operand_type| tensor(operand_type, [1; 4]);
        let per_channel = OperandSpec::tensor_quant8_symm_per_channel([1; 4], &[0.5], 0);
        let signed = filter(TensorQuant8AsymmSigned);
        let unsigned = example(TensorQuant8Asymm, filter(TensorQuant8Asymm), int32s(1, 0.25));
        let rows = [
            (example(TensorFloat32, filter(TensorFloat32), float([1])), V1_2),
            (unsigned.clone(), V1_2),
            (example(TensorFloat16, filter(TensorFloat16), tensor(TensorFloat16, [1])), V1_2),
            (example(TensorQuant8Asymm, per_channel.clone(), int32s(1, 0.0)), V1_2),
            (example(TensorQuant8AsymmSigned, signed, int32s(1, 0.25)), V1_3),
            (example(TensorQuant8AsymmSigned, per_channel, int32s(1, 0.0)), V1_3),
            (explicit([0; 4]), V1_2),
        ];
        for (example, version) in rows {
            assert_eq!(example.since(), Ok(version));
            example.shapes().unwrap();
        }
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let table = [
            (implicit(2).with_int32(6, 0), "value of input 6 (groups) is 0, expected above 0"),
            (
                implicit(2).with_int32(6, 4),
                "number of channels of input 0 (input) is 4, expected 4 groups of 2",
            ),
            (
                implicit(2).with_int32(6, 3).with_input_to_come(1, float([])),
                "number of channels of input 0 (input) is 4, expected 3 groups",
            ),
            (
                implicit(2).with_input(1, float([3, 1, 1, 2]), &[0.0; 6]).with_input(
                    2,
                    float([3]),
                    &[0.0; 3],
                ),
                "number of filters of input 1 (filter) is 3, expected 2 groups",
            ),
            (
                implicit(2).with_input(2, float([3]), &[0.0; 3]),
                "shape of input 2 (bias) is [3], expected length 4 along axis 0",
            ),
            (explicit([0, 1, 0, 0]), "padding of the operation is 0 and 1, expected less than"),
            (implicit(4), "value of input 3 (padding scheme) is 4"),
            (implicit(2).with_int32(4, 0), "value of input 4 (stride width) is 0"),
            (implicit(2).with_int32(7, -1), "value of input 7 (activation) is -1"),
            (
                implicit(2).int32s([1, 1]),
                "number of arguments of the operation is 11 inputs and 1 outputs",
            ),
        ];
        assert_refused(&table);
    }

    fn images() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-8..8_i32).prop_map(f64::from), 4 * 3 * 4)
    }

    proptest! {
        /// One group is CONV_2D; as many groups as channels are DEPTHWISE_CONV_2D with the filter's
        /// first axis moved behind the others.
        #[test]
        fn it_is_between_its_relatives(x in images(), w in images(), is_nchw: bool, scheme in 0..3_i32) {
            let layout = Layout::from_flag(is_nchw);
            let example = |operation, filter: [u32; 4], w: &[f64], extra: &[i32]| {
                let bias = if filter[0] == 1 { filter[3] } else { filter[0] };
                let example = Example::new(operation)
                    .input(float(layout.from_nhwc([1, 4, 3, 4])), &x)
                    .input(float(filter), w)
                    .input(float([bias]), &vec![1.0; bias as usize])
                    .int32s([scheme, 2, 1]);
                extra.iter().fold(example, |example, extra| example.int32s([*extra]))
                    .int32s([0]).bool(is_nchw).output(float([0; 4])).result()
            };
            let (grouped, conv, depthwise) = (
                OperationType::GroupedConv2d,
                OperationType::Conv2d,
                OperationType::DepthwiseConv2d,
            );
            let w = &w[..48];
            let filter = [3, 2, 2, 4];
            prop_assert_eq!(example(grouped, filter, w, &[1]), example(conv, filter, w, &[]));
            // Eight filters of one channel, two for each channel of the input.
            let w = &w[..32];
            let moved: Vec<f64> =
                (0..4).flat_map(|tap| (0..8).map(move |channel| w[channel * 4 + tap])).collect();
            prop_assert_eq!(
                example(grouped, [8, 2, 2, 1], w, &[4]),
                example(depthwise, [1, 2, 2, 8], &moved, &[2])
            );
        }
    }
}
