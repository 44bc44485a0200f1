//! QUANTIZED_LSTM: one step of an LSTM layer in integers, exact to the bit. The arithmetic is that of
//! [`integer_lstm`](crate::rules::integer_lstm).
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, input]` | TENSOR_QUANT8_ASYMM_SIGNED |
//! | input 1 to 17 | weights and biases, some optional | see [`lstm_arguments`](crate::rules::lstm_arguments) | matrices TENSOR_QUANT8_SYMM, peepholes TENSOR_QUANT16_SYMM, biases TENSOR_INT32 |
//! | input 18 | output before | `[batch, output]` | TENSOR_QUANT8_ASYMM_SIGNED |
//! | input 19 | cell state before | `[batch, units]` | TENSOR_QUANT16_SYMM, scale 2^-15 to 2^-9 |
//! | input 20 to 23 | layer norm weights, optional | `[units]` | TENSOR_QUANT16_SYMM |
//! | input 24, 25 | cell clip, projection clip, optional | scalar, 0 or more; 0 is no limit | FLOAT32 |
//! | input 26 to 29 | scales of what goes into input gate, forget gate, cell, output gate | scalar, above 0 | FLOAT32 |
//! | input 30 | zero point of the hidden state | scalar, -128 to 127 | INT32 |
//! | input 31 | scale of the hidden state | scalar, above 0 | FLOAT32 |
//! | output 0 | output state | as input 18 | as input 18 |
//! | output 1 | cell state | as input 19 | as input 19 |
//! | output 2 | output | as output 0, and the same numbers | as input 18 |
//!
//! The cell's scale is a power of two, to within a thousandth of its exponent. Without an input gate
//! the scale of what goes into it is not looked at. The hidden state is what comes out of the cell;
//! with a projection the output is stored as the output before is, without one the output is the
//! hidden state as it is stored. Only the batch may be 0.
//!
//! Source: `types.hal` 1.3; the arithmetic of TensorFlow Lite. Android's reference implementation
//! differs from both where there is no layer norm (it leaves out the gates' biases), in peepholes (it
//! reads the cell it is about to write), and in the scale of the projection clip.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::convolution::centred;
use crate::rules::integer_lstm::{Cell, Scales, exponent_of};
use crate::rules::lstm_arguments::LstmArguments;
use crate::rules::lstm_cell::decode_clip;
use crate::rules::recurrence::{self, Extent, Extents};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorInt32, TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant16Symm};
use hal::{HalVersion, OperandType, OperationType};

/// QUANTIZED_LSTM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantizedLstm {
    /// Scales and clips.
    pub scales: Scales,
}

const ARGUMENTS: LstmArguments =
    LstmArguments { weights: 1, states: 18, layer_norm: 20, auxiliary: None };

static SIGNATURE: Signature = Signature {
    operation: OperationType::QuantizedLstm,
    // Columns: input and output; matrices; biases; what has 16 bits.
    rows: &[Row::new(
        HalVersion::V1_3,
        &[TensorQuant8AsymmSigned, TensorQuant8Symm, TensorInt32, TensorQuant16Symm],
    )],
    forms: &[Form::new(
        HalVersion::V1_3,
        &[
            Parameter::column("input", 0),
            Parameter::column("input-to-input weights", 1).omittable(),
            Parameter::column("input-to-forget weights", 1),
            Parameter::column("input-to-cell weights", 1),
            Parameter::column("input-to-output weights", 1),
            Parameter::column("recurrent-to-input weights", 1).omittable(),
            Parameter::column("recurrent-to-forget weights", 1),
            Parameter::column("recurrent-to-cell weights", 1),
            Parameter::column("recurrent-to-output weights", 1),
            Parameter::column("cell-to-input weights", 3).omittable(),
            Parameter::column("cell-to-forget weights", 3).omittable(),
            Parameter::column("cell-to-output weights", 3).omittable(),
            Parameter::column("input gate bias", 2).omittable(),
            Parameter::column("forget gate bias", 2),
            Parameter::column("cell bias", 2),
            Parameter::column("output gate bias", 2),
            Parameter::column("projection weights", 1).omittable(),
            Parameter::column("projection bias", 2).omittable(),
            Parameter::column("output state (in)", 0),
            Parameter::column("cell state (in)", 3),
            Parameter::column("input layer norm weights", 3).omittable(),
            Parameter::column("forget layer norm weights", 3).omittable(),
            Parameter::column("cell layer norm weights", 3).omittable(),
            Parameter::column("output layer norm weights", 3).omittable(),
            Parameter::float32("cell clip").omittable(),
            Parameter::float32("projection clip").omittable(),
            Parameter::float32("input intermediate scale"),
            Parameter::float32("forget intermediate scale"),
            Parameter::float32("cell intermediate scale"),
            Parameter::float32("output intermediate scale"),
            Parameter::int32("hidden state zero point"),
            Parameter::float32("hidden state scale"),
        ],
        &[
            Parameter::column("output state (out)", 0),
            Parameter::column("cell state (out)", 3),
            Parameter::column("output", 0),
        ],
    )],
};

/// Reads a scale.
fn decode_scale(argument: &Argument<'_>) -> Result<f32, Fault> {
    let scale = argument.f32()?;
    if scale > 0.0 && scale.is_finite() {
        return Ok(scale);
    }
    Err(argument.wrong("value", scale, "above 0 and finite"))
}

impl Operation for QuantizedLstm {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let cell = call.input(ARGUMENTS.cell_state());
        if !exponent_of(cell.scale).is_some_and(|exponent| (-15..=-9).contains(&exponent)) {
            return Err(cell.wrong("scale", cell.scale, "a power of two from 2^-15 to 2^-9"));
        }
        ARGUMENTS.validate(call)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let clip = |index| call.optional(index).map_or(Ok(0.0), decode_clip);
        let input = match ARGUMENTS.is_coupled(call) {
            Some(false) => decode_scale(call.input(26))?,
            _ => call.input(26).f32()?,
        };
        let zero_point = call.input(30);
        let hidden_zero_point = zero_point.i32()?;
        Ok(Self {
            scales: Scales {
                gates: [
                    input,
                    decode_scale(call.input(27))?,
                    decode_scale(call.input(28))?,
                    decode_scale(call.input(29))?,
                ],
                hidden: decode_scale(call.input(31))?,
                hidden_zero_point: i8::try_from(hidden_zero_point)
                    .map_err(|_| zero_point.wrong("value", hidden_zero_point, "-128 to 127"))?,
                cell_clip: clip(24)?,
                projection_clip: clip(25)?,
            },
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), [Extent::Batch, Extent::Input])?;
        let output = ARGUMENTS.learn_shapes(call, &mut known)?;
        let output = known.shape([Extent::Batch, output]);
        Ok(vec![output.clone(), known.shape([Extent::Batch, Extent::Units]), output])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let (output, cell) =
            (call.input(ARGUMENTS.output_state()), call.input(ARGUMENTS.cell_state()));
        let [_, input_size] = call.input(0).lengths_of()?;
        let [_, output_size] = output.lengths_of()?;
        let [_, units] = cell.lengths_of()?;
        let (inputs, outputs, cells) =
            (centred(call.input(0))?, centred(output)?, cell.integers()?);
        let weights = Cell::read(call, ARGUMENTS, &self.scales)?;
        let mut new_outputs = call.output(2).allocate(&dimensions[2])?;
        let mut new_cells = call.output(1).allocate(&dimensions[1])?;
        let rows = inputs
            .chunks_exact(input_size.max(1))
            .zip(outputs.chunks_exact(output_size.max(1)))
            .zip(cells.chunks_exact(units.max(1)));
        for ((input, output), cell) in rows {
            let step = weights.step(input, output, cell);
            new_cells.extend(step.cell);
            new_outputs.extend(step.output);
        }
        let results = [&new_outputs, &new_cells, &new_outputs];
        let outputs = call.outputs().iter().zip(dimensions).zip(results);
        Ok(outputs.map(|((output, dimensions), it)| output.with_integers(dimensions, it)).collect())
    }
}
