//! BIDIRECTIONAL_SEQUENCE_RNN: one basic recurrent cell over all steps of sequences, another one over
//! the same steps backwards, each
//! `output[t] = state = activation(weights * input[t] + recurrent weights * state + bias)`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, time, input]`; `[time, batch, input]` if time-major | float32, float16 |
//! | input 1, 2, 3 | the forward cell's weights, recurrent weights, bias | `[units, input]`, `[units, units]`, `[units]` | as the input |
//! | input 4 | its state before | `[batch, units]` | as the input |
//! | input 5 to 8 | the backward cell's | likewise | as the input |
//! | input 9 | auxiliary input, optional | as the input, but `auxiliary` for `input` | as the input |
//! | input 10, 11 | auxiliary weights of the forward and the backward cell, optional | `[units, auxiliary]` | as the input |
//! | input 12 | activation | scalar | INT32 |
//! | input 13, 14 | time-major? merge outputs? | scalar | BOOL |
//! | output 0 | forward output | as the input, but `units` for `input` | as the input |
//! | next, unless merged | backward output | likewise | as the input |
//! | next 2, from 1.3 | states after, forward and backward | `[batch, units]` | as the input |
//!
//! Units are each cell's own. Merged, output 0 has in each row the forward cell's elements and then
//! the backward cell's. Whatever the direction, a step's output stands where the step's input does.
//!
//! An auxiliary input with weights is read by both cells besides the input; without weights, it is
//! the backward cell's input. Batch and time may be 0.
//!
//! Source: `types.hal` 1.2, 1.3 (states; auxiliary input without weights, which older versions do not
//! refuse).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::bidirectional::{self, Linking, Steps};
use crate::rules::cell_activation::Activation;
use crate::rules::recurrence::{self, Direction, Extent, Sequences, expect_together};
use crate::rules::rnn_cell::RnnArguments;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// BIDIRECTIONAL_SEQUENCE_RNN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BidirectionalSequenceRnn {
    /// What the result is clamped to.
    pub activation: Activation,
    /// Whether the time is the first axis, before the batch.
    pub is_time_major: bool,
    /// Whether both outputs are one.
    pub is_merged: bool,
}

/// Where the forward cell's arguments stand.
pub const FORWARD: RnnArguments = RnnArguments { weights: 1, auxiliary: Some(10) };
/// Where the backward cell's arguments stand.
pub const BACKWARD: RnnArguments = RnnArguments { weights: 5, auxiliary: Some(11) };
/// Where the auxiliary input stands.
pub const AUXILIARY_INPUT: usize = 9;

const INPUTS: &[Parameter] = &[
    Parameter::column("input", 0),
    Parameter::column("forward weights", 0),
    Parameter::column("forward recurrent weights", 0),
    Parameter::column("forward bias", 0),
    Parameter::column("forward hidden state (in)", 0),
    Parameter::column("backward weights", 0),
    Parameter::column("backward recurrent weights", 0),
    Parameter::column("backward bias", 0),
    Parameter::column("backward hidden state (in)", 0),
    Parameter::column("auxiliary input", 0).omittable(),
    Parameter::column("forward auxiliary weights", 0).omittable(),
    Parameter::column("backward auxiliary weights", 0).omittable(),
    Parameter::int32("activation"),
    Parameter::bool("time-major"),
    Parameter::bool("merge outputs"),
];

static SIGNATURE: Signature = Signature {
    operation: OperationType::BidirectionalSequenceRnn,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
    ],
    forms: &[
        Form::new(
            HalVersion::V1_2,
            INPUTS,
            &[
                Parameter::column("forward output", 0),
                Parameter::column("backward output", 0),
                Parameter::column("forward hidden state (out)", 0).trailing(HalVersion::V1_3),
                Parameter::column("backward hidden state (out)", 0),
            ],
        ),
        Form::new(
            HalVersion::V1_2,
            INPUTS,
            &[
                Parameter::column("merged output", 0),
                Parameter::column("forward hidden state (out)", 0).trailing(HalVersion::V1_3),
                Parameter::column("backward hidden state (out)", 0),
            ],
        ),
    ],
};

/// What the auxiliary input is for, if that is known. Weights of both cells go together.
fn linking(call: &Call<'_>) -> Result<Option<Linking>, Fault> {
    Linking::of(call, AUXILIARY_INPUT, expect_together(call, &[10, 11])?)
}

