//! CONV_2D: `output[b, y, x, d] = activation(bias[d] + sum(input[b, y', x', k] * filter[d, i, j, k]))`
//! with `y' = y * stride + i * dilation - padding`, and likewise `x'`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth_in]`, or NCHW | float32, float16, quantized |
//! | input 1 | filter | `[depth_out, height, width, depth_in]` | as the input, or per channel along axis 0 |
//! | input 2 | bias | `[depth_out]` | as the input; int32 if quantized |
//! | explicit 3 to 6 | padding left, right, top, bottom | scalar | INT32, from 0 to less than the window |
//! | implicit 3 | padding scheme | scalar | INT32: 0 NONE, 1 SAME, 2 VALID |
//! | next two | stride width, height | scalar | INT32, above 0 |
//! | next | activation | scalar | INT32 |
//! | next, from 1.2 | NCHW? | scalar | BOOL, default false |
//! | next two, from 1.2 | dilation width, height | scalar | INT32, above 0, default 1 |
//! | output 0 | output | `[batch, out height, out width, depth_out]`, or NCHW | as the input |
//!
//! Only the batch may be 0. Up to 1.1 the output's scale must be above input scale times filter
//! scale.
//!
//! Source: `types.hal` 1.0, 1.2 (layout, dilation, float16, channel scales, zero batch), 1.3 (signed).

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

static SIGNATURE: Signature = Signature {
    operation: OperationType::Conv2d,
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
            Parameter::int32("activation"),
            Parameter::bool("NCHW").trailing(HalVersion::V1_2),
            Parameter::int32("dilation width").trailing(HalVersion::V1_2).defaults_to(1),
            Parameter::int32("dilation height").defaults_to(1)
        ]
    ),
};

/// Whether the argument list is the one with explicit padding.
fn is_explicit(call: &Call<'_>) -> bool {
    call.inputs().get(7).is_some_and(|input| input.operand_type == OperandType::Int32)
}

