//! EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL: element by element, with
//! broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two that broadcast | float32, float16, int32, quantized, bool8 |
//! | output 0 | output | the common shape | bool8 |
//!
//! Quantized values are compared by the real numbers that they stand for, each computed as float32;
//! truth values as 0 and 1. A NaN is unequal to everything and neither less nor greater.
//!
//! Source: `types.hal` 1.2, 1.3 (signed quantized).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::broadcast;
use crate::rules::wide::{is_wide, wide};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// One of the six: for which orders of its two elements it is true. A NaN has no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// EQUAL
    Equal,
    /// NOT_EQUAL
    NotEqual,
    /// LESS
    Less,
    /// LESS_EQUAL
    LessEqual,
    /// GREATER
    Greater,
    /// GREATER_EQUAL
    GreaterEqual,
}

const ROWS: &[Row] = &[
    Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorInt32]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorQuant8Asymm]),
    Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorBool8]),
];

pub(crate) const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input0", 0), Parameter::column("input1", 0)],
    &[Parameter::fixed("output", OperandType::TensorBool8)],
)];

const fn signature_of(operation: OperationType) -> Signature {
    Signature { operation, rows: ROWS, forms: FORMS }
}

static EQUAL: Signature = signature_of(OperationType::Equal);
static NOT_EQUAL: Signature = signature_of(OperationType::NotEqual);
static LESS: Signature = signature_of(OperationType::Less);
static LESS_EQUAL: Signature = signature_of(OperationType::LessEqual);
static GREATER: Signature = signature_of(OperationType::Greater);
static GREATER_EQUAL: Signature = signature_of(OperationType::GreaterEqual);

impl Operation for Comparison {
    const SIGNATURES: &'static [&'static Signature] =
        &[&EQUAL, &NOT_EQUAL, &LESS, &LESS_EQUAL, &GREATER, &GREATER_EQUAL];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.definition() {
            OperationType::NotEqual => Self::NotEqual,
            OperationType::Less => Self::Less,
            OperationType::LessEqual => Self::LessEqual,
            OperationType::Greater => Self::Greater,
            OperationType::GreaterEqual => Self::GreaterEqual,
            _ => Self::Equal,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        let elements: Vec<bool> = match a.operand_type {
            OperandType::TensorBool8 => {
                let (of_a, of_b) = (a.bools()?, b.bools()?);
                output.collect(&dimensions, pairs.map(|(i, j)| self.holds(of_a[i], of_b[j])))?
            }
            _ if is_wide(a) => {
                let (of_a, of_b) = (wide(a)?, wide(b)?);
                output.collect(&dimensions, pairs.map(|(i, j)| self.holds(of_a[i], of_b[j])))?
            }
            OperandType::TensorInt32 => {
                let (of_a, of_b) = (a.i32s()?, b.i32s()?);
                output.collect(&dimensions, pairs.map(|(i, j)| self.holds(of_a[i], of_b[j])))?
            }
            _ => {
                let (of_a, of_b) = (a.reals()?, b.reals()?);
                output.collect(&dimensions, pairs.map(|(i, j)| self.holds(of_a[i], of_b[j])))?
            }
        };
        Ok(vec![output.with_bools(dimensions, &elements)?])
    }
}

impl Comparison {
    /// Whether it is true of two elements.
    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::LessEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterEqual => a >= b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    const ALL: [OperationType; 6] = [
        OperationType::Equal,
        OperationType::NotEqual,
        OperationType::Less,
        OperationType::LessEqual,
        OperationType::Greater,
        OperationType::GreaterEqual,
    ];

    /// The results of all six, in the order of [`ALL`].
    fn all(a: &OperandSpec, of_a: &[f64], b: &OperandSpec, of_b: &[f64]) -> [Vec<f64>; 6] {
        ALL.map(|operation| {
            Example::new(operation)
                .input(a.clone(), of_a)
                .input(b.clone(), of_b)
                .output(OperandSpec::tensor_bool8([]))
                .result()
                .1
        })
    }

