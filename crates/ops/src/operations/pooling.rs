//! AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D: one number for all that a window sees.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth]`, or NCHW | float32, float16, quantized (not L2) |
//! | explicit 1 to 4 | padding left, right, top, bottom | scalar | INT32, from 0 to less than the window |
//! | implicit 1 | padding scheme | scalar | INT32: 0 NONE, 1 SAME, 2 VALID |
//! | next two | stride width, height | scalar | INT32, above 0 |
//! | next two | filter width, height | scalar | INT32, above 0 |
//! | next | activation | scalar | INT32 |
//! | next, from 1.2 | NCHW? | scalar | BOOL, default false |
//! | output 0 | output | `[batch, out height, out width, depth]`, or NCHW | as the input, quantized alike |
//!
//! | operation | value, over the elements that the window sees |
//! |---|---|
//! | AVERAGE_POOL_2D | their mean; of stored values the nearest integer, halves away from zero |
//! | MAX_POOL_2D | the greatest |
//! | L2_POOL_2D | the square root of the mean of their squares |
//!
//! Padding is not seen: it adds nothing, and the mean does not count it. Only the batch may be 0.
//!
//! Source: `types.hal` 1.0, 1.2 (layout, float16, zero batch), 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::activation_range;
use crate::rules::layout::Layout;
use crate::rules::padding::{Slide, Window2d, padded_forms};
use crate::rules::real;
use crate::rules::requantize::saturate;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// Which of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// AVERAGE_POOL_2D
    Average,
    /// MAX_POOL_2D
    Max,
    /// L2_POOL_2D
    L2,
}

/// AVERAGE_POOL_2D, MAX_POOL_2D or L2_POOL_2D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pooling {
    /// Which of the three.
    pub reduction: Reduction,
    /// Padding and strides.
    pub window: Window2d,
    /// Height and width of the window; above 0.
    pub filter: [u32; 2],
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Of input and output.
    pub layout: Layout,
}

const FORMS: &[Form] = padded_forms!(
    HalVersion::V1_0,
    [Parameter::column("input", 0)],
    [
        Parameter::int32("stride width"),
        Parameter::int32("stride height"),
        Parameter::int32("filter width"),
        Parameter::int32("filter height"),
        Parameter::int32("activation"),
        Parameter::bool("NCHW").trailing(HalVersion::V1_2)
    ]
);

const FLOAT32: Row = Row::new(HalVersion::V1_0, &[OperandType::TensorFloat32]);
const FLOAT16: Row = Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]);
const FLOAT_ROWS: &[Row] = &[FLOAT32, FLOAT16];
const ROWS: &[Row] = &[
    FLOAT32,
    Row::new(HalVersion::V1_0, &[OperandType::TensorQuant8Asymm]),
    FLOAT16,
    Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
];

static AVERAGE: Signature =
    Signature { operation: OperationType::AveragePool2d, rows: ROWS, forms: FORMS };
static MAX: Signature = Signature { operation: OperationType::MaxPool2d, rows: ROWS, forms: FORMS };
static L2: Signature =
    Signature { operation: OperationType::L2Pool2d, rows: FLOAT_ROWS, forms: FORMS };

