//! ABS, EXP, FLOOR, LOG, NEG, RSQRT, SIN, SQRT: element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any; FLOOR: rank 4 at most | float32, float16, and see below |
//! | output 0 | output | as the input | as the input |
//!
//! | operation | value | further types |
//! |---|---|---|
//! | ABS | the magnitude | int32 (1.3); that of the least integer wraps to itself |
//! | EXP, LOG, SIN | natural exponential, natural logarithm, sine of radians | |
//! | FLOOR | the greatest integer that is not above it | |
//! | NEG | the negative | int32; that of the least integer wraps to itself |
//! | RSQRT | `1 / sqrt(x)` | quantised (feature level 7), with its own output scale |
//! | SQRT | `sqrt(x)` | |
//!
//! Outside a function's domain the result is NaN or infinite as IEEE 754 says; quantised, a NaN
//! becomes the zero point.
//!
//! Source: `types.hal` 1.0 (FLOOR), 1.2, 1.3 (int32), `OperationType.aidl` (quantised).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use hal::{HalVersion, OperandType, OperationType};

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// ABS
    Abs,
    /// EXP
    Exp,
    /// FLOOR
    Floor,
    /// LOG
    Log,
    /// NEG
    Neg,
    /// RSQRT
    Rsqrt,
    /// SIN
    Sin,
    /// SQRT
    Sqrt,
}

const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_0,
    &[Parameter::column("input", 0)],
    &[Parameter::column("output", 0)],
)];

const FLOAT32: Row = Row::new(HalVersion::V1_2, &[TensorFloat32]);
const FLOAT16: Row = Row::new(HalVersion::V1_2, &[TensorFloat16]);
const FLOATS: &[Row] = &[FLOAT32, FLOAT16];

const fn signature(operation: OperationType, rows: &'static [Row]) -> Signature {
    Signature { operation, rows, forms: FORMS }
}

static ABS: Signature =
    signature(OperationType::Abs, &[FLOAT32, FLOAT16, Row::new(HalVersion::V1_3, &[TensorInt32])]);
static EXP: Signature = signature(OperationType::Exp, FLOATS);
static FLOOR: Signature =
    signature(OperationType::Floor, &[Row::new(HalVersion::V1_0, &[TensorFloat32]), FLOAT16]);
static LOG: Signature = signature(OperationType::Log, FLOATS);
static NEG: Signature =
    signature(OperationType::Neg, &[FLOAT32, FLOAT16, Row::new(HalVersion::V1_2, &[TensorInt32])]);
static RSQRT: Signature = signature(
    OperationType::Rsqrt,
    &[
        FLOAT32,
        FLOAT16,
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8Asymm]),
        Row::new(HalVersion::FeatureLevel7, &[TensorQuant8AsymmSigned]),
    ],
);
static SIN: Signature = signature(OperationType::Sin, FLOATS);
static SQRT: Signature = signature(OperationType::Sqrt, FLOATS);

impl Operation for Elementwise {
    fn signature(operation: OperationType) -> &'static Signature {
        match operation {
            OperationType::Exp => &EXP,
            OperationType::Floor => &FLOOR,
            OperationType::Log => &LOG,
            OperationType::Neg => &NEG,
            OperationType::Rsqrt => &RSQRT,
            OperationType::Sin => &SIN,
            OperationType::Sqrt => &SQRT,
            _ => &ABS,
        }
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        match call.operation() {
            OperationType::Floor => call.input(0).expect_rank_in(1..=4),
            _ => Ok(()),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.operation() {
            OperationType::Exp => Self::Exp,
            OperationType::Floor => Self::Floor,
            OperationType::Log => Self::Log,
            OperationType::Neg => Self::Neg,
            OperationType::Rsqrt => Self::Rsqrt,
            OperationType::Sin => Self::Sin,
            OperationType::Sqrt => Self::Sqrt,
            _ => Self::Abs,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        if output.operand_type != TensorInt32 {
            return Ok(vec![real::map(input, output, |x| self.real(x))?]);
        }
        let function = match self {
            Self::Neg => i32::wrapping_neg,
            _ => i32::wrapping_abs,
        };
        let dimensions = input.dimensions()?;
        let mut elements = output.allocate(&dimensions)?;
        elements.extend(input.i32s()?.into_iter().map(function));
        Ok(vec![output.with_integers(dimensions, &elements)])
    }
}

impl Elementwise {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        let wide = f64::from(x);
        match self {
            Self::Abs => x.abs(),
            Self::Exp => real::round(wide.exp()),
            Self::Floor => x.floor(),
            Self::Log => real::round(wide.ln()),
            Self::Neg => -x,
            Self::Rsqrt => real::round(1.0 / wide.sqrt()),
            Self::Sin => real::round(wide.sin()),
            Self::Sqrt => x.sqrt(),
        }
    }
}
