//! CAST: the same numbers as another type.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | see below |
//! | output 0 | output | as the input | see below |
//!
//! Of `float32`, `float16`, `int32` and `TENSOR_QUANT8_ASYMM` each becomes each. Since 1.3 `bool8`,
//! the 16-bit types, `TENSOR_QUANT8_ASYMM_SIGNED` and `TENSOR_QUANT8_SYMM` become themselves.
//!
//! Scales and zero points do not count: a quantized element is its stored integer. Floats lose
//! their fraction. What the type cannot hold becomes the nearest that it can, infinity for floats;
//! NaN becomes 0.
//!
//! Source: `types.hal` 1.2, 1.3.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant16Asymm, TensorQuant16Symm,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// CAST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cast;

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Cast,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorInt32, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorInt32, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorInt32, TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorInt32, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorBool8, TensorBool8]),
        Row::new(HalVersion::V1_3, &[TensorQuant16Asymm, TensorQuant16Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant16Symm, TensorQuant16Symm]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorQuant8AsymmSigned]),
        Row::new(HalVersion::V1_3, &[TensorQuant8Symm, TensorQuant8Symm]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 1)],
    )],
};

impl Operation for Cast {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, output) = (call.input(0), call.output(0));
        if input.shape.merge(&output.shape).is_none() {
            let expected = format!("{} as the input", input.shape);
            return Err(output.wrong("shape", &output.shape, expected));
        }
        Ok(())
    }

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        if input.operand_type == output.operand_type {
            return Ok(vec![movement::copied(input.bytes()?, output, dimensions)?]);
        }
        Ok(vec![if output.is_float() {
            let elements = if input.is_float() {
                input.f32s()?
            } else {
                // Rounded to the nearest. Integers that float16 can hold are exact in float32, so
                // nothing is rounded twice.
                #[allow(clippy::cast_precision_loss)]
                let floats = input.integers()?.into_iter().map(|element| element as f32);
                output.collect(&dimensions, floats)?
            };
            output.with_f32s(dimensions, &elements)?
        } else {
            let elements = if input.is_float() {
                // The cast truncates and saturates; 8 bits saturate once more when stored.
                #[allow(clippy::cast_possible_truncation)]
                let integers = input.f32s()?.into_iter().map(|element| element as i32);
                output.collect(&dimensions, integers)?
            } else {
                input.integers()?
            };
            output.with_integers(dimensions, &elements)?
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;

    const NUMBERS: [OperandType; 4] =
        [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm];
    const OTHERS: [OperandType; 5] = [
        TensorBool8,
        TensorQuant16Asymm,
        TensorQuant16Symm,
        TensorQuant8AsymmSigned,
        TensorQuant8Symm,
    ];

    fn example(from: OperandType, to: OperandType, elements: &[f64]) -> Example {
        let length = u32::try_from(elements.len()).unwrap();
        Example::new(OperationType::Cast)
            .input(tensor(from, [length]), elements)
            .output(tensor(to, []))
    }

    fn cast(from: OperandType, to: OperandType, elements: &[f64]) -> Vec<f64> {
        example(from, to, elements).result().1
    }

    #[test]
    fn model_25_each_pair_of_types_came_with_its_version() {
        for from in NUMBERS.into_iter().chain(OTHERS) {
            for to in NUMBERS.into_iter().chain(OTHERS) {
                let expected = if NUMBERS.contains(&from) && NUMBERS.contains(&to) {
                    Some(HalVersion::V1_2)
                } else {
                    (from == to).then_some(HalVersion::V1_3)
                };
                assert_eq!(example(from, to, &[1.0]).since().ok(), expected, "{from} to {to}");
            }
        }
        let scales = OperandSpec::tensor_quant8_symm_per_channel([1], &[1.0], 0);
        let call = Example::new(OperationType::Cast).input(scales.clone(), &[0.0]).output(scales);
        assert!(call.since().is_err());
    }

    #[test]
    fn numbers_that_all_types_hold_stay_what_they_are() {
        let elements = [0.0, 1.0, 2.0, 77.0, 255.0];
        for from in NUMBERS {
            for to in NUMBERS {
                assert_eq!(cast(from, to, &elements), elements, "{from} to {to}");
            }
        }
        for operand_type in OTHERS {
            assert_eq!(cast(operand_type, operand_type, &[0.0, 1.0]), [0.0, 1.0]);
        }
        assert_eq!(cast(TensorQuant16Symm, TensorQuant16Symm, &[-32768.0]), [-32768.0]);
        // Whatever is true stays the byte that it was.
        assert_eq!(cast(TensorBool8, TensorBool8, &[7.0]), [7.0]);
    }

    #[test]
    fn floats_lose_their_fraction_and_saturate() {
        for from in [TensorFloat32, TensorFloat16] {
            let elements = [1.75, -1.75, 0.5, -0.5, 300.0, -300.0, f64::NAN];
            assert_eq!(
                cast(from, TensorInt32, &elements),
                [1.0, -1.0, 0.0, 0.0, 300.0, -300.0, 0.0]
            );
            let to_bytes = cast(from, TensorQuant8Asymm, &elements);
            assert_eq!(to_bytes, [1.0, 0.0, 0.0, 0.0, 255.0, 0.0, 0.0]);
            let infinite = cast(from, TensorInt32, &[f64::INFINITY, f64::NEG_INFINITY]);
            assert_eq!(infinite, [f64::from(i32::MAX), f64::from(i32::MIN)]);
        }
        assert_eq!(cast(TensorFloat32, TensorInt32, &[3e9]), [f64::from(i32::MAX)]);
    }

    #[test]
    fn integers_become_the_nearest() {
        let found = cast(TensorInt32, TensorFloat32, &[16_777_217.0, 16_777_219.0, -5.0]);
        assert_eq!(found, [16_777_216.0, 16_777_220.0, -5.0]);
        let found = cast(TensorInt32, TensorFloat16, &[2049.0, 2051.0, 65519.0, 65520.0, -1e9]);
        assert_eq!(found, [2048.0, 2052.0, 65504.0, f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(cast(TensorInt32, TensorQuant8Asymm, &[-1.0, 256.0, 9.0]), [0.0, 255.0, 9.0]);
        assert_eq!(
            cast(TensorFloat32, TensorFloat16, &[1e6, 0.1]),
            [f64::INFINITY, 0.0999755859375]
        );
    }

    #[test]
    fn scales_and_zero_points_do_not_count() {
        let output = OperandSpec::tensor_quant8_asymm([], 3.0, 11);
        let call = example(TensorQuant8Asymm, TensorQuant8Asymm, &[5.0, 200.0]).with_output(output);
        assert_eq!(call.result().1, [5.0, 200.0]);
    }

    #[test]
    fn the_shape_is_that_of_the_input() {
        let input = tensor(TensorFloat32, [0, 3]);
        let call = example(TensorFloat32, TensorInt32, &[]).with_input_to_come(0, input);
        assert_eq!(call.shapes(), Ok(vec![Shape::new([None, Some(3)])]));
        assert_eq!(example(TensorFloat32, TensorInt32, &[]).result(), (vec![0], vec![]));
    }
}
