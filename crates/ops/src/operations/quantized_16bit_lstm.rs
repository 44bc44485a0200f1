//! QUANTIZED_16BIT_LSTM: one step of an LSTM layer in integers, with a cell state of 16 bits.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, input]` | TENSOR_QUANT8_ASYMM, scale 1/128, zero point 128 |
//! | input 1 to 4 | weights from the input to input gate, forget gate, cell, output gate | `[output, input]` | TENSOR_QUANT8_ASYMM, all of the same scale and zero point |
//! | input 5 to 8 | weights from the output before to the same | `[output, output]` | likewise |
//! | input 9 to 12 | biases of the same | `[output]` | TENSOR_INT32, scale 1/128 of the weights', zero point 0 |
//! | input 13 | cell state before | `[batch, output]` | TENSOR_QUANT16_SYMM, scale 2^-11 |
//! | input 14 | output before | `[batch, output]` | as the input |
//! | output 0 | cell state | `[batch, output]` | as input 13 |
//! | output 1 | output | `[batch, output]` | as the input |
//!
//! ```text
//! gate   = bias + [recurrent weights | weights] * [input | output before], in steps of 2^-12
//! cell'  = logistic(forget gate) * cell + logistic(input gate) * tanh(cell gate)
//! output = logistic(output gate) * tanh(cell')
//! ```
//!
//! The two matrices of a gate are one, the recurrent weights on the left, and so are the two vectors,
//! but the input first: not what the names promise, and yet what implementations do and tests demand.
//!
//! All in fixed-point numbers of 16 bits ([`fixed_point`](crate::rules::fixed_point)), exact to the
//! bit. Only the batch may be 0.
//!
//! Source: `types.hal` 1.2; the arithmetic of the reference implementation, which is TensorFlow Lite's.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::convolution::centred;
use crate::rules::fixed_point::{logistic, product, saturate_16, scale_by_power_of_two, tanh};
use crate::rules::recurrence::{self, Extent, Extents};
use crate::rules::requantize::{Multiplier, divide_by_power_of_two};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorInt32, TensorQuant8Asymm, TensorQuant16Symm};
use hal::{HalVersion, OperandType, OperationType};

/// QUANTIZED_16BIT_LSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantized16bitLstm;

/// The scale of input and output, whose zero point is 128.
const SCALE_OF_OUTPUT: f32 = 1.0 / 128.0;
/// The scale of the cell state.
const SCALE_OF_CELL: f32 = 1.0 / 2048.0;
/// Integer bits of the cell state.
const CELL_BITS: i32 = 4;
/// Integer bits of what goes into the gates.
const GATE_BITS: u32 = 3;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Quantized16bitLstm,
    // Columns: input, weights and output; biases; cell state.
    rows: &[Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorInt32, TensorQuant16Symm])],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::column("input-to-input weights", 0),
            Parameter::column("input-to-forget weights", 0),
            Parameter::column("input-to-cell weights", 0),
            Parameter::column("input-to-output weights", 0),
            Parameter::column("recurrent-to-input weights", 0),
            Parameter::column("recurrent-to-forget weights", 0),
            Parameter::column("recurrent-to-cell weights", 0),
            Parameter::column("recurrent-to-output weights", 0),
            Parameter::column("input gate bias", 1),
            Parameter::column("forget gate bias", 1),
            Parameter::column("cell bias", 1),
            Parameter::column("output gate bias", 1),
            Parameter::column("cell state (in)", 2),
            Parameter::column("output (in)", 0),
        ],
        &[Parameter::column("cell state (out)", 2), Parameter::column("output", 0)],
    )],
};

/// A gate's weights less their zero point, and what brings its sums to steps of 2^-12.
struct Gate {
    recurrent: Vec<i32>,
    weights: Vec<i32>,
    bias: Vec<i32>,
    multiplier: Multiplier,
}

impl Gate {
    /// The gate whose arguments stand `at` places behind the first one's.
    fn read(call: &Call<'_>, at: usize) -> Result<Self, Fault> {
        let bias = call.input(9 + at);
        Ok(Self {
            recurrent: centred(call.input(5 + at))?,
            weights: centred(call.input(1 + at))?,
            bias: bias.i32s()?,
            multiplier: Multiplier::from_real(f64::from(bias.scale) * 4096.0),
        })
    }

