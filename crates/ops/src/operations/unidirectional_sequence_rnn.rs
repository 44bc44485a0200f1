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
use crate::rules::cell_activation::Activation;
use crate::rules::recurrence::{self, Direction, Extent, Extents, Inputs, Rows, Sequences};
use crate::rules::rnn_cell::RnnArguments;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// UNIDIRECTIONAL_SEQUENCE_RNN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnidirectionalSequenceRnn {
    /// What the result is clamped to.
    pub activation: Activation,
    /// Whether the time is the first axis, before the batch.
    pub is_time_major: bool,
}

/// Where the cell's arguments stand.
pub const ARGUMENTS: RnnArguments = RnnArguments { weights: 1, auxiliary: None };

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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let flag = call.input(6);
        let is_time_major = match flag.i32()? {
            0 => false,
            1 => true,
            value => return Err(flag.wrong("value", value, "0 or 1")),
        };
        Ok(Self { activation: Activation::decode(call.input(5))?, is_time_major })
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
        outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, float, tensor};
    use HalVersion::{V1_2, V1_3};

    /// `h' = x + h / 2` from 8 for the first sequence, from 0 for the second one, over three steps.
    /// The steps are 1 2 3 and 10 20 30.
    fn example(operand_type: OperandType, is_time_major: bool, has_state: bool) -> Example {
        let tensor = |dimensions: &[u32]| tensor(operand_type, dimensions);
        let example = Example::new(OperationType::UnidirectionalSequenceRnn);
        let example = if is_time_major {
            example.input(tensor(&[3, 2, 1]), &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0])
        } else {
            example.input(tensor(&[2, 3, 1]), &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0])
        };
        let example = example
            .input(tensor(&[1, 1]), &[1.0])
            .input(tensor(&[1, 1]), &[0.5])
            .input(tensor(&[1]), &[0.0])
            .input(tensor(&[2, 1]), &[8.0, 0.0])
            .int32s([0, i32::from(is_time_major)])
            .output(tensor(&[]));
        if has_state { example.output(tensor(&[])) } else { example }
    }

    #[test]
    fn model_25_types_and_states_came_with_their_versions() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            for (has_state, since) in [(false, V1_2), (true, V1_3)] {
                let accepted = example(operand_type, true, has_state);
                assert_eq!(accepted.since(), Ok(since), "{operand_type}");
                assert!(accepted.run().is_ok(), "{operand_type}");
            }
        }
        assert!(example(OperandType::TensorInt32, true, false).since().is_err());
        assert!(example(TensorFloat32, true, true).output(float([])).since().is_err());
    }

    #[test]
    fn values_by_hand() {
        // 1 + 4, 2 + 5/2, 3 + 9/4; 10, 20 + 5, 30 + 25/2.
        let time_major = (vec![3, 2, 1], vec![5.0, 10.0, 4.5, 25.0, 5.25, 42.5]);
        let batch_major = (vec![2, 3, 1], vec![5.0, 4.5, 5.25, 10.0, 25.0, 42.5]);
        let states = (vec![2, 1], vec![5.25, 42.5]);
        for operand_type in [TensorFloat32, TensorFloat16] {
            let results = |is_time_major, has_state| {
                example(operand_type, is_time_major, has_state).results()
            };
            assert_eq!(results(true, true), [time_major.clone(), states.clone()]);
            assert_eq!(results(false, true), [batch_major.clone(), states.clone()]);
            assert_eq!(results(true, false), std::slice::from_ref(&time_major));
        }
        // The state is what comes after the activation: 5, 2 + 5/2, ...; then 6, 6, 6.
        let relu6 = example(TensorFloat32, false, true).with_int32(5, 3).results();
        assert_eq!(relu6[0].1, [5.0, 4.5, 5.25, 6.0, 6.0, 6.0]);
        let relu1 = example(TensorFloat32, false, true).with_int32(5, 2).results();
        assert_eq!(relu1[1].1, [1.0, 1.0]);
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(TensorFloat32, true, true);
        for (refused, message) in [
            (
                good.clone().with_input(0, float([6, 1]), &[0.0; 6]),
                "rank of input 0 (input) is 2, expected 3",
            ),
            (
                good.clone().with_int32(6, 0),
                "shape of input 4 (hidden state (in)) is [2, 1], expected length 3 along axis 0",
            ),
            (
                good.clone().with_input(1, float([1, 2]), &[0.0; 2]),
                "shape of input 1 (weights) is [1, 2], expected length 1 along axis 1",
            ),
            (
                good.clone().with_input(2, float([1, 2]), &[0.0; 2]),
                "shape of input 2 (recurrent weights) is [1, 2], expected length 1 along axis 1",
            ),
            (
                good.clone().with_input(3, float([1, 1]), &[0.0]),
                "rank of input 3 (bias) is 2, expected 1",
            ),
            (good.clone().with_int32(6, 2), "value of input 6 (time-major) is 2, expected 0 or 1"),
            (
                good.clone().with_int32(6, -1),
                "value of input 6 (time-major) is -1, expected 0 or 1",
            ),
            (
                good.clone().with_int32(5, 7),
                "value of input 5 (activation) is 7, expected 0 to 4 or 6",
            ),
            (
                good.without_input(4),
                "value of input 4 (hidden state (in)) is left out, expected a value",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("UNIDIRECTIONAL_SEQUENCE_RNN: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |is_time_major, input: &[u32], weights: &[u32], state: &[u32]| {
            let unknown = [input, weights, &[], &[], state].into_iter().enumerate();
            let example = example(TensorFloat32, is_time_major, true);
            let example = unknown.fold(example, |example, (index, dimensions)| {
                example.with_input_to_come(index, float(dimensions))
            });
            example.shapes()
        };
        let expected = |outer, inner, batch, units| {
            Ok(vec![Shape::new([outer, inner, units]), Shape::new([batch, units])])
        };
        let (five, seven, nine) = (Some(5), Some(7), Some(9));
        assert_eq!(shapes(true, &[], &[], &[]), expected(None, None, None, None));
        assert_eq!(shapes(true, &[5, 7, 0], &[9, 0], &[]), expected(five, seven, seven, nine));
        assert_eq!(shapes(false, &[5, 7, 0], &[9, 0], &[]), expected(five, seven, five, nine));
        assert_eq!(shapes(true, &[5, 0, 3], &[], &[7, 9]), expected(five, seven, seven, nine));
        // No sequences; no steps.
        let none = example(TensorFloat32, true, true)
            .with_input(0, float([3, 0, 1]), &[])
            .with_input(4, float([0, 1]), &[]);
        assert_eq!(none.results(), [(vec![3, 0, 1], vec![]), (vec![0, 1], vec![])]);
        let at_once = example(TensorFloat32, true, true).with_input(0, float([0, 2, 1]), &[]);
        assert_eq!(at_once.results(), [(vec![0, 2, 1], vec![]), (vec![2, 1], vec![8.0, 0.0])]);
    }
}
