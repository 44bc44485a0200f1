//! LOG_SOFTMAX: `output[i] = beta * input[i] - log(sum(exp(beta * input[k])))` over every slice along
//! an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16 |
//! | input 1 | beta | scalar, above 0 | FLOAT32; FLOAT16 with float16 |
//! | input 2 | axis | scalar | INT32, negative from the end |
//! | output 0 | output | as the input | as the input |
//!
//! Source: `types.hal` 1.2.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::operations::softmax::decode_beta;
use crate::rules::real;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use hal::{HalVersion, OperandType, OperationType};

/// LOG_SOFTMAX.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogSoftmax {
    /// What inputs are multiplied with before the exponential; above 0.
    pub beta: f32,
    /// The axis of the slices, from the front.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::LogSoftmax,
    rows: &[
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32, OperandType::Float32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16, OperandType::Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::column("beta", 1), Parameter::int32("axis")],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for LogSoftmax {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let beta = decode_beta(call.input(1))?;
        let axis = call.input(2);
        Ok(Self { beta, axis: axis.axis_of(axis.i32()?, call.input(0))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        let mut elements: Vec<f32> = output.allocate(&dimensions)?;
        let inputs = input.f32s()?;
        elements.resize(inputs.len(), 0.0);
        let beta = f64::from(self.beta);
        for positions in Slices::new(&input.lengths()?, self.axis).positions() {
            let scaled = positions.clone().map(|position| beta * f64::from(inputs[position]));
            // Taking the greatest away keeps the exponentials within range.
            let greatest = scaled.clone().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scaled.clone().map(|x| (x - greatest).exp()).sum();
            for (position, x) in positions.zip(scaled) {
                elements[position] = real::round(x - greatest - sum.ln());
            }
        }
        Ok(vec![output.with_f32s(dimensions, &elements)])
    }
}
