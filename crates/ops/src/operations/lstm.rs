//! LSTM: one step of a long short-term memory layer. The formulas are those of
//! [`lstm_cell`].
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, input]` | float32, float16 |
//! | input 1 to 17 | weights and biases, some optional | see [`lstm_arguments`](crate::rules::lstm_arguments) | as the input |
//! | input 18 | output state before | `[batch, output]` | as the input |
//! | input 19 | cell state before | `[batch, units]` | as the input |
//! | input 20 | activation | scalar | INT32: 0 none, 1 RELU, 3 RELU6, 4 TANH, 6 sigmoid |
//! | input 21, 22 | cell clip, projection clip | scalar, 0 or more; 0 is no limit | FLOAT32; FLOAT16 with float16 |
//! | input 23 to 26, from 1.2 | layer norm weights, optional | `[units]` | as the input |
//! | output 0 | scratch buffer | `[batch, 4 * units]`; 3 if input and forget gate are coupled | as the input |
//! | output 1 | output state | `[batch, output]` | as the input |
//! | output 2 | cell state | `[batch, units]` | as the input |
//! | output 3 | output | as output 1, and the same numbers | as the input |
//!
//! Only the batch may be 0. What the scratch buffer holds says nothing; here it is filled with 0.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, layer norm).

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

/// LSTM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lstm {
    /// Activation and clips.
    pub settings: Settings,
}

const ARGUMENTS: LstmArguments =
    LstmArguments { weights: 1, states: 18, layer_norm: 23, auxiliary: None };

static SIGNATURE: Signature = Signature {
    operation: OperationType::Lstm,
    // Columns: tensors; clips.
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
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
            Parameter::column("input layer norm weights", 0).omittable().trailing(HalVersion::V1_2),
            Parameter::column("forget layer norm weights", 0).omittable(),
            Parameter::column("cell layer norm weights", 0).omittable(),
            Parameter::column("output layer norm weights", 0).omittable(),
        ],
        &[
            Parameter::column("scratch buffer", 0),
            Parameter::column("output state (out)", 0),
            Parameter::column("cell state (out)", 0),
            Parameter::column("output", 0),
        ],
    )],
};

impl Operation for Lstm {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        ARGUMENTS.validate(call)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { settings: Settings::decode(call, 20)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), [Extent::Batch, Extent::Input])?;
        let output = ARGUMENTS.learn_shapes(call, &mut known)?;
        let (batch, units) = (known.get(Extent::Batch), known.get(Extent::Units));
        let scratch = match (units, ARGUMENTS.is_coupled(call)) {
            (Some(units), Some(is_coupled)) => {
                let gates = if is_coupled { 3 } else { 4 };
                let length = units.checked_mul(gates).ok_or_else(|| {
                    let expected = format!("below 2^32 for {gates} gates together");
                    call.wrong("number of units", units, expected)
                })?;
                Some(length)
            }
            _ => None,
        };
        let output = known.shape([Extent::Batch, output]);
        let cell = known.shape([Extent::Batch, Extent::Units]);
        Ok(vec![Shape::new([batch, scratch]), output.clone(), cell, output])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let scratch = recurrence::zeros(call.output(0), &dimensions[0])?;
        let mut elements = recurrence::zeros(call.output(3), &dimensions[3])?;
        let [batch, width] = call.input(18).lengths_of()?;
        let states = lstm_cell::run(
            call,
            ARGUMENTS,
            self.settings,
            Inputs { input: call.input(0), auxiliary: None },
            (Sequences::single_step(batch), Direction::Forward),
            Rows { elements: &mut elements, width, offset: 0 },
        )?;
        let results = [&scratch, &states.output, &states.cell, &elements];
        let outputs = call.outputs().iter().zip(dimensions).zip(results);
        Ok(outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, it)).collect())
    }
}
