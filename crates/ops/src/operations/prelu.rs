//! PRELU: `x` where it is 0 or more, otherwise `alpha * x`, element by element, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any two that broadcast | float32, float16, quantized |
//! | input 1 | alpha | | as the input; its own scale and zero point |
//! | output 0 | output | the common shape | as the input; its own scale and zero point |
//!
//! Quantized: `output = requantize(input)`, or `requantize(input * alpha)`, in integers.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::broadcast;
use crate::rules::requantize::Multiplier;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// PRELU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prelu;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Prelu,
    rows: &[
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::column("alpha", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Prelu {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, alpha, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, input, alpha)?;
        Ok(vec![if output.is_float() {
            let (inputs, alphas) = (input.f32s()?, alpha.f32s()?);
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| self.real(inputs[i], alphas[j])))?;
            output.with_f32s(dimensions, &elements)?
        } else {
            let (inputs, alphas) = (input.integers()?, alpha.integers()?);
            let quantized = Quantized::new(input, alpha, output);
            let elements = output
                .collect(&dimensions, pairs.map(|(i, j)| quantized.stored(inputs[i], alphas[j])))?;
            output.with_integers(dimensions, &elements)?
        }])
    }
}

impl Prelu {
    /// The function on real numbers.
    pub fn real(self, x: f32, alpha: f32) -> f32 {
        if x >= 0.0 { x } else { x * alpha }
    }
}

/// PRELU on stored values.
struct Quantized {
    zero_points: [i32; 3],
    /// From the input's scale to the output's.
    above: Multiplier,
    /// From the product of the inputs' scales to the output's.
    below: Multiplier,
}

impl Quantized {
    fn new(input: &Argument<'_>, alpha: &Argument<'_>, output: &Argument<'_>) -> Self {
        // Both ratios as the reference implementation rounds them.
        let product = f64::from(input.scale * alpha.scale);
        Self {
            zero_points: [input.zero_point, alpha.zero_point, output.zero_point],
            above: Multiplier::from_real(f64::from(input.scale / output.scale)),
            below: Multiplier::from_real(product / f64::from(output.scale)),
        }
    }

    /// Not yet saturated to the output's range.
    fn stored(&self, x: i32, alpha: i32) -> i32 {
        let [zero_of_x, zero_of_alpha, zero_of_output] = self.zero_points;
        let x = x - zero_of_x;
        let scaled = if x >= 0 {
            self.above.apply(x)
        } else {
            self.below.apply(x * (alpha - zero_of_alpha))
        };
        scaled.saturating_add(zero_of_output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn example(input: (OperandSpec, &[f64]), alpha: (OperandSpec, &[f64])) -> Example {
        let output = OperandSpec { dimensions: vec![], ..input.0.clone() };
        Example::new(OperationType::Prelu)
            .input(input.0, input.1)
            .input(alpha.0, alpha.1)
            .output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(
            [
                (TensorFloat32, Some(HalVersion::V1_2)),
                (TensorFloat16, Some(HalVersion::V1_2)),
                (TensorQuant8Asymm, Some(HalVersion::V1_2)),
                (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
                (OperandType::TensorInt32, None),
            ],
            |operand_type| {
                let five = tensor(operand_type, [1; 5]);
                example((five.clone(), &[0.0]), (five, &[0.0]))
            },
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let call = |alpha| example((tensor(TensorFloat32, [2]), &[0.0; 2]), (alpha, &[0.0; 3]));
        assert_eq!(
            call(tensor(TensorFloat32, [3])).refusal(),
            "PRELU: shapes of the operation is [2] and [3], expected shapes that broadcast"
        );
        assert_eq!(
            call(tensor(TensorFloat16, [3])).refusal(),
            "PRELU: type of input 1 (alpha) is TENSOR_FLOAT16, expected TENSOR_FLOAT32"
        );
    }

    #[test]
    fn floats_of_both_widths_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            let input = (tensor(operand_type, [2, 2]), &[-4.0, 4.0, 0.0, -1.0][..]);
            let alpha = (tensor(operand_type, [2]), &[0.25, -2.0][..]);
            assert_eq!(example(input, alpha).result(), (vec![2, 2], vec![-1.0, 4.0, 0.0, 2.0]));
        }
    }

    #[test]
    fn either_side_is_broadcast_even_over_nothing() {
        let shapes = |input: &[u32], alpha: &[u32]| {
            Example::new(OperationType::Prelu)
                .input_to_come(tensor(TensorFloat32, input))
                .input_to_come(tensor(TensorFloat32, alpha))
                .output(tensor(TensorFloat32, []))
                .shapes()
        };
        assert_eq!(shapes(&[4, 1, 2], &[5, 4, 3, 1]), Ok(vec![Shape::known([5, 4, 3, 2])]));
        assert_eq!(shapes(&[0, 1], &[2]), Ok(vec![Shape::new([None, Some(2)])]));
        let empty = (tensor(TensorFloat32, [0, 2]), &[][..]);
        let alpha = (tensor(TensorFloat32, [2]), &[1.0, 1.0][..]);
        assert_eq!(example(empty, alpha).result(), (vec![0, 2], vec![]));
    }

    #[test]
    fn quantized_values_by_hand() {
        // In steps of 0.5 from 100: 5, 0, -5; alpha is 0.25 * (2 - 0) = 0.5; the output is in steps
        // of 0.1 from 50.
        let input = OperandSpec::tensor_quant8_asymm([3], 0.5, 100);
        let alpha = OperandSpec::tensor_quant8_asymm([1], 0.25, 0);
        let call = example((input, &[110.0, 100.0, 90.0]), (alpha, &[2.0]))
            .with_output(OperandSpec::tensor_quant8_asymm([], 0.1, 50));
        assert_eq!(call.result().1, [100.0, 50.0, 25.0]);
        let fine = call.with_output(OperandSpec::tensor_quant8_asymm([], 0.01, 50));
        assert_eq!(fine.result().1, [255.0, 50.0, 0.0]);
    }

    proptest! {
        /// Requantizing rounds twice.
        #[test]
        fn a_quantized_result_is_within_three_quarters_of_a_step(
            scales in [0.01_f32..2.0, 0.01..2.0, 0.01..2.0],
            zero_points in [-128..128_i32, -128..128, -128..128],
            stored in [-128..128_i32, -128..128],
        ) {
            let spec = |index: usize| {
                OperandSpec::tensor_quant8_asymm_signed([1], scales[index], zero_points[index])
            };
            let found = example((spec(0), &[stored[0].into()]), (spec(1), &[stored[1].into()]))
                .with_output(spec(2))
                .result()
                .1[0];
            let real = |index: usize| {
                f64::from(scales[index]) * f64::from(stored[index] - zero_points[index])
            };
            let value = if real(0) < 0.0 { real(0) * real(1) } else { real(0) };
            let exact = value / f64::from(scales[2]) + f64::from(zero_points[2]);
            let exact = exact.clamp(-128.0, 127.0);
            prop_assert!((found - exact).abs() < 0.76, "{found} for {exact}");
        }
    }
}
