//! ADD, SUB, MUL, DIV: element by element, with broadcasting and a fused activation.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two of rank 4 at most that broadcast | float32, float16, quantised, int32 |
//! | input 2 | activation | scalar | INT32, see [`hal::FusedActivation`] |
//! | output 0 | output | the common shape | as the inputs |
//!
//! Quantised (not DIV): `output = requantise(input0 op input1)`. For MUL the output's scale must be
//! above the product of the inputs' scales.
//!
//! Integers take no activation. Sums and products that 32 bits cannot hold wrap. Dividing rounds
//! towards minus infinity; dividing by 0, which the definition leaves open, gives 0 as in the
//! reference implementation, so that a quotient which a SELECT throws away does no harm.
//!
//! Source: `types.hal` 1.0 (ADD, MUL), 1.1 (SUB, DIV), 1.2 and 1.3 (further types).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::requantize::Multiplier;
use crate::rules::{activation_range, broadcast};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{FusedActivation, HalVersion, OperandType, OperationType};
use std::cmp::Ordering;

/// Which of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// ADD
    Add,
    /// SUB
    Sub,
    /// MUL
    Mul,
    /// DIV
    Div,
}

/// ADD, SUB, MUL or DIV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arithmetic {
    /// Which of the four.
    pub operator: Operator,
    /// What the result is clamped to.
    pub activation: FusedActivation,
}

const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_0,
    &[
        Parameter::column("input0", 0),
        Parameter::column("input1", 0),
        Parameter::int32("activation"),
    ],
    &[Parameter::column("output", 0)],
)];

const FLOAT32: Row = Row::new(HalVersion::V1_0, &[OperandType::TensorFloat32]);
const FLOAT16: Row = Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]);
const QUANT8_SIGNED: Row = Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]);
const INT32: Row = Row::new(HalVersion::V1_3, &[OperandType::TensorInt32]);

const fn quant8_since(version: HalVersion) -> Row {
    Row::new(version, &[OperandType::TensorQuant8Asymm])
}

const ADD_OR_MUL_ROWS: &[Row] =
    &[FLOAT32, quant8_since(HalVersion::V1_0), FLOAT16, QUANT8_SIGNED, INT32];

static ADD: Signature =
    Signature { operation: OperationType::Add, rows: ADD_OR_MUL_ROWS, forms: FORMS };
static MUL: Signature =
    Signature { operation: OperationType::Mul, rows: ADD_OR_MUL_ROWS, forms: FORMS };
static SUB: Signature = Signature {
    operation: OperationType::Sub,
    rows: &[FLOAT32, quant8_since(HalVersion::V1_2), FLOAT16, QUANT8_SIGNED, INT32],
    forms: FORMS,
};
static DIV: Signature =
    Signature { operation: OperationType::Div, rows: &[FLOAT32, FLOAT16, INT32], forms: FORMS };

impl Operation for Arithmetic {
    fn signature(operation: OperationType) -> &'static Signature {
        match operation {
            OperationType::Mul => &MUL,
            OperationType::Sub => &SUB,
            OperationType::Div => &DIV,
            _ => &ADD,
        }
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        a.expect_rank_in(0..=4)?;
        b.expect_rank_in(0..=4)?;
        let product = a.scale * b.scale;
        let is_above = output.scale.partial_cmp(&product) == Some(Ordering::Greater);
        if call.operation() == OperationType::Mul && output.is_quantized() && !is_above {
            return Err(output.wrong("scale", output.scale, format!("above {product}")));
        }
        Ok(())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let operator = match call.operation() {
            OperationType::Mul => Operator::Mul,
            OperationType::Sub => Operator::Sub,
            OperationType::Div => Operator::Div,
            _ => Operator::Add,
        };
        let activation = activation_range::decode(call.input(2))?;
        if call.input(0).operand_type == OperandType::TensorInt32
            && activation != FusedActivation::None
        {
            return Err(call.input(2).wrong("value", activation, "NONE with TENSOR_INT32"));
        }
        Ok(Self { operator, activation })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        Ok(vec![if output.is_float() {
            let (of_a, of_b) = (a.f32s()?, b.f32s()?);
            let range = activation_range::real(self.activation);
            let mut elements = output.allocate(&dimensions)?;
            elements.extend(
                pairs.map(|(i, j)| activation_range::clamp(self.reals(of_a[i], of_b[j]), range)),
            );
            output.with_f32s(dimensions, &elements)
        } else {
            let (of_a, of_b) = (a.integers()?, b.integers()?);
            let combine = self.integers(call);
            let mut elements = output.allocate(&dimensions)?;
            elements.extend(pairs.map(|(i, j)| combine(of_a[i], of_b[j])));
            output.with_integers(dimensions, &elements)
        }])
    }
}

