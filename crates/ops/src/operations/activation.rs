//! RELU, RELU1, RELU6, TANH, LOGISTIC: element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most | float32, float16, quantized |
//! | output 0 | output | as the input | as the input |
//!
//! | operation | value | quantized output |
//! |---|---|---|
//! | RELU, RELU1, RELU6 | the input clamped to `[0, inf)`, `[-1, 1]`, `[0, 6]` | as the input |
//! | TANH | `tanh(x)` | scale 1/128, zero point 128 (signed: 0) |
//! | LOGISTIC | `1 / (1 + exp(-x))` | scale 1/256, zero point 0 (signed: -128) |
//!
//! The definition of the quantized TANH and LOGISTIC is the function of the real input, so their
//! result here is the stored value nearest to it. Implementations in fixed-point arithmetic may be
//! one step away.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, quantized TANH, zero batch), 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::{activation_range, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// RELU, RELU1, RELU6, TANH or LOGISTIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// RELU, RELU1, RELU6: clamps.
    Clamp(FusedActivation),
    /// TANH
    Tanh,
    /// LOGISTIC
    Logistic,
}

const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_0,
    &[Parameter::column("input", 0)],
    &[Parameter::column("output", 0)],
)];

const fn signature(operation: OperationType, quant8_since: &'static [Row]) -> Signature {
    Signature { operation, rows: quant8_since, forms: FORMS }
}

