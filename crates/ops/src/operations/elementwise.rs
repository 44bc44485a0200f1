//! ABS, EXP, FLOOR, LOG, NEG, RSQRT, SIN, SQRT: element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any; FLOOR: rank 4 at most | float32, float16, and see below |
//! | output 0 | output | as the input | as the input |
//!
//! | operation | value | further types |
//! |---|---|---|
//! | ABS | the magnitude | int32 (1.3); that of the least integer wraps to itself |
//! | EXP, LOG, SIN | natural exponential, natural logarithm, sine of radians | |
//! | FLOOR | the greatest integer that is not above it | |
//! | NEG | the negative | int32; that of the least integer wraps to itself |
//! | RSQRT | `1 / sqrt(x)` | quantized (feature level 7), with its own output scale |
//! | SQRT | `sqrt(x)` | |
//!
//! Outside a function's domain the result is NaN or infinite as IEEE 754 says; quantized, a NaN
//! becomes the zero point.
//!
//! Source: `types.hal` 1.0 (FLOOR), 1.2, 1.3 (int32), `OperationType.aidl` (quantized).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::wide::{is_wide, stored, wide};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// ABS
    Abs,
    /// EXP
    Exp,
    /// FLOOR
    Floor,
    /// LOG
    Log,
    /// NEG
    Neg,
    /// RSQRT
    Rsqrt,
    /// SIN
    Sin,
    /// SQRT
    Sqrt,
}

pub(crate) const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_0,
    &[Parameter::column("input", 0)],
    &[Parameter::column("output", 0)],
)];

const FLOAT32: Row = Row::new(HalVersion::V1_2, &[TensorFloat32]);
const FLOAT16: Row = Row::new(HalVersion::V1_2, &[TensorFloat16]);
const FLOATS: &[Row] = &[FLOAT32, FLOAT16];

const fn signature(operation: OperationType, rows: &'static [Row]) -> Signature {
    Signature { operation, rows, forms: FORMS }
}

static ABS: Signature =
    signature(OperationType::Abs, &[FLOAT32, FLOAT16, Row::new(HalVersion::V1_3, &[TensorInt32])]);
static EXP: Signature = signature(OperationType::Exp, FLOATS);
static FLOOR: Signature =
    signature(OperationType::Floor, &[Row::new(HalVersion::V1_0, &[TensorFloat32]), FLOAT16]);
static LOG: Signature = signature(OperationType::Log, FLOATS);
static NEG: Signature =
    signature(OperationType::Neg, &[FLOAT32, FLOAT16, Row::new(HalVersion::V1_2, &[TensorInt32])]);
static RSQRT: Signature = signature(
    OperationType::Rsqrt,
    &[
        FLOAT32,
        FLOAT16,
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8Asymm]),
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8AsymmSigned]),
    ],
);
static SIN: Signature = signature(OperationType::Sin, FLOATS);
static SQRT: Signature = signature(OperationType::Sqrt, FLOATS);

impl Operation for Elementwise {
    const SIGNATURES: &'static [&'static Signature] =
        &[&ABS, &EXP, &FLOOR, &LOG, &NEG, &RSQRT, &SIN, &SQRT];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        match call.definition() {
            OperationType::Floor => call.input(0).expect_rank_in(1..=call.input(0).most_axes(4)),
            _ => Ok(()),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.definition() {
            OperationType::Exp => Self::Exp,
            OperationType::Floor => Self::Floor,
            OperationType::Log => Self::Log,
            OperationType::Neg => Self::Neg,
            OperationType::Rsqrt => Self::Rsqrt,
            OperationType::Sin => Self::Sin,
            OperationType::Sqrt => Self::Sqrt,
            _ => Self::Abs,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        if is_wide(output) {
            let function = match self {
                Self::Neg => i64::wrapping_neg,
                _ => i64::wrapping_abs,
            };
            let dimensions = input.dimensions()?;
            let elements = output.collect(&dimensions, wide(input)?.into_iter().map(function))?;
            return Ok(vec![stored(output, dimensions, &elements)?]);
        }
        if output.operand_type != TensorInt32 {
            return Ok(vec![real::map(input, output, |x| self.real(x))?]);
        }
        let function = match self {
            Self::Neg => i32::wrapping_neg,
            _ => i32::wrapping_abs,
        };
        let dimensions = input.dimensions()?;
        let elements = output.collect(&dimensions, input.i32s()?.into_iter().map(function))?;
        Ok(vec![output.with_integers(dimensions, &elements)?])
    }
}

