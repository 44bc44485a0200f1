//! PAD, PAD_V2: a tensor with a border of equal elements.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most | float32, float16, quantized |
//! | input 1 | paddings | `[rank of the input, 2]` | TENSOR_INT32: elements before, elements behind, of each axis |
//! | input 2 | value (PAD_V2) | scalar | FLOAT32, FLOAT16 as the input; INT32, the stored value, for quantized inputs |
//! | output 0 | output | `before + length + behind` along each axis | as the input; same scale, zero point |
//!
//! PAD lays zeros: 0, or the zero point. Until 1.2 the elements around a `TENSOR_QUANT8_ASYMM` were
//! not defined, so that one with a zero point other than 0 needs 1.2.
//!
//! Source: `types.hal` 1.1 (PAD), 1.2, 1.3 (signed).

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::border::{self, Border};
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_1, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, Int32, TensorFloat16, TensorFloat32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// PAD or PAD_V2.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pad {
    /// What is laid around each axis.
    pub borders: Vec<Border>,
    /// The bytes of one element of the border, as the output stores it.
    pub element: Vec<u8>,
}

static PAD: Signature = Signature {
    operation: OperationType::Pad,
    rows: NUMBERS_SINCE_1_1,
    forms: &[Form::new(
        HalVersion::V1_1,
        &[Parameter::column("input", 0), Parameter::tensor_int32("paddings")],
        &[Parameter::column("output", 0)],
    )],
};

