//! PRELU: `x` where it is 0 or more, otherwise `alpha * x`, element by element, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any two that broadcast | float32, float16, quantised |
//! | input 1 | alpha | | as the input; its own scale and zero point |
//! | output 0 | output | the common shape | as the input; its own scale and zero point |
//!
//! Quantised: `output = requantise(input)`, or `requantise(input * alpha)`, in integers.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::broadcast;
use crate::rules::requantize::Multiplier;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{HalVersion, OperandType, OperationType};

/// PRELU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prelu;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Prelu,
    rows: &[
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::column("alpha", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for Prelu {
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
        let (input, alpha, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, input, alpha)?;
        Ok(vec![if output.is_float() {
            let (inputs, alphas) = (input.f32s()?, alpha.f32s()?);
            let mut elements = output.allocate(&dimensions)?;
            elements.extend(pairs.map(|(i, j)| self.real(inputs[i], alphas[j])));
            output.with_f32s(dimensions, &elements)
        } else {
            let (inputs, alphas) = (input.integers()?, alpha.integers()?);
            let quantized = Quantized::new(input, alpha, output);
            let mut elements = output.allocate(&dimensions)?;
            elements.extend(pairs.map(|(i, j)| quantized.stored(inputs[i], alphas[j])));
            output.with_integers(dimensions, &elements)
        }])
    }
}

impl Prelu {
    /// The function on real numbers.
    pub fn real(self, x: f32, alpha: f32) -> f32 {
        if x >= 0.0 { x } else { x * alpha }
    }
}

/// PRELU on stored values.
struct Quantized {
    zero_points: [i32; 3],
    /// From the input's scale to the output's.
    above: Multiplier,
    /// From the product of the inputs' scales to the output's.
    below: Multiplier,
}

impl Quantized {
    fn new(input: &Argument<'_>, alpha: &Argument<'_>, output: &Argument<'_>) -> Self {
        // Both ratios as the reference implementation rounds them.
        let product = f64::from(input.scale * alpha.scale);
        Self {
            zero_points: [input.zero_point, alpha.zero_point, output.zero_point],
            above: Multiplier::from_real(f64::from(input.scale / output.scale)),
            below: Multiplier::from_real(product / f64::from(output.scale)),
        }
    }

    /// Not yet saturated to the output's range.
    fn stored(&self, x: i32, alpha: i32) -> i32 {
        let [zero_of_x, zero_of_alpha, zero_of_output] = self.zero_points;
        let x = x - zero_of_x;
        let scaled = if x >= 0 {
            self.above.apply(x)
        } else {
            self.below.apply(x * (alpha - zero_of_alpha))
        };
        scaled.saturating_add(zero_of_output)
    }
}