impl Elementwise {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        let wide = f64::from(x);
        match self {
            Self::Abs => x.abs(),
            Self::Exp => real::round(wide.exp()),
            Self::Floor => x.floor(),
            Self::Log => real::round(wide.ln()),
            Self::Neg => -x,
            Self::Rsqrt => real::round(1.0 / wide.sqrt()),
            Self::Sin => real::round(wide.sin()),
            Self::Sqrt => x.sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperationType::{Abs, Exp, Floor, Log, Neg, Rsqrt, Sin, Sqrt};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;
    use std::f64::consts::{E, LN_2, SQRT_2};

    const ALL: [OperationType; 8] = [Abs, Exp, Floor, Log, Neg, Rsqrt, Sin, Sqrt];

    fn example(operation: OperationType, input: OperandSpec, elements: &[f64]) -> Example {
        let output = OperandSpec { dimensions: vec![], ..input.clone() };
        Example::new(operation).input(input, elements).output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        use HalVersion::{FeatureLevel7, V1_0, V1_2, V1_3};
        for operation in ALL {
            for operand_type in [
                TensorFloat32,
                TensorFloat16,
                TensorInt32,
                TensorQuant8Asymm,
                TensorQuant8AsymmSigned,
                OperandType::TensorBool8,
            ] {
                let since = match (operation, operand_type) {
                    (Floor, TensorFloat32) => Some(V1_0),
                    (_, TensorFloat32 | TensorFloat16) => Some(V1_2),
                    (Abs, TensorInt32) => Some(V1_3),
                    (Neg, TensorInt32) => Some(V1_2),
                    (Rsqrt, TensorQuant8Asymm | TensorQuant8AsymmSigned) => Some(FeatureLevel7),
                    _ => None,
                };
                let call = example(operation, tensor(operand_type, [1]), &[1.0]);
                assert_eq!(call.since().ok(), since, "{operation} {operand_type}");
                assert_eq!(call.run().is_ok(), since.is_some(), "{operation} {operand_type}");
            }
        }
    }

    #[test]
    fn only_floor_has_a_greatest_rank() {
        for operation in ALL {
            let call = example(operation, tensor(TensorFloat32, [1; 5]), &[1.0]);
            assert_eq!(call.run().is_err(), operation == Floor, "{operation}");
        }
        assert_eq!(
            example(Floor, tensor(TensorFloat32, [1; 5]), &[1.0]).refusal(),
            "FLOOR: rank of input 0 (input) is 5, expected 1 to 4"
        );
    }

    #[test]
    fn floats_of_both_widths_by_hand() {
        for (operand_type, tolerance) in [(TensorFloat32, 1e-7), (TensorFloat16, 1e-3)] {
            let check = |operation, elements: &[f64], expected: &[f64]| {
                let length = u32::try_from(elements.len()).unwrap();
                let (dimensions, found) =
                    example(operation, tensor(operand_type, [length]), elements).result();
                assert_eq!(dimensions, [length]);
                assert_close(&found, expected, tolerance);
            };
            check(Abs, &[-1.5, 0.0, 2.0], &[1.5, 0.0, 2.0]);
            check(Exp, &[0.0, 1.0, -1.0], &[1.0, E, 0.367_879_441]);
            check(Floor, &[-1.5, -1.0, 0.75, 2.0], &[-2.0, -1.0, 0.0, 2.0]);
            check(Log, &[1.0, 2.0, 0.5], &[0.0, LN_2, -LN_2]);
            check(Neg, &[-1.5, 2.0], &[1.5, -2.0]);
            check(Rsqrt, &[0.25, 1.0, 4.0], &[2.0, 1.0, 0.5]);
            check(Sin, &[0.0, 1.0, -1.0], &[0.0, 0.841_470_985, -0.841_470_985]);
            check(Sqrt, &[0.25, 1.0, 2.0], &[0.5, 1.0, SQRT_2]);
        }
    }

    #[test]
    fn outside_the_domain_ieee_754_rules() {
        let result =
            |operation, x: f64| example(operation, tensor(TensorFloat32, [1]), &[x]).result().1[0];
        assert!(result(Log, -1.0).is_nan() && result(Sqrt, -1.0).is_nan());
        assert!(result(Rsqrt, -1.0).is_nan() && result(Sin, f64::INFINITY).is_nan());
        assert_eq!(result(Log, 0.0), f64::NEG_INFINITY);
        assert_eq!(result(Rsqrt, 0.0), f64::INFINITY);
        assert_eq!(result(Exp, 1000.0), f64::INFINITY);
        assert_eq!(result(Exp, f64::NEG_INFINITY), 0.0);
        assert!(result(Neg, 0.0).is_sign_negative());
    }

    #[test]
    fn integers_by_hand() {
        let elements = [-7.0, 0.0, f64::from(i32::MAX), f64::from(i32::MIN)];
        let result = |operation| example(operation, tensor(TensorInt32, [4]), &elements).result().1;
        assert_eq!(result(Abs), [7.0, 0.0, f64::from(i32::MAX), f64::from(i32::MIN)]);
        assert_eq!(result(Neg), [7.0, 0.0, -f64::from(i32::MAX), f64::from(i32::MIN)]);
    }

    #[test]
    fn quantized_inverse_roots_by_hand() {
        // In steps of 0.25 from 16: -0.25, 0, 0.25, 1, 4; 1 / sqrt: NaN, inf, 2, 1, 1/2, in steps of
        // 0.125 from 3.
        let result = |operand_type: OperandType, shift: i32| {
            let input = OperandSpec::new(operand_type, [5]).quantized(0.25, 16 - shift);
            let output = OperandSpec::new(operand_type, []).quantized(0.125, 3 - shift);
            let stored = [15, 16, 17, 20, 32].map(|stored| f64::from(stored - shift));
            example(Rsqrt, input, &stored).with_output(output).result().1
        };
        assert_eq!(result(TensorQuant8Asymm, 0), [3.0, 255.0, 19.0, 11.0, 7.0]);
        assert_eq!(result(TensorQuant8AsymmSigned, 128), [-125.0, 127.0, -109.0, -117.0, -121.0]);
    }

    #[test]
    fn shapes_are_those_of_the_input_even_of_nothing() {
        for operation in ALL {
            let call = example(operation, tensor(TensorFloat32, [0, 2]), &[]);
            assert_eq!(call.result(), (vec![0, 2], vec![]));
            let open = call.with_input_to_come(0, tensor(TensorFloat32, [0, 2]));
            assert_eq!(open.shapes(), Ok(vec![Shape::new([None, Some(2)])]));
        }
    }

    proptest! {
        #[test]
        fn the_functions_keep_their_laws(x in 1e-3_f32..30.0) {
            let f = |function: Elementwise, x: f32| function.real(x);
            let near = |found: f32, expected: f32| {
                (found - expected).abs() <= 4e-7 * expected.abs().max(1.0)
            };
            prop_assert!(near(f(Elementwise::Log, f(Elementwise::Exp, x)), x));
            prop_assert!(near(f(Elementwise::Sqrt, x) * f(Elementwise::Rsqrt, x), 1.0));
            prop_assert!(near(f(Elementwise::Sqrt, x).powi(2), x));
            prop_assert_eq!(f(Elementwise::Sin, -x), -f(Elementwise::Sin, x));
            let floor = f(Elementwise::Floor, -x);
            prop_assert!(floor <= -x && -x < floor + 1.0);
        }
    }
}