static PAD_V2: Signature = Signature {
    operation: OperationType::PadV2,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, Int32]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, Int32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("paddings"),
            Parameter::column("value", 1),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Pad {
    const SIGNATURES: &'static [&'static Signature] = &[&PAD, &PAD_V2];

    fn since(call: &Call<'_>) -> Since {
        border::since(call.input(0))
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=input.most_axes(4))?;
        border::validate(call.input(1), input.shape.rank())?;
        call.output(0).expect_quantized_as(input)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let borders = border::decode(call.input(1))?;
        let (value, output) = (call.inputs().get(2), call.output(0));
        let element = match (value, output.operand_type.quantized_range()) {
            (None, _) => movement::zero(output)?,
            (Some(value), None) => movement::element(value, output)?,
            (Some(value), _) if value.operand_type == output.operand_type => {
                movement::element(value, output)?
            }
            (Some(value), Some((least, greatest))) => {
                let stored = value.i32()?;
                if !(least..=greatest).contains(&stored) {
                    return Err(value.wrong("value", stored, format!("{least} to {greatest}")));
                }
                output.with_integers(vec![1], &[stored])?.bytes
            }
        };
        Ok(Self { borders, element })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![border::shape(call.input(0), call.input(1), &self.borders)?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = self.output_dimensions(call)?;
        let output =
            border::laid(call.input(0), &self.borders, &self.element, call.output(0), dimensions)?;
        Ok(vec![output])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use OperandType::TensorInt32;
    use OperationType::{Pad as PAD, PadV2 as PAD_V2};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn with_paddings(call: Example, paddings: &[[i32; 2]]) -> Example {
        let values: Vec<f64> = paddings.iter().flatten().copied().map(f64::from).collect();
        let rows = u32::try_from(paddings.len()).unwrap();
        call.input(tensor(TensorInt32, [rows, 2]), &values)
    }

    fn scalar_of(operand_type: OperandType) -> OperandSpec {
        OperandSpec::scalar(match operand_type {
            TensorFloat32 => Float32,
            TensorFloat16 => Float16,
            _ => Int32,
        })
    }

    /// A call on elements 1, 2, 3 and so on; with a value, PAD_V2.
    fn example(
        operand_type: OperandType,
        dimensions: &[u32],
        paddings: &[[i32; 2]],
        value: Option<f64>,
    ) -> Example {
        let count: u32 = dimensions.iter().product();
        let elements: Vec<f64> = (1..=count).map(f64::from).collect();
        let call = Example::new(if value.is_some() { PAD_V2 } else { PAD });
        let call = with_paddings(call.input(tensor(operand_type, dimensions), &elements), paddings);
        let call = match value {
            Some(value) => call.input(scalar_of(operand_type), &[value]),
            None => call,
        };
        call.output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        let expected = [
            (None, TensorFloat32, Some(HalVersion::V1_1)),
            (None, TensorFloat16, Some(HalVersion::V1_2)),
            (None, TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
            (None, TensorInt32, None),
            (Some(0.0), TensorFloat32, Some(HalVersion::V1_2)),
            (Some(0.0), TensorFloat16, Some(HalVersion::V1_2)),
            (Some(0.0), TensorQuant8Asymm, Some(HalVersion::V1_2)),
            (Some(0.0), TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
            (Some(0.0), TensorInt32, None),
        ];
        for (value, operand_type, since) in expected {
            let found = example(operand_type, &[1], &[[0, 0]], value).since();
            assert_eq!(found.ok(), since, "{value:?} {operand_type}");
        }
        let wrong_value = example(TensorFloat32, &[1], &[[0, 0]], Some(0.0)).with_int32(2, 0);
        assert!(wrong_value.since().is_err());
    }

    #[test]
    fn model_25_zeros_other_than_0_came_with_1_2() {
        for (zero_point, since) in [(0, HalVersion::V1_1), (1, HalVersion::V1_2)] {
            let input = OperandSpec::tensor_quant8_asymm([1], 0.5, zero_point);
            let call = example(TensorQuant8Asymm, &[1], &[[0, 0]], None);
            assert_eq!(call.with_input(0, input, &[0.0]).since(), Ok(since), "{zero_point}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |dimensions: &[u32], paddings: &[[i32; 2]]| {
            example(TensorFloat32, dimensions, paddings, None).refusal()
        };
        assert_eq!(
            refusal(&[1; 5], &[[0, 0]; 5]),
            "PAD: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            refusal(&[1, 1], &[[0, 0]]),
            "PAD: shape of input 1 (paddings) is [1, 2], expected length 2 along axis 0"
        );
        assert_eq!(
            refusal(&[1], &[[0, -1]]),
            "PAD: value of input 1 (paddings) is -1, expected 0 or more"
        );
        let good = example(TensorFloat32, &[1], &[[0, 0]], None);
        assert_eq!(
            good.with_input(1, tensor(TensorInt32, [1, 3]), &[0.0; 3]).refusal(),
            "PAD: shape of input 1 (paddings) is [1, 3], expected length 2 along axis 1"
        );
        for (operand_type, value, range) in [
            (TensorQuant8Asymm, 256.0, "0 to 255"),
            (TensorQuant8Asymm, -1.0, "0 to 255"),
            (TensorQuant8AsymmSigned, 128.0, "-128 to 127"),
        ] {
            assert_eq!(
                example(operand_type, &[1], &[[0, 0]], Some(value)).refusal(),
                format!("PAD_V2: value of input 2 (value) is {value}, expected {range}")
            );
        }
        let output = tensor(TensorQuant8Asymm, []).quantized(0.5, 0);
        let other = example(TensorQuant8Asymm, &[1], &[[0, 0]], None).with_output(output);
        assert!(other.refusal().contains("zero point of output 0"));
    }

    #[test]
    fn borders_beyond_memory_are_refused() {
        let most = i32::MAX;
        assert_eq!(
            example(TensorFloat32, &[2], &[[most, most]], None).refusal(),
            "PAD: value of input 1 (paddings) is 2147483647 and 2147483647, \
             expected at most 2^32 - 1 with the 2 between"
        );
        assert!(
            example(TensorFloat32, &[1, 1], &[[most, 0], [most, 0]], None)
                .refusal()
                .contains("at most 2^32 - 1 bytes")
        );
    }

    #[test]
    fn borders_of_zeros_by_hand() {
        for (operand_type, zero) in [
            (TensorFloat32, 0.0),
            (TensorFloat16, 0.0),
            (TensorQuant8Asymm, 128.0),
            (TensorQuant8AsymmSigned, 0.0),
        ] {
            let found = example(operand_type, &[2, 1], &[[0, 1], [2, 0]], None).result();
            let expected = vec![zero, zero, 1.0, zero, zero, 2.0, zero, zero, zero];
            assert_eq!(found, (vec![3, 3], expected), "{operand_type}");
        }
    }

    #[test]
    fn borders_of_a_value_by_hand() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let found = example(operand_type, &[1, 2], &[[0, 0], [1, 1]], Some(9.0)).result();
            assert_eq!(found, (vec![1, 4], vec![9.0, 1.0, 2.0, 9.0]), "{operand_type}");
        }
        let negative = example(TensorQuant8AsymmSigned, &[1], &[[1, 0]], Some(-128.0));
        assert_eq!(negative.result().1, [-128.0, 1.0]);
    }

    #[test]
    fn a_border_around_nothing() {
        let found = example(TensorFloat32, &[0], &[[1, 1]], None).result();
        assert_eq!(found, (vec![2], vec![0.0, 0.0]));
        let found = example(TensorFloat32, &[2, 0], &[[0, 0], [0, 1]], None).result();
        assert_eq!(found, (vec![2, 1], vec![0.0, 0.0]));
        let found = example(TensorFloat32, &[0, 2], &[[0, 0], [1, 1]], None).result();
        assert_eq!(found, (vec![0, 4], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32]| {
            example(TensorFloat32, &[1, 1], &[[1, 2], [3, 4]], None)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        assert_eq!(shape(&[5, 0]), Shape::new([Some(8), None]));
        assert_eq!(shape(&[]), Shape::of_rank(2));
        let to_come = example(TensorFloat32, &[1], &[[1, 1]], None)
            .with_input_to_come(1, tensor(TensorInt32, [1, 2]));
        assert_eq!(to_come.shapes(), Ok(vec![Shape::UNKNOWN]));
    }

    proptest! {
        #[test]
        fn all_elements_are_inside_and_the_border_adds_no_other(
            paddings in prop::collection::vec([0..3_i32, 0..3_i32], 3),
        ) {
            let (dimensions, elements) =
                example(TensorFloat32, &[2, 1, 3], &paddings, None).result();
            let inside: Vec<f64> = elements.iter().copied().filter(|it| *it != 0.0).collect();
            prop_assert_eq!(inside, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            let count: u32 = dimensions.iter().product();
            prop_assert_eq!(elements.len(), count as usize);
        }
    }
}
