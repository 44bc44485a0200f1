//! UNIDIRECTIONAL_SEQUENCE_RNN: a basic recurrent cell over all steps of sequences,
//! `output[t] = state = activation(weights * input[t] + recurrent weights * state + bias)`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, time, input]`; `[time, batch, input]` if time-major | float32, float16 |
//! | input 1 | weights | `[units, input]` | as the input |
//! | input 2 | recurrent weights | `[units, units]` | as the input |
//! | input 3 | bias | `[units]` | as the input |
//! | input 4 | hidden state before the first step | `[batch, units]` | as the input |
//! | input 5 | activation | scalar | INT32 |
//! | input 6 | time-major? | scalar | INT32, 0 or 1 |
//! | output 0 | output | as the input, but `units` for `input` | as the input |
//! | output 1, from 1.3 | hidden state after the last step | `[batch, units]` | as the input |
//!
//! Batch and time may be 0; the state stays what it is over no steps.
//!
//! Source: `types.hal` 1.2, 1.3 (state).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::activation_range;
use crate::rules::recurrence::{self, Direction, Extent, Extents, Inputs, Rows, Sequences};
use crate::rules::rnn_cell::RnnArguments;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32};
use hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// UNIDIRECTIONAL_SEQUENCE_RNN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnidirectionalSequenceRnn {
    /// What the result is clamped to.
    pub activation: FusedActivation,
    /// Whether the time is the first axis, before the batch.
    pub is_time_major: bool,
}

const ARGUMENTS: RnnArguments = RnnArguments { weights: 1, auxiliary: None };

static SIGNATURE: Signature = Signature {
    operation: OperationType::UnidirectionalSequenceRnn,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::column("weights", 0),
            Parameter::column("recurrent weights", 0),
            Parameter::column("bias", 0),
            Parameter::column("hidden state (in)", 0),
            Parameter::int32("activation"),
            Parameter::int32("time-major"),
        ],
        &[
            Parameter::column("output", 0),
            Parameter::column("hidden state (out)", 0).trailing(HalVersion::V1_3),
        ],
    )],
};

impl Operation for UnidirectionalSequenceRnn {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let flag = call.input(6);
        let is_time_major = match flag.i32()? {
            0 => false,
            1 => true,
            value => return Err(flag.wrong("value", value, "0 or 1")),
        };
        Ok(Self { activation: activation_range::decode(call.input(5))?, is_time_major })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), Sequences::extents(self.is_time_major, Extent::Input))?;
        ARGUMENTS.learn_shapes(call, &mut known)?;
        let mut shapes = vec![
            known.shape(Sequences::extents(self.is_time_major, Extent::Units)),
            known.shape([Extent::Batch, Extent::Units]),
        ];
        shapes.truncate(call.outputs().len());
        Ok(shapes)
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let mut elements = recurrence::zeros(call.output(0), &dimensions[0])?;
        let [_, width] = call.input(4).lengths_of()?;
        let states = ARGUMENTS.run(
            call,
            self.activation,
            Inputs { input: call.input(0), auxiliary: None },
            (Sequences::of(call.input(0), self.is_time_major)?, Direction::Forward),
            Rows { elements: &mut elements, width, offset: 0 },
        )?;
        let outputs = call.outputs().iter().zip(dimensions).zip([elements, states]);
        Ok(outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect())
    }
}
