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
use hal::{HalVersion, OperandType, OperationType};

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

const FORWARD: LstmArguments =
    LstmArguments { weights: 1, states: 35, layer_norm: 53, auxiliary: Some(40) };
const BACKWARD: LstmArguments =
    LstmArguments { weights: 18, states: 37, layer_norm: 57, auxiliary: Some(44) };
const AUXILIARY_INPUT: usize = 39;

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
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

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
        Ok(outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect())
    }
}
