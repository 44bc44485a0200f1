//! REVERSE: one axis backwards.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 8 at most | float32, float16, quantized, int32 |
//! | input 1 | axis | `[1]` | TENSOR_INT32, from the front |
//! | output 0 | output | as the input | as the input; same scale, zero point |
//!
//! Source: `OperationType.aidl`, feature level 7.

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

/// REVERSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reverse {
    /// The axis that goes backwards.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Reverse,
    rows: &[
        Row::new(HalVersion::FeatureLevel7, &[TensorFloat32]),
        Row::new(HalVersion::FeatureLevel7, &[TensorFloat16]),
        Row::new(HalVersion::FeatureLevel7, &[TensorInt32]),
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8Asymm]),
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::FeatureLevel7,
        &[Parameter::column("input", 0), Parameter::tensor_int32("axis")],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Reverse {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, axis) = (call.input(0), call.input(1));
        input.expect_rank_in(1..=input.most_axes(8))?;
        axis.expect_rank(1)?;
        call.output(0).expect_quantized_as(input)?;
        if let Some(rank) = input.shape.rank() {
            call.output(0).expect_rank(rank)?;
        }
        axis.expect_length(0, Some(1))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let given = call.input(1);
        let axes = given.i32s()?;
        match axes[..] {
            [axis] if axis >= 0 => Ok(Self { axis: given.axis_of(axis, call.input(0))? }),
            [axis] => Err(given.wrong("value", axis, "0 or more")),
            _ => Err(given.wrong("number of elements", axes.len(), 1)),
        }
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let lengths = input.lengths()?;
        let strides = movement::strides(&lengths);
        let offset = |axis: usize, index| {
            strides[axis] * if axis == self.axis { lengths[axis] - 1 - index } else { index }
        };
        Ok(vec![movement::moved(input.bytes()?, output, input.dimensions()?, offset)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};

    /// A call on elements 0, 1, 2 and so on.
    fn example(operand_type: OperandType, dimensions: &[u32], axis: i32) -> Example {
        Example::new(OperationType::Reverse)
            .counted(tensor(operand_type, dimensions))
            .input(tensor(TensorInt32, [1]), &[f64::from(axis)])
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_every_type_came_with_feature_level_7() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let since = example(operand_type, &[1], 0).since();
            assert_eq!(since, Ok(HalVersion::FeatureLevel7), "{operand_type}");
        }
        assert!(example(OperandType::TensorBool8, &[1], 0).since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |dimensions: &[u32], axis| example(TensorFloat32, dimensions, axis).refusal();
        assert_eq!(refusal(&[1; 9], 0), "REVERSE: rank of input 0 (input) is 9, expected 1 to 8");
        assert_eq!(refusal(&[2], -1), "REVERSE: value of input 1 (axis) is -1, expected 0 or more");
        assert_eq!(
            refusal(&[2], 1),
            "REVERSE: value of input 1 (axis) is 1, expected an axis of a tensor of rank 1"
        );
        assert_eq!(
            example(TensorFloat32, &[2], 0)
                .with_input(1, tensor(TensorInt32, [2]), &[0.0, 0.0])
                .refusal(),
            "REVERSE: shape of input 1 (axis) is [2], expected length 1 along axis 0"
        );
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], 0).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn one_axis_goes_backwards() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let result = |axis| example(operand_type, &[2, 3], axis).result();
            assert_eq!(result(0), (vec![2, 3], vec![3.0, 4.0, 5.0, 0.0, 1.0, 2.0]));
            assert_eq!(result(1), (vec![2, 3], vec![2.0, 1.0, 0.0, 5.0, 4.0, 3.0]));
        }
        assert_eq!(example(TensorFloat32, &[2, 0], 1).result(), (vec![2, 0], vec![]));
    }

    #[test]
    fn the_shape_is_that_of_the_input() {
        let input = tensor(TensorFloat32, [0, 3]);
        let found = example(TensorFloat32, &[1, 1], 0).with_input_to_come(0, input).shapes();
        assert_eq!(found, Ok(vec![Shape::new([None, Some(3)])]));
    }
}
