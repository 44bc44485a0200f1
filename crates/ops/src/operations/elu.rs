//! ELU: `max(0, x) + min(0, alpha * (exp(x) - 1))`, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16 |
//! | input 1 | alpha | scalar | FLOAT32; FLOAT16 with float16 |
//! | output 0 | output | as the input | as the input |
//!
//! Source: `types.hal` 1.3.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{HalVersion, OperandType, OperationType};

/// ELU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elu {
    /// Minus the limit at minus infinity, where it is above 0.
    pub alpha: f32,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Elu,
    rows: &[
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat32, OperandType::Float32]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat16, OperandType::Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_3,
        &[Parameter::column("input", 0), Parameter::column("alpha", 1)],
        &[Parameter::column("output", 0)],
    )],
};

impl Elu {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        let x = f64::from(x);
        if x.is_nan() {
            return f32::NAN;
        }
        // `min` passes over the NaN of an alpha of 0 and an infinite exponential.
        real::round(x.max(0.0) + (f64::from(self.alpha) * x.exp_m1()).min(0.0))
    }
}

impl Operation for Elu {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { alpha: call.input(1).f32()? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Ok(vec![real::map(call.input(0), call.output(0), |x| self.real(x))?])
    }
}
