//! POW: `base ^ exponent`, element by element, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | base | any two that broadcast | float32, float16 |
//! | input 1 | exponent | | as the base |
//! | output 0 | output | the common shape | as the base |
//!
//! A negative base with an exponent that is no integer gives NaN.
//!
//! Source: `types.hal` 1.2.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::{broadcast, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{HalVersion, OperandType, OperationType};

/// POW.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pow;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Pow,
    rows: &[
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("base", 0), Parameter::column("exponent", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl Pow {
    /// The function on real numbers.
    pub fn real(self, base: f32, exponent: f32) -> f32 {
        real::round(f64::from(base).powf(exponent.into()))
    }
}

impl Operation for Pow {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (base, exponent, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, base, exponent)?;
        let (bases, exponents) = (base.f32s()?, exponent.f32s()?);
        let mut elements = output.allocate(&dimensions)?;
        elements.extend(pairs.map(|(i, j)| self.real(bases[i], exponents[j])));
        Ok(vec![output.with_f32s(dimensions, &elements)])
    }
}
