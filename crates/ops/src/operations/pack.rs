//! PACK: tensors of the same shape laid one behind the other along a new axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | axis | scalar, from 0 to the inputs' rank | INT32 |
//! | input 1 to n | input | any, all the same | float32, float16, quantized, int32 |
//! | output 0 | output | the inputs' with a length of n at the axis | as the inputs; same scale, zero point |
//!
//! Source: `OperationType.aidl`, feature level 6.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// PACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pack {
    /// The axis of the output that distinguishes the inputs.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Pack,
    rows: &[
        Row::new(HalVersion::FeatureLevel6, &[TensorFloat32]),
        Row::new(HalVersion::FeatureLevel6, &[TensorFloat16]),
        Row::new(HalVersion::FeatureLevel6, &[TensorInt32]),
        Row::new(HalVersion::FeatureLevel6, &[TensorQuant8Asymm]),
        Row::new(HalVersion::FeatureLevel6, &[TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::FeatureLevel6,
        &[Parameter::int32("axis"), Parameter::column("input", 0).repeated(1)],
        &[Parameter::column("output", 0)],
    )],
};

fn tensors<'c, 'a>(call: &'c Call<'a>) -> &'c [Argument<'a>] {
    call.inputs().get(1..).unwrap_or_default()
}

/// The shape of all inputs together.
fn common_shape(call: &Call<'_>) -> Result<Shape, Fault> {
    tensors(call).iter().try_fold(Shape::UNKNOWN, |common, input| {
        let both = common.merge(&input.shape);
        both.ok_or_else(|| input.wrong("shape", &input.shape, format!("{common} as others")))
    })
}

impl Operation for Pack {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        for input in tensors(call) {
            input.expect_rank_in(1..=usize::MAX)?;
            input.expect_quantized_as(call.output(0))?;
        }
        // Ranks first: a model with others is refused at once, one with other lengths is not (contract: MODEL-29).
        if let Some(rank) = tensors(call).iter().find_map(|input| input.shape.rank()) {
            tensors(call).iter().try_for_each(|input| input.expect_rank(rank))?;
            call.output(0).expect_rank(rank + 1)?;
        }
        // Inputs that differ are wrong even while the axis is not known.
        common_shape(call).map(drop)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let axis = call.input(0);
        let given = axis.i32()?;
        let rank = common_shape(call)?.rank().ok_or_else(|| call.not_known("rank"))?;
        match usize::try_from(given) {
            Ok(axis) if axis <= rank => Ok(Self { axis }),
            _ => Err(axis.wrong("value", given, format!("0 to {rank}"))),
        }
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let common = common_shape(call)?;
        let mut lengths = common.lengths().ok_or_else(|| call.not_known("rank"))?.to_vec();
        let count = u32::try_from(tensors(call).len());
        let count = count.map_err(|_| call.wrong("number of inputs", "2^32 or more", "fewer"))?;
        lengths.insert(self.axis.min(lengths.len()), Some(count));
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = self.output_dimensions(call)?;
        let mut parts = Vec::with_capacity(tensors(call).len());
        for input in tensors(call) {
            parts.push((input.bytes()?, 1));
        }
        Ok(vec![movement::joined(&parts, self.axis, call.output(0), dimensions)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;

    fn example(inputs: &[(OperandSpec, &[f64])], axis: i32) -> Example {
        let output = OperandSpec { dimensions: vec![], ..inputs[0].0.clone() };
        let call = Example::new(OperationType::Pack).int32s([axis]);
        let call =
            inputs.iter().cloned().fold(call, |call, (spec, elements)| call.input(spec, elements));
        call.output(output)
    }

    #[test]
    fn model_25_every_type_came_with_feature_level_6() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let vector = (tensor(operand_type, [1]), &[0.0][..]);
            assert_eq!(
                example(&[vector.clone(), vector], 0).since(),
                Ok(HalVersion::FeatureLevel6),
                "{operand_type}"
            );
        }
        let vector = (tensor(OperandType::TensorBool8, [1]), &[0.0][..]);
        assert!(example(&[vector], 0).since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let vector = |length| (tensor(TensorFloat32, [length]), &[0.0; 2][..length as usize]);
        assert_eq!(
            example(&[vector(1), vector(2)], 0).refusal(),
            "PACK: shape of input 2 (input) is [2], expected [1] as others"
        );
        let matrix = (tensor(TensorFloat32, [2, 1]), &[0.0; 2][..]);
        assert_eq!(
            example(&[vector(2), matrix.clone()], 0).refusal(),
            "PACK: rank of input 2 (input) is 2, expected 1"
        );
        let flat = example(&[matrix.clone(), matrix], 0).with_output(tensor(TensorFloat32, [2, 2]));
        assert_eq!(flat.refusal(), "PACK: rank of output 0 (output) is 2, expected 3");
        for axis in [-1, 2] {
            assert_eq!(
                example(&[vector(1)], axis).refusal(),
                format!("PACK: value of input 0 (axis) is {axis}, expected 0 to 1")
            );
        }
        let quantized = (OperandSpec::tensor_quant8_asymm([1], 0.5, 3), &[0.0][..]);
        let other = OperandSpec::tensor_quant8_asymm([], 0.25, 3);
        assert!(example(&[quantized], 0).with_output(other).refusal().contains("scale of input 1"));
        let none = Example::new(OperationType::Pack).int32s([0]).output(tensor(TensorFloat32, []));
        assert!(none.refusal().contains("expected 2 or more inputs"));
    }

    #[test]
    fn the_new_axis_may_be_anywhere() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm] {
            let both = [
                (tensor(operand_type, [2, 2]), &[0.0, 1.0, 2.0, 3.0][..]),
                (tensor(operand_type, [2, 2]), &[4.0, 5.0, 6.0, 7.0][..]),
            ];
            let result = |axis| example(&both, axis).result();
            let elements = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
            assert_eq!(result(0), (vec![2, 2, 2], elements));
            assert_eq!(result(1).1, [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
            assert_eq!(result(2).1, [0.0, 4.0, 1.0, 5.0, 2.0, 6.0, 3.0, 7.0]);
        }
        let nothing = (tensor(TensorFloat32, [0, 3]), &[][..]);
        assert_eq!(example(&[nothing], 1).result(), (vec![0, 1, 3], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |a: &[u32], b: &[u32]| {
            let input = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
            let call = Example::new(OperationType::Pack).int32s([1]);
            let call = call.input_to_come(input(a)).input_to_come(input(b)).output(input(&[]));
            call.shapes().map(|mut shapes| shapes.swap_remove(0))
        };
        assert_eq!(shape(&[0, 3], &[4, 0]), Ok(Shape::known([4, 2, 3])));
        assert_eq!(shape(&[0, 3], &[]), Ok(Shape::new([None, Some(2), Some(3)])));
        assert_eq!(shape(&[], &[]), Ok(Shape::UNKNOWN));
        assert!(shape(&[1], &[2]).is_err());
    }
}
