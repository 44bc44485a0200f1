//! RELU, RELU1, RELU6, TANH, LOGISTIC: element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most | float32, float16, quantised |
//! | output 0 | output | as the input | as the input |
//!
//! | operation | value | quantised output |
//! |---|---|---|
//! | RELU, RELU1, RELU6 | the input clamped to `[0, inf)`, `[-1, 1]`, `[0, 6]` | as the input |
//! | TANH | `tanh(x)` | scale 1/128, zero point 128 (signed: 0) |
//! | LOGISTIC | `1 / (1 + exp(-x))` | scale 1/256, zero point 0 (signed: -128) |
//!
//! The definition of the quantised TANH and LOGISTIC is the function of the real input, so their
//! result here is the stored value nearest to it. Implementations in fixed-point arithmetic may be
//! one step away.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, quantised TANH, zero batch), 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::{activation_range, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// RELU, RELU1, RELU6, TANH or LOGISTIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// RELU, RELU1, RELU6: clamps.
    Clamp(FusedActivation),
    /// TANH
    Tanh,
    /// LOGISTIC
    Logistic,
}

const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_0,
    &[Parameter::column("input", 0)],
    &[Parameter::column("output", 0)],
)];

const fn signature(operation: OperationType, quant8_since: &'static [Row]) -> Signature {
    Signature { operation, rows: quant8_since, forms: FORMS }
}

const fn rows(quant8_since: HalVersion) -> [Row; 4] {
    [
        Row::new(HalVersion::V1_0, &[OperandType::TensorFloat32]),
        Row::new(quant8_since, &[OperandType::TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    ]
}

const ROWS: &[Row] = &rows(HalVersion::V1_0);
const TANH_ROWS: &[Row] = &rows(HalVersion::V1_2);

static RELU: Signature = signature(OperationType::Relu, ROWS);
static RELU1: Signature = signature(OperationType::Relu1, ROWS);
static RELU6: Signature = signature(OperationType::Relu6, ROWS);
static TANH: Signature = signature(OperationType::Tanh, TANH_ROWS);
static LOGISTIC: Signature = signature(OperationType::Logistic, ROWS);

impl Operation for Activation {
    fn signature(operation: OperationType) -> &'static Signature {
        match operation {
            OperationType::Relu1 => &RELU1,
            OperationType::Relu6 => &RELU6,
            OperationType::Tanh => &TANH,
            OperationType::Logistic => &LOGISTIC,
            _ => &RELU,
        }
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, output) = (call.input(0), call.output(0));
        input.expect_rank_in(0..=4)?;
        if !output.is_quantized() {
            return Ok(());
        }
        let unsigned = output.operand_type == OperandType::TensorQuant8Asymm;
        match call.operation() {
            OperationType::Tanh => {
                output.expect_quantization(1.0 / 128.0, if unsigned { 128 } else { 0 })
            }
            OperationType::Logistic => {
                output.expect_quantization(1.0 / 256.0, if unsigned { 0 } else { -128 })
            }
            _ => output.expect_quantized_as(input),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.operation() {
            OperationType::Relu1 => Self::Clamp(FusedActivation::Relu1),
            OperationType::Relu6 => Self::Clamp(FusedActivation::Relu6),
            OperationType::Tanh => Self::Tanh,
            OperationType::Logistic => Self::Logistic,
            _ => Self::Clamp(FusedActivation::Relu),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        Ok(vec![match self {
            Self::Clamp(activation) if output.is_quantized() => {
                let (least, greatest) = activation_range::stored(*activation, output);
                let dimensions = input.dimensions()?;
                let mut elements = output.allocate(&dimensions)?;
                elements.extend(input.integers()?.into_iter().map(|it| it.clamp(least, greatest)));
                output.with_integers(dimensions, &elements)
            }
            _ => real::map(input, output, |x| self.real(x))?,
        }])
    }
}

impl Activation {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        match self {
            Self::Clamp(activation) => {
                activation_range::clamp(x, activation_range::real(activation))
            }
            Self::Tanh => real::round(f64::from(x).tanh()),
            Self::Logistic => real::round(1.0 / (1.0 + (-f64::from(x)).exp())),
        }
    }
}
