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
//! Source: `types.hal` 1.3; the arithmetic of TensorFlow Lite, whose kernel gives the same numbers to
//! the bit, but for peepholes together with a projection to fewer units: there it counts cells by
//! outputs. Android's reference implementation differs from both where there is no layer norm (it
//! leaves out the gates' biases), in peepholes (it reads the cell it is about to write), in the scale
//! of the projection clip, and in the sign of the hidden state's zero point without a projection.

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
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// QUANTIZED_LSTM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantizedLstm {
    /// Scales and clips.
    pub scales: Scales,
}

/// Where the cell's arguments stand.
pub const ARGUMENTS: LstmArguments =
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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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
        call.reserve::<i32>(16 * (units + output_size))?;
        for ((input, output), cell) in rows {
            let step = weights.step(call, [input, output, cell])?;
            new_cells.extend(step.cell);
            new_outputs.extend(step.output);
        }
        let results = [&new_outputs, &new_cells, &new_outputs];
        let outputs = call.outputs().iter().zip(dimensions).zip(results);
        outputs.map(|((output, dimensions), it)| output.with_integers(dimensions, it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::Example;
    use OperandType::{Float32, Int32};
    use nnhal_hal::OperandSpec;

    const OUTPUT_ZERO_POINT: i32 = 10;

    fn numbers(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        let scale = 1.0 / 128.0;
        OperandSpec::new(TensorQuant8AsymmSigned, dimensions).quantized(scale, OUTPUT_ZERO_POINT)
    }

    /// Weights of 1/32, so that sums of products are in the steps of 2^-12 that the gates have.
    fn matrix(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        OperandSpec::new(TensorQuant8Symm, dimensions).quantized(1.0 / 32.0, 0)
    }

    fn cells(exponent: i32, dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        let scale = 2.0_f32.powi(exponent);
        OperandSpec::new(TensorQuant16Symm, dimensions).quantized(scale, 0)
    }

    fn biases(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        OperandSpec::tensor_int32(dimensions)
    }

    /// One sequence, one input, one unit: all 0, but the cell before in steps of a power of two, and
    /// the gates' biases in the order of the arguments. Nothing optional but the input gate. The
    /// hidden state has the output's scale and the zero point 0.
    fn example(exponent: i32, cell: f64, gates: [f64; 4]) -> Example {
        let scalar = |value: f64| (OperandSpec::scalar(Float32), [value]);
        let zero = [f64::from(OUTPUT_ZERO_POINT)];
        let mut example = Example::new(OperationType::QuantizedLstm).input(numbers([1, 1]), &zero);
        example = (0..8).fold(example, |it, _| it.input(matrix([1, 1]), &[0.0]));
        example = (0..3).fold(example, |it, _| it.omitted(cells(-15, [1])));
        example = gates.into_iter().fold(example, |it, bias| it.input(biases([1]), &[bias]));
        example = example
            .omitted(matrix([1, 1]))
            .omitted(biases([1]))
            .input(numbers([1, 1]), &zero)
            .input(cells(exponent, [1, 1]), &[cell]);
        example = (0..4).fold(example, |it, _| it.omitted(cells(-12, [1])));
        for value in [0.0, 0.0, 2.0_f64.powi(-12), 2.0_f64.powi(-12), 2.0_f64.powi(-12)] {
            example = example.input(scalar(value).0, &scalar(value).1);
        }
        example
            .input(OperandSpec::scalar(Float32), &[2.0_f64.powi(-12)])
            .int32s([0])
            .input(OperandSpec::scalar(Float32), &[1.0 / 128.0])
            .output(numbers([]))
            .output(cells(exponent, []))
            .output(numbers([]))
    }

    fn float(example: Example, index: usize, value: f64) -> Example {
        example.with_input(index, OperandSpec::scalar(Float32), &[value])
    }

    /// Cell and output.
    fn step(example: &Example) -> [f64; 2] {
        let results = example.results();
        assert_eq!(results[0], results[2]);
        [results[1].1[0], results[2].1[0]]
    }

    const OPEN: f64 = 1e6;
    const SHUT: f64 = -1e6;

    /// Of the cell, 1/2, a half stays; half of tanh(1/4), 0.244919, is 15.7 / 128.
    fn half_open() -> Example {
        example(-11, 1024.0, [0.0; 4])
    }

    #[test]
    fn model_25_it_came_with_its_version() {
        assert_eq!(half_open().since(), Ok(HalVersion::V1_3));
        let unsigned = OperandSpec::new(OperandType::TensorQuant8Asymm, [1, 1]).quantized(1.0, 0);
        assert!(half_open().with_input(0, unsigned, &[0.0]).since().is_err());
        let wide = OperandSpec::new(TensorQuant16Symm, [1, 1]).quantized(1.0, 0);
        assert!(half_open().with_input(2, wide, &[0.0]).since().is_err());
        // Clips can be left out, scales cannot.
        assert!(half_open().without_input(24).without_input(25).run().is_ok());
        assert!(half_open().without_input(27).since().is_err());
    }

    #[test]
    fn values_by_hand() {
        assert_eq!(step(&half_open()), [512.0, 16.0]);
        // Half of tanh(1), 0.380797, enters and leaves 0.630797 with the cell's quarter: 1291.9
        // steps. Half of its tanh, 0.558667, is 35.8 / 128.
        let entering = example(-11, 1024.0, [0.0, 0.0, 4096.0, 0.0]);
        assert_eq!(step(&entering), [1292.0, 36.0]);
        let negative = example(-11, -1024.0, [0.0, 0.0, -4096.0, 0.0]);
        assert_eq!(step(&negative), [-1292.0, -36.0]);
        // In finer and in coarser steps.
        assert_eq!(step(&example(-15, 8192.0, [0.0; 4])), [4096.0, 8.0]);
        assert_eq!(step(&example(-9, 256.0, [0.0; 4])), [128.0, 16.0]);
        // Coupled: what stays does not enter, and what there would be to enter is not looked at.
        let coupled = |forget, candidate| {
            let example = example(-11, 1024.0, [0.0, forget, candidate, 0.0]);
            float([1, 5, 12].into_iter().fold(example, Example::without_input), 26, -1.0)
        };
        assert_eq!(step(&coupled(OPEN, 0.0))[0], 1024.0);
        // tanh(1) is 24964 / 32768 here, of which 0.99966 enters.
        assert_eq!(step(&coupled(SHUT, 4096.0))[0], 1560.0);
    }

    #[test]
    fn each_weight_counts_where_it_belongs() {
        // 64 steps of weight times 64 steps of the number: 1, that is tanh(1) of the candidate.
        let number = numbers([1, 1]);
        let above = [64.0 + f64::from(OUTPUT_ZERO_POINT)];
        for (weight, argument) in [(3, 0), (7, 18)] {
            let found = example(-11, 0.0, [OPEN, SHUT, 0.0, SHUT])
                .with_input(weight, matrix([1, 1]), &[64.0])
                .with_input(argument, number.clone(), &above);
            assert_eq!(step(&found)[0], 1560.0);
        }
        // A peephole opens the forget gate by the cell before: 1/2 times 16 is 8.
        let peephole = |index| {
            [9, 10, 11].into_iter().fold(half_open(), |it, other| {
                let weight = if other == index { 32767.0 } else { 0.0 };
                it.with_input(other, cells(-11, [1]), &[weight])
            })
        };
        assert_eq!(step(&peephole(10)), [1024.0, 30.0]);
        assert_eq!(step(&peephole(9))[0], 512.0);
        // The output gate by the new one: logistic(4) lets 0.982 of 0.244919 out.
        assert_eq!(step(&peephole(11)), [512.0, 31.0]);
    }

    #[test]
    fn layer_norm_leaves_the_biases() {
        // A single unit is its own mean. Biases are in 2^-10 of the weights' scale, and no part of
        // what is normalized.
        let normal = [20, 21, 22, 23]
            .into_iter()
            .fold(example(-11, 1024.0, [0.0, 0.0, 4096.0 * 1024.0, 0.0]), |it, index| {
                it.with_input(index, cells(-12, [1]), &[1000.0])
            });
        let loud = normal.with_input(3, matrix([1, 1]), &[127.0]);
        assert_eq!(step(&loud), [1292.0, 36.0]);
    }

    #[test]
    fn what_is_too_large_saturates() {
        assert_eq!(step(&example(-15, 32767.0, [OPEN; 4]))[0], 32767.0);
        assert_eq!(step(&example(-15, -32768.0, [OPEN, OPEN, SHUT, OPEN]))[0], -32768.0);
        // The output's steps are so small that half the cell is beyond them.
        let fine = |cell| float(example(-11, cell, [0.0; 4]), 31, 1.0 / 1024.0);
        assert_eq!([step(&fine(2048.0))[1], step(&fine(-2048.0))[1]], [127.0, -128.0]);
    }

    #[test]
    fn clips_are_in_steps_rounded_towards_zero() {
        let with_cell_clip = |steps: f64| step(&float(half_open(), 24, steps / 2048.0));
        assert_eq!(with_cell_clip(100.9), [100.0, 3.0]);
        assert_eq!(with_cell_clip(512.0), [512.0, 16.0]);
        // Less than a step is no clip.
        assert_eq!(with_cell_clip(0.9), [512.0, 16.0]);
        // Without a projection, its clip is not looked at.
        assert_eq!(step(&float(half_open(), 25, 1.0 / 128.0)), [512.0, 16.0]);
    }

    /// The hidden number 16 twice, and 4 more.
    fn projected(hidden_zero_point: i32) -> Example {
        let one = OperandSpec::new(TensorQuant8Symm, [1, 1]).quantized(1.0, 0);
        half_open()
            .with_input(16, one, &[2.0])
            .with_input(17, biases([1]), &[4.0])
            .with_int32(30, hidden_zero_point)
    }

    #[test]
    fn projections_by_hand() {
        assert_eq!(step(&projected(0)), [512.0, 46.0]);
        assert_eq!(step(&projected(0).without_input(17))[1], 42.0);
        // The zero point cancels out, with and without bias, but for what 8 bits cannot hold:
        // 16 + 120 becomes 127, which leaves 7.
        assert_eq!(step(&projected(-100))[1], 46.0);
        assert_eq!(step(&projected(-100).without_input(17))[1], 42.0);
        assert_eq!(step(&projected(-120))[1], 28.0);
        // The clip is in the output's steps.
        assert_eq!(step(&float(projected(0), 25, 20.5 / 128.0))[1], 20.0);
        // Without a projection, the zero point is the output's.
        assert_eq!(step(&half_open().with_int32(30, 3))[1], 19.0);
        assert_eq!(step(&half_open().with_int32(30, 120))[1], 127.0);
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let coarse = |scale| OperandSpec::new(TensorQuant16Symm, [1, 1]).quantized(scale, 0);
        for (refused, message) in [
            (
                half_open().with_input(19, coarse(0.001), &[0.0]),
                "scale of input 19 (cell state (in)) is 0.001, expected a power of two from 2^-15 to \
                 2^-9",
            ),
            (
                half_open().with_input(19, coarse(1.0 / 256.0), &[0.0]),
                "scale of input 19 (cell state (in)) is 0.00390625, expected a power of two from \
                 2^-15 to 2^-9",
            ),
            (
                half_open().without_input(5),
                "value of input 5 (recurrent-to-input weights) is left out, expected a value, as \
                 input 1 has one",
            ),
            (
                half_open().with_input(10, cells(-15, [1]), &[0.0]),
                "value of input 11 (cell-to-output weights) is left out, expected a value, as input \
                 10 has one",
            ),
            (
                half_open().with_input(17, biases([1]), &[0.0]),
                "value of input 16 (projection weights) is left out, expected a value, as input 17 \
                 has one",
            ),
            (
                half_open().with_input(20, cells(-12, [1]), &[0.0]),
                "value of input 20 (input layer norm weights) is given, expected none, as input 21 \
                 has none",
            ),
            (
                float(half_open(), 24, -1.0),
                "value of input 24 (cell clip) is -1, expected 0 or more",
            ),
            (
                float(half_open(), 26, 0.0),
                "value of input 26 (input intermediate scale) is 0, expected above 0 and finite",
            ),
            (
                float(half_open(), 29, f64::INFINITY),
                "value of input 29 (output intermediate scale) is inf, expected above 0 and finite",
            ),
            (
                float(half_open(), 31, f64::NAN),
                "value of input 31 (hidden state scale) is NaN, expected above 0 and finite",
            ),
            (
                half_open().with_input(30, OperandSpec::scalar(Int32), &[128.0]),
                "value of input 30 (hidden state zero point) is 128, expected -128 to 127",
            ),
            (
                half_open().with_input(0, numbers([1, 1, 1]), &[0.0]),
                "rank of input 0 (input) is 3, expected 2",
            ),
            (
                half_open().with_input(2, matrix([1, 2]), &[0.0; 2]),
                "shape of input 2 (input-to-forget weights) is [1, 2], expected length 1 along axis 1",
            ),
            (
                half_open().with_input(18, numbers([2, 1]), &[0.0; 2]),
                "shape of input 18 (output state (in)) is [2, 1], expected length 1 along axis 0",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("QUANTIZED_LSTM: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |example: Example, known: &[(usize, OperandSpec)]| {
            let unknown =
                (1..9).fold(example, |it, index| it.with_input_to_come(index, matrix([])));
            let unknown =
                (12..16).fold(unknown, |it, index| it.with_input_to_come(index, biases([])));
            let unknown = unknown
                .with_input_to_come(0, numbers([]))
                .with_input_to_come(18, numbers([]))
                .with_input_to_come(19, cells(-11, []));
            let known = known.iter().cloned();
            known.fold(unknown, |it, (index, spec)| it.with_input_to_come(index, spec)).shapes()
        };
        let expected = |output, cell| {
            let output = Shape::new([Some(5), output]);
            Ok(vec![output.clone(), Shape::new([Some(5), cell]), output])
        };
        assert_eq!(
            shapes(half_open(), &[(0, numbers([5, 0])), (13, biases([7]))]),
            expected(Some(7), Some(7))
        );
        assert_eq!(
            shapes(half_open(), &[(18, numbers([5, 0])), (19, cells(-11, [0, 7]))]),
            expected(Some(7), Some(7))
        );
        // The projection is constant here.
        assert_eq!(shapes(projected(0), &[(0, numbers([5, 3]))]), expected(Some(1), Some(1)));
        // Whether there is one is not known, and so is what the units say of the output.
        let perhaps = [(0, numbers([5, 3])), (16, matrix([6, 0])), (13, biases([7]))];
        assert_eq!(shapes(half_open(), &perhaps), expected(None, Some(7)));
        assert_eq!(shapes(half_open(), &[]).unwrap()[1], Shape::of_rank(2));
        let empty = half_open()
            .with_input(0, numbers([0, 1]), &[])
            .with_input(18, numbers([0, 1]), &[])
            .with_input(19, cells(-11, [0, 1]), &[]);
        let dimensions = empty.results().into_iter().map(|(dimensions, _)| dimensions);
        assert!(dimensions.eq([[0, 1]; 3]));
    }
}
