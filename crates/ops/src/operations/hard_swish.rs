//! HARD_SWISH: `x * max(0, min(6, x + 3)) / 6`, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, quantised |
//! | output 0 | output | as the input | as the input; its own scale and zero point |
//!
//! A quantised output is the stored value nearest to the formula's; implementations in fixed-point
//! arithmetic may be one step away.
//!
//! Source: `types.hal` 1.3.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{HalVersion, OperandType, OperationType};

/// HARD_SWISH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HardSwish;

static SIGNATURE: Signature = Signature {
    operation: OperationType::HardSwish,
    rows: &[
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_3,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl HardSwish {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        // The formula has no value at minus infinity; its limit there is 0.
        if x <= -3.0 {
            return 0.0;
        }
        let x = f64::from(x);
        real::round(x * (x + 3.0).min(6.0) / 6.0)
    }
}

impl Operation for HardSwish {
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
        Ok(vec![real::map(call.input(0), call.output(0), |x| self.real(x))?])
    }
}
