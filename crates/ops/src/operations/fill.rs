//! FILL: a tensor of one value.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | shape | `[rank of the output]` | TENSOR_INT32, lengths |
//! | input 1 | value | scalar | FLOAT32, FLOAT16, INT32 |
//! | output 0 | output | as input 0 says | float32, float16, int32 as the value |
//!
//! Source: `types.hal` 1.3.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{Float16, Float32, Int32, TensorFloat16, TensorFloat32, TensorInt32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// FILL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fill {
    /// The dimensions of the output, one or more.
    pub dimensions: Vec<u32>,
    /// The bytes of one element.
    pub element: Vec<u8>,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Fill,
    rows: &[
        Row::new(HalVersion::V1_3, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_3, &[TensorFloat16, Float16]),
        Row::new(HalVersion::V1_3, &[TensorInt32, Int32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_3,
        &[Parameter::tensor_int32("shape"), Parameter::column("value", 1)],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Fill {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(1)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let shape = call.input(0);
        let dimensions = shape.shape_given()?;
        if dimensions.is_empty() {
            return Err(shape.wrong("shape", &shape.shape, "1 length or more"));
        }
        let (value, output) = (call.input(1), call.output(0));
        Ok(Self { dimensions, element: movement::element(value, output)? })
    }

    fn output_shapes(&self, _call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![Shape::known(self.dimensions.iter().copied())])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Ok(vec![movement::repeated(&self.element, call.output(0), self.dimensions.clone())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;

    const TYPES: [(OperandType, OperandType); 3] =
        [(TensorFloat32, Float32), (TensorFloat16, Float16), (TensorInt32, Int32)];

    fn example(
        (of_output, of_value): (OperandType, OperandType),
        dimensions: &[f64],
        value: f64,
    ) -> Example {
        Example::new(OperationType::Fill)
            .input(tensor(TensorInt32, [u32::try_from(dimensions.len()).unwrap()]), dimensions)
            .input(OperandSpec::scalar(of_value), &[value])
            .output(tensor(of_output, []))
    }

    #[test]
    fn model_25_all_types_came_with_1_3() {
        for types in TYPES {
            assert_eq!(example(types, &[1.0], 0.0).since(), Ok(HalVersion::V1_3));
        }
        assert!(example((TensorFloat32, Int32), &[1.0], 0.0).since().is_err());
        assert!(example((OperandType::TensorQuant8Asymm, Int32), &[1.0], 0.0).since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        assert_eq!(
            example(TYPES[0], &[2.0, -1.0], 0.0).refusal(),
            "FILL: value of input 0 (shape) is -1, expected 0 or more"
        );
        assert_eq!(
            example(TYPES[0], &[], 0.0).refusal(),
            "FILL: shape of input 0 (shape) is [0], expected 1 length or more"
        );
        assert_eq!(
            example(TYPES[0], &[1.0], 0.0)
                .with_input(0, tensor(TensorInt32, [1, 1]), &[1.0])
                .refusal(),
            "FILL: rank of input 0 (shape) is 2, expected 1"
        );
        assert_eq!(
            example(TYPES[0], &[1.0; 33], 0.0).refusal(),
            "FILL: shape of input 0 (shape) is [33], expected a number for each of at most 32 axes"
        );
    }

    #[test]
    fn results_beyond_memory_are_refused() {
        let most = f64::from(i32::MAX);
        for dimensions in [&[most][..], &[65536.0, 65536.0], &[most; 20]] {
            let refusal = example(TYPES[0], dimensions, 0.0).refusal();
            assert!(refusal.contains("at most 2^32 - 1 bytes"), "{refusal}");
        }
    }

    #[test]
    fn every_element_is_the_value() {
        for types in TYPES {
            assert_eq!(example(types, &[2.0, 1.0], -3.0).result(), (vec![2, 1], vec![-3.0; 2]));
            assert_eq!(example(types, &[2.0, 0.0], 1.0).result(), (vec![2, 0], vec![]));
        }
    }

    #[test]
    fn the_shape_is_known_with_its_value() {
        let to_come = tensor(TensorInt32, [2]);
        let call = example(TYPES[0], &[5.0, 0.0], 0.0);
        assert_eq!(call.shapes(), Ok(vec![Shape::known([5, 0])]));
        assert_eq!(call.with_input_to_come(0, to_come).shapes(), Ok(vec![Shape::UNKNOWN]));
    }
}
