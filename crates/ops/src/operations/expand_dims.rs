//! EXPAND_DIMS: the same elements with one more axis, of length 1.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any, of rank n | float32, float16, quantized, int32 |
//! | input 1 | axis | scalar | INT32, from -(n + 1) to n, negative from the end |
//! | output 0 | output | the input's with a 1 at the axis | as the input; same scale, zero point |
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// EXPAND_DIMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExpandDims {
    /// Where the output has the additional axis, from the front.
    pub axis: usize,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::ExpandDims,
    rows: NUMBERS_SINCE_1_2,
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::int32("axis")],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for ExpandDims {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (input, axis) = (call.input(0), call.input(1));
        let rank = input.shape.rank().ok_or_else(|| input.not_known("rank"))?;
        let given = i64::from(axis.i32()?);
        let places = i64::try_from(rank).unwrap_or(i64::MAX).saturating_add(1);
        let from_front = if given < 0 { given + places } else { given };
        if !(0..places).contains(&from_front) {
            return Err(axis.wrong("value", given, format!("{} to {rank}", -places)));
        }
        Ok(Self { axis: usize::try_from(from_front).unwrap_or(rank) })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        let mut lengths = input.shape.lengths().ok_or_else(|| input.not_known("rank"))?.to_vec();
        lengths.insert(self.axis.min(lengths.len()), Some(1));
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = self.output_dimensions(call)?;
        Ok(vec![movement::copied(call.input(0).bytes()?, call.output(0), dimensions)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm};
    use nnhal_hal::OperandType;

    fn example(operand_type: OperandType, dimensions: &[u32], axis: i32) -> Example {
        Example::new(OperationType::ExpandDims)
            .counted(tensor(operand_type, dimensions))
            .int32s([axis])
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_2, |operand_type| example(operand_type, &[1], 0));
    }

    #[test]
    fn the_axis_may_be_anywhere_from_the_front_to_behind_the_last() {
        let dimensions = |axis| example(TensorFloat32, &[2, 3], axis).result().0;
        assert_eq!(dimensions(0), [1, 2, 3]);
        assert_eq!(dimensions(1), [2, 1, 3]);
        assert_eq!(dimensions(2), [2, 3, 1]);
        assert_eq!(dimensions(-1), [2, 3, 1]);
        assert_eq!(dimensions(-3), [1, 2, 3]);
        for axis in [3, -4, i32::MAX, i32::MIN] {
            assert_eq!(
                example(TensorFloat32, &[2, 3], axis).refusal(),
                format!("EXPAND_DIMS: value of input 1 (axis) is {axis}, expected -3 to 2")
            );
        }
    }

    #[test]
    fn elements_stay_whatever_their_size() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let found = example(operand_type, &[3], 0).result();
            assert_eq!(found, (vec![1, 3], vec![0.0, 1.0, 2.0]));
        }
        assert_eq!(example(TensorFloat32, &[0], 1).result(), (vec![0, 1], vec![]));
    }

    #[test]
    fn the_output_is_quantized_as_the_input() {
        let output = tensor(TensorQuant8Asymm, []).quantized(1.0, 128);
        assert_eq!(
            example(TensorQuant8Asymm, &[1], 0).with_output(output).refusal(),
            "EXPAND_DIMS: scale of output 0 (output) is 1, expected 0.5 as input 0 (input)"
        );
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32]| {
            example(TensorFloat32, &[1], 1)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        assert_eq!(shape(&[0, 3]), Shape::new([None, Some(1), Some(3)]));
        assert_eq!(shape(&[]), Shape::UNKNOWN);
    }
}
