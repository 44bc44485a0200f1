//! SPLIT: equal parts along an axis, each an output.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, quantized, int32 |
//! | input 1 | axis | scalar, negative from the end | INT32 |
//! | input 2 | number of parts | scalar; divides the length of the axis | INT32 |
//! | output 0 to n-1 | part | the input's with an n-th of the length | as the input; same scale, zero point |
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// SPLIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Split {
    /// The axis that is cut.
    pub axis: usize,
    /// Into how many parts; as many as there are outputs.
    pub parts: u32,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Split,
    rows: NUMBERS_SINCE_1_2,
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::int32("axis"),
            Parameter::int32("number of parts"),
        ],
        &[Parameter::column("part", 0).repeated(1)],
    )],
};

impl Operation for Split {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)?;
        call.outputs().iter().try_for_each(|part| part.expect_quantized_as(call.input(0)))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (axis, number, outputs) = (call.input(1), call.input(2), call.outputs().len());
        let parts = number.positive()?;
        if parts as usize != outputs {
            return Err(number.wrong("value", parts, format!("{outputs}, the number of outputs")));
        }
        Ok(Self { axis: axis.axis_of(axis.i32()?, call.input(0))?, parts })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        let mut lengths = input.shape.lengths().ok_or_else(|| input.not_known("rank"))?.to_vec();
        if let Some(Some(length)) = lengths.get_mut(self.axis) {
            if !length.is_multiple_of(self.parts) {
                let expected = format!("a divisor of the {length} of axis {}", self.axis);
                return Err(call.input(2).wrong("value", self.parts, expected));
            }
            *length /= self.parts;
        }
        Ok(vec![Shape::new(lengths); self.parts as usize])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let input = call.input(0);
        let shapes = self.output_shapes(call)?;
        let strides = movement::strides(&input.lengths()?);
        let mut parts = Vec::with_capacity(shapes.len());
        for (part, (output, shape)) in call.outputs().iter().zip(shapes).enumerate() {
            let dimensions = shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
            let first = part * dimensions[self.axis] as usize;
            let offset =
                |axis, index| strides[axis] * if axis == self.axis { first + index } else { index };
            parts.push(movement::moved(input.bytes()?, output, dimensions, offset)?);
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm};
    use nnhal_hal::OperandType;

    /// A call on elements 0, 1, 2 and so on.
    fn example(operand_type: OperandType, dimensions: &[u32], axis: i32, parts: i32) -> Example {
        let call = Example::new(OperationType::Split)
            .counted(tensor(operand_type, dimensions))
            .int32s([axis, parts]);
        (0..parts.max(1)).fold(call, |call, _| call.output(tensor(operand_type, [])))
    }

    fn bytes_of(example: &Example) -> Vec<Vec<u8>> {
        example.run().unwrap().into_iter().map(|output| output.bytes).collect()
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_2, |operand_type| example(operand_type, &[3], 0, 3));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |axis, parts| example(TensorFloat32, &[4, 3], axis, parts).refusal();
        assert_eq!(
            refusal(2, 2),
            "SPLIT: value of input 1 (axis) is 2, expected an axis of a tensor of rank 2"
        );
        assert!(refusal(-3, 2).contains("is -3"));
        assert_eq!(
            refusal(1, 2),
            "SPLIT: value of input 2 (number of parts) is 2, \
             expected a divisor of the 3 of axis 1"
        );
        assert_eq!(
            refusal(0, 0),
            "SPLIT: value of input 2 (number of parts) is 0, expected above 0"
        );
        assert_eq!(
            example(TensorFloat32, &[4], 0, 2).with_int32(2, 4).refusal(),
            "SPLIT: value of input 2 (number of parts) is 4, expected 2, the number of outputs"
        );
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[2], 0, 2).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn parts_by_hand() {
        let vector = |axis| bytes_of(&example(TensorQuant8Asymm, &[2, 4], axis, 2));
        assert_eq!(vector(0), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(vector(1), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(vector(-1), vector(1));
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32] {
            let parts = example(operand_type, &[2, 3], 1, 3).run().unwrap();
            assert!(parts.iter().all(|part| part.dimensions == [2, 1]));
            let first = example(operand_type, &[2, 3], 1, 3).result();
            assert_eq!(first, (vec![2, 1], vec![0.0, 3.0]));
        }
        assert_eq!(bytes_of(&example(TensorQuant8Asymm, &[2], 0, 1)), [[0, 1]]);
    }

    #[test]
    fn nothing_can_be_split() {
        let parts = example(TensorFloat32, &[2, 0], 1, 3).run().unwrap();
        assert!(parts.iter().all(|part| part.dimensions == [2, 0] && part.bytes.is_empty()));
        assert_eq!(parts.len(), 3);
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shapes = |dimensions: &[u32]| {
            example(TensorFloat32, &[2, 2], 0, 2)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shapes()
                .unwrap()
        };
        assert_eq!(shapes(&[6, 0]), vec![Shape::new([Some(3), None]); 2]);
        assert_eq!(shapes(&[0, 6]), vec![Shape::new([None, Some(6)]); 2]);
        assert_eq!(shapes(&[]), vec![Shape::UNKNOWN; 2]);
    }
}
