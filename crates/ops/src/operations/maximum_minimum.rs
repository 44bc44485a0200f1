//! MAXIMUM, MINIMUM: the greater or the lesser of two elements, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two that broadcast | float32, float16, int32, quantised; each its own scale |
//! | output 0 | output | the common shape | as the inputs; its own scale and zero point |
//!
//! Quantised inputs are compared as they are once quantised as the output. A NaN on either side
//! gives NaN.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::requantize::requantized;
use crate::rules::{broadcast, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{HalVersion, OperandType, OperationType};

/// MAXIMUM or MINIMUM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaximumMinimum {
    /// MAXIMUM
    Maximum,
    /// MINIMUM
    Minimum,
}

const ROWS: &[Row] = &[
    Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorInt32]),
    Row::new(HalVersion::V1_2, &[OperandType::TensorQuant8Asymm]),
    Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
];
const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input0", 0), Parameter::column("input1", 0)],
    &[Parameter::column("output", 0)],
)];

static MAXIMUM: Signature =
    Signature { operation: OperationType::Maximum, rows: ROWS, forms: FORMS };
static MINIMUM: Signature =
    Signature { operation: OperationType::Minimum, rows: ROWS, forms: FORMS };

impl Operation for MaximumMinimum {
    fn signature(operation: OperationType) -> &'static Signature {
        match operation {
            OperationType::Minimum => &MINIMUM,
            _ => &MAXIMUM,
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.operation() {
            OperationType::Minimum => Self::Minimum,
            _ => Self::Maximum,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        Ok(vec![if output.is_float() {
            let (of_a, of_b) = (a.f32s()?, b.f32s()?);
            let choose = match self {
                Self::Maximum => real::maximum,
                Self::Minimum => real::minimum,
            };
            let mut elements = output.allocate(&dimensions)?;
            elements.extend(pairs.map(|(i, j)| choose(of_a[i], of_b[j])));
            output.with_f32s(dimensions, &elements)
        } else {
            let (of_a, of_b) = (requantized(a, output)?, requantized(b, output)?);
            let choose = match self {
                Self::Maximum => i32::max,
                Self::Minimum => i32::min,
            };
            let mut elements = output.allocate(&dimensions)?;
            elements.extend(pairs.map(|(i, j)| choose(of_a[i], of_b[j])));
            output.with_integers(dimensions, &elements)
        }])
    }
}
