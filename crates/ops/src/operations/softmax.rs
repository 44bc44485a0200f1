//! SOFTMAX: `output[i] = exp(beta * (input[i] - max)) / sum(exp(beta * (input[k] - max)))` over
//! every slice along an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | rank 4 at most; up to 1.1 rank 2 or 4 | float32, float16, quantized |
//! | input 1 | beta | scalar, above 0 | FLOAT32; FLOAT16 with float16 |
//! | input 2, from 1.2 | axis | scalar | INT32, negative from the end, default -1 |
//! | output 0 | output | as the input | as the input |
//!
//! A quantized output has scale 1/256 and zero point 0 (signed: -128), and is the stored value
//! nearest to the formula's; implementations in fixed-point arithmetic may be one step away.
//!
//! Source: `types.hal` 1.0, 1.2 (axis, ranks, float16, zero-sized), 1.3 (signed).

use crate::call::{Argument, Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::requantize::quantize;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// SOFTMAX.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softmax {
    /// What differences are multiplied with before the exponential; above 0.
    pub beta: f32,
    /// The axis of the slices, from the front.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Softmax,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, Float32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::column("beta", 1),
            Parameter::int32("axis").trailing(HalVersion::V1_2).defaults_to(-1),
        ],
        &[Parameter::column("output", 0)],
    )],
};

/// A factor before an exponential, which must be above 0.
pub(super) fn decode_beta(argument: &Argument<'_>) -> Result<f32, Fault> {
    let beta = argument.f32()?;
    if beta > 0.0 { Ok(beta) } else { Err(argument.wrong("value", beta, "above 0")) }
}

/// Puts the result for one slice of real numbers in its place, in double precision.
fn normalize(call: &Call<'_>, slice: &mut [f64], beta: f64) -> Result<(), Fault> {
    let mut greatest = f64::NEG_INFINITY;
    call.each(&*slice, |x| greatest = greatest.max(*x))?;
    let mut sum = -0.0;
    call.each(&mut *slice, |x| {
        *x = ((*x - greatest) * beta).exp();
        sum += *x;
    })?;
    call.each(slice, |x| *x /= sum)
}

