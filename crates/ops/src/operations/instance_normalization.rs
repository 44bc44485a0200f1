//! INSTANCE_NORMALIZATION: each channel of each image, shifted and scaled by its own mean and
//! variance, `gamma * (x - mean[b, c]) / sqrt(variance[b, c] + epsilon) + beta`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, channels]`, or NCHW | float32, float16 |
//! | input 1, 2, 3 | gamma, beta, epsilon | scalar | FLOAT32; FLOAT16 with float16 |
//! | input 4 | NCHW? | scalar | BOOL |
//! | output 0 | output | as the input | as the input |
//!
//! The variance is the mean of the squared differences to the mean.
//!
//! Source: `types.hal` 1.2.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::layout::Layout;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// INSTANCE_NORMALIZATION.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceNormalization {
    /// What the normalized elements are multiplied by.
    pub gamma: f32,
    /// What is added then.
    pub beta: f32,
    /// What is added to the variance.
    pub epsilon: f32,
    /// Of input and output.
    pub layout: Layout,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::InstanceNormalization,
    // Columns: input and output; gamma, beta and epsilon.
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::column("gamma", 1),
            Parameter::column("beta", 1),
            Parameter::column("epsilon", 1),
            Parameter::bool("NCHW"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for InstanceNormalization {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(4)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self {
            gamma: call.input(1).f32()?,
            beta: call.input(2).f32()?,
            epsilon: call.input(3).f32()?,
            layout: Layout::from_flag(call.input(4).bool()?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let lengths: [_; 4] = call.input(0).known_lengths_of()?;
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        let sizes = self.layout.to_nhwc(input.lengths_of()?);
        let mut elements = self.layout.elements_to_nhwc(call, input.f32s()?, sizes)?;
        let [_, height, width, channels] = sizes;
        let (gamma, beta) = (f64::from(self.gamma), f64::from(self.beta));
        // An empty tensor has no images to look at, whatever its other lengths are.
        let image_size = height.saturating_mul(width).saturating_mul(channels).max(1);
        for image in elements.chunks_exact_mut(image_size) {
            for channel in 0..channels {
                let values = || image.iter().skip(channel).step_by(channels).copied();
                let mean = mean(call, values().map(f64::from))?;
                let squares = values().map(|value| (f64::from(value) - mean).powi(2));
                let deviation = (self::mean(call, squares)? + f64::from(self.epsilon)).sqrt();
                call.each(image.iter_mut().skip(channel).step_by(channels), |element| {
                    let normalized = (f64::from(*element) - mean) * gamma / deviation;
                    *element = real::round(normalized + beta);
                })?;
            }
        }
        let elements = self.layout.elements_from_nhwc(call, elements, sizes)?;
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}

#[allow(clippy::cast_precision_loss)] // Counts stay far below 2^53.
fn mean(call: &Call<'_>, values: impl Iterator<Item = f64>) -> Result<f64, Fault> {
    let (mut sum, mut count) = (0.0, 0_u64);
    call.each(values, |value| {
        sum += value;
        count += 1;
    })?;
    Ok(sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, assert_refused, tensor};
    use HalVersion::V1_2;
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn example(
        types: [OperandType; 2],
        dimensions: [u32; 4],
        values: &[f64],
        numbers: [f64; 3],
        is_nchw: bool,
    ) -> Example {
        let example = Example::new(OperationType::InstanceNormalization)
            .input(tensor(types[0], dimensions), values);
        numbers
            .into_iter()
            .fold(example, |example, number| {
                example.input(OperandSpec::scalar(types[1]), &[number])
            })
            .bool(is_nchw)
            .output(tensor(types[0], [0; 4]))
    }

    const FLOAT32: [OperandType; 2] = [TensorFloat32, Float32];

    #[test]
    fn values_by_hand() {
        // One channel of 1, 3 (mean 2, variance 1) and one of 10, 30 (mean 20, variance 100).
        let numbers = [2.0, 0.5, 0.0];
        let nhwc = example(FLOAT32, [1, 1, 2, 2], &[1.0, 10.0, 3.0, 30.0], numbers, false);
        assert_close(&nhwc.result().1, &[-1.5, -1.5, 2.5, 2.5], 1e-7);
        let nchw = example(FLOAT32, [1, 2, 2, 1], &[1.0, 3.0, 10.0, 30.0], numbers, true);
        assert_eq!(nchw.result().0, [1, 2, 2, 1]);
        assert_close(&nchw.result().1, &[-1.5, 2.5, -1.5, 2.5], 1e-7);
        // A variance of 1 and an epsilon of 3: the root of 4.
        let epsilon = example(FLOAT32, [1, 1, 2, 1], &[1.0, 3.0], [1.0, 0.0, 3.0], false);
        assert_eq!(epsilon.result().1, [-0.5, 0.5]);
    }

    #[test]
    fn images_are_normalized_separately() {
        let two = example(FLOAT32, [2, 2, 1, 1], &[1.0, 3.0, 40.0, 20.0], [1.0, 0.0, 0.0], false);
        assert_eq!(two.result(), (vec![2, 2, 1, 1], vec![-1.0, 1.0, 1.0, -1.0]));
    }

    #[test]
    fn half_precision_holds_great_sums() {
        // The squares of the differences are beyond float16.
        let values = [-30000.0, 30000.0];
        let half = [TensorFloat16, Float16];
        let example = example(half, [1, 2, 1, 1], &values, [1.0, 0.0, 0.0], false);
        assert_eq!(example.since(), Ok(V1_2));
        assert_eq!(example.result().1, [-1.0, 1.0]);
    }

    #[test]
    fn empty_tensors_stay_empty() {
        for dimensions in [[0, 2, 2, 1], [2, 0, 2, 1], [2, 2, 2, 0]] {
            let empty = example(FLOAT32, dimensions, &[], [1.0, 0.0, 0.0], false);
            assert_eq!(empty.result(), (dimensions.to_vec(), vec![]));
        }
        let longest = [0, u32::MAX, u32::MAX, u32::MAX];
        let empty = example(FLOAT32, longest, &[], [1.0, 0.0, 0.0], true);
        assert_eq!(empty.result(), (longest.to_vec(), vec![]));
    }

    #[test]
    fn shapes_and_versions() {
        let one = example(FLOAT32, [1, 1, 1, 1], &[5.0], [1.0, 7.0, 1.0], true);
        assert_eq!(one.since(), Ok(V1_2));
        assert_eq!(one.result().1, [7.0]);
        let shape = |dimensions: &[u32]| {
            let spec = OperandSpec::tensor_float32(dimensions);
            one.clone().with_input_to_come(0, spec).shape()
        };
        assert_eq!(shape(&[0, 3, 0, 2]), Shape::new([None, Some(3), None, Some(2)]));
        assert_eq!(shape(&[]), Shape::of_rank(4));
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let one = || example(FLOAT32, [1, 1, 1, 1], &[5.0], [1.0, 7.0, 1.0], true);
        let table = [
            (
                one().with_input(0, OperandSpec::tensor_float32([1, 1, 1]), &[5.0]),
                "rank of input 0 (input) is 3, expected 4",
            ),
            (
                one().with_input(2, OperandSpec::scalar(Float16), &[5.0]),
                "type of input 2 (beta) is FLOAT16, expected FLOAT32",
            ),
            (one().with_int32(4, 1), "type of input 4 (NCHW) is INT32, expected BOOL"),
            (one().int32s([1]), "number of arguments of the operation is 6 inputs"),
        ];
        assert_refused(&table);
    }

    proptest! {
        /// The result has mean beta and variance gamma squared.
        #[test]
        fn mean_and_variance_are_those_asked_for(
            values in prop::collection::vec(-1e3..1e3_f64, 6),
            gamma in 0.1..10.0_f64,
            beta in -10.0..10.0_f64,
        ) {
            let spread = values.iter().copied().fold(f64::MIN, f64::max)
                - values.iter().copied().fold(f64::MAX, f64::min);
            prop_assume!(spread > 1.0);
            let result = example(FLOAT32, [1, 3, 2, 1], &values, [gamma, beta, 0.0], false).result().1;
            let call = Call::new(OperationType::InstanceNormalization, [], []);
            let found = mean(&call, result.iter().copied()).unwrap();
            prop_assert!((found - beta).abs() < 1e-4);
            let variance = mean(&call, result.iter().map(|value| (value - found).powi(2))).unwrap();
            prop_assert!((variance.sqrt() / gamma - 1.0).abs() < 1e-4);
        }
    }
}
