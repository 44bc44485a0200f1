//! SQUEEZE: the same elements without axes of length 1.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most | float32, float16, quantized |
//! | input 1 | axes, optional | `[number of axes]` | TENSOR_INT32, negative from the end, repetitions count once |
//! | output 0 | output | the input's without the axes; `[1]` if nothing is left | as the input; same scale, zero point |
//!
//! Without axes, all of length 1 go.
//!
//! Source: `types.hal` 1.1, 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_1, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// SQUEEZE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Squeeze {
    /// The axes that go, from the front, ascending; `None` for all of length 1.
    pub axes: Option<Vec<usize>>,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Squeeze,
    rows: NUMBERS_SINCE_1_1,
    forms: &[Form::new(
        HalVersion::V1_1,
        &[Parameter::column("input", 0), Parameter::tensor_int32("axes").omittable()],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Squeeze {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=call.input(0).most_axes(4))?;
        call.optional(1).map_or(Ok(()), |axes| axes.expect_rank(1))?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let Some(given) = call.optional(1) else { return Ok(Self { axes: None }) };
        let axes = given.i32s()?.into_iter().map(|axis| given.axis_of(axis, call.input(0)));
        let mut axes: Vec<usize> = axes.collect::<Result<_, _>>()?;
        axes.sort_unstable();
        axes.dedup();
        Ok(Self { axes: Some(axes) })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        let Some(lengths) = input.shape.lengths() else { return Ok(vec![Shape::UNKNOWN]) };
        let mut left = Vec::with_capacity(lengths.len());
        for (axis, length) in lengths.iter().enumerate() {
            let goes = match (&self.axes, length) {
                (Some(axes), _) => axes.contains(&axis),
                (None, Some(length)) => *length == 1,
                (None, None) => return Ok(vec![Shape::UNKNOWN]),
            };
            if goes {
                input.expect_length(axis, Some(1))?;
            } else {
                left.push(*length);
            }
        }
        Ok(vec![Shape::new(if left.is_empty() { vec![Some(1)] } else { left })])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = self.output_dimensions(call)?;
        Ok(vec![movement::copied(call.input(0).bytes()?, call.output(0), dimensions)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_1, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm};
    use nnhal_hal::OperandType;

    fn example(operand_type: OperandType, dimensions: &[u32], axes: Option<&[i32]>) -> Example {
        let call = Example::new(OperationType::Squeeze)
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
        let refusal = |dimensions: &[u32], axes| example(TensorFloat32, dimensions, axes).refusal();
        assert_eq!(
            refusal(&[1; 5], None),
            "SQUEEZE: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            refusal(&[1, 2], Some(&[2])),
            "SQUEEZE: value of input 1 (axes) is 2, expected an axis of a tensor of rank 2"
        );
        assert!(refusal(&[1, 2], Some(&[-3])).contains("is -3"));
        assert_eq!(
            refusal(&[1, 2], Some(&[1])),
            "SQUEEZE: shape of input 0 (input) is [1, 2], expected length 1 along axis 1"
        );
        let quantized = example(TensorQuant8Asymm, &[1], None);
        let output = tensor(TensorQuant8Asymm, []).quantized(0.5, 1);
        assert!(quantized.with_output(output).refusal().contains("zero point"));
    }

    #[test]
    fn axes_of_length_1_go() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorQuant8Asymm] {
            let dimensions = |axes| example(operand_type, &[1, 2, 1, 3], axes).result().0;
            assert_eq!(dimensions(None), [2, 3]);
            assert_eq!(dimensions(Some(&[])), [1, 2, 1, 3]);
            assert_eq!(dimensions(Some(&[0])), [2, 1, 3]);
            assert_eq!(dimensions(Some(&[-2, 2])), [1, 2, 3]);
            assert_eq!(dimensions(Some(&[2, 0])), [2, 3]);
        }
        let all = example(TensorFloat32, &[1, 1], None).result();
        assert_eq!(all, (vec![1], vec![0.0]));
        assert_eq!(example(TensorFloat32, &[1, 0], None).result(), (vec![0], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32], axes| {
            example(TensorFloat32, &[1], axes)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        // A length that is not known decides whether the axis goes.
        assert_eq!(shape(&[1, 0, 3], None), Shape::UNKNOWN);
        assert_eq!(shape(&[1, 0, 3], Some(&[0])), Shape::new([None, Some(3)]));
        assert_eq!(shape(&[1, 0, 3], Some(&[1])), Shape::known([1, 3]));
        assert_eq!(shape(&[], None), Shape::UNKNOWN);
        assert_eq!(shape(&[], Some(&[0])), Shape::UNKNOWN);
    }
}
