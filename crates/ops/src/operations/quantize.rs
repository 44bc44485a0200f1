//! QUANTIZE: `round(input / scale) + zero point`, halves away from zero, saturated.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16 |
//! | output 0 | output | as the input | quantized |
//!
//! NaN becomes the zero point.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// QUANTIZE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantize;

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Quantize,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorFloat32, TensorQuant8AsymmSigned]),
        Row::new(HalVersion::V1_3, &[TensorFloat16, TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 1)],
    )],
};

impl Operation for Quantize {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Ok(vec![real::map(call.input(0), call.output(0), |x| x)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn example(input_type: OperandType, elements: &[f64], output: OperandSpec) -> Example {
        let length = u32::try_from(elements.len()).unwrap();
        let input = tensor(input_type, [length]);
        Example::new(OperationType::Quantize).input(input, elements).output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for input_type in [TensorFloat32, TensorFloat16] {
            for (output_type, since) in [
                (TensorQuant8Asymm, Some(HalVersion::V1_2)),
                (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
                (OperandType::TensorQuant16Symm, None),
                (TensorFloat32, None),
            ] {
                let call = example(input_type, &[0.0], tensor(output_type, []));
                assert_eq!(call.since().ok(), since, "{input_type} {output_type}");
                assert_eq!(call.run().is_ok(), since.is_some());
            }
        }
        let integers = example(OperandType::TensorInt32, &[0.0], tensor(TensorQuant8Asymm, []));
        assert_eq!(
            integers.refusal(),
            "QUANTIZE: type of input 0 (input) is TENSOR_INT32, expected TENSOR_FLOAT32"
        );
    }

    #[test]
    fn values_by_hand() {
        let elements = [0.0, 1.25, -1.25, 0.2, 1000.0, -1000.0];
        for input_type in [TensorFloat32, TensorFloat16] {
            // Halves go away from zero: 1.25 is 2.5 steps.
            let output = OperandSpec::tensor_quant8_asymm([], 0.5, 10);
            let found = example(input_type, &elements, output).result();
            assert_eq!(found, (vec![6], vec![10.0, 13.0, 7.0, 10.0, 255.0, 0.0]));
            let output = OperandSpec::tensor_quant8_asymm_signed([], 0.5, -10);
            let found = example(input_type, &elements, output).result().1;
            assert_eq!(found, [-10.0, -7.0, -13.0, -10.0, 127.0, -128.0]);
        }
    }

    #[test]
    fn what_is_no_number_becomes_the_zero_point() {
        let elements = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3e38];
        let output = OperandSpec::tensor_quant8_asymm([], 1e-3, 10);
        assert_eq!(example(TensorFloat32, &elements, output).result().1, [10.0, 255.0, 0.0, 255.0]);
    }

    #[test]
    fn shapes_are_those_of_the_input_even_of_nothing() {
        let call = example(TensorFloat32, &[], tensor(TensorQuant8Asymm, []));
        assert_eq!(call.result(), (vec![0], vec![]));
        let open = call.with_input_to_come(0, tensor(TensorFloat32, [1, 0, 1, 1, 1]));
        let expected = Shape::new([Some(1), None, Some(1), Some(1), Some(1)]);
        assert_eq!(open.shapes(), Ok(vec![expected]));
    }

    proptest! {
        /// DEQUANTIZE and QUANTIZE with the same scale give every stored value back.
        #[test]
        fn it_undoes_dequantizing(
            stored in 0..256_i32,
            scale in 1e-6_f32..1e6,
            zero_point in 0..256_i32,
        ) {
            let quantized = OperandSpec::tensor_quant8_asymm([1], scale, zero_point);
            let real = Example::new(OperationType::Dequantize)
                .input(quantized.clone(), &[stored.into()])
                .output(tensor(TensorFloat32, [1]))
                .result()
                .1;
            let found = example(TensorFloat32, &real, quantized).result().1;
            prop_assert_eq!(found, [f64::from(stored)]);
        }
    }
}
