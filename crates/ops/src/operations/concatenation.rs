//! CONCATENATION: tensors laid one behind the other along an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 to n-1 | input | rank 4 at most; equal but for the length of the axis | float32, float16, quantized; own scales and zero points |
//! | input n | axis | scalar, from the front | INT32 |
//! | output 0 | output | the inputs' with the sum of their lengths | as the inputs; its own scale and zero point |
//!
//! Elements of an input that is quantized otherwise than the output are quantized anew; until 1.2
//! `TENSOR_QUANT8_ASYMM` knew no such inputs.
//!
//! Source: `types.hal` 1.0, 1.2, 1.3 (signed).

use crate::call::{Argument, Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::rules::requantize::requantized;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
use nnhal_hal::{HalVersion, OperandType, OperationType};
use std::borrow::Cow;

/// CONCATENATION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concatenation {
    /// The axis along which the inputs follow each other.
    pub axis: usize,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Concatenation,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32]),
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[Parameter::column("input", 0).repeated(1), Parameter::int32("axis")],
        &[Parameter::column("output", 0)],
    )],
};

/// The inputs without the axis, and the axis.
fn parts<'c, 'a>(call: &'c Call<'a>) -> Result<(&'c [Argument<'a>], &'c Argument<'a>), Fault> {
    let (axis, tensors) =
        call.inputs().split_last().ok_or_else(|| call.wrong("number of inputs", 0, "2 or more"))?;
    Ok((tensors, axis))
}

fn is_quantized_alike(a: &Argument<'_>, b: &Argument<'_>) -> bool {
    a.expect_quantized_as(b).is_ok()
}

