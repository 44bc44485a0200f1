//! LOG_SOFTMAX: `output[i] = beta * input[i] - log(sum(exp(beta * input[k])))` over every slice along
//! an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16 |
//! | input 1 | beta | scalar, above 0 | FLOAT32; FLOAT16 with float16 |
//! | input 2 | axis | scalar | INT32, negative from the end |
//! | output 0 | output | as the input | as the input |
//!
//! Source: `types.hal` 1.2.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::operations::softmax::decode_beta;
use crate::rules::real;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// LOG_SOFTMAX.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogSoftmax {
    /// What inputs are multiplied with before the exponential; above 0.
    pub beta: f32,
    /// The axis of the slices, from the front.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::LogSoftmax,
    rows: &[
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32, OperandType::Float32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16, OperandType::Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::column("beta", 1), Parameter::int32("axis")],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for LogSoftmax {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let beta = decode_beta(call.input(1))?;
        let axis = call.input(2);
        Ok(Self { beta, axis: axis.axis_of(axis.i32()?, call.input(0))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        let mut elements: Vec<f32> = output.collect(&dimensions, std::iter::repeat(0.0))?;
        let inputs = input.f32s()?;
        let beta = f64::from(self.beta);
        for positions in Slices::new(&input.lengths()?, self.axis).positions() {
            let scaled = positions.clone().map(|position| beta * f64::from(inputs[position]));
            // Taking the greatest away keeps the exponentials within range.
            let mut greatest = f64::NEG_INFINITY;
            call.each(scaled.clone(), |x| greatest = greatest.max(x))?;
            let mut sum = -0.0_f64;
            call.each(scaled.clone(), |x| sum += (x - greatest).exp())?;
            call.each(positions.zip(scaled), |(position, x)| {
                elements[position] = real::round(x - greatest - sum.ln());
            })?;
        }
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn example(input: OperandSpec, elements: &[f64], beta: f64, axis: i32) -> Example {
        let float16 = input.operand_type == TensorFloat16;
        let beta_type = if float16 { Float16 } else { Float32 };
        Example::new(OperationType::LogSoftmax)
            .input(input.clone(), elements)
            .input(OperandSpec::scalar(beta_type), &[beta])
            .int32s([axis])
            .output(OperandSpec::new(input.operand_type, []))
    }

    #[test]
    fn model_25_both_types_came_with_1_2() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            let call = example(tensor(operand_type, [1]), &[0.0], 1.0, 0);
            assert_eq!(call.since(), Ok(HalVersion::V1_2));
            assert_eq!(call.result().1, [0.0]);
        }
        let quantized = example(tensor(OperandType::TensorQuant8Asymm, [1]), &[0.0], 1.0, 0);
        assert!(quantized.since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let vector = tensor(TensorFloat32, [2]);
        assert_eq!(
            example(vector.clone(), &[0.0, 0.0], -2.0, 0).refusal(),
            "LOG_SOFTMAX: value of input 1 (beta) is -2, expected above 0"
        );
        assert_eq!(
            example(vector.clone(), &[0.0, 0.0], 1.0, 1).refusal(),
            "LOG_SOFTMAX: value of input 2 (axis) is 1, expected an axis of a tensor of rank 1"
        );
        assert_eq!(
            example(vector, &[0.0, 0.0], 1.0, 0)
                .with_input(1, OperandSpec::scalar(Float16), &[1.0])
                .refusal(),
            "LOG_SOFTMAX: type of input 1 (beta) is FLOAT16, expected FLOAT32"
        );
    }

    #[test]
    fn values_by_hand() {
        // Shares of 1, 2, 3, 4 in 10 along the middle axis, and of equal ones.
        let elements = [1.0, 5.0, 2.0, 5.0, 3.0, 5.0, 4.0, 5.0].map(f64::ln);
        let expected = [0.1, 0.25, 0.2, 0.25, 0.3, 0.25, 0.4, 0.25].map(f64::ln);
        for (operand_type, tolerance) in [(TensorFloat32, 1e-6), (TensorFloat16, 2e-3)] {
            for axis in [1, -2] {
                let input = tensor(operand_type, [1, 4, 2]);
                let (dimensions, found) = example(input, &elements, 1.0, axis).result();
                assert_eq!(dimensions, [1, 4, 2]);
                assert_close(&found, &expected, tolerance);
            }
        }
    }

    #[test]
    fn shares_too_small_for_a_float_have_a_logarithm() {
        let found = example(tensor(TensorFloat32, [2]), &[0.0, 1000.0], 1.0, 0).result().1;
        assert_eq!(found, [-1000.0, 0.0]);
    }

    #[test]
    fn nothing_stays_nothing() {
        for axis in [0, 1] {
            let found = example(tensor(TensorFloat32, [2, 0]), &[], 1.0, axis).result();
            assert_eq!(found, (vec![2, 0], vec![]));
        }
    }

    proptest! {
        #[test]
        fn it_is_the_logarithm_of_softmax(
            elements in prop::collection::vec(-5.0_f64..5.0, 6),
            beta in 0.1_f64..2.0,
            axis in 0..2,
        ) {
            let input = tensor(TensorFloat32, [2, 3]);
            let found = example(input.clone(), &elements, beta, axis).result().1;
            let softmax = Example::new(OperationType::Softmax)
                .input(input.clone(), &elements)
                .input(OperandSpec::scalar(Float32), &[beta])
                .int32s([axis])
                .output(input)
                .result()
                .1;
            let exponentials: Vec<f64> = found.into_iter().map(f64::exp).collect();
            assert_close(&exponentials, &softmax, 1e-6);
        }
    }
}
