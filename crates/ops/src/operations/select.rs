//! SELECT: `condition ? input1 : input2`, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | condition | any | bool8 |
//! | input 1 | chosen where true | as the condition | float32, float16, int32, quantized |
//! | input 2 | chosen where false | as the condition | as input 1; its own scale and zero point |
//! | output 0 | output | as the condition | as input 1; its own scale and zero point |
//!
//! Unlike other operations on several tensors this one does not broadcast.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::requantize::requantized;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Signature};
use OperandType::TensorBool8;
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// SELECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Select;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Select,
    rows: NUMBERS_SINCE_1_2,
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::fixed("condition", TensorBool8),
            Parameter::column("input1", 0),
            Parameter::column("input2", 0),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Select {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut common = call.input(0).shape.clone();
        for input in &call.inputs()[1..] {
            common = common
                .merge(&input.shape)
                .ok_or_else(|| input.wrong("shape", &input.shape, format!("{common} as others")))?;
        }
        Ok(vec![common])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (then, otherwise, output) = (call.input(1), call.input(2), call.output(0));
        let dimensions = call.input(0).dimensions()?;
        let conditions = call.input(0).bools()?;
        Ok(vec![if output.is_float() {
            let choices = choose(&conditions, then.f32s()?, otherwise.f32s()?);
            let elements = output.collect(&dimensions, choices)?;
            output.with_f32s(dimensions, &elements)?
        } else {
            let (then, otherwise) = (requantized(then, output)?, requantized(otherwise, output)?);
            let elements = output.collect(&dimensions, choose(&conditions, then, otherwise))?;
            output.with_integers(dimensions, &elements)?
        }])
    }
}

/// The elements that the conditions choose.
fn choose<T>(conditions: &[bool], then: Vec<T>, otherwise: Vec<T>) -> impl Iterator<Item = T> {
    let choices = conditions.iter().zip(then.into_iter().zip(otherwise));
    choices.map(|(condition, (a, b))| if *condition { a } else { b })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32};
    use nnhal_hal::OperandSpec;

    fn example(
        condition: &[f64],
        then: (OperandSpec, &[f64]),
        otherwise: (OperandSpec, &[f64]),
    ) -> Example {
        let output = OperandSpec { dimensions: vec![], ..then.0.clone() };
        Example::new(OperationType::Select)
            .input(tensor(TensorBool8, then.0.dimensions.clone()), condition)
            .input(then.0, then.1)
            .input(otherwise.0, otherwise.1)
            .output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_2, |operand_type| {
            let five = tensor(operand_type, [1; 5]);
            example(&[1.0], (five.clone(), &[1.0]), (five, &[0.0]))
        });
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let two = || (tensor(TensorFloat32, [2]), &[1.0, 2.0][..]);
        let good = example(&[0.0, 1.0], two(), two());
        assert!(good.run().is_ok());
        // There is no broadcasting, not even of a single element.
        for index in [1, 2] {
            let one = tensor(TensorFloat32, [1]);
            let message = good.clone().with_input(index, one, &[1.0]).refusal();
            let expected = format!(
                "SELECT: shape of input {index} (input{index}) is [1], expected [2] as others"
            );
            assert_eq!(message, expected);
        }
        assert_eq!(
            good.clone().with_input(0, tensor(TensorFloat32, [2]), &[0.0, 1.0]).refusal(),
            "SELECT: type of input 0 (condition) is TENSOR_FLOAT32, expected TENSOR_BOOL8"
        );
        assert_eq!(
            good.with_input(2, tensor(TensorInt32, [2]), &[0.0, 1.0]).refusal(),
            "SELECT: type of input 2 (input2) is TENSOR_INT32, expected TENSOR_FLOAT32"
        );
    }

    #[test]
    fn values_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32] {
            let four = tensor(operand_type, [2, 2]);
            let (then, otherwise) = ([1.0, 2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0]);
            let call = example(&[0.0, 1.0, 2.0, 0.0], (four.clone(), &then), (four, &otherwise));
            assert_eq!(call.result(), (vec![2, 2], vec![-1.0, 2.0, 3.0, -4.0]));
        }
    }

    #[test]
    fn quantized_values_are_stored_as_the_output_is() {
        // 0.5 * (140 - 128) = 6 and 0.25 * (40 - 0) = 10, in steps of 2 from 1.
        let then = OperandSpec::tensor_quant8_asymm([2], 0.5, 128);
        let otherwise = OperandSpec::tensor_quant8_asymm([2], 0.25, 0);
        let call = example(&[1.0, 0.0], (then, &[140.0; 2]), (otherwise, &[40.0; 2]))
            .with_output(OperandSpec::tensor_quant8_asymm([], 2.0, 1));
        assert_eq!(call.result().1, [4.0, 6.0]);
    }

    #[test]
    fn every_shape_tells_of_the_common_one() {
        let open = |condition: &[u32], then: &[u32], otherwise: &[u32]| {
            Example::new(OperationType::Select)
                .input_to_come(tensor(TensorBool8, condition))
                .input_to_come(tensor(TensorFloat32, then))
                .input_to_come(tensor(TensorFloat32, otherwise))
                .output(tensor(TensorFloat32, []))
                .shapes()
        };
        assert_eq!(
            open(&[2, 0, 0], &[], &[0, 3, 0]),
            Ok(vec![Shape::new([Some(2), Some(3), None])])
        );
        assert_eq!(open(&[], &[], &[]), Ok(vec![Shape::UNKNOWN]));
        assert!(open(&[2, 0], &[], &[0, 3, 0]).is_err());
        let empty = || (tensor(TensorFloat32, [0, 2]), &[][..]);
        assert_eq!(example(&[], empty(), empty()).result(), (vec![0, 2], vec![]));
    }
}
