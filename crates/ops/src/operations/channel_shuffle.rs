//! CHANNEL_SHUFFLE: channels that are in groups, ordered by their place in the group.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most | float32, float16, quantized |
//! | input 1 | groups | scalar; divides the number of channels | INT32 |
//! | input 2 | axis | scalar, negative from the end | INT32 |
//! | output 0 | output | as the input | as the input; same scale, zero point |
//!
//! `output[place * groups + group] = input[group * size + place]`, where `size` is the number of
//! channels of a group.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// CHANNEL_SHUFFLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChannelShuffle {
    /// Number of groups; above 0.
    pub groups: u32,
    /// The axis of the channels.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::ChannelShuffle,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::int32("groups"), Parameter::int32("axis")],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for ChannelShuffle {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=4)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let axis = call.input(2);
        Ok(Self {
            groups: call.input(1).positive()?,
            axis: axis.axis_of(axis.i32()?, call.input(0))?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let shape = &call.input(0).shape;
        match shape.length(self.axis) {
            Some(channels) if !channels.is_multiple_of(self.groups) => {
                let expected = format!("a divisor of the {channels} of axis {}", self.axis);
                Err(call.input(1).wrong("value", self.groups, expected))
            }
            _ => Ok(vec![shape.clone()]),
        }
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let lengths = input.lengths()?;
        let strides = movement::strides(&lengths);
        let groups = self.groups as usize;
        let size = lengths[self.axis] / groups;
        let offset = |axis: usize, index: usize| {
            let shuffled = (index % groups) * size + index / groups;
            strides[axis] * if axis == self.axis { shuffled } else { index }
        };
        Ok(vec![movement::moved(input.bytes()?, output, input.dimensions()?, offset)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_since, tensor};

    /// A call on elements 0, 1, 2 and so on.
    fn example(operand_type: OperandType, dimensions: &[u32], groups: i32, axis: i32) -> Example {
        Example::new(OperationType::ChannelShuffle)
            .counted(tensor(operand_type, dimensions))
            .int32s([groups, axis])
            .output(tensor(operand_type, []))
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
            |operand_type| example(operand_type, &[1], 1, 0),
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |dimensions: &[u32], groups, axis| {
            example(TensorFloat32, dimensions, groups, axis).refusal()
        };
        assert_eq!(
            refusal(&[1; 5], 1, 0),
            "CHANNEL_SHUFFLE: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            refusal(&[6], 4, 0),
            "CHANNEL_SHUFFLE: value of input 1 (groups) is 4, expected a divisor of the 6 of axis 0"
        );
        assert!(refusal(&[6], 0, 0).contains("expected above 0"));
        assert!(refusal(&[6], -1, 0).contains("expected 0 or more"));
        assert!(refusal(&[6], 1, 1).contains("an axis of a tensor of rank 1"));
        assert!(refusal(&[6], 1, -2).contains("an axis of a tensor of rank 1"));
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], 1, 0).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn shuffles_by_hand() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let found = example(operand_type, &[6], 2, 0).result().1;
            assert_eq!(found, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
            let found = example(operand_type, &[6], 3, -1).result().1;
            assert_eq!(found, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
            let found = example(operand_type, &[4, 2], 2, 0).result().1;
            assert_eq!(found, [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
        }
        assert_eq!(example(TensorFloat32, &[2, 0], 3, 1).result(), (vec![2, 0], vec![]));
    }

    #[test]
    fn shuffling_by_the_other_factor_restores_the_order() {
        for (groups, size) in [(2, 3), (3, 2), (1, 6), (6, 1)] {
            let there = example(TensorFloat32, &[6], groups, 0).result();
            let back = example(TensorFloat32, &[6], size, 0)
                .with_input(0, tensor(TensorFloat32, [6]), &there.1)
                .result();
            assert_eq!(back.1, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        }
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32]| {
            let input = tensor(TensorFloat32, dimensions);
            example(TensorFloat32, &[1, 2], 2, 1).with_input_to_come(0, input).shapes()
        };
        assert_eq!(shape(&[0, 4]), Ok(vec![Shape::new([None, Some(4)])]));
        assert_eq!(shape(&[4, 0]), Ok(vec![Shape::new([Some(4), None])]));
        assert_eq!(shape(&[]), Ok(vec![Shape::UNKNOWN]));
        assert!(shape(&[4, 3]).is_err());
    }
}