impl Operation for Concatenation {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn since(call: &Call<'_>) -> Since {
        let (tensors, output) =
            (parts(call).map_or(&[][..], |(tensors, _)| tensors), call.output(0));
        let differs = output.operand_type == TensorQuant8Asymm
            && !tensors.iter().all(|input| is_quantized_alike(input, output));
        let reason = "an input that is quantized otherwise than the output";
        Since::ALWAYS.and(HalVersion::V1_2, reason, differs)
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        parts(call)?.0.iter().try_for_each(|input| input.expect_rank_in(1..=input.most_axes(4)))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (tensors, axis) = parts(call)?;
        let from_front = axis.non_negative()?;
        let tensor = tensors.iter().find(|input| input.shape.rank().is_some());
        let tensor = tensor.ok_or_else(|| call.not_known("rank"))?;
        let from_front = i32::try_from(from_front).unwrap_or(i32::MAX);
        Ok(Self { axis: axis.axis_of(from_front, tensor)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (tensors, _) = parts(call)?;
        let mut others = Shape::UNKNOWN;
        let mut sum = Some(0_u32);
        for input in tensors {
            let length = input.shape.length(self.axis);
            sum = match (sum, length) {
                (Some(sum), Some(length)) => Some(sum.checked_add(length).ok_or_else(|| {
                    input.wrong("shape", &input.shape, "lengths with a sum below 2^32")
                })?),
                _ => None,
            };
            others = others.merge(&self.without_axis(&input.shape)).ok_or_else(|| {
                let expected = format!("{others} as others, but for axis {}", self.axis);
                input.wrong("shape", &input.shape, expected)
            })?;
        }
        let mut lengths = others.lengths().ok_or_else(|| call.not_known("rank"))?.to_vec();
        if let Some(length) = lengths.get_mut(self.axis) {
            *length = sum;
        }
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (tensors, output) = (parts(call)?.0, call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let mut elements = Vec::with_capacity(tensors.len());
        for input in tensors {
            elements.push((as_output(input, output)?, input.lengths()?[self.axis]));
        }
        let elements: Vec<_> =
            elements.iter().map(|(bytes, length)| (bytes.as_ref(), *length)).collect();
        Ok(vec![movement::joined(&elements, self.axis, output, dimensions)?])
    }
}

impl Concatenation {
    /// The shape, with nothing known of the axis.
    fn without_axis(&self, shape: &Shape) -> Shape {
        let Some(lengths) = shape.lengths() else { return Shape::UNKNOWN };
        let mut lengths = lengths.to_vec();
        if let Some(length) = lengths.get_mut(self.axis) {
            *length = None;
        }
        Shape::new(lengths)
    }
}

/// The elements of an input, quantized as the output is.
fn as_output<'a>(input: &Argument<'a>, output: &Argument<'_>) -> Result<Cow<'a, [u8]>, Fault> {
    if is_quantized_alike(input, output) {
        return Ok(input.bytes()?.into());
    }
    let stored = requantized(input, output)?;
    Ok(output.with_integers(input.dimensions()?, &stored)?.bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn example(inputs: &[(OperandSpec, &[f64])], axis: i32) -> Example {
        let output = OperandSpec { dimensions: vec![], ..inputs[0].0.clone() };
        let call = Example::new(OperationType::Concatenation);
        let call =
            inputs.iter().cloned().fold(call, |call, (spec, elements)| call.input(spec, elements));
        call.int32s([axis]).output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        let expected = [
            (TensorFloat32, Some(HalVersion::V1_0)),
            (TensorQuant8Asymm, Some(HalVersion::V1_0)),
            (TensorFloat16, Some(HalVersion::V1_2)),
            (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
            (OperandType::TensorInt32, None),
        ];
        for (operand_type, since) in expected {
            let vector = (tensor(operand_type, [1]), &[0.0][..]);
            for inputs in [&[vector.clone()][..], &[vector.clone(), vector.clone(), vector]] {
                assert_eq!(example(inputs, 0).since().ok(), since, "{operand_type}");
            }
        }
    }

    #[test]
    fn model_25_inputs_quantized_otherwise_came_with_1_2() {
        let vector = |scale, zero_point| {
            (OperandSpec::tensor_quant8_asymm([1], scale, zero_point), &[0.0][..])
        };
        let since = |other| example(&[vector(0.5, 7), other], 0).since();
        assert_eq!(since(vector(0.5, 7)), Ok(HalVersion::V1_0));
        assert_eq!(since(vector(0.25, 7)), Ok(HalVersion::V1_2));
        assert_eq!(since(vector(0.5, 8)), Ok(HalVersion::V1_2));
        let output = OperandSpec::tensor_quant8_asymm([], 1.0, 7);
        let both = example(&[vector(0.5, 7), vector(0.5, 7)], 0).with_output(output);
        assert_eq!(both.since(), Ok(HalVersion::V1_2));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let zeros = [0.0; 12];
        let of = |dimensions: &[u32]| {
            let count: u32 = dimensions.iter().product();
            (tensor(TensorFloat32, dimensions), &zeros[..count as usize])
        };
        assert_eq!(
            example(&[of(&[1, 2]), of(&[1, 3])], 0).refusal(),
            "CONCATENATION: shape of input 1 (input) is [1, 3], \
             expected [?, 2] as others, but for axis 0"
        );
        assert_eq!(
            example(&[of(&[1, 2]), of(&[2])], 0).refusal(),
            "CONCATENATION: shape of input 1 (input) is [2], \
             expected [?, 2] as others, but for axis 0"
        );
        assert_eq!(
            example(&[of(&[1; 5])], 0).refusal(),
            "CONCATENATION: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            example(&[of(&[1, 2])], 2).refusal(),
            "CONCATENATION: value of input 1 (axis) is 2, expected an axis of a tensor of rank 2"
        );
        assert_eq!(
            example(&[of(&[1, 2])], -1).refusal(),
            "CONCATENATION: value of input 1 (axis) is -1, expected 0 or more"
        );
        let half = (tensor(TensorFloat16, [1]), &zeros[..1]);
        assert!(example(&[of(&[1]), half], 0).refusal().contains("type of input 1"));
    }

    #[test]
    fn tensors_follow_each_other_along_any_axis() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorQuant8Asymm] {
            let of = |dimensions: [u32; 3]| tensor(operand_type, dimensions);
            let ascending = [0.0, 1.0, 2.0, 3.0];
            let result = |inputs: &[(OperandSpec, &[f64])], axis| example(inputs, axis).result();
            let both = [(of([2, 1, 2]), &ascending[..]), (of([2, 1, 2]), &[5.0, 6.0, 7.0, 8.0])];
            let found = result(&both, 0);
            assert_eq!(found, (vec![4, 1, 2], vec![0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0]));
            let found = result(&both, 1);
            assert_eq!(found, (vec![2, 2, 2], vec![0.0, 1.0, 5.0, 6.0, 2.0, 3.0, 7.0, 8.0]));
            let uneven = [both[0].clone(), (of([2, 1, 1]), &[5.0, 6.0])];
            let found = result(&uneven, 2);
            assert_eq!(found, (vec![2, 1, 3], vec![0.0, 1.0, 5.0, 2.0, 3.0, 6.0]));
        }
    }

    #[test]
    fn nothing_adds_nothing() {
        let of = |length| tensor(TensorFloat32, [length, 2]);
        let found = example(&[(of(0), &[]), (of(1), &[4.0, 5.0]), (of(0), &[])], 0).result();
        assert_eq!(found, (vec![1, 2], vec![4.0, 5.0]));
        assert_eq!(example(&[(of(0), &[])], 0).result(), (vec![0, 2], vec![]));
    }

    #[test]
    fn elements_are_quantized_as_the_output() {
        // 0.5 * (q - 10) of 10, 13, 255 is 0, 1.5, 122.5; in steps of 2 from 100: 0, 0.75, 61.25.
        let vector = OperandSpec::tensor_quant8_asymm([3], 0.5, 10);
        let output = OperandSpec::tensor_quant8_asymm([], 2.0, 100);
        let same = OperandSpec::tensor_quant8_asymm([1], 2.0, 100);
        let call = example(&[(vector, &[10.0, 13.0, 255.0]), (same, &[7.0])], 0);
        let call = call.with_output(output);
        assert_eq!(call.result().1, [100.0, 101.0, 161.0, 7.0]);
        // 1 * q in steps of 0.25 from 0 saturates.
        let vector = OperandSpec::tensor_quant8_asymm_signed([3], 1.0, 0);
        let output = OperandSpec::tensor_quant8_asymm_signed([], 0.25, 0);
        let call = example(&[(vector, &[-128.0, 5.0, 127.0])], 0).with_output(output);
        assert_eq!(call.result().1, [-128.0, 20.0, 127.0]);
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |a: &[u32], b: &[u32]| {
            let input = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
            let call = Example::new(OperationType::Concatenation).input_to_come(input(a));
            let call = call.input_to_come(input(b)).int32s([1]).output(input(&[]));
            call.shapes().map(|mut shapes| shapes.swap_remove(0))
        };
        assert_eq!(shape(&[0, 2], &[3, 4]), Ok(Shape::known([3, 6])));
        assert_eq!(shape(&[3, 2], &[3, 0]), Ok(Shape::new([Some(3), None])));
        assert_eq!(shape(&[], &[3, 4]), Ok(Shape::new([Some(3), None])));
        assert_eq!(shape(&[], &[]), Ok(Shape::UNKNOWN));
        assert!(shape(&[1, u32::MAX], &[1, 1]).is_err());
    }

    proptest! {
        #[test]
        fn requantized_elements_are_the_nearest(
            stored in 0..256_u32,
            scales in (0.01..4.0_f32, 0.01..4.0_f32),
            zero_points in (0..256_i32, 0..256_i32),
        ) {
            let input = OperandSpec::tensor_quant8_asymm([1], scales.0, zero_points.0);
            let output = OperandSpec::tensor_quant8_asymm([], scales.1, zero_points.1);
            let call = example(&[(input, &[f64::from(stored)])], 0).with_output(output);
            let real = f64::from(scales.0) * (f64::from(stored) - f64::from(zero_points.0));
            let exact = real / f64::from(scales.1) + f64::from(zero_points.1);
            let error = (call.result().1[0] - exact.clamp(0.0, 255.0)).abs();
            prop_assert!(error <= 0.5001, "off by {}", error);
        }
    }
}
