//! EMBEDDING_LOOKUP: rows of a table, in the order that indexes give.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | lookups | `[k]` | TENSOR_INT32, from 0 to the number of rows |
//! | input 1 | values | any of rank 2 or more; the first axis counts rows | float32, float16, quantized, int32 |
//! | output 0 | output | the values', with `k` as first length | as the values; same scale, zero point |
//!
//! Source: `types.hal` 1.0, 1.2, 1.3 (float16, signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// EMBEDDING_LOOKUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EmbeddingLookup;

static SIGNATURE: Signature = Signature {
    operation: OperationType::EmbeddingLookup,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[Parameter::tensor_int32("lookups"), Parameter::column("values", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for EmbeddingLookup {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (lookups, values) = (call.input(0), call.input(1));
        lookups.expect_rank(1)?;
        values.expect_rank_in(2..=usize::MAX)?;
        call.output(0).expect_quantized_as(values)
    }

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![with_first_length(&call.input(1).shape, call.input(0).shape.length(0))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (lookups, values, output) = (call.input(0), call.input(1), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = values.lengths()?;
        let rows = lengths.first().copied().unwrap_or(0);
        let pick = |row: i32| match usize::try_from(row) {
            Ok(row) if row < rows => Ok(Some(row)),
            _ => Err(lookups.wrong("value", row, format!("0 or more, below {rows}"))),
        };
        let wanted = lookups.i32s()?;
        let mut picks = call.room(wanted.len())?;
        for index in wanted {
            call.work(1)?;
            picks.push(pick(index)?);
        }
        Ok(vec![movement::picked((values.bytes()?, &lengths), 0, &picks, output, dimensions)?])
    }
}

/// A shape with another first length.
pub(super) fn with_first_length(shape: &Shape, length: Option<u32>) -> Shape {
    let Some(lengths) = shape.lengths() else { return Shape::UNKNOWN };
    let mut lengths = lengths.to_vec();
    if let Some(first) = lengths.first_mut() {
        *first = length;
    }
    Shape::new(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_since, tensor};

    /// A call on values 0, 1, 2 and so on.
    fn example(operand_type: OperandType, lookups: &[f64], dimensions: &[u32]) -> Example {
        Example::new(OperationType::EmbeddingLookup)
            .input(tensor(TensorInt32, [u32::try_from(lookups.len()).unwrap()]), lookups)
            .counted(tensor(operand_type, dimensions))
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(
            [
                (TensorFloat32, Some(HalVersion::V1_0)),
                (TensorInt32, Some(HalVersion::V1_2)),
                (TensorQuant8Asymm, Some(HalVersion::V1_2)),
                (TensorFloat16, Some(HalVersion::V1_3)),
                (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
                (OperandType::TensorBool8, None),
            ],
            |operand_type| example(operand_type, &[0.0], &[1, 1]),
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        assert_eq!(
            example(TensorFloat32, &[0.0], &[3]).refusal(),
            "EMBEDDING_LOOKUP: rank of input 1 (values) is 1, expected 2 or more"
        );
        assert_eq!(
            example(TensorFloat32, &[0.0], &[1, 1])
                .with_input(0, tensor(TensorInt32, [1, 1]), &[0.0])
                .refusal(),
            "EMBEDDING_LOOKUP: rank of input 0 (lookups) is 2, expected 1"
        );
        for row in [2.0, -1.0] {
            assert_eq!(
                example(TensorFloat32, &[0.0, row], &[2, 3]).refusal(),
                format!(
                    "EMBEDDING_LOOKUP: value of input 0 (lookups) is {row}, \
                     expected 0 or more, below 2"
                )
            );
        }
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[0.0], &[1, 1]).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn rows_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let found = example(operand_type, &[2.0, 0.0, 2.0], &[3, 1, 2]).result();
            assert_eq!(found, (vec![3, 1, 2], vec![4.0, 5.0, 0.0, 1.0, 4.0, 5.0]));
        }
        assert_eq!(example(TensorFloat32, &[], &[3, 2]).result(), (vec![0, 2], vec![]));
        assert_eq!(example(TensorFloat32, &[1.0], &[3, 0]).result(), (vec![1, 0], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |lookups: &[u32], values: &[u32]| {
            example(TensorFloat32, &[], &[1, 1])
                .with_input_to_come(0, tensor(TensorInt32, lookups))
                .with_input_to_come(1, tensor(TensorFloat32, values))
                .shape()
        };
        assert_eq!(shape(&[5], &[0, 2, 0]), Shape::new([Some(5), Some(2), None]));
        assert_eq!(shape(&[], &[7, 2]), Shape::new([None, Some(2)]));
        assert_eq!(shape(&[5], &[]), Shape::UNKNOWN);
    }
}
