//! QUANTIZE: `round(input / scale) + zero point`, halves away from zero, saturated.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16 |
//! | output 0 | output | as the input | quantised |
//!
//! NaN becomes the zero point.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
use hal::{HalVersion, OperandType, OperationType};

/// QUANTIZE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantize;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Quantize,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorFloat32, TensorQuant8AsymmSigned]),
        Row::new(HalVersion::V1_3, &[TensorFloat16, TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 1)],
    )],
};

impl Operation for Quantize {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Ok(vec![real::map(call.input(0), call.output(0), |x| x)?])
    }
}