impl Operation for Softmax {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn since(call: &Call<'_>) -> Since {
        let other_rank = call.input(0).shape.rank().is_some_and(|rank| rank != 2 && rank != 4);
        Since::ALWAYS.and(HalVersion::V1_2, "an input of another rank than 2 or 4", other_rank)
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let output = call.output(0);
        call.input(0).expect_rank_in(1..=4)?;
        match output.operand_type {
            TensorQuant8Asymm => output.expect_quantization(1.0 / 256.0, 0),
            TensorQuant8AsymmSigned => output.expect_quantization(1.0 / 256.0, -128),
            _ => Ok(()),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let beta = decode_beta(call.input(1))?;
        let (given, number) = (call.optional(2), call.optional_i32(2, -1)?);
        let input = call.input(0);
        Ok(Self { beta, axis: given.unwrap_or(input).axis_of(number, input)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        let mut elements: Vec<f32> = output.collect(&dimensions, std::iter::repeat(0.0))?;
        let inputs = input.reals()?;
        let slices = Slices::new(&input.lengths()?, self.axis);
        let mut slice = call.room(slices.length())?;
        for positions in slices.positions() {
            slice.clear();
            call.each(positions.clone(), |position| slice.push(f64::from(inputs[position])))?;
            normalize(call, &mut slice, self.beta.into())?;
            call.each(positions.zip(&slice), |(position, value)| {
                elements[position] = real::round(*value);
            })?;
        }
        Ok(vec![match output.operand_type.quantized_range() {
            None => output.with_f32s(dimensions, &elements)?,
            Some(range) => {
                let quantize = |real| quantize(real, output.scale, output.zero_point, range);
                let stored = output.collect(&dimensions, elements.into_iter().map(quantize))?;
                output.with_integers(dimensions, &stored)?
            }
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// A call whose beta has the type that goes with the input's.
    fn example(input: OperandSpec, elements: &[f64], beta: f64) -> Example {
        let float16 = input.operand_type == TensorFloat16;
        let beta_type = if float16 { Float16 } else { Float32 };
        let output = OperandSpec { dimensions: vec![], ..input.clone() };
        let output = match input.operand_type {
            TensorQuant8Asymm => output.quantized(1.0 / 256.0, 0),
            TensorQuant8AsymmSigned => output.quantized(1.0 / 256.0, -128),
            _ => output,
        };
        Example::new(OperationType::Softmax)
            .input(input, elements)
            .input(OperandSpec::scalar(beta_type), &[beta])
            .output(output)
    }

    #[test]
    fn model_25_types_ranks_and_the_axis_decide_the_version() {
        use HalVersion::{V1_0, V1_2, V1_3};
        for (operand_type, since) in [
            (TensorFloat32, V1_0),
            (TensorQuant8Asymm, V1_0),
            (TensorFloat16, V1_2),
            (TensorQuant8AsymmSigned, V1_3),
        ] {
            let call = example(tensor(operand_type, [1, 1]), &[0.0], 1.0);
            assert_eq!(call.since(), Ok(since), "{operand_type}");
            assert!(call.run().is_ok(), "{operand_type}");
        }
        for (rank, since) in [(1, V1_2), (2, V1_0), (3, V1_2), (4, V1_0)] {
            let input = tensor(TensorFloat32, vec![1; rank]);
            assert_eq!(example(input.clone(), &[0.0], 1.0).since(), Ok(since), "{rank}");
            assert_eq!(example(input, &[0.0], 1.0).int32s([0]).since(), Ok(V1_2), "{rank}");
        }
        let unknown_rank = Example::new(OperationType::Softmax)
            .input_to_come(tensor(TensorFloat32, []))
            .input(OperandSpec::scalar(Float32), &[1.0])
            .output(tensor(TensorFloat32, []));
        assert_eq!(unknown_rank.since(), Ok(V1_0));
        assert_eq!(unknown_rank.shapes(), Ok(vec![Shape::UNKNOWN]));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(tensor(TensorFloat32, [1, 2]), &[0.0, 0.0], 1.0);
        assert_eq!(good.result(), (vec![1, 2], vec![0.5, 0.5]));
        for (beta, found) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN")] {
            assert_eq!(
                good.clone().with_input(1, OperandSpec::scalar(Float32), &[beta]).refusal(),
                format!("SOFTMAX: value of input 1 (beta) is {found}, expected above 0")
            );
        }
        assert_eq!(
            good.clone().with_input(1, OperandSpec::scalar(Float16), &[1.0]).refusal(),
            "SOFTMAX: type of input 1 (beta) is FLOAT16, expected FLOAT32"
        );
        for axis in [2, -3, i32::MIN, i32::MAX] {
            assert_eq!(
                good.clone().int32s([axis]).refusal(),
                format!(
                    "SOFTMAX: value of input 2 (axis) is {axis}, expected an axis of a tensor of \
                     rank 2"
                )
            );
        }
        assert_eq!(
            example(tensor(TensorFloat32, [1; 5]), &[0.0], 1.0).refusal(),
            "SOFTMAX: rank of input 0 (input) is 5, expected 1 to 4"
        );
        let quantized = example(tensor(TensorQuant8Asymm, [1, 1]), &[0.0], 1.0);
        let output = |scale, zero_point| OperandSpec::tensor_quant8_asymm([], scale, zero_point);
        assert_eq!(
            quantized.clone().with_output(output(0.5, 0)).refusal(),
            "SOFTMAX: scale of output 0 (output) is 0.5, expected 0.00390625"
        );
        assert_eq!(
            quantized.with_output(output(1.0 / 256.0, 1)).refusal(),
            "SOFTMAX: zero point of output 0 (output) is 1, expected 0"
        );
    }

    #[test]
    fn values_by_hand() {
        // exp(ln n) = n, so the shares are 1/10, 2/10, 3/10, 4/10.
        let logarithms = [1.0, 2.0, 3.0, 4.0].map(f64::ln);
        for (operand_type, tolerance) in [(TensorFloat32, 1e-7), (TensorFloat16, 5e-4)] {
            let result = |beta| example(tensor(operand_type, [1, 4]), &logarithms, beta).result().1;
            assert_close(&result(1.0), &[0.1, 0.2, 0.3, 0.4], tolerance);
            // Squares: 1, 4, 9, 16 of 30.
            let squares = [1.0, 4.0, 9.0, 16.0].map(|square| square / 30.0);
            assert_close(&result(2.0), &squares, tolerance);
        }
    }

    #[test]
    fn every_axis_can_be_the_one() {
        let tenfold = 10_f64.ln();
        let result = |axis: Option<i32>| {
            let input = tensor(TensorFloat32, [2, 2]);
            let call = example(input, &[0.0, tenfold, 0.0, 0.0], 1.0);
            axis.into_iter().fold(call, |call, axis| call.int32s([axis])).result().1
        };
        let (low, high) = (1.0 / 11.0, 10.0 / 11.0);
        let rows = [low, high, 0.5, 0.5];
        for last in [None, Some(1), Some(-1)] {
            assert_close(&result(last), &rows, 1e-7);
        }
        for first in [0, -2] {
            assert_close(&result(Some(first)), &[0.5, high, 0.5, low], 1e-7);
        }
    }

    #[test]
    fn huge_inputs_stay_within_range() {
        let result =
            |elements: &[f64]| example(tensor(TensorFloat32, [1, 2]), elements, 1.0).result().1;
        assert_eq!(result(&[3e38, 3e38]), [0.5, 0.5]);
        assert_eq!(result(&[-3e38, 3e38]), [0.0, 1.0]);
        assert_eq!(result(&[f64::NEG_INFINITY, 0.0]), [0.0, 1.0]);
    }

    #[test]
    fn quantized_values_by_hand() {
        // In steps of 0.5: 0, 1, 2; e^0 : e^1 : e^2 is 23.05 : 62.65 : 170.30 of 256.
        let unsigned = example(tensor(TensorQuant8Asymm, [1, 3]), &[128.0, 130.0, 132.0], 1.0);
        assert_eq!(unsigned.result().1, [23.0, 63.0, 170.0]);
        let signed = example(tensor(TensorQuant8AsymmSigned, [1, 3]), &[0.0, 2.0, 4.0], 1.0);
        assert_eq!(signed.result().1, [-105.0, -65.0, 42.0]);
        // A share of 1 would be the 256th step.
        assert_eq!(example(tensor(TensorQuant8Asymm, [1, 1]), &[7.0], 1.0).result().1, [255.0]);
    }

    #[test]
    fn shapes_are_those_of_the_input_even_of_nothing() {
        assert_eq!(example(tensor(TensorFloat32, [0, 3]), &[], 1.0).result(), (vec![0, 3], vec![]));
        assert_eq!(example(tensor(TensorFloat32, [3, 0]), &[], 1.0).result(), (vec![3, 0], vec![]));
        let open = Example::new(OperationType::Softmax)
            .input_to_come(tensor(TensorFloat32, [0, 3]))
            .input_to_come(OperandSpec::scalar(Float32))
            .output(tensor(TensorFloat32, []));
        // Beta is a value of the request: nothing is decoded yet.
        assert_eq!(open.shapes(), Ok(vec![Shape::UNKNOWN]));
        let open = open.with_input(1, OperandSpec::scalar(Float32), &[1.0]);
        assert_eq!(open.shapes(), Ok(vec![Shape::new([None, Some(3)])]));
    }

    proptest! {
        #[test]
        fn a_slice_sums_to_1_and_keeps_its_order(
            elements in prop::collection::vec(-20.0_f64..20.0, 1..8),
            beta in 0.1_f64..3.0,
        ) {
            let length = u32::try_from(elements.len()).unwrap();
            let result = example(tensor(TensorFloat32, [1, length]), &elements, beta).result().1;
            prop_assert!((result.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            for (x, y) in elements.windows(2).zip(result.windows(2)) {
                prop_assert!((x[0] <= x[1]) == (y[0] <= y[1]) || y[0] == y[1]);
            }
        }

        #[test]
        fn a_quantized_result_is_the_step_nearest_to_the_real_one(
            stored in prop::collection::vec(0..256_i32, 2..6),
            scale in 0.01_f32..0.5,
            zero_point in 0..256_i32,
        ) {
            let length = u32::try_from(stored.len()).unwrap();
            let elements: Vec<f64> = stored.iter().copied().map(f64::from).collect();
            let input = OperandSpec::tensor_quant8_asymm([1, length], scale, zero_point);
            let found = example(input, &elements, 1.0).result().1;
            let exponentials: Vec<f64> =
                elements.iter().map(|it| (f64::from(scale) * (it - 255.0)).exp()).collect();
            let sum: f64 = exponentials.iter().sum();
            for (found, exponential) in found.iter().zip(exponentials) {
                let exact = (256.0 * exponential / sum).min(255.0);
                prop_assert!((found - exact).abs() < 0.501, "{found} for {exact}");
            }
        }
    }
}
