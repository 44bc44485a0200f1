//! MAXIMUM, MINIMUM: the greater or the lesser of two elements, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two that broadcast | float32, float16, int32, quantized; each its own scale |
//! | output 0 | output | the common shape | as the inputs; its own scale and zero point |
//!
//! Quantized inputs are compared as they are once quantized as the output. A NaN on either side
//! gives NaN.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::double::{doubles, is_double, with_doubles};
use crate::rules::requantize::requantized;
use crate::rules::wide::{is_wide, stored, wide};
use crate::rules::{broadcast, real};
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// MAXIMUM or MINIMUM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaximumMinimum {
    /// MAXIMUM
    Maximum,
    /// MINIMUM
    Minimum,
}

const ROWS: &[Row] = NUMBERS_SINCE_1_2;
pub(crate) const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input0", 0), Parameter::column("input1", 0)],
    &[Parameter::column("output", 0)],
)];

static MAXIMUM: Signature =
    Signature { operation: OperationType::Maximum, rows: ROWS, forms: FORMS };
static MINIMUM: Signature =
    Signature { operation: OperationType::Minimum, rows: ROWS, forms: FORMS };

impl Operation for MaximumMinimum {
    const SIGNATURES: &'static [&'static Signature] = &[&MAXIMUM, &MINIMUM];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.definition() {
            OperationType::Minimum => Self::Minimum,
            _ => Self::Maximum,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        Ok(vec![if output.is_float() {
            let (of_a, of_b) = (a.f32s()?, b.f32s()?);
            let choose = match self {
                Self::Maximum => real::maximum,
                Self::Minimum => real::minimum,
            };
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| choose(of_a[i], of_b[j])))?;
            output.with_f32s(dimensions, &elements)?
        } else if is_double(output) {
            let (of_a, of_b) = (doubles(a)?, doubles(b)?);
            let choose: fn(f64, f64) -> f64 = match self {
                Self::Maximum => |a, b| if a.is_nan() || a > b { a } else { b },
                Self::Minimum => |a, b| if a.is_nan() || a < b { a } else { b },
            };
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| choose(of_a[i], of_b[j])))?;
            with_doubles(output, dimensions, &elements)?
        } else if is_wide(output) {
            let (of_a, of_b) = (wide(a)?, wide(b)?);
            let choose = match self {
                Self::Maximum => i64::max,
                Self::Minimum => i64::min,
            };
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| choose(of_a[i], of_b[j])))?;
            stored(output, dimensions, &elements)?
        } else {
            let (of_a, of_b) = (requantized(a, output)?, requantized(b, output)?);
            let choose = match self {
                Self::Maximum => i32::max,
                Self::Minimum => i32::min,
            };
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| choose(of_a[i], of_b[j])))?;
            output.with_integers(dimensions, &elements)?
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32};
    use OperationType::{Maximum, Minimum};
    use nnhal_hal::OperandSpec;
    use nnhal_hal::OperandType;
    use proptest::prelude::*;

    fn example(
        operation: OperationType,
        a: (OperandSpec, &[f64]),
        b: (OperandSpec, &[f64]),
    ) -> Example {
        let output = OperandSpec { dimensions: vec![], ..a.0.clone() };
        Example::new(operation).input(a.0, a.1).input(b.0, b.1).output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for operation in [Maximum, Minimum] {
            assert_since(SINCE_1_2, |operand_type| {
                let five = tensor(operand_type, [1; 5]);
                example(operation, (five.clone(), &[0.0]), (five, &[0.0]))
            });
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let two = tensor(TensorFloat32, [2]);
        let call = |b| example(Minimum, (two.clone(), &[0.0; 2]), (b, &[0.0; 3]));
        assert_eq!(
            call(tensor(TensorFloat32, [3])).refusal(),
            "MINIMUM: shapes of the operation is [2] and [3], expected shapes that broadcast"
        );
        assert_eq!(
            call(tensor(TensorInt32, [3])).refusal(),
            "MINIMUM: type of input 1 (input1) is TENSOR_INT32, expected TENSOR_FLOAT32"
        );
    }

    #[test]
    fn values_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32] {
            let result = |operation| {
                let a = (tensor(operand_type, [2, 2]), &[-3.0, 4.0, 1.0, 0.0][..]);
                let b = (tensor(operand_type, [2]), &[-1.0, 2.0][..]);
                example(operation, a, b).result()
            };
            assert_eq!(result(Maximum), (vec![2, 2], vec![-1.0, 4.0, 1.0, 2.0]));
            assert_eq!(result(Minimum), (vec![2, 2], vec![-3.0, 2.0, -1.0, 0.0]));
        }
        // Neighbours that a float32 cannot distinguish.
        let integers = tensor(TensorInt32, [1]);
        let a = (integers.clone(), &[f64::from(i32::MAX)][..]);
        let b = (integers, &[f64::from(i32::MAX - 1)][..]);
        assert_eq!(example(Minimum, a, b).result().1, [f64::from(i32::MAX - 1)]);
    }

    #[test]
    fn quantized_values_are_stored_as_the_output_is() {
        // 0.5 * (140 - 128) = 6 and 0.25 * (40 - 0) = 10, in steps of 2 from 1.
        let a = (OperandSpec::tensor_quant8_asymm([1], 0.5, 128), &[140.0][..]);
        let b = (OperandSpec::tensor_quant8_asymm([1], 0.25, 0), &[40.0][..]);
        for (operation, expected) in [(Maximum, 6.0), (Minimum, 4.0)] {
            let call = example(operation, a.clone(), b.clone())
                .with_output(OperandSpec::tensor_quant8_asymm([], 2.0, 1));
            assert_eq!(call.result().1, [expected]);
        }
    }

    #[test]
    fn shapes_are_broadcast_even_over_nothing() {
        let shapes = |a: &[u32], b: &[u32]| {
            Example::new(Maximum)
                .input_to_come(tensor(TensorFloat32, a))
                .input_to_come(tensor(TensorFloat32, b))
                .output(tensor(TensorFloat32, []))
                .shapes()
        };
        assert_eq!(shapes(&[3, 1], &[0, 0]), Ok(vec![Shape::new([Some(3), None])]));
        assert_eq!(shapes(&[], &[1]), Ok(vec![Shape::UNKNOWN]));
        let empty = (tensor(TensorFloat32, [0]), &[][..]);
        let one = (tensor(TensorFloat32, [1]), &[1.0][..]);
        assert_eq!(example(Maximum, empty, one).result(), (vec![0], vec![]));
    }

    proptest! {
        #[test]
        fn a_quantized_result_is_the_step_nearest_to_the_real_one(
            operation in prop::sample::select(vec![Maximum, Minimum]),
            scales in [0.01_f32..2.0, 0.01..2.0, 0.01..2.0],
            zero_points in [0..256_i32, 0..256, 0..256],
            stored in [0..256_i32, 0..256],
        ) {
            let spec = |index: usize| {
                OperandSpec::tensor_quant8_asymm([1], scales[index], zero_points[index])
            };
            let a = (spec(0), &[f64::from(stored[0])][..]);
            let b = (spec(1), &[f64::from(stored[1])][..]);
            let found = example(operation, a, b).with_output(spec(2)).result().1[0];
            let real = |index: usize| {
                f64::from(scales[index]) * f64::from(stored[index] - zero_points[index])
            };
            let value =
                if operation == Maximum { real(0).max(real(1)) } else { real(0).min(real(1)) };
            let exact = value / f64::from(scales[2]) + f64::from(zero_points[2]);
            let exact = exact.clamp(0.0, 255.0);
            prop_assert!((found - exact).abs() < 0.501, "{found} for {exact}");
        }
    }
}
