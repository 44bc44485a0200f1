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
use crate::rules::cell_activation::Activation;
use crate::rules::recurrence::{self, Direction, Extent, Extents, Inputs, Rows, Sequences};
use crate::rules::rnn_cell::RnnArguments;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// RNN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rnn {
    /// What the result is clamped to.
    pub activation: Activation,
}

/// Where the cell's arguments stand.
pub const ARGUMENTS: RnnArguments = RnnArguments { weights: 1, auxiliary: None };

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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { activation: Activation::decode(call.input(5))? })
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
        outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, float, tensor};
    use HalVersion::{V1_0, V1_2};

    /// Two rows of two numbers, three units; everything has a value of its own.
    fn example(operand_type: OperandType, activation: i32) -> Example {
        let tensor = |dimensions: &[u32]| tensor(operand_type, dimensions);
        Example::new(OperationType::Rnn)
            .input(tensor(&[2, 2]), &[1.0, 2.0, -1.0, 0.5])
            .input(tensor(&[3, 2]), &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0])
            .input(tensor(&[3, 3]), &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0])
            .input(tensor(&[3]), &[0.25, -0.5, 8.0])
            .input(tensor(&[2, 3]), &[4.0, 10.0, -20.0, 0.0, 1.0, 2.0])
            .int32s([activation])
            .output(tensor(&[]))
            .output(tensor(&[]))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for (operand_type, since) in [(TensorFloat32, Some(V1_0)), (TensorFloat16, Some(V1_2))] {
            assert_eq!(example(operand_type, 0).since().ok(), since, "{operand_type}");
            assert!(example(operand_type, 0).run().is_ok(), "{operand_type}");
        }
        assert!(example(OperandType::TensorQuant8Asymm, 0).since().is_err());
        let mixed = example(TensorFloat32, 0).with_input(3, tensor(TensorFloat16, [3]), &[0.0; 3]);
        assert!(mixed.since().is_err());
    }

    #[test]
    fn values_by_hand() {
        // Weights * input: 1 2 0 and -1 1/2 -5/2; recurrent weights * state: 10 -20 2 and 1 2 0.
        let sums = [11.25, -18.5, 10.0, 0.25, 2.0, 5.5];
        for (activation, least, greatest) in [
            (0, f64::NEG_INFINITY, f64::INFINITY),
            (1, 0.0, f64::INFINITY),
            (2, -1.0, 1.0),
            (3, 0.0, 6.0),
        ] {
            for operand_type in [TensorFloat32, TensorFloat16] {
                let expected = sums.map(|sum: f64| sum.clamp(least, greatest)).to_vec();
                let expected = (vec![2, 3], expected);
                let found = example(operand_type, activation).results();
                assert_eq!(found, [expected.clone(), expected], "{operand_type} {activation}");
            }
        }
    }

    #[test]
    fn curves_by_hand() {
        let sums = [11.25_f64, -18.5, 10.0, 0.25, 2.0, 5.5];
        for (operand_type, error) in [(TensorFloat32, 1e-6), (TensorFloat16, 5e-4)] {
            for (activation, curve) in
                [(4, f64::tanh as fn(f64) -> f64), (6, |sum: f64| 1.0 / (1.0 + (-sum).exp()))]
            {
                for (_, found) in example(operand_type, activation).results() {
                    for (found, sum) in found.into_iter().zip(sums) {
                        let difference = (found - curve(sum)).abs();
                        assert!(
                            difference < error,
                            "{operand_type} {activation}: {found} of {sum}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn half_precision_is_rounded_once() {
        // 2048 + 1 + 1 is lost if each sum is rounded.
        let rounded = example(TensorFloat16, 0)
            .with_input(0, tensor(TensorFloat16, [2, 2]), &[1.0, 1.0, 0.0, 0.0])
            .with_input(1, tensor(TensorFloat16, [3, 2]), &[1.0; 6])
            .with_input(3, tensor(TensorFloat16, [3]), &[2048.0; 3])
            .with_input(4, tensor(TensorFloat16, [2, 3]), &[0.0; 6]);
        assert_eq!(rounded.result().1, [2050.0, 2050.0, 2050.0, 2048.0, 2048.0, 2048.0]);
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(TensorFloat32, 0);
        for (refused, message) in [
            (
                good.clone().with_input(0, float([2, 1, 2]), &[0.0; 4]),
                "rank of input 0 (input) is 3, expected 2",
            ),
            (
                good.clone().with_input(1, float([3, 3]), &[0.0; 9]),
                "shape of input 1 (weights) is [3, 3], expected length 2 along axis 1",
            ),
            (
                good.clone().with_input(2, float([3, 2]), &[0.0; 6]),
                "shape of input 2 (recurrent weights) is [3, 2], expected length 3 along axis 1",
            ),
            (
                good.clone().with_input(3, float([2]), &[0.0; 2]),
                "shape of input 3 (bias) is [2], expected length 3 along axis 0",
            ),
            (
                good.clone().with_input(4, float([1, 3]), &[0.0; 3]),
                "shape of input 4 (hidden state (in)) is [1, 3], expected length 2 along axis 0",
            ),
            (
                good.clone().with_input(0, float([2, 0]), &[]),
                "shape of input 0 (input) is [2, 0], expected no length of 0 along axis 1",
            ),
            (
                good.clone().with_int32(5, 5),
                "value of input 5 (activation) is 5, expected 0 to 4 or 6",
            ),
            (
                good.clone().without_input(3),
                "value of input 3 (bias) is left out, expected a value",
            ),
            (
                good.int32s([0]),
                "number of arguments of the operation is 7 inputs and 2 outputs, expected 6 inputs \
                 and 2 outputs",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("RNN: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |known: &[(usize, &[u32])]| {
            let unknown = (0..5).fold(example(TensorFloat32, 0), |example, index| {
                let dimensions = known.iter().find(|(given, _)| *given == index);
                example.with_input_to_come(index, float(dimensions.map_or(&[][..], |it| it.1)))
            });
            unknown.shapes().map(|mut shapes| {
                assert_eq!(shapes[0], shapes[1]);
                shapes.swap_remove(0)
            })
        };
        assert_eq!(shapes(&[]), Ok(Shape::of_rank(2)));
        assert_eq!(shapes(&[(0, &[7, 0]), (3, &[9])]), Ok(Shape::known([7, 9])));
        assert_eq!(shapes(&[(4, &[7, 0]), (2, &[0, 9])]), Ok(Shape::known([7, 9])));
        let empty = example(TensorFloat32, 0).with_input(0, float([0, 2]), &[]).with_input(
            4,
            float([0, 3]),
            &[],
        );
        assert_eq!(empty.results(), [(vec![0, 3], vec![]), (vec![0, 3], vec![])]);
    }
}
