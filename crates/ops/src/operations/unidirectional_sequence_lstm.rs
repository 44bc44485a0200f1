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
use hal::{HalVersion, OperandType, OperationType};

/// UNIDIRECTIONAL_SEQUENCE_LSTM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnidirectionalSequenceLstm {
    /// Activation and clips.
    pub settings: Settings,
    /// Whether the time is the first axis, before the batch.
    pub is_time_major: bool,
}

const ARGUMENTS: LstmArguments =
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
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

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
        Ok(outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, it)).collect())
    }
}
