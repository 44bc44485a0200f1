//! SOFTMAX: `output[i] = exp(beta * (input[i] - max)) / sum(exp(beta * (input[k] - max)))` over
//! every slice along an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | rank 4 at most; up to 1.1 rank 2 or 4 | float32, float16, quantised |
//! | input 1 | beta | scalar, above 0 | FLOAT32; FLOAT16 with float16 |
//! | input 2, from 1.2 | axis | scalar | INT32, negative from the end, default -1 |
//! | output 0 | output | as the input | as the input |
//!
//! A quantised output has scale 1/256 and zero point 0 (signed: -128), and is the stored value
//! nearest to the formula's; implementations in fixed-point arithmetic may be one step away.
//!
//! Source: `types.hal` 1.0, 1.2 (axis, ranks, float16, zero-sized), 1.3 (signed).

use crate::call::{Argument, Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::requantize::quantize;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use hal::{HalVersion, OperandType, OperationType};

/// SOFTMAX.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softmax {
    /// What differences are multiplied with before the exponential; above 0.
    pub beta: f32,
    /// The axis of the slices, from the front.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Softmax,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, Float32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::column("beta", 1),
            Parameter::int32("axis").trailing(HalVersion::V1_2),
        ],
        &[Parameter::column("output", 0)],
    )],
};

/// A factor before an exponential, which must be above 0.
pub(super) fn decode_beta(argument: &Argument<'_>) -> Result<f32, Fault> {
    let beta = argument.f32()?;
    if beta > 0.0 { Ok(beta) } else { Err(argument.wrong("value", beta, "above 0")) }
}

/// The result for one slice of real numbers, in double precision.
fn normalize(slice: &[f64], beta: f64) -> impl Iterator<Item = f64> {
    let greatest = slice.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponential = move |x: &f64| ((x - greatest) * beta).exp();
    let sum: f64 = slice.iter().map(exponential).sum();
    slice.iter().map(move |x| exponential(x) / sum)
}

impl Operation for Softmax {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn since(call: &Call<'_>) -> Since {
        let other_rank = call.input(0).shape.rank().is_some_and(|rank| rank != 2 && rank != 4);
        Since::ALWAYS.and(HalVersion::V1_2, "an input of another rank than 2 or 4", other_rank)
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let output = call.output(0);
        call.input(0).expect_rank_in(1..=4)?;
        match output.operand_type {
            TensorQuant8Asymm => output.expect_quantization(1.0 / 256.0, 0),
            TensorQuant8AsymmSigned => output.expect_quantization(1.0 / 256.0, -128),
            _ => Ok(()),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let beta = decode_beta(call.input(1))?;
        let (given, number) = (call.optional(2), call.optional_i32(2, -1)?);
        let input = call.input(0);
        Ok(Self { beta, axis: given.unwrap_or(input).axis_of(number, input)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        let mut elements: Vec<f32> = output.allocate(&dimensions)?;
        let inputs = input.reals()?;
        elements.resize(inputs.len(), 0.0);
        let mut slice = Vec::new();
        for positions in Slices::new(&input.lengths()?, self.axis).positions() {
            slice.clear();
            slice.extend(positions.clone().map(|position| f64::from(inputs[position])));
            for (position, value) in positions.zip(normalize(&slice, self.beta.into())) {
                elements[position] = real::round(value);
            }
        }
        Ok(vec![match output.operand_type.quantized_range() {
            None => output.with_f32s(dimensions, &elements),
            Some(range) => {
                let stored: Vec<i32> = elements
                    .into_iter()
                    .map(|element| quantize(element, output.scale, output.zero_point, range))
                    .collect();
                output.with_integers(dimensions, &stored)
            }
        }])
    }
}