impl Operation for Pooling {
    const SIGNATURES: &'static [&'static Signature] = &[&AVERAGE, &MAX, &L2];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, output) = (call.input(0), call.output(0));
        input.expect_rank(4)?;
        if output.is_quantized() { output.expect_quantized_as(input) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let is_explicit = call.inputs().len() >= 10;
        let (window, next) = Window2d::decode(call, 1, is_explicit)?;
        Ok(Self {
            reduction: match call.operation() {
                OperationType::MaxPool2d => Reduction::Max,
                OperationType::L2Pool2d => Reduction::L2,
                _ => Reduction::Average,
            },
            window,
            filter: [call.input(next + 1).positive()?, call.input(next).positive()?],
            activation: activation_range::decode(call.input(next + 2))?,
            layout: Layout::from_flag(call.optional_bool(next + 3)?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let [batch, height, width, depth] = self.layout.image_lengths(call.input(0))?;
        let [out_height, out_width] =
            self.window.output_lengths(call, [height, width], self.filter.map(Some))?;
        let lengths = [batch, out_height, out_width, depth];
        Ok(vec![Shape::new(self.layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        Ok(vec![if output.is_float() {
            let range = activation_range::real(self.activation);
            let elements = self.pool(call, &dimensions, input.f32s()?, |seen| {
                Ok(activation_range::clamp(self.real(call, seen)?, range))
            })?;
            output.with_f32s(dimensions, &elements)?
        } else {
            let range = activation_range::stored(self.activation, output);
            let elements = self.pool(call, &dimensions, input.integers()?, |seen| {
                Ok(self.stored(call, seen)?.clamp(range.0, range.1))
            })?;
            output.with_integers(dimensions, &elements)?
        }])
    }
}

impl Pooling {
    /// The elements of the output, each made by `reduce` from the elements that its window sees;
    /// there is always one at least.
    fn pool<T: Copy>(
        &self,
        call: &Call<'_>,
        dimensions: &[u32],
        elements: Vec<T>,
        reduce: impl Fn(&[T]) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let sizes = self.layout.to_nhwc(call.input(0).lengths_of()?);
        let [batches, height, width, depth] = sizes;
        let elements = self.layout.elements_to_nhwc(call, elements, sizes)?;
        let lengths = [0, 1, 2, 3].map(|axis: usize| dimensions[axis] as usize);
        let out_sizes = self.layout.to_nhwc(lengths);
        let [_, out_height, out_width, _] = out_sizes;
        let [filter_height, filter_width] = self.filter.map(|length| length as usize);
        let mut pooled = call.output(0).allocate(dimensions)?;
        let mut seen =
            call.room(filter_height.min(height).saturating_mul(filter_width.min(width)))?;
        for batch in 0..batches {
            for y in 0..out_height {
                for x in 0..out_width {
                    for channel in 0..depth {
                        call.work(1)?;
                        seen.clear();
                        let across = self.window.width.taps(x, width, filter_width);
                        for (_, in_y) in self.window.height.taps(y, height, filter_height) {
                            call.each(across.clone(), |(_, in_x)| {
                                let pixel = (batch * height + in_y) * width + in_x;
                                seen.push(elements[pixel * depth + channel]);
                            })?;
                        }
                        pooled.push(reduce(&seen)?);
                    }
                }
            }
        }
        self.layout.elements_from_nhwc(call, pooled, out_sizes)
    }

    /// The result for real numbers, summed in double precision.
    #[allow(clippy::cast_precision_loss)] // Counts stay far below 2^53.
    fn real(&self, call: &Call<'_>, seen: &[f32]) -> Result<f32, Fault> {
        let (mut sum, mut greatest) = (-0.0, f32::NEG_INFINITY);
        call.each(seen, |element| {
            let wide = f64::from(*element);
            match self.reduction {
                Reduction::Average => sum += wide,
                Reduction::L2 => sum += wide * wide,
                Reduction::Max => greatest = greatest.max(*element),
            }
        })?;
        let mean = sum / seen.len() as f64;
        Ok(match self.reduction {
            Reduction::Average => real::round(mean),
            Reduction::L2 => real::round(mean.sqrt()),
            Reduction::Max => greatest,
        })
    }

    /// The result for stored values. The mean of real numbers is the mean of the values that are
    /// stored for them, so the zero point has no part in it.
    fn stored(&self, call: &Call<'_>, seen: &[i32]) -> Result<i32, Fault> {
        let (mut sum, mut greatest) = (0_i64, i32::MIN);
        call.each(seen, |element| {
            sum += i64::from(*element);
            greatest = greatest.max(*element);
        })?;
        if self.reduction == Reduction::Max {
            return Ok(greatest);
        }
        let count = i64::try_from(seen.len()).unwrap_or(i64::MAX);
        let half = if sum > 0 { count / 2 } else { -(count / 2) };
        Ok(saturate((sum + half) / count.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, assert_refused, tensor};
    use HalVersion::{V1_0, V1_2, V1_3};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use OperationType::{AveragePool2d, L2Pool2d, MaxPool2d};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    const ALL: [OperationType; 3] = [AveragePool2d, MaxPool2d, L2Pool2d];
    const ONE_TO_NINE: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

    fn image(operation: OperationType, operand_type: OperandType, values: &[f64]) -> Example {
        Example::new(operation).input(tensor(operand_type, [1, 3, 3, 1]), values)
    }

    /// The numbers 1 to 9 under a window of 2 by 2.
    fn explicit(operation: OperationType, padding: [i32; 4], stride: [i32; 2]) -> Example {
        image(operation, TensorFloat32, &ONE_TO_NINE)
            .int32s(padding)
            .int32s(stride)
            .int32s([2, 2, 0])
            .output(tensor(TensorFloat32, [0; 4]))
    }

    fn implicit(operation: OperationType, scheme: i32, filter: [i32; 2]) -> Example {
        image(operation, TensorFloat32, &ONE_TO_NINE)
            .int32s([scheme, 1, 1])
            .int32s(filter)
            .int32s([0])
            .output(tensor(TensorFloat32, [0; 4]))
    }

    #[test]
    fn values_by_hand() {
        let valid = |operation| explicit(operation, [0; 4], [1, 1]).result();
        let shape = vec![1, 2, 2, 1];
        assert_eq!(valid(AveragePool2d), (shape.clone(), vec![3.0, 4.0, 6.0, 7.0]));
        assert_eq!(valid(MaxPool2d), (shape, vec![5.0, 6.0, 8.0, 9.0]));
        // 1 + 4 + 16 + 25 = 46, 4 + 9 + 25 + 36 = 74, 16 + 25 + 49 + 64 = 154, 25 + 36 + 64 + 81.
        let roots = [46.0_f64, 74.0, 154.0, 206.0].map(|sum| (sum / 4.0).sqrt());
        assert_close(&valid(L2Pool2d).1, &roots, 1e-7);
    }

    #[test]
    fn padding_is_not_counted() {
        let corners = |operation| explicit(operation, [1; 4], [3, 3]).result();
        let shape = vec![1, 2, 2, 1];
        assert_eq!(corners(AveragePool2d), (shape, vec![1.0, 3.0, 7.0, 9.0]));
        assert_eq!(corners(MaxPool2d).1, [1.0, 3.0, 7.0, 9.0]);
        assert_eq!(corners(L2Pool2d).1, [1.0, 3.0, 7.0, 9.0]);
        let same = implicit(AveragePool2d, 1, [2, 2]).result();
        let values = vec![3.0, 4.0, 4.5, 6.0, 7.0, 7.5, 7.5, 8.5, 9.0];
        assert_eq!(same, (vec![1, 3, 3, 1], values));
        // The greatest of negative numbers, not of them and the padding.
        let negative = explicit(MaxPool2d, [1; 4], [3, 3]).with_input(
            0,
            tensor(TensorFloat32, [1, 3, 3, 1]),
            &ONE_TO_NINE.map(|x| -x),
        );
        assert_eq!(negative.result().1, [-1.0, -3.0, -7.0, -9.0]);
    }

    #[test]
    fn width_and_height_are_distinguished() {
        let wide = implicit(MaxPool2d, 2, [3, 1]);
        assert_eq!(wide.result(), (vec![1, 3, 1, 1], vec![3.0, 6.0, 9.0]));
        let high = explicit(MaxPool2d, [0; 4], [2, 1]).with_int32(7, 1);
        assert_eq!(high.result(), (vec![1, 2, 2, 1], vec![4.0, 6.0, 7.0, 9.0]));
        let shifted = explicit(MaxPool2d, [1, 0, 0, 1], [1, 2]);
        assert_eq!(shifted.result(), (vec![1, 2, 3, 1], vec![4.0, 5.0, 6.0, 7.0, 8.0, 9.0]));
    }

    #[test]
    fn channels_are_pooled_separately_in_both_layouts() {
        let example = |dimensions: [u32; 4], values: &[f64], is_nchw| {
            Example::new(AveragePool2d)
                .input(tensor(TensorFloat32, dimensions), values)
                .int32s([2, 1, 1, 2, 1, 0])
                .bool(is_nchw)
                .output(tensor(TensorFloat32, [0; 4]))
        };
        let nhwc = example([1, 1, 3, 2], &[1.0, 10.0, 2.0, 30.0, 4.0, 20.0], false);
        assert_eq!(nhwc.result(), (vec![1, 1, 2, 2], vec![1.5, 20.0, 3.0, 25.0]));
        let nchw = example([1, 2, 1, 3], &[1.0, 2.0, 4.0, 10.0, 30.0, 20.0], true);
        assert_eq!(nchw.result(), (vec![1, 2, 1, 2], vec![1.5, 3.0, 20.0, 25.0]));
    }

    #[test]
    fn stored_means_round_halves_away_from_zero() {
        let average = |operand_type, values: [f64; 2]| {
            Example::new(AveragePool2d)
                .input(tensor(operand_type, [1, 1, 2, 1]), &values)
                .int32s([2, 1, 1, 2, 1, 0])
                .output(tensor(operand_type, [0; 4]))
                .result()
                .1
        };
        assert_eq!(average(TensorQuant8Asymm, [3.0, 4.0]), [4.0]);
        assert_eq!(average(TensorQuant8AsymmSigned, [3.0, 4.0]), [4.0]);
        assert_eq!(average(TensorQuant8AsymmSigned, [-3.0, -4.0]), [-4.0]);
        assert_eq!(average(TensorQuant8AsymmSigned, [-3.0, 2.0]), [-1.0]);
    }

    #[test]
    fn activations_clamp_real_and_stored_numbers() {
        let floats = explicit(AveragePool2d, [0; 4], [1, 1]).with_int32(9, 3);
        assert_eq!(floats.result().1, [3.0, 4.0, 6.0, 6.0]);
        // Steps of 1/2 from 128: RELU6 lets 128 to 140 pass.
        let quantized = image(
            MaxPool2d,
            TensorQuant8Asymm,
            &[100.0, 100.0, 130.0, 100.0, 100.0, 130.0, 200.0, 200.0, 139.0],
        )
        .int32s([2, 1, 1, 2, 2, 3])
        .output(tensor(TensorQuant8Asymm, [0; 4]));
        assert_eq!(quantized.result().1, [128.0, 130.0, 140.0, 140.0]);
    }

    #[test]
    fn an_empty_batch_gives_an_empty_batch() {
        for operation in ALL {
            let example = explicit(operation, [0; 4], [1, 1]).with_input(
                0,
                tensor(TensorFloat32, [0, 3, 3, 1]),
                &[],
            );
            assert_eq!(example.result(), (vec![0, 2, 2, 1], vec![]));
        }
    }

    #[test]
    fn what_is_known_of_the_shape_is_inferred() {
        let example = implicit(MaxPool2d, 1, [2, 2]);
        let with = |dimensions: &[u32]| {
            let spec = OperandSpec::tensor_float32(dimensions);
            example.clone().with_input_to_come(0, spec).shape()
        };
        assert_eq!(with(&[0, 3, 0, 1]), Shape::new([None, Some(3), None, Some(1)]));
        assert_eq!(with(&[]), Shape::of_rank(4));
        let int32 = OperandSpec::scalar(OperandType::Int32);
        assert_eq!(example.with_input_to_come(4, int32).shapes().unwrap(), [Shape::UNKNOWN]);
    }

    #[test]
    fn each_row_has_its_version() {
        let rows = [
            (TensorFloat32, V1_0),
            (TensorQuant8Asymm, V1_0),
            (TensorFloat16, V1_2),
            (TensorQuant8AsymmSigned, V1_3),
        ];
        for operation in ALL {
            for (operand_type, version) in rows {
                let example = image(operation, operand_type, &[0.0; 9])
                    .int32s([1, 1, 1, 1, 1, 0])
                    .output(tensor(operand_type, [1, 3, 3, 1]));
                if operation == L2Pool2d && operand_type.quantized_range().is_some() {
                    assert!(example.refusal().contains("type of input 0"));
                    continue;
                }
                assert_eq!(example.since(), Ok(version));
                assert_eq!(example.result().1, [0.0; 9]);
                assert_eq!(example.bool(true).since(), Ok(version.max(V1_2)));
            }
            let long = explicit(operation, [0; 4], [1, 1]);
            assert_eq!(long.since(), Ok(V1_0));
            assert_eq!(long.bool(true).since(), Ok(V1_2));
        }
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let example = || explicit(AveragePool2d, [0; 4], [1, 1]);
        let quantized = |output: OperandSpec| {
            image(AveragePool2d, TensorQuant8Asymm, &[0.0; 9])
                .int32s([1, 1, 1, 1, 1, 0])
                .output(output)
        };
        let table = [
            (example().with_int32(2, -1), "value of input 2 (padding right) is -1"),
            (example().with_int32(1, 2), "padding of the operation is 2 and 0, expected less"),
            (example().with_int32(5, 0), "value of input 5 (stride width) is 0"),
            (example().with_int32(6, -1), "value of input 6 (stride height) is -1"),
            (example().with_int32(7, 0), "value of input 7 (filter width) is 0"),
            (example().with_int32(8, -5), "value of input 8 (filter height) is -5"),
            (example().with_int32(8, 4), "window of the operation is 4 wide"),
            (example().with_int32(9, -1), "value of input 9 (activation) is -1"),
            (implicit(MaxPool2d, 3, [1, 1]), "value of input 1 (padding scheme) is 3"),
            (
                implicit(MaxPool2d, 2, [4, 1]),
                "window of the operation is 4 wide, expected at most the padded length of an axis",
            ),
            (
                example().with_input(0, tensor(TensorFloat32, [3, 3]), &ONE_TO_NINE),
                "rank of input 0 (input) is 2, expected 4",
            ),
            (
                example().with_input(0, tensor(TensorFloat32, [1, 3, 0, 1]), &[]),
                "shape of input 0 (input) is [1, 3, 0, 1]",
            ),
            (
                quantized(OperandSpec::tensor_quant8_asymm([0; 4], 0.25, 128)),
                "scale of output 0 (output) is 0.25, expected 0.5",
            ),
            (
                quantized(OperandSpec::tensor_quant8_asymm([0; 4], 0.5, 127)),
                "zero point of output 0 (output) is 127, expected 128",
            ),
            (example().int32s([1]), "type of input 10 (NCHW) is INT32, expected BOOL"),
            (
                example().bool(true).bool(true),
                "number of arguments of the operation is 12 inputs and 1 outputs",
            ),
        ];
        assert_refused(&table);
    }

    #[test]
    fn numbers_near_the_limit_do_not_overflow() {
        let largest = i32::MAX;
        let padded = explicit(MaxPool2d, [largest - 1; 4], [largest; 2])
            .with_int32(7, largest)
            .with_int32(8, largest);
        // The first window ends on the first element, the second begins on the one behind.
        assert_eq!(padded.result(), (vec![1, 2, 2, 1], vec![1.0, 3.0, 7.0, 9.0]));
        let same = implicit(AveragePool2d, 1, [largest; 2]);
        assert_eq!(same.result(), (vec![1, 3, 3, 1], vec![5.0; 9]));
    }

    proptest! {
        /// Stored means are the real mean of the stored numbers, rounded.
        #[test]
        fn the_mean_is_within_half_a_step(values in prop::collection::vec(-128..128_i32, 9)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let mean = image(AveragePool2d, TensorQuant8AsymmSigned, &values)
                .int32s([2, 1, 1, 3, 3, 0])
                .output(tensor(TensorQuant8AsymmSigned, [0; 4]))
                .result().1[0];
            let real = values.iter().sum::<f64>() / 9.0;
            prop_assert!((mean - real).abs() <= 0.5, "{mean} for {real}");
        }

        /// The mean does not exceed the root of the mean square, and that not the greatest size.
        #[test]
        fn means_are_ordered(values in prop::collection::vec(0.0..100.0_f64, 9), pad in 0..2_i32) {
            let run = |operation| {
                explicit(operation, [pad; 4], [1, 1])
                    .with_input(0, tensor(TensorFloat32, [1, 3, 3, 1]), &values).result().1
            };
            let (mean, root, max) = (run(AveragePool2d), run(L2Pool2d), run(MaxPool2d));
            for ((mean, root), max) in mean.iter().zip(root).zip(max) {
                prop_assert!(*mean <= root * (1.0 + 1e-6) && root <= max * (1.0 + 1e-6));
            }
        }
    }
}
