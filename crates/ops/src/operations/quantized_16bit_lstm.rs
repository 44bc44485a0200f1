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
use nnhal_hal::{HalVersion, OperandType, OperationType};

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
    fn sums(&self, call: &Call<'_>, input: &[i32], output: &[i32]) -> Result<Vec<i16>, Fault> {
        let rows = self
            .recurrent
            .chunks_exact(output.len().max(1))
            .zip(self.weights.chunks_exact(input.len().max(1)));
        let sum = |((recurrent, weights), bias): ((&[i32], &[i32]), &i32)| {
            let numbers = input.iter().chain(output);
            let mut sum = *bias;
            call.each(recurrent.iter().chain(weights).zip(numbers), |(w, x)| {
                sum = sum.wrapping_add(w.wrapping_mul(*x));
            })?;
            Ok(saturate_16(self.multiplier.apply(sum)))
        };
        rows.zip(&self.bias).map(sum).collect()
    }
}

/// The stored numbers of 16 bits.
fn cells(argument: &Argument<'_>) -> Result<Vec<i16>, Fault> {
    argument.integers_as(saturate_16)
}

impl Operation for Quantized16bitLstm {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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
        call.reserve::<i16>(8 * output_size)?;
        let rows = input
            .chunks_exact(input_size.max(1))
            .zip(output.chunks_exact(output_size.max(1)))
            .zip(cells.chunks_exact(output_size.max(1)));
        for ((input, output), cells) in rows {
            let open = |gate: &Gate| {
                let sums = gate.sums(call, input, output)?.into_iter();
                Ok::<_, Fault>(sums.map(|sum| logistic(sum, GATE_BITS)).collect::<Vec<_>>())
            };
            let (entering, staying) = (open(&input_gate)?, open(&forget_gate)?);
            let leaving = open(&output_gate)?;
            call.work(16 * leaving.len())?;
            for (unit, candidate) in cell_gate.sums(call, input, output)?.into_iter().enumerate() {
                let candidate = product(entering[unit], tanh(candidate, GATE_BITS));
                let kept = product(staying[unit], cells[unit]);
                let cell = scale_by_power_of_two(candidate, -CELL_BITS).saturating_add(kept);
                new_cells.push(i32::from(cell));
                // As much as tanh wants to distinguish fits 3 integer bits.
                let in_gate_bits = scale_by_power_of_two(cell, 1);
                let result = product(leaving[unit], tanh(in_gate_bits, GATE_BITS));
                let stored = divide_by_power_of_two(result.into(), 8).clamp(-128, 127);
                new_outputs.push(stored + 128);
            }
        }
        let outputs = call.outputs().iter().zip(dimensions).zip([new_cells, new_outputs]);
        outputs.map(|((output, dimensions), it)| output.with_integers(dimensions, &it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::Example;
    use nnhal_hal::OperandSpec;

    fn numbers(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        OperandSpec::new(TensorQuant8Asymm, dimensions).quantized(SCALE_OF_OUTPUT, 128)
    }

    /// Weights of 1/32, so that sums of products are in the steps of 2^-12 that the gates have.
    fn weights(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        OperandSpec::new(TensorQuant8Asymm, dimensions).quantized(1.0 / 32.0, 100)
    }

    fn biases(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        OperandSpec::new(TensorInt32, dimensions).quantized(1.0 / 4096.0, 0)
    }

    fn cells(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        OperandSpec::new(TensorQuant16Symm, dimensions).quantized(SCALE_OF_CELL, 0)
    }

    /// One sequence, two inputs, one unit: all 0, but the cell before and the gates' biases, in the
    /// order of the arguments.
    fn example(cell: f64, gates: [f64; 4]) -> Example {
        let example = Example::new(OperationType::Quantized16bitLstm);
        let example = example.input(numbers([1, 2]), &[128.0; 2]);
        let example = (0..4).fold(example, |it, _| it.input(weights([1, 2]), &[100.0; 2]));
        let example = (0..4).fold(example, |it, _| it.input(weights([1, 1]), &[100.0]));
        let example = gates.into_iter().fold(example, |it, bias| it.input(biases([1]), &[bias]));
        example
            .input(cells([1, 1]), &[cell])
            .input(numbers([1, 1]), &[128.0])
            .output(cells([]))
            .output(numbers([]))
    }

    /// Cell and output.
    fn step(example: &Example) -> [f64; 2] {
        let results = example.results();
        [results[0].1[0], results[1].1[0]]
    }

    const OPEN: f64 = 1e6;
    const SHUT: f64 = -1e6;

    #[test]
    fn model_25_it_came_with_its_version() {
        let good = || example(0.0, [0.0; 4]);
        assert_eq!(good().since(), Ok(HalVersion::V1_2));
        let signed = OperandSpec::new(OperandType::TensorQuant8AsymmSigned, [1, 2]);
        assert!(
            good().with_input(0, signed.quantized(SCALE_OF_OUTPUT, 0), &[0.0; 2]).since().is_err()
        );
        assert!(good().output(numbers([])).since().is_err());
    }

    #[test]
    fn values_by_hand() {
        // Half of 1 stays; half of tanh(1) enters: (0.5 + 0.380797) * 2048. tanh of that, 0.706836, is
        // half let out: 45.2 / 128.
        assert_eq!(step(&example(2048.0, [0.0, 0.0, 4096.0, 0.0])), [1804.0, 173.0]);
        assert_eq!(step(&example(-2048.0, [0.0, 0.0, -4096.0, 0.0])), [-1804.0, 83.0]);
        // Only what was there, 0.99963 of it; only what enters, of tanh(1), which is 24964 / 32768
        // here, and 0.00034 of what was there. Nothing comes out.
        assert_eq!(step(&example(2048.0, [SHUT, OPEN, 0.0, SHUT])), [2047.0, 128.0]);
        assert_eq!(step(&example(2048.0, [OPEN, SHUT, 4096.0, SHUT])), [1561.0, 128.0]);
    }

    #[test]
    fn what_is_too_large_saturates() {
        // A gate that is wide open lets 0.99966 pass: 16 * 0.99966 + 0.99966 is more than 16.
        assert_eq!(step(&example(32767.0, [OPEN; 4])), [32767.0, 255.0]);
        assert_eq!(step(&example(-32768.0, [OPEN, OPEN, SHUT, OPEN])), [-32768.0, 0.0]);
        // Bias and weights together leave 32 bits; what is left of them is the definition's.
        let wrapped = example(0.0, [OPEN, SHUT, f64::from(i32::MAX), OPEN])
            .with_input(0, numbers([1, 2]), &[255.0; 2])
            .with_input(3, weights([1, 2]), &[255.0; 2]);
        assert!(wrapped.run().is_ok());
    }

    #[test]
    fn recurrent_weights_come_before_weights_and_the_input_before_the_output() {
        // The candidate is 64 times 64 steps, from whichever pair is asked: tanh(1), 1560 steps.
        for (at, weight, numbers_at) in [(7, 0, (0, 0)), (3, 0, (0, 1)), (3, 1, (14, 0))] {
            let mut of_weights = vec![100.0; if at == 3 { 2 } else { 1 }];
            of_weights[weight] += 64.0;
            let (argument, index) = numbers_at;
            let mut of_numbers = vec![128.0; if argument == 0 { 2 } else { 1 }];
            of_numbers[index] += 64.0;
            let lengths = |numbers: &[f64]| [1, u32::try_from(numbers.len()).unwrap()];
            let found = example(0.0, [OPEN, SHUT, 0.0, SHUT])
                .with_input(at, weights(lengths(&of_weights)), &of_weights)
                .with_input(argument, numbers(lengths(&of_numbers)), &of_numbers);
            assert_eq!(step(&found)[0], 1560.0, "{at} {weight}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = || example(0.0, [0.0; 4]);
        let spec = |operand_type, dimensions: &[u32], scale, zero_point| {
            OperandSpec::new(operand_type, dimensions).quantized(scale, zero_point)
        };
        for (refused, message) in [
            (
                good().with_input(0, spec(TensorQuant8Asymm, &[1, 2], 0.5, 128), &[0.0; 2]),
                "scale of input 0 (input) is 0.5, expected 0.0078125",
            ),
            (
                good().with_input(14, spec(TensorQuant8Asymm, &[1, 1], 1.0 / 128.0, 0), &[0.0]),
                "zero point of input 14 (output (in)) is 0, expected 128",
            ),
            (
                good().with_input(13, spec(TensorQuant16Symm, &[1, 1], 1.0 / 1024.0, 0), &[0.0]),
                "scale of input 13 (cell state (in)) is 0.0009765625, expected 0.00048828125",
            ),
            (
                good().with_output(spec(TensorQuant16Symm, &[1, 1], 1.0, 0)),
                "scale of output 0 (cell state (out)) is 1, expected 0.00048828125",
            ),
            (
                good().with_input(6, spec(TensorQuant8Asymm, &[1, 1], 1.0 / 32.0, 99), &[0.0]),
                "zero point of input 6 (recurrent-to-forget weights) is 99, expected 100 as input 1 \
                 (input-to-input weights)",
            ),
            (
                good().with_input(8, spec(TensorQuant8Asymm, &[1, 1], 0.25, 100), &[0.0]),
                "scale of input 8 (recurrent-to-output weights) is 0.25, expected 0.03125 as input 1 \
                 (input-to-input weights)",
            ),
            (
                good().with_input(9, spec(TensorInt32, &[1], 1.0, 0), &[0.0]),
                "scale of input 9 (input gate bias) is 1, expected 0.00024414063",
            ),
            (
                good().with_input(0, numbers([1, 2, 1]), &[128.0; 2]),
                "rank of input 0 (input) is 3, expected 2",
            ),
            (
                good().with_input(4, weights([1, 3]), &[0.0; 3]),
                "shape of input 4 (input-to-output weights) is [1, 3], expected length 2 along axis 1",
            ),
            (
                good().with_input(5, weights([1, 2]), &[0.0; 2]),
                "shape of input 5 (recurrent-to-input weights) is [1, 2], expected length 1 along \
                 axis 1",
            ),
            (
                good().with_input(12, biases([2]), &[0.0; 2]),
                "shape of input 12 (output gate bias) is [2], expected length 1 along axis 0",
            ),
            (
                good().with_input(13, cells([2, 1]), &[0.0; 2]),
                "shape of input 13 (cell state (in)) is [2, 1], expected length 1 along axis 0",
            ),
            (
                good().without_input(9),
                "value of input 9 (input gate bias) is left out, expected a value",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("QUANTIZED_16BIT_LSTM: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |input: &[u32], weights_of_input: &[u32], output: &[u32]| {
            let example = example(0.0, [0.0; 4]);
            let example = (1..9).fold(example, |it, at| it.with_input_to_come(at, weights([])));
            let example = (9..13).fold(example, |it, at| it.with_input_to_come(at, biases([])));
            let example = example
                .with_input_to_come(0, numbers(input))
                .with_input_to_come(1, weights(weights_of_input))
                .with_input_to_come(13, cells([]))
                .with_input_to_come(14, numbers(output));
            example.shapes().map(|mut shapes| {
                assert_eq!(shapes[0], shapes[1]);
                shapes.swap_remove(0)
            })
        };
        assert_eq!(shapes(&[], &[], &[]), Ok(Shape::of_rank(2)));
        assert_eq!(shapes(&[5, 0], &[7, 0], &[]), Ok(Shape::known([5, 7])));
        assert_eq!(shapes(&[0, 3], &[], &[5, 7]), Ok(Shape::known([5, 7])));
        assert!(shapes(&[], &[7, 0], &[5, 8]).is_err());
        let empty = example(0.0, [0.0; 4])
            .with_input(0, numbers([0, 2]), &[])
            .with_input(13, cells([0, 1]), &[])
            .with_input(14, numbers([0, 1]), &[]);
        assert_eq!(empty.results(), [(vec![0, 1], vec![]), (vec![0, 1], vec![])]);
    }
}
