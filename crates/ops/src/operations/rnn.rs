//! RNN: one step of a basic recurrent layer,
//! `output = state = activation(weights * input + recurrent weights * state + bias)`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, input]` | float32, float16 |
//! | input 1 | weights | `[units, input]` | as the input |
//! | input 2 | recurrent weights | `[units, units]` | as the input |
//! | input 3 | bias | `[units]` | as the input |
//! | input 4 | hidden state before | `[batch, units]` | as the input |
//! | input 5 | activation | scalar | INT32 |
//! | output 0 | hidden state | `[batch, units]` | as the input |
//! | output 1 | output | as output 0, and the same numbers | as the input |
//!
//! Only the batch may be 0.
//!
//! Source: `types.hal` 1.0, 1.2 (float16).

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

/// RNN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rnn {
    /// What the result is clamped to.
    pub activation: FusedActivation,
}

const ARGUMENTS: RnnArguments = RnnArguments { weights: 1, auxiliary: None };

static SIGNATURE: Signature = Signature {
    operation: OperationType::Rnn,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::column("weights", 0),
            Parameter::column("recurrent weights", 0),
            Parameter::column("bias", 0),
            Parameter::column("hidden state (in)", 0),
            Parameter::int32("activation"),
        ],
        &[Parameter::column("hidden state (out)", 0), Parameter::column("output", 0)],
    )],
};

impl Operation for Rnn {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { activation: activation_range::decode(call.input(5))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), [Extent::Batch, Extent::Input])?;
        ARGUMENTS.learn_shapes(call, &mut known)?;
        let shape = known.shape([Extent::Batch, Extent::Units]);
        Ok(vec![shape.clone(), shape])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let mut elements = recurrence::zeros(call.output(1), &dimensions[1])?;
        let [batch, width] = call.input(4).lengths_of()?;
        let states = ARGUMENTS.run(
            call,
            self.activation,
            Inputs { input: call.input(0), auxiliary: None },
            (Sequences::single_step(batch), Direction::Forward),
            Rows { elements: &mut elements, width, offset: 0 },
        )?;
        let outputs = call.outputs().iter().zip(dimensions).zip([states, elements]);
        Ok(outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect())
    }
}
