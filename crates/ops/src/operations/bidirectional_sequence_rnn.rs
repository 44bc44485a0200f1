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
use crate::rules::activation_range;
use crate::rules::bidirectional::{self, Linking, Steps};
use crate::rules::recurrence::{self, Direction, Extent, Sequences, expect_together};
use crate::rules::rnn_cell::RnnArguments;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32};
use hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// BIDIRECTIONAL_SEQUENCE_RNN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BidirectionalSequenceRnn {
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Whether the time is the first axis, before the batch.
    pub is_time_major: bool,
    /// Whether both outputs are one.
    pub is_merged: bool,
}

const FORWARD: RnnArguments = RnnArguments { weights: 1, auxiliary: Some(10) };
const BACKWARD: RnnArguments = RnnArguments { weights: 5, auxiliary: Some(11) };
const AUXILIARY_INPUT: usize = 9;

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
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        linking(call).map(|_| ())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let is_merged = call.input(14).bool()?;
        bidirectional::expect_outputs(call, is_merged, 2)?;
        Ok(Self {
            activation: activation_range::decode(call.input(12))?,
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
        Ok(outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect())
    }
}
