//! UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM cell over all steps of sequences. The formulas are those of
//! [`lstm_cell`].
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, time, input]`; `[time, batch, input]` if time-major | float32, float16 |
//! | input 1 to 17 | weights and biases, some optional | see [`lstm_arguments`](crate::rules::lstm_arguments) | as the input |
//! | input 18 | output state before the first step | `[batch, output]` | as the input |
//! | input 19 | cell state before the first step | `[batch, units]` | as the input |
//! | input 20 | activation | scalar | INT32: 0 none, 1 RELU, 3 RELU6, 4 TANH, 6 sigmoid |
//! | input 21, 22 | cell clip, projection clip | scalar, 0 or more; 0 is no limit | FLOAT32; FLOAT16 with float16 |
//! | input 23 | time-major? | scalar | BOOL |
//! | input 24 to 27 | layer norm weights, optional | `[units]` | as the input |
//! | output 0 | output | as the input, but `output` for `input` | as the input |
//! | output 1, from 1.3 | output state after the last step | `[batch, output]` | as the input |
//! | output 2, from 1.3 | cell state after the last step | `[batch, units]` | as the input |
//!
//! Outputs 1 and 2 are there together or not at all. Batch and time may be 0; states stay what they
//! are over no steps.
//!
//! Source: `types.hal` 1.2, 1.3 (states).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::lstm_arguments::LstmArguments;
use crate::rules::lstm_cell::{self, Settings};
use crate::rules::recurrence::{self, Direction, Extent, Extents, Inputs, Rows, Sequences};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// UNIDIRECTIONAL_SEQUENCE_LSTM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnidirectionalSequenceLstm {
    /// Activation and clips.
    pub settings: Settings,
    /// Whether the time is the first axis, before the batch.
    pub is_time_major: bool,
}

/// Where its arguments are.
pub const ARGUMENTS: LstmArguments =
    LstmArguments { weights: 1, states: 18, layer_norm: 24, auxiliary: None };

static SIGNATURE: Signature = Signature {
    operation: OperationType::UnidirectionalSequenceLstm,
    // Columns: tensors; clips.
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::column("input-to-input weights", 0).omittable(),
            Parameter::column("input-to-forget weights", 0),
            Parameter::column("input-to-cell weights", 0),
            Parameter::column("input-to-output weights", 0),
            Parameter::column("recurrent-to-input weights", 0).omittable(),
            Parameter::column("recurrent-to-forget weights", 0),
            Parameter::column("recurrent-to-cell weights", 0),
            Parameter::column("recurrent-to-output weights", 0),
            Parameter::column("cell-to-input weights", 0).omittable(),
            Parameter::column("cell-to-forget weights", 0).omittable(),
            Parameter::column("cell-to-output weights", 0).omittable(),
            Parameter::column("input gate bias", 0).omittable(),
            Parameter::column("forget gate bias", 0),
            Parameter::column("cell bias", 0),
            Parameter::column("output gate bias", 0),
            Parameter::column("projection weights", 0).omittable(),
            Parameter::column("projection bias", 0).omittable(),
            Parameter::column("output state (in)", 0),
            Parameter::column("cell state (in)", 0),
            Parameter::int32("activation"),
            Parameter::column("cell clip", 1),
            Parameter::column("projection clip", 1),
            Parameter::bool("time-major"),
            Parameter::column("input layer norm weights", 0).omittable(),
            Parameter::column("forget layer norm weights", 0).omittable(),
            Parameter::column("cell layer norm weights", 0).omittable(),
            Parameter::column("output layer norm weights", 0).omittable(),
        ],
        &[
            Parameter::column("output", 0),
            Parameter::column("output state (out)", 0).trailing(HalVersion::V1_3),
            Parameter::column("cell state (out)", 0),
        ],
    )],
};

impl Operation for UnidirectionalSequenceLstm {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        ARGUMENTS.validate(call)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { settings: Settings::decode(call, 20)?, is_time_major: call.input(23).bool()? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), Sequences::extents(self.is_time_major, Extent::Input))?;
        let output = ARGUMENTS.learn_shapes(call, &mut known)?;
        let mut shapes = vec![
            known.shape(Sequences::extents(self.is_time_major, output)),
            known.shape([Extent::Batch, output]),
            known.shape([Extent::Batch, Extent::Units]),
        ];
        shapes.truncate(call.outputs().len());
        Ok(shapes)
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let mut elements = recurrence::zeros(call.output(0), &dimensions[0])?;
        let [_, width] = call.input(18).lengths_of()?;
        let states = lstm_cell::run(
            call,
            ARGUMENTS,
            self.settings,
            Inputs { input: call.input(0), auxiliary: None },
            (Sequences::of(call.input(0), self.is_time_major)?, Direction::Forward),
            Rows { elements: &mut elements, width, offset: 0 },
        )?;
        let results = [&elements, &states.output, &states.cell];
        let outputs = call.outputs().iter().zip(dimensions).zip(results);
        outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, float, tensor};
    use crate::rules::lstm_arguments::testing::{
        INPUT_GATE, PEEPHOLES, PROJECTION, PROJECTION_BIAS, Plan,
    };
    use HalVersion::{V1_2, V1_3};
    use OperandType::Bool;
    use nnhal_hal::OperandSpec;

    const FLOAT32: [OperandType; 2] = [TensorFloat32, Float32];
    const FLOAT16: [OperandType; 2] = [TensorFloat16, Float16];
    const NO_NORM: [bool; 4] = [false; 4];

    /// One unit, whose candidate is the input; all else is 0, so that every gate is half open:
    /// `c' = c / 2 + x / 2`, from 4 for the first sequence and 0 for the second, and half of that
    /// comes out. The steps are 2 4 8 and 6 10 20. Without activation and clips.
    fn example(
        types: [OperandType; 2],
        is_time_major: bool,
        has_states: bool,
        given: &[usize],
        norm: [bool; 4],
    ) -> Example {
        let plan = Plan { types: [types[0]; 3], sizes: [1, 1, 1], given };
        let tensor = |dimensions: &[u32]| tensor(types[0], dimensions);
        let example = Example::new(OperationType::UnidirectionalSequenceLstm);
        let example = if is_time_major {
            example.input(tensor(&[3, 2, 1]), &[2.0, 6.0, 4.0, 10.0, 8.0, 20.0])
        } else {
            example.input(tensor(&[2, 3, 1]), &[2.0, 4.0, 8.0, 6.0, 10.0, 20.0])
        };
        let example = plan
            .weights(example, || 0.0)
            .with_input(3, tensor(&[1, 1]), &[1.0])
            .input(tensor(&[2, 1]), &[0.0, 0.0])
            .input(tensor(&[2, 1]), &[4.0, 0.0])
            .int32s([0])
            .input(OperandSpec::scalar(types[1]), &[0.0])
            .input(OperandSpec::scalar(types[1]), &[0.0])
            .bool(is_time_major);
        let example = plan.layer_norm(example, norm, 1.0).output(tensor(&[]));
        if has_states { example.output(tensor(&[])).output(tensor(&[])) } else { example }
    }

    fn plain() -> Example {
        example(FLOAT32, false, true, &INPUT_GATE, NO_NORM)
    }

    #[test]
    fn model_25_types_and_states_came_with_their_versions() {
        for types in [FLOAT32, FLOAT16] {
            for (has_states, since) in [(false, V1_2), (true, V1_3)] {
                let accepted = example(types, true, has_states, &INPUT_GATE, NO_NORM);
                assert_eq!(accepted.since(), Ok(since), "{types:?}");
                assert!(accepted.run().is_ok(), "{types:?}");
            }
        }
        for types in [[TensorFloat16, Float32], [OperandType::TensorQuant8Asymm, Float32]] {
            assert!(example(types, true, false, &INPUT_GATE, NO_NORM).since().is_err());
        }
        // The states are there together.
        let one = example(FLOAT32, true, false, &INPUT_GATE, NO_NORM).output(float([]));
        assert!(one.since().is_err());
    }

    #[test]
    fn values_by_hand() {
        // 3, 3/2 + 2, 7/4 + 4; 3, 3/2 + 5, 13/4 + 10.
        let rows = [1.5, 1.75, 2.875, 1.5, 3.25, 6.625];
        let states = [(vec![2, 1], vec![2.875, 6.625]), (vec![2, 1], vec![5.75, 13.25])];
        for types in [FLOAT32, FLOAT16] {
            let results = |is_time_major, has_states| {
                example(types, is_time_major, has_states, &INPUT_GATE, NO_NORM).results()
            };
            let batch_major = results(false, true);
            assert_eq!(batch_major[0], (vec![2, 3, 1], rows.to_vec()));
            assert_eq!(batch_major[1..], states);
            let time_major = results(true, true);
            assert_eq!(
                time_major[0],
                (vec![3, 2, 1], [0, 3, 1, 4, 2, 5].map(|it| rows[it]).to_vec())
            );
            assert_eq!(time_major[1..], states);
            assert_eq!(results(true, false), time_major[..1]);
        }
        let one = (float([1, 1]), [1.0]);
        // The candidate adds the output before: 3, then 3/2 + (4 + 3/2) / 2, 17/8 + (8 + 17/8) / 2.
        let recurrent = plain().with_input(7, one.0.clone(), &one.1).results();
        assert_eq!(recurrent[2].1[0], 7.1875);
        let from_state =
            plain().with_input(7, one.0, &one.1).with_input(18, float([2, 1]), &[16.0, 0.0]);
        assert_eq!(from_state.results()[0].1[0], 5.5);
    }

    #[test]
    fn optional_parts_hold_for_every_step() {
        let with = |given: &[usize]| {
            let given = [&INPUT_GATE[..], given].concat();
            example(FLOAT32, false, true, &given, NO_NORM)
        };
        let clip = |example: Example, index, value| {
            example.with_input(index, OperandSpec::scalar(Float32), &[value])
        };
        // Cells of at most 3: 3, then 3/2 + 2 clipped, 3/2 + 4 clipped.
        assert_eq!(clip(plain(), 21, 3.0).results()[0].1, [1.5; 6]);
        // Outputs come out doubled and with 1 added, and what is beyond 5 is cut off.
        let projected = with(&[PROJECTION, PROJECTION_BIAS])
            .with_input(16, float([1, 1]), &[2.0])
            .with_input(17, float([1]), &[1.0]);
        assert_eq!(projected.results()[0].1, [4.0, 4.5, 6.75, 4.0, 7.5, 14.25]);
        assert_eq!(clip(projected, 22, 5.0).results()[0].1, [4.0, 4.5, 5.0, 4.0, 5.0, 5.0]);
        // Without a projection, its clip is not looked at.
        assert_eq!(clip(plain(), 22, 0.5).results(), plain().results());
        // The output gate opens for good once there is a cell.
        let peephole = with(&PEEPHOLES).with_input(11, float([1]), &[1000.0]);
        assert_eq!(peephole.results()[0].1[..3], [3.0, 3.5, 5.75]);
        // Coupled, with the forget gate shut, everything enters.
        let coupled =
            example(FLOAT32, false, true, &[], NO_NORM).with_input(13, float([1]), &[-1000.0]);
        assert_eq!(coupled.results()[2].1, [8.0, 20.0]);
        // A single unit is its own mean: the input is normalized away.
        let normal = example(FLOAT32, false, true, &INPUT_GATE, [true; 4]);
        assert_eq!(normal.results()[2].1, [0.5, 0.0]);
        let coupled = example(FLOAT32, false, true, &[], [false, true, true, true]);
        assert_eq!(coupled.results()[2].1, [0.5, 0.0]);
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let given = |given: &[usize]| example(FLOAT32, false, true, given, NO_NORM);
        let with_all = |more: &[usize]| given(&[&INPUT_GATE[..], more].concat());
        let norm = |norm| example(FLOAT32, false, true, &INPUT_GATE, norm);
        for (refused, message) in [
            (
                plain().with_input(0, float([6, 1]), &[0.0; 6]),
                "rank of input 0 (input) is 2, expected 3",
            ),
            (
                plain().with_input(23, OperandSpec::scalar(Bool), &[1.0]),
                "shape of input 18 (output state (in)) is [2, 1], expected length 3 along axis 0",
            ),
            (
                plain().with_input(3, float([1, 2]), &[0.0; 2]),
                "shape of input 3 (input-to-cell weights) is [1, 2], expected length 1 along axis 1",
            ),
            (
                plain().with_input(19, float([2, 2]), &[0.0; 4]),
                "shape of input 19 (cell state (in)) is [2, 2], expected length 1 along axis 1",
            ),
            (
                given(&[INPUT_GATE[0], INPUT_GATE[2]]),
                "value of input 5 (recurrent-to-input weights) is left out, expected a value, as \
                 input 1 has one",
            ),
            (
                with_all(&PEEPHOLES[1..]),
                "value of input 9 (cell-to-input weights) is left out, expected a value, as input 10 \
                 has one",
            ),
            (
                given(&PEEPHOLES),
                "value of input 9 (cell-to-input weights) is given, expected none, as there is no \
                 input gate",
            ),
            (
                with_all(&[PROJECTION_BIAS]),
                "value of input 16 (projection weights) is left out, expected a value, as input 17 \
                 has one",
            ),
            (
                norm([true, false, true, true]),
                "value of input 25 (forget layer norm weights) is left out, expected a value, as \
                 input 26 has one",
            ),
            (
                norm([false, true, true, true]),
                "value of input 24 (input layer norm weights) is left out, expected a value, as \
                 input 25 has one",
            ),
            (
                norm([true; 4]).with_input(27, float([2]), &[1.0; 2]),
                "shape of input 27 (output layer norm weights) is [2], expected length 1 along \
                 axis 0",
            ),
            (
                plain().with_int32(20, 2),
                "value of input 20 (activation) is 2, expected 0, 1, 3, 4 or 6",
            ),
            (
                plain().with_input(21, OperandSpec::scalar(Float32), &[-0.5]),
                "value of input 21 (cell clip) is -0.5, expected 0 or more",
            ),
            (
                plain().without_input(13),
                "value of input 13 (forget gate bias) is left out, expected a value",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("UNIDIRECTIONAL_SEQUENCE_LSTM: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |is_time_major, given: &[usize], known: &[(usize, &[u32])]| {
            let given = [&INPUT_GATE[..], given].concat();
            let example = example(FLOAT32, is_time_major, true, &given, NO_NORM);
            let tensors = (0..9).chain(12..16).chain(18..20);
            let unknown = tensors.fold(example, |example, index| {
                let dimensions = known.iter().find(|(known, _)| *known == index);
                example.with_input_to_come(index, float(dimensions.map_or(&[][..], |it| it.1)))
            });
            unknown.shapes()
        };
        let (time, batch, units) = (Some(5), Some(6), Some(7));
        let expected = |steps, output, units| {
            Ok(vec![Shape::new(steps), Shape::new([batch, output]), Shape::new([batch, units])])
        };
        let all: [(usize, &[u32]); 2] = [(0, &[5, 6, 9]), (19, &[0, 7])];
        assert_eq!(shapes(true, &[], &all), expected([time, batch, units], units, units));
        let all: [(usize, &[u32]); 2] = [(0, &[6, 5, 0]), (14, &[7])];
        assert_eq!(shapes(false, &[], &all), expected([batch, time, units], units, units));
        // The weights of the projection are constant here, and not all there is to know.
        let all: [(usize, &[u32]); 2] = [(18, &[6, 0]), (0, &[0, 5, 0])];
        assert_eq!(
            shapes(false, &[PROJECTION], &all),
            expected([batch, time, Some(1)], Some(1), Some(1))
        );
        assert_eq!(shapes(false, &[], &[]).unwrap()[0], Shape::of_rank(3));
        // No sequences; no steps.
        let none = plain()
            .with_input(0, float([0, 3, 1]), &[])
            .with_input(18, float([0, 1]), &[])
            .with_input(19, float([0, 1]), &[]);
        let dimensions = none.results().into_iter().map(|(dimensions, _)| dimensions);
        assert!(dimensions.eq([vec![0, 3, 1], vec![0, 1], vec![0, 1]]));
        let at_once = plain().with_input(0, float([2, 0, 1]), &[]).results();
        assert_eq!(at_once[0], (vec![2, 0, 1], vec![]));
        assert_eq!(at_once[2], (vec![2, 1], vec![4.0, 0.0]));
    }
}
