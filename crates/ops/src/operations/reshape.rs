//! RESHAPE: the same elements in a tensor of another shape.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most | float32, float16, quantized, int32 |
//! | input 1 | shape | `[rank of the output]` | TENSOR_INT32, lengths; one may be -1 |
//! | output 0 | output | as input 1 says | as the input; same scale, zero point |
//!
//! A length of -1 becomes what makes the number of elements that of the input. Beside a length of
//! 0 it could be anything and is refused.
//!
//! Source: `types.hal` 1.0, 1.2, 1.3 (signed), feature level 6 (int32).

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

/// RESHAPE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The lengths of the output; `None` for one that follows from the number of elements. At most
    /// one is, and then none is 0.
    pub lengths: Vec<Option<u32>>,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Reshape,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32]),
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
        Row::new(HalVersion::FeatureLevel6, &[TensorInt32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[Parameter::column("input", 0), Parameter::tensor_int32("shape")],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Reshape {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=call.input(0).most_axes(4))?;
        call.input(1).expect_rank(1)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let shape = call.input(1);
        let length = |length: i32| match length {
            -1 => Ok(None),
            _ => u32::try_from(length)
                .map(Some)
                .map_err(|_| shape.wrong("value", length, "0 or more, or -1")),
        };
        let lengths: Vec<_> =
            shape.i32_per_axis()?.into_iter().map(length).collect::<Result<_, _>>()?;
        let open = lengths.iter().filter(|length| length.is_none()).count();
        if lengths.is_empty() || open > 1 {
            let found = format!("{} lengths, {open} of them -1", lengths.len());
            return Err(shape.wrong("value", found, "1 length or more, one of them -1 at most"));
        }
        if open == 1 && lengths.contains(&Some(0)) {
            return Err(shape.wrong("value", "-1 beside 0", "lengths that decide what -1 is"));
        }
        Ok(Self { lengths })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, shape) = (call.input(0), call.input(1));
        let Some(available) = input.shape.element_count() else {
            return Ok(vec![Shape::new(self.lengths.clone())]);
        };
        let wrong = || {
            let found = Shape::new(self.lengths.clone());
            shape.wrong("value", found, format!("{available} elements as {}", input.shape))
        };
        let given = Shape::known(self.lengths.iter().copied().flatten()).element_count();
        let given = given.ok_or_else(wrong)?;
        let mut lengths = self.lengths.clone();
        match lengths.iter_mut().find(|length| length.is_none()) {
            Some(open) if available % given == 0 => {
                *open = Some(u32::try_from(available / given).map_err(|_| wrong())?);
            }
            None if available == given => {}
            _ => return Err(wrong()),
        }
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
    use crate::operations::testing::{Example, assert_since, tensor};
    use OperationType::Reshape as RESHAPE;
    use proptest::prelude::*;

    /// A call with elements 0, 1, 2 and so on.
    fn example(operand_type: OperandType, dimensions: &[u32], shape: &[i32]) -> Example {
        Example::new(RESHAPE)
            .counted(tensor(operand_type, dimensions))
            .list(shape)
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(
            [
                (TensorFloat32, Some(HalVersion::V1_0)),
                (TensorQuant8Asymm, Some(HalVersion::V1_0)),
                (TensorFloat16, Some(HalVersion::V1_2)),
                (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
                (TensorInt32, Some(HalVersion::FeatureLevel6)),
                (OperandType::TensorBool8, None),
            ],
            |operand_type| example(operand_type, &[1], &[1]),
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal =
            |dimensions: &[u32], shape: &[i32]| example(TensorFloat32, dimensions, shape).refusal();
        assert_eq!(
            refusal(&[1; 5], &[1]),
            "RESHAPE: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            refusal(&[2], &[-2]),
            "RESHAPE: value of input 1 (shape) is -2, expected 0 or more, or -1"
        );
        assert_eq!(
            refusal(&[4], &[-1, 2, -1]),
            "RESHAPE: value of input 1 (shape) is 3 lengths, 2 of them -1, \
             expected 1 length or more, one of them -1 at most"
        );
        assert!(refusal(&[1], &[]).contains("0 lengths"));
        assert_eq!(
            refusal(&[0, 2], &[0, -1]),
            "RESHAPE: value of input 1 (shape) is -1 beside 0, \
             expected lengths that decide what -1 is"
        );
        assert_eq!(
            refusal(&[2, 3], &[4, -1]),
            "RESHAPE: value of input 1 (shape) is [4, ?], expected 6 elements as [2, 3]"
        );
        assert!(refusal(&[2, 3], &[5]).contains("expected 6 elements"));
        assert!(refusal(&[2], &[i32::MAX, i32::MAX, i32::MAX]).contains("expected 2 elements"));
        let column = tensor(TensorInt32, [1, 1]);
        assert_eq!(
            example(TensorFloat32, &[1], &[1]).with_input(1, column, &[1.0]).refusal(),
            "RESHAPE: rank of input 1 (shape) is 2, expected 1"
        );
        let output = tensor(TensorQuant8Asymm, []);
        let other = example(TensorQuant8Asymm, &[1], &[1]);
        assert_eq!(
            other.clone().with_output(output.clone().quantized(0.25, 128)).refusal(),
            "RESHAPE: scale of output 0 (output) is 0.25, expected 0.5 as input 0 (input)"
        );
        assert!(other.with_output(output.quantized(0.5, 127)).refusal().contains("zero point"));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shapes = |dimensions: &[u32], shape: &[i32]| {
            example(TensorFloat32, &[1], shape)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shapes()
                .map(|mut shapes| shapes.swap_remove(0))
        };
        assert_eq!(shapes(&[4, 6], &[3, -1]), Ok(Shape::known([3, 8])));
        assert_eq!(shapes(&[4, 0], &[3, -1]), Ok(Shape::new([Some(3), None])));
        assert_eq!(shapes(&[], &[3, 2]), Ok(Shape::known([3, 2])));
        assert_eq!(shapes(&[65536, 65536], &[-1]).ok(), None);
        assert_eq!(shapes(&[65536, 65536], &[-1, 2]), Ok(Shape::known([1 << 31, 2])));
        let to_come =
            example(TensorFloat32, &[2], &[1, 2]).with_input_to_come(1, tensor(TensorInt32, [2]));
        assert_eq!(to_come.shapes(), Ok(vec![Shape::UNKNOWN]));
    }

    #[test]
    fn elements_keep_their_order_whatever_their_size() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorQuant8AsymmSigned, TensorInt32] {
            let found = example(operand_type, &[2, 3], &[3, -1]).result();
            assert_eq!(found, (vec![3, 2], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
        }
    }

    #[test]
    fn nothing_takes_another_shape() {
        assert_eq!(example(TensorFloat32, &[0, 2], &[3, 0, 5]).result(), (vec![3, 0, 5], vec![]));
        assert_eq!(example(TensorFloat32, &[0, 2], &[-1, 7]).result(), (vec![0, 7], vec![]));
    }

    proptest! {
        #[test]
        fn hostile_shapes_do_no_harm(shape in prop::collection::vec(any::<i32>(), 0..40)) {
            // Refused, or the elements of the input: never a panic.
            if let Ok(outputs) = example(TensorFloat32, &[2, 2], &shape).run() {
                prop_assert_eq!(outputs[0].bytes.len(), 16);
            }
        }
    }
}
