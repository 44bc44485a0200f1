//! DEQUANTIZE: `scale * (input - zero point)`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | rank 4 at most | quant8 asymm, signed, symm, per channel |
//! | output 0 | output | as the input | float32, float16 |
//!
//! Per channel, the scale is the one of the element's index along the channel dimension, and the
//! zero point is 0.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, symm, per channel, zero-sized), 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant8Symm,
    TensorQuant8SymmPerChannel,
};
use hal::{HalVersion, OperandType, OperationType};

/// DEQUANTIZE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dequantize;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Dequantize,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Symm, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Symm, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8SymmPerChannel, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8SymmPerChannel, TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorFloat32]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 1)],
    )],
};

impl Operation for Dequantize {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=4)?;
        let Some(quant) = input.channel_quant() else { return Ok(()) };
        let axis = usize::try_from(quant.channel_dim).unwrap_or(usize::MAX);
        if input.shape.rank().is_some_and(|rank| axis >= rank) {
            return Err(input.wrong("channel dimension", axis, "one of the tensor's axes"));
        }
        input.expect_length(axis, Some(u32::try_from(quant.scales.len()).unwrap_or(u32::MAX)))
    }

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let Some(quant) = input.channel_quant() else {
            return Ok(vec![real::map(input, output, |x| x)?]);
        };
        let dimensions = input.dimensions()?;
        let stored = input.integers()?;
        let mut elements: Vec<f32> = output.allocate(&dimensions)?;
        elements.resize(stored.len(), 0.0);
        let axis = usize::try_from(quant.channel_dim).unwrap_or(usize::MAX);
        for positions in Slices::new(&input.lengths()?, axis).positions() {
            for (position, scale) in positions.zip(quant.scales.iter()) {
                // Stored values have 8 bits.
                #[allow(clippy::cast_precision_loss)]
                let stored = stored[position] as f32;
                elements[position] = stored * scale;
            }
        }
        Ok(vec![output.with_f32s(dimensions, &elements)])
    }
}
