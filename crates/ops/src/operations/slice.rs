//! SLICE: a rectangular part.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any, of rank n | float32, float16, quantized, int32 |
//! | input 1 | begins | `[n]` | TENSOR_INT32: the first element along each axis |
//! | input 2 | sizes | `[n]` | TENSOR_INT32: how many from there; -1 for all |
//! | output 0 | output | the sizes | as the input; same scale, zero point |
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// SLICE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The first element along each axis.
    pub begins: Vec<u32>,
    /// How many along each axis; `None` for all from the first on.
    pub sizes: Vec<Option<u32>>,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Slice,
    rows: NUMBERS_SINCE_1_2,
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("begins"),
            Parameter::tensor_int32("sizes"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Slice {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=usize::MAX)?;
        let rank = input.shape.rank().and_then(|rank| u32::try_from(rank).ok());
        for numbers in &call.inputs()[1..3] {
            numbers.expect_rank(1)?;
            numbers.expect_length(0, rank)?;
        }
        call.output(0).expect_quantized_as(input)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (begins, sizes) = (call.input(1), call.input(2));
        let begin = |begin: i32| {
            u32::try_from(begin).map_err(|_| begins.wrong("value", begin, "0 or more"))
        };
        let size = |size: i32| match size {
            -1 => Ok(None),
            _ => u32::try_from(size)
                .map(Some)
                .map_err(|_| sizes.wrong("value", size, "0 or more, or -1")),
        };
        let found = Self {
            begins: begins.i32_per_axis()?.into_iter().map(begin).collect::<Result<_, _>>()?,
            sizes: sizes.i32_per_axis()?.into_iter().map(size).collect::<Result<_, _>>()?,
        };
        if found.begins.len() != found.sizes.len() {
            let expected = format!("[{}] as begins", found.begins.len());
            return Err(sizes.wrong("shape", &sizes.shape, expected));
        }
        Ok(found)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        let Some(lengths) = input.shape.lengths() else {
            return Ok(vec![Shape::new(self.sizes.clone())]);
        };
        if lengths.len() != self.begins.len() {
            let expected = format!("rank {}, one axis for each begin", self.begins.len());
            return Err(input.wrong("shape", &input.shape, expected));
        }
        let mut sizes = Vec::with_capacity(lengths.len());
        for (axis, length) in lengths.iter().enumerate() {
            let (begin, size) = (self.begins[axis], self.sizes[axis]);
            let Some(length) = *length else {
                sizes.push(size);
                continue;
            };
            let Some(rest) = length.checked_sub(begin) else {
                let expected = format!("at most the {length} of axis {axis}");
                return Err(call.input(1).wrong("value", begin, expected));
            };
            if size.is_some_and(|size| size > rest) {
                let expected = format!("at most {rest}, what axis {axis} has from {begin} on");
                return Err(call.input(2).wrong("value", size.unwrap_or_default(), expected));
            }
            sizes.push(Some(size.unwrap_or(rest)));
        }
        Ok(vec![Shape::new(sizes)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let strides = movement::strides(&input.lengths()?);
        let offset = |axis: usize, index| (self.begins[axis] as usize + index) * strides[axis];
        Ok(vec![movement::moved(input.bytes()?, output, dimensions, offset)?])
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
        begins: &[i32],
        sizes: &[i32],
    ) -> Example {
        Example::new(OperationType::Slice)
            .counted(tensor(operand_type, dimensions))
            .list(begins)
            .list(sizes)
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_2, |operand_type| example(operand_type, &[1], &[0], &[1]));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |begins: &[i32], sizes: &[i32]| {
            example(TensorFloat32, &[3, 2], begins, sizes).refusal()
        };
        assert_eq!(
            refusal(&[0], &[1, 1]),
            "SLICE: shape of input 1 (begins) is [1], expected length 2 along axis 0"
        );
        assert_eq!(
            refusal(&[0, -1], &[1, 1]),
            "SLICE: value of input 1 (begins) is -1, expected 0 or more"
        );
        assert_eq!(
            refusal(&[0, 0], &[1, -2]),
            "SLICE: value of input 2 (sizes) is -2, expected 0 or more, or -1"
        );
        assert_eq!(
            refusal(&[4, 0], &[-1, 1]),
            "SLICE: value of input 1 (begins) is 4, expected at most the 3 of axis 0"
        );
        assert_eq!(
            refusal(&[0, 1], &[3, 2]),
            "SLICE: value of input 2 (sizes) is 2, expected at most 1, what axis 1 has from 1 on"
        );
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], &[0], &[1]).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn parts_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let found = example(operand_type, &[3, 2, 2], &[1, 0, 1], &[2, -1, 1]).result();
            assert_eq!(found, (vec![2, 2, 1], vec![5.0, 7.0, 9.0, 11.0]));
        }
    }

    #[test]
    fn a_part_may_be_empty_and_so_may_the_whole() {
        let result = |dimensions: &[u32], begins: &[i32], sizes: &[i32]| {
            example(TensorFloat32, dimensions, begins, sizes).result()
        };
        assert_eq!(result(&[3, 2], &[3, 0], &[-1, 2]), (vec![0, 2], vec![]));
        assert_eq!(result(&[3, 2], &[1, 1], &[0, 1]), (vec![0, 1], vec![]));
        assert_eq!(result(&[0, 2], &[0, 1], &[-1, -1]), (vec![0, 1], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32]| {
            example(TensorFloat32, &[9, 9], &[1, 2], &[3, -1])
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        assert_eq!(shape(&[0, 5]), Shape::known([3, 3]));
        assert_eq!(shape(&[4, 0]), Shape::new([Some(3), None]));
        assert_eq!(shape(&[]), Shape::new([Some(3), None]));
    }
}