impl Operation for Conv2d {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn since(call: &Call<'_>) -> Since {
        convolution::since(call)
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        convolution::validate(call, 0)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (mut window, next) = Window2d::decode(call, 3, is_explicit(call))?;
        window.decode_dilation(call, next + 2)?;
        Ok(Self {
            window,
            activation: activation_range::decode(call.input(next))?,
            layout: Layout::from_flag(call.optional_bool(next + 1)?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, filter, bias) = (call.input(0), call.input(1), call.input(2));
        let [batch, height, width, depth] = self.layout.image_lengths(input)?;
        let [depth_out, filter_height, filter_width, _] = convolution::filter_lengths(filter)?;
        filter.expect_length(3, depth)?;
        let depth_out = convolution::output_channels(filter, bias, depth_out)?;
        let [out_height, out_width] =
            self.window.output_lengths(call, [height, width], [filter_height, filter_width])?;
        let lengths = [batch, out_height, out_width, depth_out];
        Ok(vec![Shape::new(self.layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let shape = self.output_shapes(call)?.swap_remove(0);
        let convolution = Convolution {
            window: [self.window.height, self.window.width],
            connection: Connection::Grouped { groups: 1 },
            layout: self.layout,
            activation: self.activation,
        };
        Ok(vec![convolution.reference(call, &shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, assert_refused, tensor};
    use crate::rules::requantize::Multiplier;
    use HalVersion::{V1_0, V1_2, V1_3};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn float(dimensions: [u32; 4]) -> OperandSpec {
        OperandSpec::tensor_float32(dimensions)
    }

    fn bias(length: u32) -> OperandSpec {
        OperandSpec::tensor_float32([length])
    }

    fn numbers(range: std::ops::RangeInclusive<i32>) -> Vec<f64> {
        range.map(f64::from).collect()
    }

    /// A 3 by 3 image with the numbers 1 to 9 under a 2 by 2 filter with 1, 2, 3, 4 and bias 10.
    fn image_of_nine() -> Example {
        Example::new(OperationType::Conv2d)
            .input(float([1, 3, 3, 1]), &numbers(1..=9))
            .input(float([1, 2, 2, 1]), &[1.0, 2.0, 3.0, 4.0])
            .input(bias(1), &[10.0])
    }

    fn explicit(example: Example, padding: [i32; 4], stride: [i32; 2]) -> Example {
        example.int32s(padding).int32s(stride).int32s([0]).output(float([0; 4]))
    }

    fn implicit(example: Example, scheme: i32, stride: [i32; 2]) -> Example {
        example.int32s([scheme]).int32s(stride).int32s([0]).output(float([0; 4]))
    }

    #[test]
    fn values_by_hand() {
        // 1*1 + 2*2 + 4*3 + 5*4 + 10 = 47, and 10 more for each step of the image's numbers.
        let valid = implicit(image_of_nine(), 2, [1, 1]);
        assert_eq!(valid.result(), (vec![1, 2, 2, 1], vec![47.0, 57.0, 77.0, 87.0]));
        let none = implicit(image_of_nine(), 0, [1, 1]);
        assert_eq!(none.result(), valid.result());
        // SAME pads one row below and one column to the right.
        let same = implicit(image_of_nine(), 1, [1, 1]);
        let values = vec![47.0, 57.0, 31.0, 77.0, 87.0, 43.0, 33.0, 36.0, 19.0];
        assert_eq!(same.result(), (vec![1, 3, 3, 1], values));
        // Padding left 1 and top 1: the window's last tap meets the first pixel.
        let padded = explicit(image_of_nine(), [1, 0, 1, 0], [2, 2]);
        assert_eq!(padded.result(), (vec![1, 2, 2, 1], vec![14.0, 28.0, 46.0, 87.0]));
    }

    #[test]
    fn strides_are_distinguished() {
        let wide = explicit(image_of_nine(), [0; 4], [2, 1]);
        assert_eq!(wide.result(), (vec![1, 2, 1, 1], vec![47.0, 77.0]));
        let high = explicit(image_of_nine(), [0; 4], [1, 2]);
        assert_eq!(high.result(), (vec![1, 1, 2, 1], vec![47.0, 57.0]));
    }

    #[test]
    fn dilation_spreads_the_taps() {
        let dilated =
            image_of_nine().int32s([2, 1, 1, 0]).bool(false).int32s([2, 2]).output(float([0; 4]));
        // 1*1 + 3*2 + 7*3 + 9*4 + 10
        assert_eq!(dilated.result(), (vec![1, 1, 1, 1], vec![74.0]));
        let only_across = dilated.with_int32(9, 1);
        // 1*1 + 3*2 + 4*3 + 6*4 + 10, then three more rows' numbers
        assert_eq!(only_across.result(), (vec![1, 2, 1, 1], vec![53.0, 83.0]));
    }

    #[test]
    fn activations_clamp() {
        let example = explicit(image_of_nine(), [0; 4], [1, 1]).with_input(2, bias(1), &[-60.0]);
        let after = |activation| example.clone().with_int32(9, activation).result().1;
        assert_eq!(after(0), [-23.0, -13.0, 7.0, 17.0]);
        assert_eq!(after(1), [0.0, 0.0, 7.0, 17.0]);
        assert_eq!(after(2), [-1.0, -1.0, 1.0, 1.0]);
        assert_eq!(after(3), [0.0, 0.0, 6.0, 6.0]);
    }

    #[test]
    fn channels_and_batches_are_not_mixed() {
        // Two pixels of two channels in each of two batches; filters [1, 2] and [3, 4].
        let example = Example::new(OperationType::Conv2d)
            .input(float([2, 1, 2, 2]), &numbers(1..=8))
            .input(float([2, 1, 1, 2]), &[1.0, 2.0, 3.0, 4.0])
            .input(bias(2), &[0.0, 100.0])
            .int32s([2, 1, 1, 0])
            .output(float([0; 4]));
        let values = vec![5.0, 111.0, 11.0, 125.0, 17.0, 139.0, 23.0, 153.0];
        assert_eq!(example.result(), (vec![2, 1, 2, 2], values));
    }

    #[test]
    fn quantized_values_by_hand() {
        // Real: input (1, 2), filter (2, -1), bias 0.25; 1*2 - 2*1 + 0.25 = 0.25 = 1/4 step of 1.
        let example = |output: OperandSpec| {
            Example::new(OperationType::Conv2d)
                .input(tensor(TensorQuant8Asymm, [1, 1, 1, 2]), &[130.0, 132.0])
                .input(tensor(TensorQuant8Asymm, [1, 1, 1, 2]), &[132.0, 126.0])
                .input(OperandSpec::tensor_int32([1]).quantized(0.25, 0), &[1.0])
                .int32s([2, 1, 1, 0])
                .output(output)
        };
        let stored = |scale| {
            let output = OperandSpec::tensor_quant8_asymm([0, 0, 0, 0], scale, 100);
            example(output).result().1
        };
        assert_eq!(stored(0.25), [101.0]);
        assert_eq!(stored(0.5), [101.0]); // a half goes away from zero
        assert_eq!(stored(1.0), [101.0]); // rounded twice: 1/4 to 1/2, and that to 1
        assert_eq!(stored(2.0), [100.0]);
        assert_eq!(stored(0.001), [255.0]); // saturated
    }

    #[test]
    fn channel_scales_weigh_each_channel() {
        let filter = OperandSpec::tensor_quant8_symm_per_channel([2, 1, 1, 1], &[0.5, 2.0], 0);
        let example = |quantized, zero| {
            Example::new(OperationType::Conv2d)
                .input(
                    OperandSpec::new(quantized, [1, 1, 1, 1]).quantized(0.5, zero),
                    &[f64::from(zero) + 10.0],
                )
                .input(filter.clone(), &[3.0, -3.0])
                .input(OperandSpec::tensor_int32([2]), &[2.0, 2.0])
                .int32s([2, 1, 1, 0])
                .output(OperandSpec::new(quantized, [0; 4]).quantized(1.0, zero))
        };
        // Sums 32 and -28, in steps of 1/4 and 1.
        assert_eq!(example(TensorQuant8Asymm, 128).result().1, [136.0, 100.0]);
        assert_eq!(example(TensorQuant8AsymmSigned, -5).result().1, [3.0, -33.0]);
    }

    #[test]
    fn an_empty_batch_gives_an_empty_batch() {
        let example = explicit(image_of_nine(), [0; 4], [1, 1]);
        let empty = example.clone().with_input(0, float([0, 3, 3, 1]), &[]);
        assert_eq!(empty.result(), (vec![0, 2, 2, 1], vec![]));
        let without_rows = example.with_input(0, float([1, 0, 3, 1]), &[]);
        assert_eq!(
            without_rows.refusal(),
            "CONV_2D: shape of input 0 (input) is [1, 0, 3, 1], expected no length of 0 but the \
             batch's"
        );
    }

    #[test]
    fn what_is_known_of_the_shape_is_inferred() {
        let example = explicit(image_of_nine(), [0; 4], [1, 1]);
        let shape = |example: Example| example.shape();
        let unknown_height = example.clone().with_input_to_come(0, float([0, 0, 3, 1]));
        assert_eq!(shape(unknown_height), Shape::new([None, None, Some(2), Some(1)]));
        let unknown_rank = OperandSpec::tensor_float32([]);
        let unknown_images = example.clone().with_input_to_come(0, unknown_rank.clone());
        assert_eq!(shape(unknown_images), Shape::new([None, None, None, Some(1)]));
        let unknown_filter = example.clone().with_input_to_come(1, unknown_rank);
        assert_eq!(shape(unknown_filter), Shape::new([Some(1), None, None, Some(1)]));
        let unknown_stride = example.with_input_to_come(7, OperandSpec::scalar(OperandType::Int32));
        assert_eq!(shape(unknown_stride), Shape::UNKNOWN);
    }

    #[test]
    fn each_row_has_its_version() {
        let example = |input, filter: OperandSpec, bias: OperandSpec| {
            Example::new(OperationType::Conv2d)
                .input_to_come(tensor(input, [1, 4, 4, 1]))
                .input_to_come(filter)
                .input_to_come(bias)
                .int32s([1, 1, 1, 0])
                .output(tensor(input, [1, 4, 4, 1]))
        };
        let filter = |operand_type| tensor(operand_type, [1, 1, 1, 1]);
        let per_channel = OperandSpec::tensor_quant8_symm_per_channel([1; 4], &[0.5], 0);
        let int32 = |scale| OperandSpec::tensor_int32([1]).quantized(scale, 0);
        let unsigned = example(TensorQuant8Asymm, filter(TensorQuant8Asymm), int32(0.25));
        let rows = [
            (example(TensorFloat32, filter(TensorFloat32), bias(1)), V1_0),
            (unsigned.clone(), V1_0),
            (example(TensorFloat16, filter(TensorFloat16), tensor(TensorFloat16, [1])), V1_2),
            (example(TensorQuant8Asymm, per_channel.clone(), int32(0.0)), V1_2),
            (example(TensorQuant8AsymmSigned, filter(TensorQuant8AsymmSigned), int32(0.25)), V1_3),
            (example(TensorQuant8AsymmSigned, per_channel, int32(0.0)), V1_3),
        ];
        for (example, version) in rows {
            assert_eq!(example.since(), Ok(version));
            example.shapes().unwrap();
        }
        let narrow = OperandSpec::tensor_quant8_asymm([1, 4, 4, 1], 0.25, 0);
        assert_eq!(unsigned.clone().with_output(narrow).since(), Ok(V1_2));
        assert_eq!(unsigned.clone().bool(false).since(), Ok(V1_2));
        assert_eq!(unsigned.bool(false).int32s([1, 1]).since(), Ok(V1_2));
        let long = explicit(image_of_nine(), [0; 4], [1, 1]);
        assert_eq!(long.since(), Ok(V1_0));
        assert_eq!(long.clone().bool(true).since(), Ok(V1_2));
        assert_eq!(long.bool(true).int32s([1, 1]).since(), Ok(V1_2));
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let example = || explicit(image_of_nine(), [0; 4], [1, 1]);
        let scheme = || implicit(image_of_nine(), 1, [1, 1]);
        let quantized = |filter: OperandSpec, bias: OperandSpec| {
            Example::new(OperationType::Conv2d)
                .input(tensor(TensorQuant8Asymm, [1; 4]), &[0.0])
                .input(filter, &[0.0])
                .input(bias, &[0.0])
                .int32s([1, 1, 1, 0])
                .output(tensor(TensorQuant8Asymm, [0; 4]))
        };
        let symmetric =
            |scales, axis| OperandSpec::tensor_quant8_symm_per_channel([1; 4], scales, axis);
        let int32 = |scale, zero| OperandSpec::tensor_int32([1]).quantized(scale, zero);
        let quarter = || quantized(tensor(TensorQuant8Asymm, [1; 4]), int32(0.25, 0));
        quarter().run().unwrap();
        let table = [
            (example().with_int32(3, -1), "value of input 3 (padding left) is -1"),
            (example().with_int32(6, 2), "padding of the operation is 0 and 2, expected less"),
            (example().with_int32(7, 0), "value of input 7 (stride width) is 0"),
            (example().with_int32(8, -2), "value of input 8 (stride height) is -2"),
            (example().with_int32(9, 4), "value of input 9 (activation) is 4"),
            (scheme().with_int32(3, 3), "value of input 3 (padding scheme) is 3"),
            (scheme().bool(false).int32s([0, 1]), "value of input 8 (dilation width) is 0"),
            (
                scheme().bool(false).int32s([1]),
                "number of arguments of the operation is 9 inputs and 1 outputs",
            ),
            (
                example().with_input(0, OperandSpec::tensor_float32([1, 3, 3]), &numbers(1..=9)),
                "rank of input 0 (input) is 3, expected 4",
            ),
            (
                example().with_input(0, float([1, 1, 3, 3]), &numbers(1..=9)),
                "shape of input 1 (filter) is [1, 2, 2, 1], expected length 3 along axis 3",
            ),
            (
                example().with_input(0, float([1, 1, 9, 1]), &numbers(1..=9)),
                "window of the operation is 2 wide, expected at most the padded length of an axis",
            ),
            (example().with_input(2, bias(2), &[0.0; 2]), "expected length 1 along axis 0"),
            (
                example().with_input(1, float([1, 0, 2, 1]), &[]),
                "shape of input 1 (filter) is [1, 0, 2, 1], expected no length of 0",
            ),
            (quarter().with_input(2, int32(0.26, 0), &[0.0]), "scale of input 2 (bias) is 0.26"),
            (quarter().with_input(2, int32(f32::NAN, 0), &[0.0]), "scale of input 2 (bias) is NaN"),
            (quarter().with_input(2, int32(0.25, 1), &[0.0]), "zero point of input 2 (bias) is 1"),
            (
                quantized(symmetric(&[0.5], 3), int32(0.0, 0)),
                "channel dimension of input 1 (filter) is 3, expected 0",
            ),
            (
                quantized(symmetric(&[0.5, 0.5], 0), int32(0.0, 0)),
                "number of scales of input 1 (filter) is 2, expected 1",
            ),
            (
                quantized(symmetric(&[0.5], 0), int32(0.25, 0)),
                "scale of input 2 (bias) is 0.25, expected 0",
            ),
            (
                quarter().with_input(1, tensor(TensorQuant8AsymmSigned, [1; 4]), &[0.0]),
                "type of input 1 (filter) is TENSOR_QUANT8_ASYMM_SIGNED",
            ),
            (
                quarter().with_input(2, tensor(TensorFloat32, [1]), &[0.0]),
                "type of input 2 (bias) is TENSOR_FLOAT32, expected TENSOR_INT32",
            ),
        ];
        assert_refused(&table);
    }

    #[test]
    fn numbers_near_the_limit_do_not_overflow() {
        let largest = i32::MAX;
        let example = |stride, dilation| {
            image_of_nine()
                .int32s([1, stride, stride, 0])
                .bool(false)
                .int32s([dilation; 2])
                .output(float([0; 4]))
        };
        // With SAME padding half of a dilated window is before the image.
        assert_eq!(example(largest, 1).result().0, [1, 1, 1, 1]);
        assert_eq!(example(1, largest).result(), (vec![1, 3, 3, 1], vec![10.0; 9]));
        let padded = explicit(image_of_nine(), [largest; 4], [1, 1]);
        assert!(padded.refusal().contains("padding"));
        let wide = explicit(image_of_nine(), [0; 4], [1, 1])
            .with_input_to_come(0, float([1, u32::MAX, u32::MAX, 1]));
        let lengths = [1, u32::MAX - 1, u32::MAX - 1, 1];
        assert_eq!(wide.shapes().unwrap(), [Shape::known(lengths)]);
    }

    /// Sizes and arguments of a random convolution; whether it fits is decided by running it.
    fn any_arguments() -> impl Strategy<Value = ([u32; 4], [u32; 3], [i32; 4], [i32; 4], i32)> {
        (
            [1..3_u32, 1..6_u32, 1..6_u32, 1..4_u32],
            [1..4_u32, 1..4_u32, 1..4_u32],
            [0..3_i32, 0..3_i32, 0..3_i32, 0..3_i32],
            [1..4_i32, 1..4_i32, 1..3_i32, 1..3_i32],
            0..4_i32,
        )
    }

    /// A pseudo-random sequence of small integers, exact in every type.
    fn noise(count: u32, seed: u32) -> Vec<f64> {
        let next = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some(f64::from((*state >> 24) % 17) - 8.0)
        };
        (0..count).scan(seed, |state, _| next(state)).collect()
    }

    proptest! {
        /// The sum as the definition writes it, element by element, against the reference; in
        /// both layouts, for floats and for quantized numbers.
        #[test]
        fn the_definition_holds(
            (images, [out, high, wide], padding, [sx, sy, dx, dy], activation) in any_arguments(),
            seed: u32,
            is_nchw: bool,
        ) {
            let [batch, height, width, depth] = images;
            let layout = Layout::from_flag(is_nchw);
            let x = noise(images.iter().product(), seed);
            let w = noise(out * high * wide * depth, seed ^ 1);
            let b = noise(out, seed ^ 2);
            let example = |x_spec, w_spec, b_spec, y_spec| {
                Example::new(OperationType::Conv2d)
                    .input(x_spec, &x).input(w_spec, &w).input(b_spec, &b)
                    .int32s(padding).int32s([sx, sy, activation]).bool(is_nchw).int32s([dx, dy])
                    .output(y_spec)
            };
            let (shape, filter) = (layout.from_nhwc(images), [out, high, wide, depth]);
            let floats = example(float(shape), float(filter), bias(out), float([0; 4]));
            let [left, right, top, bottom] = padding;
            let places = |length: u32, before: i32, after: i32, taps: u32, stride, dilation| {
                let extent = (taps.cast_signed() - 1) * dilation + 1;
                let free = length.cast_signed() + before + after - extent;
                (extent > before.max(after) && free >= 0).then_some(free / stride + 1)
            };
            let (Some(rows), Some(columns)) = (
                places(height, top, bottom, high, sy, dy),
                places(width, left, right, wide, sx, dx),
            ) else {
                prop_assert!(floats.run().is_err());
                return Ok(());
            };
            let pixel = |n: u32, y: i32, x_: i32, k: u32| {
                let (Ok(y), Ok(x_)) = (u32::try_from(y), u32::try_from(x_)) else { return 0.0 };
                if y >= height || x_ >= width { return 0.0; }
                x[if is_nchw { ((n * depth + k) * height + y) * width + x_ }
                  else { ((n * height + y) * width + x_) * depth + k } as usize]
            };
            let mut sums = Vec::new();
            for n in 0..batch { for y in 0..rows { for x_ in 0..columns { for d in 0..out {
                let mut sum = b[d as usize];
                for i in 0..high { for j in 0..wide { for k in 0..depth {
                    let weight = w[(((d * high + i) * wide + j) * depth + k) as usize];
                    let (y, x_) = (y * sy + i.cast_signed() * dy - top,
                                   x_ * sx + j.cast_signed() * dx - left);
                    sum += weight * pixel(n, y, x_, k);
                }}}
                sums.push(sum);
            }}}}
            let lengths = [batch, rows.cast_unsigned(), columns.cast_unsigned(), out];
            let call = Call::new(OperationType::Conv2d, [], []);
            let sizes = lengths.map(|length| length as usize);
            let sums = layout.elements_from_nhwc(&call, sums, sizes).unwrap();
            let (least, greatest) = activation_range::real(
                FusedActivation::from_code(activation).unwrap());
            let clamped: Vec<f64> =
                sums.iter().map(|sum| sum.max(least.into()).min(greatest.into())).collect();
            prop_assert_eq!(&floats.result(), &(layout.from_nhwc(lengths).to_vec(), clamped));

            // The same integers as stored values, in steps of 1/8 and 1/4; output in steps of 1/16.
            let signed = |dimensions, scale| {
                OperandSpec::tensor_quant8_asymm_signed(dimensions, scale, 0)
            };
            let quantized = example(
                signed(shape, 0.125),
                OperandSpec::tensor_quant8_symm_per_channel(filter, &vec![0.25; out as usize], 0),
                OperandSpec::tensor_int32([out]),
                signed([0; 4], 0.0625),
            );
            let stored = |real: f32| f64::from((real / 0.0625).clamp(-128.0, 127.0));
            let half = Multiplier::from_real(0.5);
            #[allow(clippy::cast_possible_truncation)] // Integers.
            let expected: Vec<f64> = sums
                .iter()
                .map(|sum| f64::from(half.apply(*sum as i32)).max(stored(least)).min(stored(greatest)))
                .collect();
            prop_assert_eq!(quantized.result().1, expected);
        }
    }

    #[test]
    fn half_precision_is_rounded_once() {
        // 2048 + 1 + 1: adding ones in float16 would stay at 2048.
        let example = Example::new(OperationType::Conv2d)
            .input(tensor(TensorFloat16, [1, 1, 1, 3]), &[2048.0, 1.0, 1.0])
            .input(tensor(TensorFloat16, [1, 1, 1, 3]), &[1.0; 3])
            .input(tensor(TensorFloat16, [1]), &[0.0])
            .int32s([2, 1, 1, 0])
            .output(tensor(TensorFloat16, [0; 4]));
        assert_close(&example.result().1, &[2050.0], 0.0);
    }

    #[test]
    fn long_sums_wrap_and_do_not_panic() {
        let example = Example::new(OperationType::Conv2d)
            .input(tensor(TensorQuant8AsymmSigned, [1; 4]), &[127.0])
            .input(tensor(TensorQuant8AsymmSigned, [1; 4]), &[127.0])
            .input(OperandSpec::tensor_int32([1]).quantized(0.25, 0), &[f64::from(i32::MAX)])
            .int32s([2, 1, 1, 0])
            .output(tensor(TensorQuant8AsymmSigned, [0; 4]));
        assert_eq!(example.result().1, [-128.0]);
    }
}
