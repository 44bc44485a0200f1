//! HARD_SWISH: `x * max(0, min(6, x + 3)) / 6`, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, quantized |
//! | output 0 | output | as the input | as the input; its own scale and zero point |
//!
//! Of minus infinity it is NaN, as the formula's product of 0 and infinity is.
//! A quantized output is the stored value nearest to the formula's; implementations in fixed-point
//! arithmetic may be one step away.
//!
//! Source: `types.hal` 1.3.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// HARD_SWISH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HardSwish;

static SIGNATURE: Signature = Signature {
    operation: OperationType::HardSwish,
    rows: &[
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_3,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl HardSwish {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        let x = f64::from(x);
        real::round(x * (x + 3.0).clamp(0.0, 6.0) / 6.0)
    }
}

impl Operation for HardSwish {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Ok(vec![real::map(call.input(0), call.output(0), |x| self.real(x))?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn example(input: OperandSpec, elements: &[f64]) -> Example {
        let output = OperandSpec { dimensions: vec![], ..input.clone() };
        Example::new(OperationType::HardSwish).input(input, elements).output(output)
    }

    #[test]
    fn model_25_every_type_came_with_1_3() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            // Any rank is allowed.
            let call = example(tensor(operand_type, [1, 1, 1, 1, 1]), &[0.0]);
            assert_eq!(call.since(), Ok(HalVersion::V1_3), "{operand_type}");
            assert!(call.run().is_ok(), "{operand_type}");
        }
        let integers = example(tensor(OperandType::TensorInt32, [1]), &[0.0]);
        assert_eq!(
            integers.refusal(),
            "HARD_SWISH: type of input 0 (input) is TENSOR_INT32, expected TENSOR_FLOAT32"
        );
    }

    #[test]
    fn values_by_hand() {
        for (operand_type, tolerance) in [(TensorFloat32, 1e-7), (TensorFloat16, 5e-4)] {
            let elements = [-4.0, -3.0, -1.5, 0.0, 1.0, 3.0, 5.0];
            let found = example(tensor(operand_type, [7]), &elements).result();
            assert_eq!(found.0, [7]);
            // -1.5 * 1.5 / 6 and 1 * 4 / 6.
            assert_close(&found.1, &[0.0, 0.0, -0.375, 0.0, 2.0 / 3.0, 3.0, 5.0], tolerance);
        }
        // As LiteRT's kernels have it.
        let limits = [f64::NEG_INFINITY, f64::INFINITY, f64::from(f32::MIN)];
        let found = example(tensor(TensorFloat32, [3]), &limits).result().1;
        assert!(found[0].is_nan(), "{found:?}");
        assert_eq!(found[1..], [f64::INFINITY, 0.0]);
    }

    #[test]
    fn a_quantized_output_has_its_own_scale() {
        // -1.5 and 5 become -0.375 = 0.125 * -3 and 5 = 0.125 * 40.
        let found = example(tensor(TensorQuant8Asymm, [2]), &[125.0, 138.0])
            .with_output(OperandSpec::tensor_quant8_asymm([], 0.125, 10));
        assert_eq!(found.result().1, [7.0, 50.0]);
    }

    #[test]
    fn the_output_has_the_shape_of_the_input() {
        assert_eq!(example(tensor(TensorFloat32, [0, 2]), &[]).result(), (vec![0, 2], vec![]));
        let open = Example::new(OperationType::HardSwish)
            .input_to_come(tensor(TensorFloat32, [3, 0]))
            .output(tensor(TensorFloat32, []));
        assert_eq!(open.shapes(), Ok(vec![Shape::new([Some(3), None])]));
    }

    proptest! {
        #[test]
        fn a_quantized_result_is_the_step_nearest_to_the_real_one(
            scales in (0.001_f32..1.0, 0.001_f32..1.0),
            zero_points in (-128..128_i32, -128..128_i32),
            stored in -128..128_i32,
        ) {
            let signed = OperandSpec::tensor_quant8_asymm_signed;
            let found = example(signed([1], scales.0, zero_points.0), &[stored.into()])
                .with_output(signed([1], scales.1, zero_points.1))
                .result()
                .1[0];
            let x = f64::from(scales.0) * f64::from(stored - zero_points.0);
            let value = x * (x + 3.0).clamp(0.0, 6.0) / 6.0;
            let exact = value / f64::from(scales.1) + f64::from(zero_points.1);
            prop_assert!((found - exact.clamp(-128.0, 127.0)).abs() < 0.501);
        }
    }
}
