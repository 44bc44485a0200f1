//! ADD, SUB, MUL, DIV: element by element, with broadcasting and a fused activation.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two of rank 4 at most that broadcast | float32, float16, quantised, int32 |
//! | input 2 | activation | scalar | INT32, see [`hal::FusedActivation`] |
//! | output 0 | output | the common shape | as the inputs |
//!
//! Quantised (not DIV): `output = requantise(input0 op input1)`. For MUL the output's scale must be
//! above the product of the inputs' scales. Integers take no activation; dividing them rounds
//! towards minus infinity, and dividing by 0 is an error.
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
    &[Parameter::column("input0", 0), Parameter::column("input1", 0), Parameter::int32("activation")],
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
        if call.operation() == OperationType::Mul && output.is_quantized() && output.scale <= product
        {
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
        let shape = broadcast::shape(call, a, b)?;
        let dimensions = shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
        let common: Vec<usize> = dimensions.iter().map(|length| *length as usize).collect();
        output.allocate::<u8>(&dimensions)?;
        let pairs = || -> Result<_, Fault> {
            let of_a = broadcast::positions(&a.lengths()?, &common);
            Ok(of_a.into_iter().zip(broadcast::positions(&b.lengths()?, &common)))
        };
        Ok(vec![if output.is_float() {
            let (of_a, of_b) = (a.f32s()?, b.f32s()?);
            let range = activation_range::real(self.activation);
            let elements: Vec<f32> = pairs()?
                .map(|(i, j)| activation_range::clamp(self.reals(of_a[i], of_b[j]), range))
                .collect();
            output.with_f32s(dimensions, &elements)
        } else {
            let (of_a, of_b) = (a.integers()?, b.integers()?);
            let combine = self.integers(call);
            let elements: Vec<i32> =
                pairs()?.map(|(i, j)| combine(of_a[i], of_b[j])).collect::<Result<_, _>>()?;
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
    fn integers<'a>(
        &self,
        call: &'a Call<'_>,
    ) -> Box<dyn Fn(i32, i32) -> Result<i32, Fault> + 'a> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let range = activation_range::stored(self.activation, output);
        match self.operator {
            _ if output.operand_type == OperandType::TensorInt32 => {
                let operator = self.operator;
                Box::new(move |x, y| match operator {
                    Operator::Add => Ok(x.wrapping_add(y)),
                    Operator::Sub => Ok(x.wrapping_sub(y)),
                    Operator::Mul => Ok(x.wrapping_mul(y)),
                    Operator::Div if y == 0 => Err(b.wrong("value", 0, "a divisor other than 0")),
                    Operator::Div => Ok(floor_div(x, y)),
                })
            }
            Operator::Mul => {
                let real = f64::from(a.scale * b.scale) / f64::from(output.scale);
                let multiplier = Multiplier::from_real(real);
                Box::new(move |x, y| {
                    let product = (x - a.zero_point) * (y - b.zero_point);
                    let stored = output.zero_point.saturating_add(multiplier.apply(product));
                    Ok(stored.clamp(range.0, range.1))
                })
            }
            _ => {
                let sum = QuantizedSum::new(a, b, output);
                let sign = if self.operator == Operator::Sub { -1 } else { 1 };
                Box::new(move |x, y| Ok(sum.stored(x, y, sign).clamp(range.0, range.1)))
            }
        }
    }
}

/// Rounded towards minus infinity. The one quotient that 32 bits cannot hold wraps.
fn floor_div(x: i32, y: i32) -> i32 {
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