const fn rows(quant8_since: HalVersion) -> [Row; 4] {
    [
        Row::new(HalVersion::V1_0, &[OperandType::TensorFloat32]),
        Row::new(quant8_since, &[OperandType::TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    ]
}

const ROWS: &[Row] = &rows(HalVersion::V1_0);
const TANH_ROWS: &[Row] = &rows(HalVersion::V1_2);

static RELU: Signature = signature(OperationType::Relu, ROWS);
static RELU1: Signature = signature(OperationType::Relu1, ROWS);
static RELU6: Signature = signature(OperationType::Relu6, ROWS);
static TANH: Signature = signature(OperationType::Tanh, TANH_ROWS);
static LOGISTIC: Signature = signature(OperationType::Logistic, ROWS);

impl Operation for Activation {
    const SIGNATURES: &'static [&'static Signature] = &[&RELU, &RELU1, &RELU6, &TANH, &LOGISTIC];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, output) = (call.input(0), call.output(0));
        input.expect_rank_in(0..=4)?;
        if !output.is_quantized() {
            return Ok(());
        }
        let unsigned = output.operand_type == OperandType::TensorQuant8Asymm;
        match call.operation() {
            OperationType::Tanh => {
                output.expect_quantization(1.0 / 128.0, if unsigned { 128 } else { 0 })
            }
            OperationType::Logistic => {
                output.expect_quantization(1.0 / 256.0, if unsigned { 0 } else { -128 })
            }
            _ => output.expect_quantized_as(input),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.operation() {
            OperationType::Relu1 => Self::Clamp(FusedActivation::Relu1),
            OperationType::Relu6 => Self::Clamp(FusedActivation::Relu6),
            OperationType::Tanh => Self::Tanh,
            OperationType::Logistic => Self::Logistic,
            _ => Self::Clamp(FusedActivation::Relu),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        Ok(vec![match self {
            Self::Clamp(activation) if output.is_quantized() => {
                let (least, greatest) = activation_range::stored(*activation, output);
                let dimensions = input.dimensions()?;
                let elements = output.collect(
                    &dimensions,
                    input.integers()?.into_iter().map(|it| it.clamp(least, greatest)),
                )?;
                output.with_integers(dimensions, &elements)?
            }
            _ => real::map(input, output, |x| self.real(x))?,
        }])
    }
}

impl Activation {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        match self {
            Self::Clamp(activation) => {
                activation_range::clamp(x, activation_range::real(activation))
            }
            Self::Tanh => real::round(f64::from(x).tanh()),
            Self::Logistic => real::round(1.0 / (1.0 + (-f64::from(x)).exp())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use OperationType::{Logistic, Relu, Relu1, Relu6, Tanh};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// Scale and zero point of the output: the input's, or what the definition fixes.
    fn output_of(operation: OperationType, input: &OperandSpec) -> OperandSpec {
        let is_unsigned = input.operand_type == TensorQuant8Asymm;
        let output = input.clone();
        match operation {
            _ if input.scale == 0.0 => output,
            Tanh => output.quantized(1.0 / 128.0, if is_unsigned { 128 } else { 0 }),
            Logistic => output.quantized(1.0 / 256.0, if is_unsigned { 0 } else { -128 }),
            _ => output,
        }
    }

    fn example(operation: OperationType, input: OperandSpec, elements: &[f64]) -> Example {
        let output = output_of(operation, &input);
        Example::new(operation).input(input, elements).output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for operation in [Relu, Relu1, Relu6, Tanh, Logistic] {
            let quant8 = if operation == Tanh { HalVersion::V1_2 } else { HalVersion::V1_0 };
            for (operand_type, since) in [
                (TensorFloat32, Some(HalVersion::V1_0)),
                (TensorFloat16, Some(HalVersion::V1_2)),
                (TensorQuant8Asymm, Some(quant8)),
                (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
                (OperandType::TensorInt32, None),
            ] {
                let found = example(operation, tensor(operand_type, [1]), &[0.0]);
                assert_eq!(found.since().ok(), since, "{operation} {operand_type}");
                assert_eq!(found.run().is_ok(), since.is_some(), "{operation} {operand_type}");
            }
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let five = example(Relu, tensor(TensorFloat32, [1; 5]), &[0.0]);
        assert_eq!(five.refusal(), "RELU: rank of input 0 (input) is 5, expected 0 to 4");
        let input = OperandSpec::tensor_quant8_asymm([1], 0.5, 3);
        let with_output = |operation, scale, zero_point| {
            example(operation, input.clone(), &[0.0])
                .with_output(OperandSpec::tensor_quant8_asymm([1], scale, zero_point))
                .refusal()
        };
        assert_eq!(
            with_output(Relu6, 0.25, 3),
            "RELU6: scale of output 0 (output) is 0.25, expected 0.5 as input 0 (input)"
        );
        assert_eq!(
            with_output(Relu1, 0.5, 4),
            "RELU1: zero point of output 0 (output) is 4, expected 3 as input 0 (input)"
        );
        assert_eq!(
            with_output(Tanh, 0.5, 128),
            "TANH: scale of output 0 (output) is 0.5, expected 0.0078125"
        );
        assert_eq!(
            with_output(Tanh, 1.0 / 128.0, 0),
            "TANH: zero point of output 0 (output) is 0, expected 128"
        );
        assert_eq!(
            with_output(Logistic, 1.0 / 256.0, 1),
            "LOGISTIC: zero point of output 0 (output) is 1, expected 0"
        );
        let input = OperandSpec::tensor_quant8_asymm_signed([1], 0.5, 3);
        let output = OperandSpec::tensor_quant8_asymm_signed([1], 1.0 / 256.0, 0);
        assert_eq!(
            example(Logistic, input, &[0.0]).with_output(output).refusal(),
            "LOGISTIC: zero point of output 0 (output) is 0, expected -128"
        );
    }

    #[test]
    fn the_output_has_the_shape_of_the_input() {
        let shapes = |dimensions: &[u32]| {
            let argument = tensor(TensorFloat32, dimensions);
            Example::new(Tanh).input_to_come(argument.clone()).output(argument).shapes()
        };
        assert_eq!(shapes(&[2, 0]), Ok(vec![Shape::new([Some(2), None])]));
        assert_eq!(shapes(&[]), Ok(vec![Shape::UNKNOWN]));
        assert_eq!(
            example(Tanh, tensor(TensorFloat32, [0, 2]), &[]).result(),
            (vec![0, 2], vec![])
        );
    }

    #[test]
    fn floats_of_both_widths_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            let result = |operation| {
                let input = tensor(operand_type, [4]);
                example(operation, input, &[-10.0, -0.5, 0.5, 10.0]).result().1
            };
            assert_eq!(result(Relu), [0.0, 0.0, 0.5, 10.0]);
            assert_eq!(result(Relu1), [-1.0, -0.5, 0.5, 1.0]);
            assert_eq!(result(Relu6), [0.0, 0.0, 0.5, 6.0]);
            // tanh(x) = (e^2x - 1) / (e^2x + 1), with e = 2.718281828459045.
            let tolerance = if operand_type == TensorFloat16 { 5e-4 } else { 1e-7 };
            assert_close(
                &result(Tanh),
                &[-0.999_999_995_9, -0.462_117_157_3, 0.462_117_157_3, 0.999_999_995_9],
                tolerance,
            );
            assert_close(
                &result(Logistic),
                &[4.539_786_87e-5, 0.377_540_668_8, 0.622_459_331_2, 0.999_954_602_1],
                tolerance,
            );
        }
    }

    #[test]
    fn infinities_have_their_limits() {
        let result = |operation| {
            let input = tensor(TensorFloat32, [2]);
            example(operation, input, &[f64::NEG_INFINITY, f64::INFINITY]).result().1
        };
        assert_eq!(result(Tanh), [-1.0, 1.0]);
        assert_eq!(result(Logistic), [0.0, 1.0]);
        assert_eq!(result(Relu6), [0.0, 6.0]);
    }

    #[test]
    fn quantized_values_by_hand() {
        // Steps of 0.5 from 128, so -20, -1, 0, 1, 20.
        let result = |operation| {
            let input = OperandSpec::tensor_quant8_asymm([5], 0.5, 128);
            example(operation, input, &[88.0, 126.0, 128.0, 130.0, 168.0]).result().1
        };
        assert_eq!(result(Relu), [128.0, 128.0, 128.0, 130.0, 168.0]);
        assert_eq!(result(Relu1), [126.0, 126.0, 128.0, 130.0, 130.0]);
        assert_eq!(result(Relu6), [128.0, 128.0, 128.0, 130.0, 140.0]);
        // tanh(1) = 0.76159 is 97.5 steps of 1/128; tanh(20) would be the 256th.
        assert_eq!(result(Tanh), [0.0, 31.0, 128.0, 225.0, 255.0]);
        // 1 / (1 + e) = 0.26894 is 68.8 steps of 1/256; 1 would be the 256th.
        assert_eq!(result(Logistic), [0.0, 69.0, 128.0, 187.0, 255.0]);
    }

    proptest! {
        #[test]
        fn a_quantized_result_is_the_step_nearest_to_the_real_one(
            operation in prop::sample::select(vec![Relu, Relu1, Relu6, Tanh, Logistic]),
            operand_type in prop::sample::select(vec![TensorQuant8Asymm, TensorQuant8AsymmSigned]),
            scale in 0.001_f32..1.0,
            zero_point in 0..256_i32,
            stored in 0..256_i32,
        ) {
            let shift = if operand_type == TensorQuant8Asymm { 0 } else { 128 };
            let input = OperandSpec::new(operand_type, [1]).quantized(scale, zero_point - shift);
            let output = output_of(operation, &input);
            let found = example(operation, input, &[f64::from(stored - shift)]).result().1[0];
            let x = f64::from(scale) * f64::from(stored - zero_point);
            let value = match operation {
                Relu => x.max(0.0),
                Relu1 => x.clamp(-1.0, 1.0),
                Relu6 => x.clamp(0.0, 6.0),
                Tanh => x.tanh(),
                _ => 1.0 / (1.0 + (-x).exp()),
            };
            let least = -f64::from(shift);
            let exact = value / f64::from(output.scale) + f64::from(output.zero_point);
            let exact = exact.clamp(least, least + 255.0);
            prop_assert!((found - exact).abs() < 0.501, "{found} for {exact}");
        }

        #[test]
        fn the_logistic_function_is_a_shifted_tangent(x in -30.0_f32..30.0) {
            let logistic = f64::from(Activation::Logistic.real(x));
            let tangent = f64::from(Activation::Tanh.real(x / 2.0));
            prop_assert!((logistic - (tangent + 1.0) / 2.0).abs() < 1e-7);
        }
    }
}