    /// What goes into the gate, for each unit.
    fn sums(&self, input: &[i32], output: &[i32]) -> Vec<i16> {
        let rows = self
            .recurrent
            .chunks_exact(output.len().max(1))
            .zip(self.weights.chunks_exact(input.len().max(1)));
        let sum = |((recurrent, weights), bias): ((&[i32], &[i32]), &i32)| {
            let numbers = input.iter().chain(output);
            let products = recurrent.iter().chain(weights).zip(numbers);
            products.fold(*bias, |sum, (w, x)| sum.wrapping_add(w.wrapping_mul(*x)))
        };
        let stored = |sum| saturate_16(self.multiplier.apply(sum));
        rows.zip(&self.bias).map(sum).map(stored).collect()
    }
}

/// The stored numbers of 16 bits.
fn cells(argument: &Argument<'_>) -> Result<Vec<i16>, Fault> {
    Ok(argument.integers()?.into_iter().map(saturate_16).collect())
}

impl Operation for Quantized16bitLstm {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        for argument in [call.input(0), call.input(14), call.output(1)] {
            argument.expect_quantization(SCALE_OF_OUTPUT, 128)?;
        }
        for argument in [call.input(13), call.output(0)] {
            argument.expect_quantization(SCALE_OF_CELL, 0)?;
        }
        let weights = call.input(1);
        for other in &call.inputs()[2..=8] {
            other.expect_quantized_as(weights)?;
        }
        for bias in &call.inputs()[9..=12] {
            bias.expect_quantization(weights.scale * SCALE_OF_OUTPUT, 0)?;
        }
        Ok(())
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), [Extent::Batch, Extent::Input])?;
        for gate in 0..4 {
            known.learn(call.input(1 + gate), [Extent::Output, Extent::Input])?;
            known.learn(call.input(5 + gate), [Extent::Output, Extent::Output])?;
            known.learn(call.input(9 + gate), [Extent::Output])?;
        }
        known.learn(call.input(13), [Extent::Batch, Extent::Output])?;
        known.learn(call.input(14), [Extent::Batch, Extent::Output])?;
        let shape = known.shape([Extent::Batch, Extent::Output]);
        Ok(vec![shape.clone(), shape])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let [_, input_size] = call.input(0).lengths_of()?;
        let [_, output_size] = call.input(14).lengths_of()?;
        let (input, output) = (centred(call.input(0))?, centred(call.input(14))?);
        let cells = cells(call.input(13))?;
        let [input_gate, forget_gate, cell_gate, output_gate] = [
            Gate::read(call, 0)?,
            Gate::read(call, 1)?,
            Gate::read(call, 2)?,
            Gate::read(call, 3)?,
        ];
        let mut new_cells = call.output(0).allocate(&dimensions[0])?;
        let mut new_outputs = call.output(1).allocate(&dimensions[1])?;
        let rows = input
            .chunks_exact(input_size.max(1))
            .zip(output.chunks_exact(output_size.max(1)))
            .zip(cells.chunks_exact(output_size.max(1)));
        for ((input, output), cells) in rows {
            let open = |gate: &Gate| {
                let sums = gate.sums(input, output).into_iter();
                sums.map(|sum| logistic(sum, GATE_BITS)).collect::<Vec<_>>()
            };
            let (entering, staying) = (open(&input_gate), open(&forget_gate));
            let leaving = open(&output_gate);
            for (unit, candidate) in cell_gate.sums(input, output).into_iter().enumerate() {
                let candidate = product(entering[unit], tanh(candidate, GATE_BITS));
                let kept = product(staying[unit], cells[unit]);
                let cell = scale_by_power_of_two(candidate, -CELL_BITS).saturating_add(kept);
                new_cells.push(i32::from(cell));
                // As much as tanh wants to tell apart fits 3 integer bits.
                let in_gate_bits = scale_by_power_of_two(cell, 1);
                let result = product(leaving[unit], tanh(in_gate_bits, GATE_BITS));
                let stored = divide_by_power_of_two(result.into(), 8).clamp(-128, 127);
                new_outputs.push(stored + 128);
            }
        }
        let outputs = call.outputs().iter().zip(dimensions).zip([new_cells, new_outputs]);
        Ok(outputs
            .map(|((output, dimensions), it)| output.with_integers(dimensions, &it))
            .collect())
    }
}
