//! L2_NORMALIZATION: each slice along an axis, divided by its Euclidean length.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most; before 1.2 only of rank 4 | float32, float16, quantized |
//! | input 1, from 1.2 | axis | scalar | INT32, from -rank to rank - 1, default -1 |
//! | output 0 | output | as the input | as the input; scale 1/128, zero point 128 (signed: 0) |
//!
//! A slice of nothing but 0 stays 0, as 1.3 wants it; older versions leave that open. Lengths below
//! 10^-6 count as 10^-6.
//!
//! Source: `types.hal` 1.0, 1.2 (axis, ranks, float16, quantized), 1.3 (signed).

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::convolution::centred;
use crate::rules::inverse_square_root::inverse_square_root;
use crate::rules::real;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// L2_NORMALIZATION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct L2Normalization {
    /// The axis that slices are along.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::L2Normalization,
    rows: &[
        Row::new(HalVersion::V1_0, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::int32("axis").trailing(HalVersion::V1_2).defaults_to(-1),
        ],
        &[Parameter::column("output", 0)],
    )],
};

/// Lengths below this count as this.
const LEAST_LENGTH: f64 = 1e-6;

impl Operation for L2Normalization {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn since(call: &Call<'_>) -> Since {
        Since::ALWAYS.and(
            HalVersion::V1_2,
            "a rank other than 4",
            call.input(0).shape.rank().is_some_and(|rank| rank != 4),
        )
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=4)?;
        let output = call.output(0);
        match output.operand_type {
            OperandType::TensorQuant8Asymm => output.expect_quantization(1.0 / 128.0, 128),
            OperandType::TensorQuant8AsymmSigned => output.expect_quantization(1.0 / 128.0, 0),
            _ => Ok(()),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=4)?;
        let argument = call.optional(1).unwrap_or(input);
        Ok(Self { axis: argument.axis_of(call.optional_i32(1, -1)?, input)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        let slices = Slices::new(&input.lengths()?, self.axis);
        if output.is_float() {
            let mut elements = input.f32s()?;
            for slice in slices.positions() {
                let mut squares = 0.0;
                call.each(slice.clone(), |at| squares += f64::from(elements[at]).powi(2))?;
                // Not `max`, of which a NaN is no part: with one among them, no element is a number.
                let length = squares.sqrt();
                let length = if length < LEAST_LENGTH { LEAST_LENGTH } else { length };
                call.each(slice, |at| {
                    elements[at] = real::round(f64::from(elements[at]) / length);
                })?;
            }
            return Ok(vec![output.with_f32s(dimensions, &elements)?]);
        }
        let mut elements = centred(input)?;
        for slice in slices.positions() {
            let mut squares = 0;
            call.each(slice.clone(), |at| squares += i64::from(elements[at]).pow(2))?;
            let factor = inverse_square_root(squares);
            call.each(slice, |at| {
                // The output's scale is 1/128.
                let stored = factor.apply(elements[at].saturating_mul(128));
                elements[at] = stored.saturating_add(output.zero_point);
            })?;
        }
        Ok(vec![output.with_integers(dimensions, &elements)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, assert_refused, tensor};
    use HalVersion::{V1_0, V1_2, V1_3};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn output(operand_type: OperandType) -> OperandSpec {
        let spec = OperandSpec::new(operand_type, []);
        match operand_type {
            TensorQuant8Asymm => spec.quantized(1.0 / 128.0, 128),
            TensorQuant8AsymmSigned => spec.quantized(1.0 / 128.0, 0),
            _ => spec,
        }
    }

    fn example(operand_type: OperandType, dimensions: &[u32], values: &[f64]) -> Example {
        Example::new(OperationType::L2Normalization)
            .input(tensor(operand_type, dimensions), values)
            .output(output(operand_type))
    }

    #[test]
    fn values_by_hand() {
        // Lengths 5 and 13 along the last axis.
        let values = [3.0, 4.0, 5.0, 12.0];
        let last = example(TensorFloat32, &[2, 2], &values);
        let expected = [0.6, 0.8, 5.0 / 13.0, 12.0 / 13.0];
        assert_close(&last.result().1, &expected, 1e-7);
        assert_eq!(last.clone().int32s([-1]).result(), last.result());
        assert_eq!(last.clone().int32s([1]).result(), last.result());
        // sqrt(9 + 25) and sqrt(16 + 144) along the first.
        let (left, right) = (34.0_f64.sqrt(), 160.0_f64.sqrt());
        let expected = [3.0 / left, 4.0 / right, 5.0 / left, 12.0 / right];
        assert_close(&last.clone().int32s([0]).result().1, &expected, 1e-7);
        assert_eq!(last.clone().int32s([-2]).result(), last.int32s([0]).result());
    }

    #[test]
    fn nothing_stays_nothing() {
        assert_eq!(example(TensorFloat32, &[2], &[0.0, 0.0]).result().1, [0.0, 0.0]);
        let unsigned = example(TensorQuant8Asymm, &[2], &[128.0, 128.0]);
        assert_eq!(unsigned.result().1, [128.0, 128.0]);
        assert_eq!(example(TensorQuant8AsymmSigned, &[2], &[0.0; 2]).result().1, [0.0, 0.0]);
        assert_close(&example(TensorFloat32, &[1], &[1e-8]).result().1, &[0.01], 1e-6);
        assert_eq!(example(TensorFloat32, &[2, 0], &[]).result(), (vec![2, 0], vec![]));
    }

    #[test]
    fn a_row_with_a_nan_is_nan() {
        let rows = example(TensorFloat32, &[2, 2], &[f64::NAN, 4.0, 3.0, 4.0]).result().1;
        assert!(rows[..2].iter().all(|it| it.is_nan()), "{rows:?}");
        assert_close(&rows[2..], &[0.6, 0.8], 1e-7);
    }

    #[test]
    fn quantized_values_by_hand() {
        // 3 and 4 of length 5, in steps of 1/128: 76.8 and 102.4; and -1 is stored, 1 is not.
        let unsigned = example(TensorQuant8Asymm, &[2, 2], &[131.0, 132.0, 128.0, 120.0]);
        assert_eq!(unsigned.result().1, [205.0, 230.0, 128.0, 0.0]);
        let signed = example(TensorQuant8AsymmSigned, &[2, 2], &[3.0, 4.0, 0.0, 120.0]);
        assert_eq!(signed.result().1, [77.0, 102.0, 0.0, 127.0]);
        let columns = example(TensorQuant8AsymmSigned, &[2, 2], &[3.0, 0.0, 4.0, -9.0]);
        assert_eq!(columns.int32s([0]).result().1, [77.0, 0.0, 102.0, -128.0]);
    }

    #[test]
    fn half_precision_holds_long_slices() {
        // The square of 300 is beyond float16.
        let example = example(TensorFloat16, &[2], &[300.0, 400.0]);
        assert_close(&example.result().1, &[0.6, 0.8], 5e-4);
    }

    #[test]
    fn each_row_has_its_version() {
        let rows = [
            (TensorFloat32, V1_0),
            (TensorFloat16, V1_2),
            (TensorQuant8Asymm, V1_2),
            (TensorQuant8AsymmSigned, V1_3),
        ];
        for (operand_type, version) in rows {
            let example = example(operand_type, &[1, 1, 1, 2], &[0.0; 2]);
            assert_eq!(example.since(), Ok(version));
            assert_eq!(example.int32s([3]).since(), Ok(version.max(V1_2)));
        }
        assert_eq!(example(TensorFloat32, &[1, 1, 2], &[0.0; 2]).since(), Ok(V1_2));
        let later = OperandSpec::tensor_float32([1, 0, 2, 3]);
        let later = example(TensorFloat32, &[1], &[0.0]).with_input_to_come(0, later);
        assert_eq!(later.since(), Ok(V1_0));
        assert_eq!(later.shapes().unwrap()[0].to_model(), [1, 0, 2, 3]);
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let two = || example(TensorFloat32, &[2], &[3.0, 4.0]);
        let unsigned = || example(TensorQuant8Asymm, &[2], &[0.0; 2]);
        let signed = || example(TensorQuant8AsymmSigned, &[2], &[0.0; 2]);
        let table = [
            (two().int32s([1]), "value of input 1 (axis) is 1, expected an axis of a tensor"),
            (two().int32s([-2]), "value of input 1 (axis) is -2"),
            (two().int32s([i32::MIN]), "value of input 1 (axis) is -2147483648"),
            (
                example(TensorFloat32, &[1; 5], &[0.0]),
                "rank of input 0 (input) is 5, expected 1 to 4",
            ),
            (
                unsigned().with_output(OperandSpec::tensor_quant8_asymm([], 1.0 / 256.0, 128)),
                "scale of output 0 (output) is 0.00390625, expected 0.0078125",
            ),
            (
                signed().with_output(OperandSpec::tensor_quant8_asymm_signed([], 0.0078125, 1)),
                "zero point of output 0 (output) is 1, expected 0",
            ),
            (two().int32s([0, 0]), "number of arguments of the operation is 3 inputs"),
        ];
        assert_refused(&table);
    }

    proptest! {
        /// Stored results are within a step of the real ones.
        #[test]
        fn stored_results_are_close(values in prop::collection::vec(0..=255_i32, 1..9)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let count = u32::try_from(values.len()).unwrap();
            let stored = example(TensorQuant8Asymm, &[count], &values).result().1;
            let squares: f64 = values.iter().map(|value| (value - 128.0).powi(2)).sum();
            for (value, stored) in values.iter().zip(stored) {
                let real = (value - 128.0) / squares.sqrt().max(1.0);
                let expected = (real * 128.0 + 128.0).clamp(0.0, 255.0);
                prop_assert!((stored - expected).abs() <= 1.0, "{stored} for {expected}");
            }
        }

        /// Slices have length 1.
        #[test]
        fn lengths_are_one(values in prop::collection::vec(0.1..1e6_f64, 6)) {
            let result = example(TensorFloat32, &[2, 3], &values).result().1;
            for slice in result.chunks(3) {
                let length: f64 = slice.iter().map(|element| element * element).sum();
                prop_assert!((length - 1.0).abs() < 1e-6);
            }
        }
    }
}
