//! TILE: a tensor again and again along each axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any, of rank n | float32, float16, quantized, int32 |
//! | input 1 | multiples | `[n]` | TENSOR_INT32: how often along each axis |
//! | output 0 | output | the input's lengths times the multiples | as the input; same scale, zero point |
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// TILE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tile {
    /// How often along each axis.
    pub multiples: Vec<u32>,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Tile,
    rows: NUMBERS_SINCE_1_2,
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::tensor_int32("multiples")],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Tile {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, multiples) = (call.input(0), call.input(1));
        input.expect_rank_in(1..=usize::MAX)?;
        multiples.expect_rank(1)?;
        let rank = input.shape.rank().and_then(|rank| u32::try_from(rank).ok());
        multiples.expect_length(0, rank)?;
        call.output(0).expect_quantized_as(input)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let given = call.input(1);
        let multiple = |multiple: i32| {
            u32::try_from(multiple).map_err(|_| given.wrong("value", multiple, "0 or more"))
        };
        Ok(Self {
            multiples: given.i32_per_axis()?.into_iter().map(multiple).collect::<Result<_, _>>()?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, given) = (call.input(0), call.input(1));
        let Some(lengths) = input.shape.lengths() else {
            return Ok(vec![Shape::of_rank(self.multiples.len())]);
        };
        if lengths.len() != self.multiples.len() {
            return Err(given.wrong("shape", &given.shape, format!("[{}]", lengths.len())));
        }
        let product = |(length, multiple): (&Option<u32>, &u32)| match (length, multiple) {
            (_, 0) => Ok(Some(0)),
            (None, _) => Ok(None),
            (Some(length), multiple) => length.checked_mul(*multiple).map(Some).ok_or_else(|| {
                given.wrong("value", multiple, format!("below 2^32 times the {length} of an axis"))
            }),
        };
        let products = lengths.iter().zip(&self.multiples).map(product);
        Ok(vec![Shape::new(products.collect::<Result<Vec<_>, _>>()?)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.lengths()?;
        let strides = movement::strides(&lengths);
        let offset = |axis: usize, index| (index % lengths[axis]) * strides[axis];
        Ok(vec![movement::moved(input.bytes()?, output, dimensions, offset)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm};
    use nnhal_hal::OperandType;
    use proptest::prelude::*;

    /// A call on elements 0, 1, 2 and so on.
    fn example(operand_type: OperandType, dimensions: &[u32], multiples: &[i32]) -> Example {
        Example::new(OperationType::Tile)
            .counted(tensor(operand_type, dimensions))
            .list(multiples)
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_2, |operand_type| example(operand_type, &[1], &[1]));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |dimensions: &[u32], multiples: &[i32]| {
            example(TensorFloat32, dimensions, multiples).refusal()
        };
        assert_eq!(
            refusal(&[1, 1], &[1]),
            "TILE: shape of input 1 (multiples) is [1], expected length 2 along axis 0"
        );
        assert_eq!(
            refusal(&[1], &[-1]),
            "TILE: value of input 1 (multiples) is -1, expected 0 or more"
        );
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], &[1]).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn results_beyond_memory_are_refused() {
        let refusal = |dimensions: &[u32], multiples: &[i32]| {
            example(TensorFloat32, dimensions, multiples).refusal()
        };
        assert_eq!(
            refusal(&[3], &[i32::MAX]),
            "TILE: value of input 1 (multiples) is 2147483647, \
             expected below 2^32 times the 3 of an axis"
        );
        assert!(refusal(&[2], &[i32::MAX]).contains("at most 2^32 - 1 bytes"));
        assert!(refusal(&[1; 3], &[i32::MAX; 3]).contains("at most 2^32 - 1 bytes"));
    }

    #[test]
    fn repetitions_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let found = example(operand_type, &[2], &[3]).result();
            assert_eq!(found, (vec![6], vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0]));
            let found = example(operand_type, &[2, 2], &[2, 1]).result();
            assert_eq!(found, (vec![4, 2], vec![0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]));
            let found = example(operand_type, &[2, 1], &[1, 2]).result();
            assert_eq!(found, (vec![2, 2], vec![0.0, 0.0, 1.0, 1.0]));
        }
    }

    #[test]
    fn nothing_is_left_of_no_repetitions_and_of_nothing() {
        assert_eq!(example(TensorFloat32, &[2, 3], &[0, 5]).result(), (vec![0, 15], vec![]));
        assert_eq!(example(TensorFloat32, &[0], &[5]).result(), (vec![0], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32]| {
            example(TensorFloat32, &[1, 1, 1], &[2, 3, 0])
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        assert_eq!(shape(&[4, 0, 0]), Shape::new([Some(8), None, Some(0)]));
        assert_eq!(shape(&[]), Shape::of_rank(3));
    }

    proptest! {
        /// Every element of the result is that of the input whose indexes are the remainders.
        #[test]
        fn indexes_are_remainders(
            lengths in prop::array::uniform2(1..4_u32),
            multiples in prop::array::uniform2(1..4_u32),
        ) {
            let signed = multiples.map(|multiple| i32::try_from(multiple).unwrap());
            let (dimensions, elements) = example(TensorFloat32, &lengths, &signed).result();
            for row in 0..dimensions[0] {
                for column in 0..dimensions[1] {
                    let found = elements[(row * dimensions[1] + column) as usize];
                    let expected = (row % lengths[0]) * lengths[1] + column % lengths[1];
                    prop_assert_eq!(found, f64::from(expected));
                }
            }
        }
    }
}