impl Operation for BidirectionalSequenceRnn {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        linking(call).map(|_| ())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let is_merged = call.input(14).bool()?;
        bidirectional::expect_outputs(call, is_merged, 2)?;
        Ok(Self {
            activation: Activation::decode(call.input(12))?,
            is_time_major: call.input(13).bool()?,
            is_merged,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let steps = |size| Sequences::extents(self.is_time_major, size);
        let [mut forward, mut backward] =
            bidirectional::learn_inputs(call, AUXILIARY_INPUT, linking(call)?, self.is_time_major)?;
        FORWARD.learn_shapes(call, &mut forward)?;
        backward = backward.with_sequences_of(&forward);
        BACKWARD.learn_shapes(call, &mut backward)?;
        forward = forward.with_sequences_of(&backward);
        let [outer, inner, _] = steps(Extent::Units).map(|extent| backward.get(extent));
        let sizes = [&forward, &backward].map(|extents| extents.get(Extent::Units));
        let mut shapes = bidirectional::output_shapes(call, [outer, inner], sizes, self.is_merged)?;
        shapes.extend([forward, backward].map(|it| it.shape([Extent::Batch, Extent::Units])));
        shapes.truncate(call.outputs().len());
        Ok(shapes)
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let [_, forward_size] = call.input(FORWARD.state()).lengths_of()?;
        let [_, backward_size] = call.input(BACKWARD.state()).lengths_of()?;
        let mut steps =
            Steps::new(call, &dimensions, [forward_size, backward_size], self.is_merged)?;
        let [for_forward, for_backward] =
            bidirectional::inputs(call, AUXILIARY_INPUT, linking(call)?);
        let sequences = Sequences::of(call.input(0), self.is_time_major)?;
        let forward = FORWARD.run(
            call,
            self.activation,
            for_forward,
            (sequences, Direction::Forward),
            steps.forward(),
        )?;
        let backward = BACKWARD.run(
            call,
            self.activation,
            for_backward,
            (sequences, Direction::Backward),
            steps.backward(),
        )?;
        let results = steps.into_elements().chain([forward, backward]);
        let outputs = call.outputs().iter().zip(dimensions).zip(results);
        outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, float, tensor};
    use HalVersion::{V1_2, V1_3};
    use OperandType::Bool;
    use nnhal_hal::OperandSpec;

    #[derive(Clone, Copy)]
    struct Plan {
        operand_type: OperandType,
        is_time_major: bool,
        is_merged: bool,
        outputs: usize,
        linking: Linking,
    }

    const PLAN: Plan = Plan {
        operand_type: TensorFloat32,
        is_time_major: false,
        is_merged: false,
        outputs: 4,
        linking: Linking::None,
    };

    /// Forward `h' = x + h / 2` from 8 and 0. Backward two units, `h' = (2 x, 4 x) + h` from 0 and 100
    /// (both units); from the steps 1 2 3 and 10 20 30, and 5 6 7 and 50 60 70 for the auxiliary
    /// input, which weighs 100 forward and 1000 (both units) backward.
    fn example(plan: Plan) -> Example {
        let tensor = |dimensions: &[u32]| tensor(plan.operand_type, dimensions);
        let steps = |[a, b, c, d, e, f]: [f64; 6]| {
            if plan.is_time_major {
                (tensor(&[3, 2, 1]), [a, d, b, e, c, f])
            } else {
                (tensor(&[2, 3, 1]), [a, b, c, d, e, f])
            }
        };
        let (spec, input) = steps([1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
        let (auxiliary_spec, auxiliary) = steps([5.0, 6.0, 7.0, 50.0, 60.0, 70.0]);
        let example = Example::new(OperationType::BidirectionalSequenceRnn)
            .input(spec, &input)
            .input(tensor(&[1, 1]), &[1.0])
            .input(tensor(&[1, 1]), &[0.5])
            .input(tensor(&[1]), &[0.0])
            .input(tensor(&[2, 1]), &[8.0, 0.0])
            .input(tensor(&[2, 1]), &[2.0, 4.0])
            .input(tensor(&[2, 2]), &[1.0, 0.0, 0.0, 1.0])
            .input(tensor(&[2]), &[0.0; 2])
            .input(tensor(&[2, 2]), &[0.0, 0.0, 100.0, 100.0])
            .input(auxiliary_spec, &auxiliary)
            .input(tensor(&[1, 1]), &[100.0])
            .input(tensor(&[2, 1]), &[1000.0; 2])
            .int32s([0])
            .bool(plan.is_time_major)
            .bool(plan.is_merged);
        let example = match plan.linking {
            Linking::None => example.without_input(9).without_input(10).without_input(11),
            Linking::Parallel => example.without_input(10).without_input(11),
            Linking::Cross => example,
        };
        (0..plan.outputs).fold(example, |example, _| example.output(tensor(&[])))
    }

    #[test]
    fn model_25_types_and_states_came_with_their_versions() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            for (is_merged, outputs, since) in
                [(false, 2, V1_2), (true, 1, V1_2), (false, 4, V1_3), (true, 3, V1_3)]
            {
                let accepted = example(Plan { operand_type, is_merged, outputs, ..PLAN });
                assert_eq!(accepted.since(), Ok(since), "{operand_type} {outputs}");
                assert_eq!(accepted.results().len(), outputs, "{operand_type}");
            }
        }
        let integers = Plan { operand_type: OperandType::TensorInt32, ..PLAN };
        assert!(example(integers).since().is_err());
        assert!(example(Plan { outputs: 5, ..PLAN }).since().is_err());
    }

    #[test]
    fn values_by_hand() {
        // As UNIDIRECTIONAL_SEQUENCE_RNN forward; backward 6, 10, 12 and 160, 200, 220, and twice as
        // much added in the second unit.
        let forward = [5.0, 4.5, 5.25, 10.0, 25.0, 42.5];
        let backward = [
            [12.0, 24.0],
            [10.0, 20.0],
            [6.0, 12.0],
            [220.0, 340.0],
            [200.0, 300.0],
            [160.0, 220.0],
        ];
        let states = [(vec![2, 1], vec![5.25, 42.5]), (vec![2, 2], vec![12.0, 24.0, 220.0, 340.0])];
        for operand_type in [TensorFloat32, TensorFloat16] {
            let plan = Plan { operand_type, ..PLAN };
            let found = example(plan).results();
            assert_eq!(found[0], (vec![2, 3, 1], forward.to_vec()));
            assert_eq!(found[1], (vec![2, 3, 2], backward.concat()));
            assert_eq!(found[2..], states);
            let merged = example(Plan { is_merged: true, outputs: 3, ..plan }).results();
            let rows = forward.iter().zip(backward).flat_map(|(f, [b, c])| [*f, b, c]);
            assert_eq!(merged[0], (vec![2, 3, 3], rows.collect()));
            assert_eq!(merged[1..], states);
            let by_time = [0, 3, 1, 4, 2, 5];
            let found = example(Plan { is_time_major: true, ..plan }).results();
            assert_eq!(found[0], (vec![3, 2, 1], by_time.map(|row| forward[row]).to_vec()));
            assert_eq!(found[1], (vec![3, 2, 2], by_time.map(|row| backward[row]).concat()));
            assert_eq!(found[2..], states);
        }
    }

    #[test]
    fn the_auxiliary_input_is_for_both_cells_or_for_the_backward_one() {
        let cross = example(Plan { linking: Linking::Cross, ..PLAN }).results();
        // 501 + 4, 602 + 505/2, 703 + 1709/4; backward 7006, 13010, 18012.
        assert_eq!(cross[0].1[..3], [505.0, 854.5, 1130.25]);
        let first: Vec<f64> = cross[1].1.iter().copied().step_by(2).collect();
        assert_eq!(first[..3], [18012.0, 13010.0, 7006.0]);
        let parallel = example(Plan { linking: Linking::Parallel, ..PLAN }).results();
        assert_eq!(parallel[0].1, [5.0, 4.5, 5.25, 10.0, 25.0, 42.5]);
        let first: Vec<f64> = parallel[1].1.iter().copied().step_by(2).collect();
        assert_eq!(first[..3], [36.0, 26.0, 14.0]);
        // Sizes of their own: the backward cell's weights are for the auxiliary input.
        let wide = example(Plan { linking: Linking::Parallel, ..PLAN })
            .with_input(9, float([2, 3, 2]), &[1.0; 12])
            .with_input(5, float([2, 2]), &[2.0; 4]);
        assert_eq!(wide.results()[3].1, [12.0, 12.0, 112.0, 112.0]);
        let wide = example(Plan { linking: Linking::Cross, ..PLAN })
            .with_input(9, float([2, 3, 2]), &[1.0; 12])
            .with_input(10, float([1, 2]), &[1.0; 2])
            .with_input(11, float([2, 2]), &[0.0; 4]);
        assert_eq!(wide.results()[0].1[0], 7.0);
    }

    #[test]
    fn the_activation_is_that_of_both_cells() {
        let found = example(PLAN).with_int32(12, 3).results();
        assert_eq!(found[0].1, [5.0, 4.5, 5.25, 6.0, 6.0, 6.0]);
        assert_eq!(found[1].1, [6.0; 12]);
        for (_, found) in example(PLAN).with_int32(12, 4).results() {
            assert!(found.iter().all(|it| (0.9..=1.0).contains(it)), "{found:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(PLAN);
        let cross = example(Plan { linking: Linking::Cross, ..PLAN });
        let outputs = |is_merged, outputs| example(Plan { is_merged, outputs, ..PLAN });
        for (refused, message) in [
            (
                good.clone().with_input(0, float([6, 1]), &[0.0; 6]),
                "rank of input 0 (input) is 2, expected 3",
            ),
            (
                good.clone().with_input(1, float([1, 2]), &[0.0; 2]),
                "shape of input 1 (forward weights) is [1, 2], expected length 1 along axis 1",
            ),
            (
                good.clone().with_input(5, float([2, 2]), &[0.0; 4]),
                "shape of input 5 (backward weights) is [2, 2], expected length 1 along axis 1",
            ),
            (
                good.clone().with_input(6, float([2, 1]), &[0.0; 2]),
                "shape of input 6 (backward recurrent weights) is [2, 1], expected length 2 along \
                 axis 1",
            ),
            (
                good.clone().with_input(8, float([3, 2]), &[0.0; 6]),
                "shape of input 8 (backward hidden state (in)) is [3, 2], expected length 2 along \
                 axis 0",
            ),
            (
                good.clone().with_input(13, OperandSpec::scalar(Bool), &[1.0]),
                "shape of input 4 (forward hidden state (in)) is [2, 1], expected length 3 along \
                 axis 0",
            ),
            (
                cross.clone().with_input(9, float([2, 4, 1]), &[0.0; 8]),
                "shape of input 9 (auxiliary input) is [2, 4, 1], expected length 3 along axis 1",
            ),
            (
                cross.clone().with_input(11, float([2, 3]), &[0.0; 6]),
                "shape of input 11 (backward auxiliary weights) is [2, 3], expected length 1 along \
                 axis 1",
            ),
            (
                cross.clone().without_input(10),
                "value of input 10 (forward auxiliary weights) is left out, expected a value, as \
                 input 11 has one",
            ),
            (
                cross.without_input(9),
                "value of input 9 (auxiliary input) is left out, expected a value, as there are \
                 auxiliary weights",
            ),
            (
                outputs(true, 2),
                "number of outputs of the operation is 2, expected 1 or 3, as they are merged",
            ),
            (
                outputs(false, 3),
                "number of outputs of the operation is 3, expected 2 or 4, as they are not merged",
            ),
            (good.with_int32(12, -1), "value of input 12 (activation) is -1, expected 0 to 4 or 6"),
        ] {
            assert_eq!(refused.refusal(), format!("BIDIRECTIONAL_SEQUENCE_RNN: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |is_merged, known: &[(usize, &[u32])]| {
            let outputs = if is_merged { 3 } else { 4 };
            let unknown = (0..9).fold(example(Plan { is_merged, outputs, ..PLAN }), |it, index| {
                let dimensions = known.iter().find(|(given, _)| *given == index);
                it.with_input_to_come(index, float(dimensions.map_or(&[][..], |it| it.1)))
            });
            unknown.shapes()
        };
        let (three, four, batch, time) = (Some(3), Some(4), Some(5), Some(6));
        let states = [Shape::new([batch, three]), Shape::new([batch, four])];
        let all: [(usize, &[u32]); 3] = [(0, &[0, 6, 1]), (2, &[0, 3]), (8, &[5, 4])];
        let steps = [three, four].map(|units| Shape::new([batch, time, units]));
        assert_eq!(shapes(false, &all), Ok([steps.clone(), states.clone()].concat()));
        let merged = vec![Shape::new([batch, time, Some(7)])];
        assert_eq!(shapes(true, &all), Ok([merged, states.to_vec()].concat()));
        assert_eq!(shapes(true, &all[..2]).unwrap()[0], Shape::new([None, time, None]));
        assert_eq!(shapes(false, &[]).unwrap()[3], Shape::of_rank(2));
        // No sequences; no steps.
        let none = example(PLAN)
            .with_input(0, float([0, 3, 1]), &[])
            .with_input(4, float([0, 1]), &[])
            .with_input(8, float([0, 2]), &[]);
        let dimensions = none.results().into_iter().map(|(dimensions, _)| dimensions);
        assert!(dimensions.eq([vec![0, 3, 1], vec![0, 3, 2], vec![0, 1], vec![0, 2]]));
        let at_once = example(PLAN).with_input(0, float([2, 0, 1]), &[]).results();
        assert_eq!(at_once[1], (vec![2, 0, 2], vec![]));
        assert_eq!(at_once[3], (vec![2, 2], vec![0.0, 0.0, 100.0, 100.0]));
    }
}