    #[test]
    fn model_25_every_type_is_accepted_since_its_version() {
        for (row, operation) in ROWS.iter().flat_map(|row| ALL.map(|operation| (row, operation))) {
            let example = Example::new(operation)
                .input_to_come(tensor(row.types[0], [2]))
                .input_to_come(tensor(row.types[0], [2]))
                .output(OperandSpec::tensor_bool8([2]));
            assert_eq!(example.since(), Ok(row.since), "{operation} {}", row.types[0]);
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = Example::new(OperationType::Less)
            .input(OperandSpec::tensor_float32([2]), &[1.0, 2.0])
            .input(OperandSpec::tensor_float32([2]), &[1.0, 2.0])
            .output(OperandSpec::tensor_bool8([2]));
        assert_eq!(good.result(), (vec![2], vec![0.0, 0.0]));
        let other_type = good.clone().with_input(1, OperandSpec::tensor_int32([2]), &[1.0, 2.0]);
        assert_eq!(
            other_type.refusal(),
            "LESS: type of input 1 (input1) is TENSOR_INT32, expected TENSOR_FLOAT32"
        );
        let other_shape = good.clone().with_input(1, OperandSpec::tensor_float32([3]), &[0.0; 3]);
        assert_eq!(
            other_shape.refusal(),
            "LESS: shapes of the operation is [2] and [3], expected shapes that broadcast"
        );
        let other_output = good.with_output(OperandSpec::tensor_float32([2]));
        assert_eq!(
            other_output.refusal(),
            "LESS: type of output 0 (output) is TENSOR_FLOAT32, expected TENSOR_BOOL8"
        );
    }

    #[test]
    fn floats_of_both_widths_broadcast() {
        for operand_type in [OperandType::TensorFloat32, OperandType::TensorFloat16] {
            let found = all(
                &tensor(operand_type, [3]),
                &[-1.0, 0.5, 2.0],
                &tensor(operand_type, [1]),
                &[0.5],
            );
            assert_eq!(found[0], [0.0, 1.0, 0.0]);
            assert_eq!(found[1], [1.0, 0.0, 1.0]);
            assert_eq!(found[2], [1.0, 0.0, 0.0]);
            assert_eq!(found[3], [1.0, 1.0, 0.0]);
            assert_eq!(found[4], [0.0, 0.0, 1.0]);
            assert_eq!(found[5], [0.0, 1.0, 1.0]);
        }
    }

    #[test]
    fn a_nan_is_unequal_and_has_no_order() {
        let vector = OperandSpec::tensor_float32([1]);
        let found = all(&vector, &[f64::NAN], &vector, &[f64::NAN]);
        assert_eq!(found.map(|result| result[0]), [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn integers_are_compared_exactly() {
        // As float32 the two would be equal.
        let vector = OperandSpec::tensor_int32([1]);
        let found = all(&vector, &[16_777_216.0], &vector, &[16_777_217.0]);
        assert_eq!(found.map(|result| result[0]), [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn quantized_values_are_compared_by_what_they_stand_for() {
        // 0.5 * (130 - 128) = 1.0 = 0.25 * (104 - 100), and 1.25 = 0.25 * (105 - 100).
        let a = OperandSpec::tensor_quant8_asymm([1], 0.5, 128);
        let b = OperandSpec::tensor_quant8_asymm([2], 0.25, 100);
        let found = all(&a, &[130.0], &b, &[104.0, 105.0]);
        assert_eq!(found[0], [1.0, 0.0]);
        assert_eq!(found[2], [0.0, 1.0]);
        let a = OperandSpec::tensor_quant8_asymm_signed([1], 0.5, -1);
        let b = OperandSpec::tensor_quant8_asymm_signed([1], 1.0, 0);
        assert_eq!(all(&a, &[-3.0], &b, &[-1.0])[0], [1.0]);
    }

    #[test]
    fn truth_values_are_0_and_anything_else() {
        let vector = OperandSpec::tensor_bool8([3]);
        let found = all(&vector, &[0.0, 1.0, 2.0], &vector, &[0.0, 2.0, 0.0]);
        assert_eq!(found[0], [1.0, 1.0, 0.0]);
        assert_eq!(found[4], [0.0, 0.0, 1.0]);
    }

    #[test]
    fn shapes_may_be_unknown_or_hold_nothing() {
        let example = |a: &[u32]| {
            Example::new(OperationType::Equal)
                .input_to_come(OperandSpec::tensor_float32(a))
                .input_to_come(OperandSpec::tensor_float32([2, 1]))
                .output(OperandSpec::tensor_bool8([]))
                .shapes()
        };
        assert_eq!(example(&[]), Ok(vec![Shape::UNKNOWN]));
        assert_eq!(example(&[1, 0]), Ok(vec![Shape::new([Some(2), None])]));
        let empty = OperandSpec::tensor_float32([0, 2]);
        let row = OperandSpec::tensor_float32([1, 2]);
        assert_eq!(all(&empty, &[], &row, &[1.0, 2.0])[0], [0.0; 0]);
    }

    proptest! {
        #[test]
        fn three_are_the_negations_of_the_others_without_nans(a: i32, b: i32) {
            let holds = |comparison: Comparison| comparison.holds(a, b);
            prop_assert_eq!(holds(Comparison::Equal), !holds(Comparison::NotEqual));
            prop_assert_eq!(holds(Comparison::Less), !holds(Comparison::GreaterEqual));
            prop_assert_eq!(holds(Comparison::Greater), !holds(Comparison::LessEqual));
        }
    }
}
