//! SELECT: `condition ? input1 : input2`, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | condition | any | bool8 |
//! | input 1 | chosen where true | as the condition | float32, float16, int32, quantised |
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
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned,
};
use hal::{HalVersion, OperandType, OperationType};

/// SELECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Select;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Select,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
    ],
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
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

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
        fn choose<T>(conditions: &[bool], then: Vec<T>, otherwise: Vec<T>) -> Vec<T> {
            let choices = conditions.iter().zip(then.into_iter().zip(otherwise));
            choices
                .map(|(condition, (then, otherwise))| if *condition { then } else { otherwise })
                .collect()
        }
        let (then, otherwise, output) = (call.input(1), call.input(2), call.output(0));
        let dimensions = call.input(0).dimensions()?;
        let conditions = call.input(0).bools()?;
        Ok(vec![if output.is_float() {
            let elements = choose(&conditions, then.f32s()?, otherwise.f32s()?);
            output.with_f32s(dimensions, &elements)
        } else {
            let (then, otherwise) = (requantized(then, output)?, requantized(otherwise, output)?);
            let elements = choose(&conditions, then, otherwise);
            output.with_integers(dimensions, &elements)
        }])
    }
}