impl Arithmetic {
    fn reals(&self, a: f32, b: f32) -> f32 {
        match self.operator {
            Operator::Add => a + b,
            Operator::Sub => a - b,
            Operator::Mul => a * b,
            Operator::Div => a / b,
        }
    }

    /// The operation on stored integers.
    fn integers<'a>(&self, call: &'a Call<'_>) -> Box<dyn Fn(i32, i32) -> i32 + 'a> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let range = activation_range::stored(self.activation, output);
        let is_quantized = output.is_quantized();
        match self.operator {
            Operator::Add if !is_quantized => Box::new(i32::wrapping_add),
            Operator::Sub if !is_quantized => Box::new(i32::wrapping_sub),
            Operator::Mul if !is_quantized => Box::new(i32::wrapping_mul),
            Operator::Div => Box::new(floor_div),
            Operator::Mul => {
                let real = f64::from(a.scale * b.scale) / f64::from(output.scale);
                let multiplier = Multiplier::from_real(real);
                Box::new(move |x, y| {
                    let product = (x - a.zero_point) * (y - b.zero_point);
                    let stored = output.zero_point.saturating_add(multiplier.apply(product));
                    stored.clamp(range.0, range.1)
                })
            }
            Operator::Add | Operator::Sub => {
                let sum = QuantizedSum::new(a, b, output);
                let sign = if self.operator == Operator::Sub { -1 } else { 1 };
                Box::new(move |x, y| sum.stored(x, y, sign).clamp(range.0, range.1))
            }
        }
    }
}

/// Rounded towards minus infinity; 0 for a divisor of 0. The one quotient that 32 bits cannot hold
/// wraps.
fn floor_div(x: i32, y: i32) -> i32 {
    if y == 0 {
        return 0;
    }
    let quotient = x.wrapping_div(y);
    let inexact = x.wrapping_rem(y) != 0;
    if inexact && (x < 0) != (y < 0) { quotient - 1 } else { quotient }
}

/// Sums of stored values of different scales: both are brought to twice the greater scale, with 20
/// more bits to round in, and the sum to the output's.
struct QuantizedSum {
    offsets: [i32; 3],
    multipliers: [Multiplier; 3],
}

impl QuantizedSum {
    const EXTRA_BITS: i32 = 20;

    fn new(a: &Argument<'_>, b: &Argument<'_>, output: &Argument<'_>) -> Self {
        let common = 2.0 * f64::from(a.scale.max(b.scale));
        let extra = f64::from(1 << Self::EXTRA_BITS);
        Self {
            offsets: [a.zero_point, b.zero_point, output.zero_point],
            multipliers: [
                Multiplier::from_real(f64::from(a.scale) / common),
                Multiplier::from_real(f64::from(b.scale) / common),
                Multiplier::from_real(common / (extra * f64::from(output.scale))),
            ],
        }
    }

    fn stored(&self, x: i32, y: i32, sign_of_y: i32) -> i32 {
        let x = self.multipliers[0].apply((x - self.offsets[0]) << Self::EXTRA_BITS);
        let y = self.multipliers[1].apply((y - self.offsets[1]) << Self::EXTRA_BITS);
        let sum = self.multipliers[2].apply(x + sign_of_y * y);
        sum.saturating_add(self.offsets[2])
    }
}
