//! GATHER: parts of length 1 along an axis, in the order that indexes give.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, quantized, int32 |
//! | input 1 | axis | scalar, negative from the end | INT32 |
//! | input 2 | indexes | any | TENSOR_INT32, from 0 to the length of the axis |
//! | output 0 | output | the input's, with the shape of the indexes in place of the axis | as the input; same scale, zero point |
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// GATHER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gather {
    /// The axis that the indexes are of.
    pub axis: usize,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Gather,
    rows: NUMBERS_SINCE_1_2,
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::int32("axis"),
            Parameter::tensor_int32("indexes"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Gather {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let axis = call.input(1);
        Ok(Self { axis: axis.axis_of(axis.i32()?, call.input(0))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, indexes) = (call.input(0), call.input(2));
        let lengths = input.shape.lengths().ok_or_else(|| input.not_known("rank"))?;
        let Some(inserted) = indexes.shape.lengths() else { return Ok(vec![Shape::UNKNOWN]) };
        let mut gathered = lengths.to_vec();
        gathered.splice(self.axis..=self.axis, inserted.iter().copied());
        Ok(vec![Shape::new(gathered)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, indexes, output) = (call.input(0), call.input(2), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.lengths()?;
        let length = lengths[self.axis];
        let pick = |index: i32| match usize::try_from(index) {
            Ok(index) if index < length => Ok(Some(index)),
            _ => Err(indexes.wrong("value", index, format!("0 or more, below {length}"))),
        };
        let wanted = indexes.i32s()?;
        let mut picks = call.room(wanted.len())?;
        for index in wanted {
            call.work(1)?;
            picks.push(pick(index)?);
        }
        let source = (input.bytes()?, &lengths[..]);
        Ok(vec![movement::picked(source, self.axis, &picks, output, dimensions)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm};
    use nnhal_hal::OperandType;

    /// A call on elements 0, 1, 2 and so on.
    fn example(
        operand_type: OperandType,
        dimensions: &[u32],
        axis: i32,
        indexes: (&[u32], &[f64]),
    ) -> Example {
        Example::new(OperationType::Gather)
            .counted(tensor(operand_type, dimensions))
            .int32s([axis])
            .input(tensor(TensorInt32, indexes.0), indexes.1)
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_2, |operand_type| example(operand_type, &[1], 0, (&[1], &[0.0])));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal =
            |axis, index| example(TensorFloat32, &[2, 3], axis, (&[1], &[index])).refusal();
        assert_eq!(
            refusal(2, 0.0),
            "GATHER: value of input 1 (axis) is 2, expected an axis of a tensor of rank 2"
        );
        assert!(refusal(-3, 0.0).contains("is -3"));
        for index in [3.0, -1.0] {
            assert_eq!(
                refusal(1, index),
                format!(
                    "GATHER: value of input 2 (indexes) is {index}, expected 0 or more, below 3"
                )
            );
        }
        let of_nothing = example(TensorFloat32, &[0], 0, (&[1], &[0.0]));
        assert!(of_nothing.refusal().contains("below 0"));
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], 0, (&[1], &[0.0])).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn parts_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let result = |axis, indexes| example(operand_type, &[2, 3], axis, indexes).result();
            let rows = (vec![3, 3], vec![3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
            assert_eq!(result(0, (&[3], &[1.0, 0.0, 1.0])), rows);
            let columns = (vec![2, 2], vec![2.0, 0.0, 5.0, 3.0]);
            assert_eq!(result(-1, (&[2], &[2.0, 0.0])), columns);
        }
    }

    #[test]
    fn the_shape_of_the_indexes_takes_the_place_of_the_axis() {
        let indexes = (&[2, 1, 2][..], &[0.0, 1.0, 1.0, 0.0][..]);
        let (dimensions, elements) = example(TensorFloat32, &[1, 2, 2], 1, indexes).result();
        assert_eq!(dimensions, [1, 2, 1, 2, 2]);
        assert_eq!(elements, [0.0, 1.0, 2.0, 3.0, 2.0, 3.0, 0.0, 1.0]);
    }

    #[test]
    fn no_indexes_and_parts_without_elements_give_nothing() {
        let found = example(TensorFloat32, &[2, 3], 0, (&[0], &[])).result();
        assert_eq!(found, (vec![0, 3], vec![]));
        let found = example(TensorFloat32, &[2, 0], 0, (&[1], &[1.0])).result();
        assert_eq!(found, (vec![1, 0], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32], indexes: &[u32]| {
            example(TensorFloat32, &[1], -1, (&[1], &[0.0]))
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .with_input_to_come(2, tensor(TensorInt32, indexes))
                .shape()
        };
        assert_eq!(shape(&[0, 3], &[4, 0]), Shape::new([None, Some(4), None]));
        assert_eq!(shape(&[2, 3], &[]), Shape::UNKNOWN);
        assert_eq!(shape(&[], &[4]), Shape::UNKNOWN);
    }
}
