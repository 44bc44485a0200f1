//! BIDIRECTIONAL_SEQUENCE_LSTM: one LSTM cell over all steps of sequences, another one over the
//! same steps backwards. The formulas are those of [`lstm_cell`].
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, time, input]`; `[time, batch, input]` if time-major | float32, float16 |
//! | input 1 to 17 | the forward cell's weights and biases, some optional | see [`lstm_arguments`](crate::rules::lstm_arguments) | as the input |
//! | input 18 to 34 | the backward cell's | likewise | as the input |
//! | input 35, 36 | the forward cell's output state and cell state before | `[batch, output]`, `[batch, units]` | as the input |
//! | input 37, 38 | the backward cell's | likewise | as the input |
//! | input 39 | auxiliary input, optional | as the input, but `auxiliary` for `input` | as the input |
//! | input 40 to 47 | auxiliary weights of both cells, optional | `[units, auxiliary]` | as the input |
//! | input 48 | activation | scalar | INT32: 0 none, 1 RELU, 3 RELU6, 4 TANH, 6 sigmoid |
//! | input 49, 50 | cell clip, projection clip | scalar, 0 or more; 0 is no limit | FLOAT32; FLOAT16 with float16 |
//! | input 51, 52 | merge outputs? time-major? | scalar | BOOL |
//! | input 53 to 60 | layer norm weights of both cells, optional | `[units]` | as the input |
//! | output 0 | forward output | as the input, but `output` for `input` | as the input |
//! | next, unless merged | backward output | likewise | as the input |
//! | next 4, from 1.3 | states after, in the order of inputs 35 to 38 | as those | as the input |
//!
//! Units and output size are each cell's own. Merged, output 0 has in each row the forward cell's
//! elements and then the backward cell's. Whatever the direction, a step's output stands where the
//! step's input does.
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
use crate::rules::lstm_arguments::{Gate, LstmArguments};
use crate::rules::lstm_cell::{self, Settings};
use crate::rules::recurrence::{self, Direction, Extent, Sequences, expect_together};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// BIDIRECTIONAL_SEQUENCE_LSTM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BidirectionalSequenceLstm {
    /// Activation and clips.
    pub settings: Settings,
    /// Whether both outputs are one.
    pub is_merged: bool,
    /// Whether the time is the first axis, before the batch.
    pub is_time_major: bool,
}

/// Where the forward cell's arguments stand.
pub const FORWARD: LstmArguments =
    LstmArguments { weights: 1, states: 35, layer_norm: 53, auxiliary: Some(40) };
/// Where the backward cell's arguments stand.
pub const BACKWARD: LstmArguments =
    LstmArguments { weights: 18, states: 37, layer_norm: 57, auxiliary: Some(44) };
/// Where the auxiliary input stands.
pub const AUXILIARY_INPUT: usize = 39;

const INPUTS: &[Parameter] = &[
    Parameter::column("input", 0),
    Parameter::column("forward input-to-input weights", 0).omittable(),
    Parameter::column("forward input-to-forget weights", 0),
    Parameter::column("forward input-to-cell weights", 0),
    Parameter::column("forward input-to-output weights", 0),
    Parameter::column("forward recurrent-to-input weights", 0).omittable(),
    Parameter::column("forward recurrent-to-forget weights", 0),
    Parameter::column("forward recurrent-to-cell weights", 0),
    Parameter::column("forward recurrent-to-output weights", 0),
    Parameter::column("forward cell-to-input weights", 0).omittable(),
    Parameter::column("forward cell-to-forget weights", 0).omittable(),
    Parameter::column("forward cell-to-output weights", 0).omittable(),
    Parameter::column("forward input gate bias", 0).omittable(),
    Parameter::column("forward forget gate bias", 0),
    Parameter::column("forward cell bias", 0),
    Parameter::column("forward output gate bias", 0),
    Parameter::column("forward projection weights", 0).omittable(),
    Parameter::column("forward projection bias", 0).omittable(),
    Parameter::column("backward input-to-input weights", 0).omittable(),
    Parameter::column("backward input-to-forget weights", 0),
    Parameter::column("backward input-to-cell weights", 0),
    Parameter::column("backward input-to-output weights", 0),
    Parameter::column("backward recurrent-to-input weights", 0).omittable(),
    Parameter::column("backward recurrent-to-forget weights", 0),
    Parameter::column("backward recurrent-to-cell weights", 0),
    Parameter::column("backward recurrent-to-output weights", 0),
    Parameter::column("backward cell-to-input weights", 0).omittable(),
    Parameter::column("backward cell-to-forget weights", 0).omittable(),
    Parameter::column("backward cell-to-output weights", 0).omittable(),
    Parameter::column("backward input gate bias", 0).omittable(),
    Parameter::column("backward forget gate bias", 0),
    Parameter::column("backward cell bias", 0),
    Parameter::column("backward output gate bias", 0),
    Parameter::column("backward projection weights", 0).omittable(),
    Parameter::column("backward projection bias", 0).omittable(),
    Parameter::column("forward output state (in)", 0),
    Parameter::column("forward cell state (in)", 0),
    Parameter::column("backward output state (in)", 0),
    Parameter::column("backward cell state (in)", 0),
    Parameter::column("auxiliary input", 0).omittable(),
    Parameter::column("forward auxiliary input-to-input weights", 0).omittable(),
    Parameter::column("forward auxiliary input-to-forget weights", 0).omittable(),
    Parameter::column("forward auxiliary input-to-cell weights", 0).omittable(),
    Parameter::column("forward auxiliary input-to-output weights", 0).omittable(),
    Parameter::column("backward auxiliary input-to-input weights", 0).omittable(),
    Parameter::column("backward auxiliary input-to-forget weights", 0).omittable(),
    Parameter::column("backward auxiliary input-to-cell weights", 0).omittable(),
    Parameter::column("backward auxiliary input-to-output weights", 0).omittable(),
    Parameter::int32("activation"),
    Parameter::column("cell clip", 1),
    Parameter::column("projection clip", 1),
    Parameter::bool("merge outputs"),
    Parameter::bool("time-major"),
    Parameter::column("forward input layer norm weights", 0).omittable(),
    Parameter::column("forward forget layer norm weights", 0).omittable(),
    Parameter::column("forward cell layer norm weights", 0).omittable(),
    Parameter::column("forward output layer norm weights", 0).omittable(),
    Parameter::column("backward input layer norm weights", 0).omittable(),
    Parameter::column("backward forget layer norm weights", 0).omittable(),
    Parameter::column("backward cell layer norm weights", 0).omittable(),
    Parameter::column("backward output layer norm weights", 0).omittable(),
];

static SIGNATURE: Signature = Signature {
    operation: OperationType::BidirectionalSequenceLstm,
    // Columns: tensors; clips.
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    ],
    forms: &[
        Form::new(
            HalVersion::V1_2,
            INPUTS,
            &[
                Parameter::column("forward output", 0),
                Parameter::column("backward output", 0),
                Parameter::column("forward output state (out)", 0).trailing(HalVersion::V1_3),
                Parameter::column("forward cell state (out)", 0),
                Parameter::column("backward output state (out)", 0),
                Parameter::column("backward cell state (out)", 0),
            ],
        ),
        Form::new(
            HalVersion::V1_2,
            INPUTS,
            &[
                Parameter::column("merged output", 0),
                Parameter::column("forward output state (out)", 0).trailing(HalVersion::V1_3),
                Parameter::column("forward cell state (out)", 0),
                Parameter::column("backward output state (out)", 0),
                Parameter::column("backward cell state (out)", 0),
            ],
        ),
    ],
};

/// What the auxiliary input is for, if that is known. Weights of both cells go together.
fn linking(call: &Call<'_>) -> Result<Option<Linking>, Fault> {
    let weights = [FORWARD, BACKWARD].map(|cell| cell.auxiliary_weights(Gate::Forget));
    let weights: Vec<usize> = weights.into_iter().flatten().collect();
    Linking::of(call, AUXILIARY_INPUT, expect_together(call, &weights)?)
}

impl Operation for BidirectionalSequenceLstm {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        FORWARD.validate(call)?;
        BACKWARD.validate(call)?;
        linking(call).map(|_| ())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let is_merged = call.input(51).bool()?;
        bidirectional::expect_outputs(call, is_merged, 4)?;
        let is_time_major = call.input(52).bool()?;
        Ok(Self { settings: Settings::decode(call, 48)?, is_merged, is_time_major })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let steps = |size| Sequences::extents(self.is_time_major, size);
        let [mut forward, mut backward] =
            bidirectional::learn_inputs(call, AUXILIARY_INPUT, linking(call)?, self.is_time_major)?;
        let forward_output = FORWARD.learn_shapes(call, &mut forward)?;
        backward = backward.with_sequences_of(&forward);
        let backward_output = BACKWARD.learn_shapes(call, &mut backward)?;
        forward = forward.with_sequences_of(&backward);
        let [outer, inner, _] = steps(Extent::Output).map(|extent| backward.get(extent));
        let sizes = [forward.get(forward_output), backward.get(backward_output)];
        let mut shapes = bidirectional::output_shapes(call, [outer, inner], sizes, self.is_merged)?;
        for (extents, output) in [(&forward, forward_output), (&backward, backward_output)] {
            shapes.push(extents.shape([Extent::Batch, output]));
            shapes.push(extents.shape([Extent::Batch, Extent::Units]));
        }
        shapes.truncate(call.outputs().len());
        Ok(shapes)
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let [_, forward_size] = call.input(FORWARD.output_state()).lengths_of()?;
        let [_, backward_size] = call.input(BACKWARD.output_state()).lengths_of()?;
        let mut steps =
            Steps::new(call, &dimensions, [forward_size, backward_size], self.is_merged)?;
        let [for_forward, for_backward] =
            bidirectional::inputs(call, AUXILIARY_INPUT, linking(call)?);
        let sequences = Sequences::of(call.input(0), self.is_time_major)?;
        let forward = lstm_cell::run(
            call,
            FORWARD,
            self.settings,
            for_forward,
            (sequences, Direction::Forward),
            steps.forward(),
        )?;
        let backward = lstm_cell::run(
            call,
            BACKWARD,
            self.settings,
            for_backward,
            (sequences, Direction::Backward),
            steps.backward(),
        )?;
        let states = [forward.output, forward.cell, backward.output, backward.cell];
        let results = steps.into_elements().chain(states);
        let outputs = call.outputs().iter().zip(dimensions).zip(results);
        outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect()
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

    #[derive(Clone, Copy)]
    struct Setup {
        types: [OperandType; 2],
        is_merged: bool,
        is_time_major: bool,
        outputs: usize,
        linking: Linking,
        /// Optional weights of the forward and of the backward cell.
        given: [&'static [usize]; 2],
        norm: [[bool; 4]; 2],
    }

    const SETUP: Setup = Setup {
        types: FLOAT32,
        is_merged: false,
        is_time_major: false,
        outputs: 6,
        linking: Linking::None,
        given: [&INPUT_GATE; 2],
        norm: [[false; 4]; 2],
    };

    /// All gates are half open. Forward one unit, `c' = c / 2 + x / 2`; backward two,
    /// `c' = c / 2 + (x, 2 x)`; half of that comes out. The auxiliary input counts 100 times as much
    /// as the input. Cells before are 4 and 0, and 0 and 16 (both units). The steps are 2 4 10 and
    /// 6 10 20, and 1 2 3 and 0 0 0 of the auxiliary input.
    fn example(setup: Setup) -> Example {
        let tensor = |dimensions: &[u32]| tensor(setup.types[0], dimensions);
        let steps = |[a, b, c, d, e, f]: [f64; 6]| {
            if setup.is_time_major {
                (tensor(&[3, 2, 1]), [a, d, b, e, c, f])
            } else {
                (tensor(&[2, 3, 1]), [a, b, c, d, e, f])
            }
        };
        let (spec, input) = steps([2.0, 4.0, 10.0, 6.0, 10.0, 20.0]);
        let (auxiliary_spec, auxiliary) = steps([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
        let plans = [(1, setup.given[0]), (2, setup.given[1])].map(|(units, given)| Plan {
            types: [setup.types[0]; 3],
            sizes: [1, units, units],
            given,
        });
        let example = Example::new(OperationType::BidirectionalSequenceLstm).input(spec, &input);
        let example = plans[0].weights(example, || 0.0).with_input(3, tensor(&[1, 1]), &[1.0]);
        let example =
            plans[1].weights(example, || 0.0).with_input(20, tensor(&[2, 1]), &[2.0, 4.0]);
        let mut example = example
            .input(tensor(&[2, 1]), &[0.0, 0.0])
            .input(tensor(&[2, 1]), &[4.0, 0.0])
            .input(tensor(&[2, 2]), &[0.0; 4])
            .input(tensor(&[2, 2]), &[0.0, 0.0, 16.0, 16.0])
            .input(auxiliary_spec, &auxiliary);
        for (plan, weights) in plans.iter().zip([&[100.0][..], &[200.0, 400.0]]) {
            let zeros = vec![0.0; weights.len()];
            for weights in [&zeros[..], &zeros, weights, &zeros] {
                example = example.input(tensor(&[plan.sizes[1], 1]), weights);
            }
        }
        let omitted = match setup.linking {
            Linking::None => 39..48,
            Linking::Parallel => 40..48,
            Linking::Cross => 0..0,
        };
        example = omitted.fold(example, Example::without_input);
        for (first, given) in [(40, setup.given[0]), (44, setup.given[1])] {
            if !given.contains(&INPUT_GATE[0]) {
                example = example.without_input(first);
            }
        }
        example = example
            .int32s([0])
            .input(OperandSpec::scalar(setup.types[1]), &[0.0])
            .input(OperandSpec::scalar(setup.types[1]), &[0.0])
            .bool(setup.is_merged)
            .bool(setup.is_time_major);
        for (plan, norm) in plans.iter().zip(setup.norm) {
            example = plan.layer_norm(example, norm, 1.0);
        }
        (0..setup.outputs).fold(example, |example, _| example.output(tensor(&[])))
    }

    const FORWARD_ROWS: [f64; 6] = [1.5, 1.75, 3.375, 1.5, 3.25, 6.625];
    const BACKWARD_ROWS: [[f64; 2]; 6] =
        [[3.25, 6.5], [4.5, 9.0], [5.0, 10.0], [9.0, 17.0], [12.0, 22.0], [14.0, 24.0]];

    #[test]
    fn model_25_types_and_states_came_with_their_versions() {
        for types in [FLOAT32, FLOAT16] {
            for (is_merged, outputs, since) in
                [(false, 2, V1_2), (true, 1, V1_2), (false, 6, V1_3), (true, 5, V1_3)]
            {
                let accepted = example(Setup { types, is_merged, outputs, ..SETUP });
                assert_eq!(accepted.since(), Ok(since), "{types:?} {outputs}");
                assert_eq!(accepted.results().len(), outputs, "{types:?}");
            }
        }
        for types in [[TensorFloat16, Float32], [OperandType::TensorQuant8Asymm, Float32]] {
            assert!(example(Setup { types, ..SETUP }).since().is_err(), "{types:?}");
        }
        assert!(example(Setup { outputs: 3, ..SETUP }).since().is_err());
    }

    #[test]
    fn values_by_hand() {
        // Forward 3, 7/2, 27/4 and 3, 13/2, 53/4; backward 10, 9, 13/2 and 20, 18, 13 in the first
        // sequence, 28, 24, 18 and 48, 44, 34 in the second one.
        let states = [
            (vec![2, 1], vec![3.375, 6.625]),
            (vec![2, 1], vec![6.75, 13.25]),
            (vec![2, 2], vec![3.25, 6.5, 9.0, 17.0]),
            (vec![2, 2], vec![6.5, 13.0, 18.0, 34.0]),
        ];
        for types in [FLOAT32, FLOAT16] {
            let setup = Setup { types, ..SETUP };
            let found = example(setup).results();
            assert_eq!(found[0], (vec![2, 3, 1], FORWARD_ROWS.to_vec()));
            assert_eq!(found[1], (vec![2, 3, 2], BACKWARD_ROWS.concat()));
            assert_eq!(found[2..], states);
            let merged = example(Setup { is_merged: true, outputs: 5, ..setup }).results();
            let rows = FORWARD_ROWS.iter().zip(BACKWARD_ROWS).flat_map(|(f, [b, c])| [*f, b, c]);
            assert_eq!(merged[0], (vec![2, 3, 3], rows.collect()));
            assert_eq!(merged[1..], states);
            let by_time = [0, 3, 1, 4, 2, 5];
            let found = example(Setup { is_time_major: true, ..setup }).results();
            assert_eq!(found[0], (vec![3, 2, 1], by_time.map(|row| FORWARD_ROWS[row]).to_vec()));
            assert_eq!(found[1], (vec![3, 2, 2], by_time.map(|row| BACKWARD_ROWS[row]).concat()));
            assert_eq!(found[2..], states);
        }
    }

    #[test]
    fn the_auxiliary_input_is_for_both_cells_or_for_the_backward_one() {
        let cross = example(Setup { linking: Linking::Cross, ..SETUP }).results();
        // 2 + 102/2, 53/2 + 204/2, 257/4 + 310/2; backward 310, 155 + 204, 359/2 + 102.
        assert_eq!(cross[3].1, [219.25, 13.25]);
        assert_eq!(cross[5].1, [281.5, 563.0, 18.0, 34.0]);
        let parallel = example(Setup { linking: Linking::Parallel, ..SETUP }).results();
        assert_eq!(parallel[0].1, FORWARD_ROWS);
        // 3, 3/2 + 2, 7/4 + 1; 16 halved three times.
        assert_eq!(parallel[5].1, [2.75, 5.5, 2.0, 2.0]);
        // Sizes of their own: the backward cell's weights are for the auxiliary input.
        let wide = |example: Example, weights: std::ops::Range<usize>| {
            let example = example.with_input(39, float([2, 3, 2]), &[1.0; 12]);
            weights.fold(example, |it, index| it.with_input(index, float([2, 2]), &[1.0; 4]))
        };
        let parallel = wide(example(Setup { linking: Linking::Parallel, ..SETUP }), 18..22);
        assert_eq!(parallel.run().unwrap()[1].dimensions, [2, 3, 2]);
        let cross = wide(example(Setup { linking: Linking::Cross, ..SETUP }), 44..48);
        let cross =
            (40..44).fold(cross, |it, index| it.with_input(index, float([1, 2]), &[0.0; 2]));
        assert_eq!(cross.results()[0].1, FORWARD_ROWS);
    }

    #[test]
    fn each_cell_has_optional_parts_of_its_own() {
        // Coupled forward only: the candidate, of which half enters either way.
        let coupled = example(Setup { given: [&[], &INPUT_GATE], ..SETUP });
        assert_eq!(coupled.results(), example(SETUP).results());
        let shut = coupled.with_input(13, float([1]), &[-1000.0]).results();
        assert_eq!(shut[3].1, [10.0, 20.0]);
        assert_eq!(shut[1].1, BACKWARD_ROWS.concat());
        let coupled_cross =
            example(Setup { given: [&[], &INPUT_GATE], linking: Linking::Cross, ..SETUP });
        assert_eq!(coupled_cross.results()[3].1, [219.25, 13.25]);
        // Projection backward only, of both units to one.
        const PROJECTED: [usize; 5] = [0, 4, 11, PROJECTION, PROJECTION_BIAS];
        let narrow = |index, example: Example| example.with_input(index, float([2, 1]), &[0.0; 2]);
        let projected = (22..26).fold(
            example(Setup { given: [&INPUT_GATE, &PROJECTED], ..SETUP }),
            |example, index| narrow(index, example),
        );
        let projected = projected
            .with_input(33, float([1, 2]), &[1.0, -1.0])
            .with_input(34, float([1]), &[0.5])
            .with_input(37, float([2, 1]), &[0.0; 2])
            .results();
        assert_eq!(projected[1], (vec![2, 3, 1], vec![-2.75, -4.0, -4.5, -7.5, -9.5, -9.5]));
        assert_eq!(projected[5].1, [6.5, 13.0, 18.0, 34.0]);
        // Peepholes forward only.
        const PEEPING: [usize; 6] = [0, 4, 8, 9, 10, 11];
        let peeping = example(Setup { given: [&PEEPING, &INPUT_GATE], ..SETUP }).with_input(
            11,
            float([1]),
            &[1000.0],
        );
        assert_eq!(peeping.results()[0].1[..3], [3.0, 3.5, 6.75]);
        // Layer norm forward only: a single unit is its own mean.
        let normal = example(Setup { norm: [[true; 4], [false; 4]], ..SETUP }).results();
        assert_eq!(normal[3].1, [0.5, 0.0]);
        assert_eq!(normal[1].1, BACKWARD_ROWS.concat());
        // Both clips are for both cells.
        let clipped = example(SETUP).with_input(49, OperandSpec::scalar(Float32), &[3.0]).results();
        assert_eq!((&clipped[0].1, &clipped[5].1), (&vec![1.5; 6], &vec![3.0; 4]));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(SETUP);
        let cross = example(Setup { linking: Linking::Cross, ..SETUP });
        let outputs = |is_merged, outputs| example(Setup { is_merged, outputs, ..SETUP });
        for (refused, message) in [
            (
                good.clone().with_input(0, float([6, 1]), &[0.0; 6]),
                "rank of input 0 (input) is 2, expected 3",
            ),
            (
                good.clone().with_input(2, float([1, 2]), &[0.0; 2]),
                "shape of input 2 (forward input-to-forget weights) is [1, 2], expected length 1 \
                 along axis 1",
            ),
            (
                good.clone().with_input(23, float([2, 1]), &[0.0; 2]),
                "shape of input 23 (backward recurrent-to-forget weights) is [2, 1], expected length \
                 2 along axis 1",
            ),
            (
                good.clone().with_input(36, float([1, 1]), &[0.0]),
                "shape of input 36 (forward cell state (in)) is [1, 1], expected length 2 along \
                 axis 0",
            ),
            (
                good.clone().with_input(37, float([3, 2]), &[0.0; 6]),
                "shape of input 37 (backward output state (in)) is [3, 2], expected length 2 along \
                 axis 0",
            ),
            (
                good.clone().with_input(52, OperandSpec::scalar(Bool), &[1.0]),
                "shape of input 35 (forward output state (in)) is [2, 1], expected length 3 along \
                 axis 0",
            ),
            (
                example(Setup { given: [&INPUT_GATE, &INPUT_GATE[1..]], ..SETUP }),
                "value of input 18 (backward input-to-input weights) is left out, expected a value, \
                 as input 22 has one",
            ),
            (
                example(Setup { given: [&PEEPHOLES, &INPUT_GATE], ..SETUP }),
                "value of input 9 (forward cell-to-input weights) is given, expected none, as there \
                 is no input gate",
            ),
            (
                example(Setup { norm: [[false; 4], [true, true, true, false]], ..SETUP }),
                "value of input 60 (backward output layer norm weights) is left out, expected a \
                 value, as input 58 has one",
            ),
            (
                cross.clone().with_input(39, float([2, 4, 1]), &[0.0; 8]),
                "shape of input 39 (auxiliary input) is [2, 4, 1], expected length 3 along axis 1",
            ),
            (
                cross.clone().with_input(45, float([2, 3]), &[0.0; 6]),
                "shape of input 45 (backward auxiliary input-to-forget weights) is [2, 3], expected \
                 length 1 along axis 1",
            ),
            (
                cross.clone().without_input(42),
                "value of input 42 (forward auxiliary input-to-cell weights) is left out, expected a \
                 value, as input 41 has one",
            ),
            (
                cross.clone().without_input(40),
                "value of input 40 (forward auxiliary input-to-input weights) is left out, expected \
                 a value, as input 41 has one",
            ),
            (
                (44..48).fold(cross.clone(), Example::without_input),
                "value of input 45 (backward auxiliary input-to-forget weights) is left out, \
                 expected a value, as input 41 has one",
            ),
            (
                cross.without_input(39),
                "value of input 39 (auxiliary input) is left out, expected a value, as there are \
                 auxiliary weights",
            ),
            (
                outputs(true, 2),
                "number of outputs of the operation is 2, expected 1 or 5, as they are merged",
            ),
            (
                outputs(false, 5),
                "number of outputs of the operation is 5, expected 2 or 6, as they are not merged",
            ),
            (
                good.clone().with_int32(48, 5),
                "value of input 48 (activation) is 5, expected 0, 1, 3, 4 or 6",
            ),
            (
                good.with_input(50, OperandSpec::scalar(Float32), &[-1.0]),
                "value of input 50 (projection clip) is -1, expected 0 or more",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("BIDIRECTIONAL_SEQUENCE_LSTM: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |is_merged, known: &[(usize, &[u32])]| {
            let outputs = if is_merged { 5 } else { 6 };
            let example = example(Setup { is_merged, outputs, ..SETUP });
            let optional = [9, 10, 11, 16, 17, 26, 27, 28, 33, 34];
            let tensors = (0..39).filter(|index| !optional.contains(index));
            let unknown = tensors.fold(example, |it, index| {
                let dimensions = known.iter().find(|(given, _)| *given == index);
                it.with_input_to_come(index, float(dimensions.map_or(&[][..], |it| it.1)))
            });
            unknown.shapes()
        };
        let (three, four, batch, time) = (Some(3), Some(4), Some(5), Some(6));
        let states = [three, three, four, four].map(|units| Shape::new([batch, units]));
        let all: [(usize, &[u32]); 3] = [(0, &[0, 6, 1]), (13, &[3]), (38, &[5, 4])];
        let steps = [three, four].map(|units| Shape::new([batch, time, units]));
        assert_eq!(shapes(false, &all), Ok([&steps[..], &states].concat()));
        let merged = [Shape::new([batch, time, Some(7)])];
        assert_eq!(shapes(true, &all), Ok([&merged[..], &states].concat()));
        assert_eq!(shapes(true, &all[..2]).unwrap()[0], Shape::new([None, time, None]));
        assert_eq!(shapes(false, &[]).unwrap()[5], Shape::of_rank(2));
        let without_sequences = [(35, 1), (36, 1), (37, 2), (38, 2)].into_iter().fold(
            example(SETUP).with_input(0, float([0, 3, 1]), &[]),
            |example, (index, units)| example.with_input(index, float([0, units]), &[]),
        );
        let dimensions = without_sequences.results().into_iter().map(|(dimensions, _)| dimensions);
        let expected =
            [vec![0, 3, 1], vec![0, 3, 2], vec![0, 1], vec![0, 1], vec![0, 2], vec![0, 2]];
        assert!(dimensions.eq(expected));
        let without_steps = example(SETUP).with_input(0, float([2, 0, 1]), &[]).results();
        assert_eq!(without_steps[1], (vec![2, 0, 2], vec![]));
        assert_eq!(without_steps[5], (vec![2, 2], vec![0.0, 0.0, 16.0, 16.0]));
    }
}
