//! TRANSPOSE: axes in another order.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most | float32, float16, quantized |
//! | input 1 | permutation, optional | `[rank of the input]` | TENSOR_INT32: for each axis of the output, that of the input |
//! | output 0 | output | the input's lengths in that order | as the input; same scale, zero point |
//!
//! Without a permutation the order is reversed.
//!
//! Source: `types.hal` 1.1, 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_1, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// TRANSPOSE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// For each axis of the output, that of the input; each once.
    pub permutation: Vec<usize>,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Transpose,
    rows: NUMBERS_SINCE_1_1,
    forms: &[Form::new(
        HalVersion::V1_1,
        &[Parameter::column("input", 0), Parameter::tensor_int32("permutation").omittable()],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Transpose {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=input.most_axes(4))?;
        if let Some(permutation) = call.optional(1) {
            permutation.expect_rank(1)?;
            let rank = input.shape.rank().and_then(|rank| u32::try_from(rank).ok());
            permutation.expect_length(0, rank)?;
        }
        call.output(0).expect_quantized_as(input)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let Some(given) = call.optional(1) else {
            let input = call.input(0);
            let rank = input.shape.rank().ok_or_else(|| input.not_known("rank"))?;
            return Ok(Self { permutation: (0..rank).rev().collect() });
        };
        let axes = given.i32_per_axis()?;
        let mut is_taken = vec![false; axes.len()];
        let mut permutation = Vec::with_capacity(axes.len());
        for axis in axes {
            match usize::try_from(axis).ok().and_then(|axis| Some((axis, is_taken.get_mut(axis)?)))
            {
                Some((axis, taken @ false)) => {
                    *taken = true;
                    permutation.push(axis);
                }
                _ => {
                    let expected = format!("each of 0 to {} once", is_taken.len() - 1);
                    return Err(given.wrong("value", axis, expected));
                }
            }
        }
        Ok(Self { permutation })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        let Some(lengths) = input.shape.lengths() else {
            return Ok(vec![Shape::of_rank(self.permutation.len())]);
        };
        if lengths.len() != self.permutation.len() {
            let expected = format!("rank {}, as many axes as are named", self.permutation.len());
            return Err(input.wrong("shape", &input.shape, expected));
        }
        let lengths: Vec<_> = self.permutation.iter().map(|axis| lengths[*axis]).collect();
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let strides = movement::strides(&input.lengths()?);
        let offset = |axis: usize, index| index * strides[self.permutation[axis]];
        Ok(vec![movement::moved(input.bytes()?, output, dimensions, offset)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_1, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandType;
    use proptest::prelude::*;

    /// A call on elements 0, 1, 2 and so on.
    fn example(operand_type: OperandType, dimensions: &[u32], axes: Option<&[i32]>) -> Example {
        let call = Example::new(OperationType::Transpose)
            .counted(tensor(operand_type, dimensions))
            .output(tensor(operand_type, []));
        match axes {
            None => call.omitted(tensor(OperandType::TensorInt32, [0])),
            Some(axes) => call.list(axes),
        }
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_1, |operand_type| example(operand_type, &[1], None));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |dimensions: &[u32], axes: &[i32]| {
            example(TensorFloat32, dimensions, Some(axes)).refusal()
        };
        assert_eq!(
            refusal(&[1; 5], &[0, 1, 2, 3, 4]),
            "TRANSPOSE: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            refusal(&[1, 1], &[0]),
            "TRANSPOSE: shape of input 1 (permutation) is [1], expected length 2 along axis 0"
        );
        for (axes, wrong) in [([0, 2], 2), ([0, -1], -1), ([1, 1], 1)] {
            assert_eq!(
                refusal(&[1, 1], &axes),
                format!(
                    "TRANSPOSE: value of input 1 (permutation) is {wrong}, \
                     expected each of 0 to 1 once"
                )
            );
        }
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], None).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn axes_change_places_by_hand() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let found = example(operand_type, &[2, 3], Some(&[1, 0])).result();
            assert_eq!(found, (vec![3, 2], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
            let found = example(operand_type, &[2, 1, 3], Some(&[2, 0, 1])).result();
            assert_eq!(found, (vec![3, 2, 1], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
            let found = example(operand_type, &[1, 2, 2], Some(&[1, 0, 2])).result();
            assert_eq!(found, (vec![2, 1, 2], vec![0.0, 1.0, 2.0, 3.0]));
        }
    }

    #[test]
    fn without_a_permutation_the_axes_are_reversed() {
        let found = example(TensorFloat32, &[2, 3], None).result();
        assert_eq!(found, (vec![3, 2], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
        let found = example(TensorFloat32, &[2, 1, 3], None).result();
        assert_eq!(found, (vec![3, 1, 2], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    }

    #[test]
    fn nothing_is_transposed_too() {
        let found = example(TensorFloat32, &[0, 3], Some(&[1, 0])).result();
        assert_eq!(found, (vec![3, 0], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32], axes| {
            example(TensorFloat32, &[1, 1], axes)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        assert_eq!(shape(&[5, 0], Some(&[1, 0])), Shape::new([None, Some(5)]));
        assert_eq!(shape(&[], Some(&[1, 0])), Shape::of_rank(2));
        assert_eq!(shape(&[], None), Shape::UNKNOWN);
    }

    proptest! {
        #[test]
        fn the_inverse_permutation_brings_everything_back(
            permutation in Just(vec![0, 1, 2, 3]).prop_shuffle(),
            lengths in prop::array::uniform4(1..4_u32),
        ) {
            let mut inverse = vec![0; 4];
            for (axis, from) in (0..).zip(&permutation) {
                inverse[usize::try_from(*from).unwrap()] = axis;
            }
            let there = example(TensorFloat32, &lengths, Some(&permutation)).result();
            let back = example(TensorFloat32, &there.0, Some(&inverse))
                .with_input(0, tensor(TensorFloat32, there.0), &there.1)
                .result();
            let count: u32 = lengths.iter().product();
            prop_assert_eq!(back, (lengths.to_vec(), (0..count).map(f64::from).collect()));
        }
    }
}
