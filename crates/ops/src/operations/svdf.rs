//! SVDF: a layer over time whose weights are a sum of products of two vectors. Each filter multiplies
//! the input with its feature weights, remembers the last `memory` results, and multiplies those with
//! its time weights; a unit adds up `rank` filters next to each other:
//!
//! ```text
//! memory[f]  = state[f] without its last element, then feature weights[f] * input
//! output[u]  = activation(bias[u] + sum(time weights[f] * memory[f])) over f in u * rank .. (u + 1) * rank
//! state'[f]  = memory[f] without its first element, then 0
//! ```
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, input]` | float32, float16 |
//! | input 1 | feature weights | `[filters, input]` | as the input |
//! | input 2 | time weights | `[filters, memory]` | as the input |
//! | input 3 | bias, optional | `[filters / rank]` | as the input |
//! | input 4 | state before | `[batch, filters * memory]` | as the input |
//! | input 5 | rank | scalar | INT32, above 0, a divisor of filters |
//! | input 6 | activation | scalar | INT32 |
//! | output 0 | state | as input 4 | as the input |
//! | output 1 | output | `[batch, filters / rank]` | as the input |
//!
//! The state makes room for the newest result by its last element, which is not read. (The
//! interface's text says `memory - 1`, and units for filters; implementations and their tests are as
//! above.) Only the batch may be 0.
//!
//! Source: `types.hal` 1.0, 1.2 (float16); the reference implementation for the state.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::cell_activation::Activation;
use crate::rules::recurrence;
use crate::rules::recurrence::{Extent, Extents, add_products, to_f64, write_row, zeros};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// SVDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Svdf {
    /// Filters of a unit; above 0.
    pub rank: u32,
    /// What the output is clamped to.
    pub activation: Activation,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Svdf,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::column("feature weights", 0),
            Parameter::column("time weights", 0),
            Parameter::column("bias", 0).omittable(),
            Parameter::column("state (in)", 0),
            Parameter::int32("rank"),
            Parameter::int32("activation"),
        ],
        &[Parameter::column("state (out)", 0), Parameter::column("output", 0)],
    )],
};

/// The filters, and the results that each remembers, in terms of what recurrent operations share.
const FILTERS: Extent = Extent::Units;
const MEMORY: Extent = Extent::Output;

impl Svdf {
    /// Number of units, if the number of filters is known.
    fn units(self, call: &Call<'_>, filters: Option<u32>) -> Result<Option<u32>, Fault> {
        match filters {
            Some(filters) if !filters.is_multiple_of(self.rank) => {
                let expected = format!("a divisor of {filters} filters");
                Err(call.input(5).wrong("value", self.rank, expected))
            }
            filters => Ok(filters.map(|filters| filters / self.rank)),
        }
    }
}

impl Operation for Svdf {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { rank: call.input(5).positive()?, activation: Activation::decode(call.input(6))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), [Extent::Batch, Extent::Input])?;
        known.learn(call.input(1), [FILTERS, Extent::Input])?;
        let time_weights = call.input(2);
        known.learn(time_weights, [FILTERS, MEMORY])?;
        let (filters, memory) = (known.get(FILTERS), known.get(MEMORY));
        let units = self.units(call, filters)?;
        if recurrence::is_given(call, 3) == Some(true) {
            let bias = call.input(3);
            bias.expect_rank(1)?;
            bias.expect_length(0, units)?;
        }
        let state = call.input(4);
        let [batch, _] = state.known_lengths_of()?;
        let remembered = match (filters, memory) {
            (Some(filters), Some(memory)) => {
                Some(filters.checked_mul(memory).ok_or_else(|| {
                    let expected = "below 2^32 elements";
                    time_weights.wrong("shape", &time_weights.shape, expected)
                })?)
            }
            _ => None,
        };
        state.expect_length(0, known.get(Extent::Batch))?;
        state.expect_length(1, remembered)?;
        let batch = known.get(Extent::Batch).or(batch);
        let remembered = remembered.or(state.shape.length(1));
        Ok(vec![Shape::new([batch, remembered]), Shape::new([batch, units])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let [_, memory] = call.input(2).lengths_of()?;
        let [_, input_size] = call.input(0).lengths_of()?;
        let [filters, _] = call.input(1).lengths_of()?;
        let (input, features) = (call.input(0).f32s()?, call.input(1).f32s()?);
        let time_weights = call.input(2).f32s()?;
        let bias = match call.optional(3) {
            Some(bias) => to_f64(call, &bias.f32s()?)?,
            None => call.collect(dimensions[1][1] as usize, std::iter::repeat(0.0))?,
        };
        let mut states = call.input(4).f32s()?;
        let mut elements = zeros(call.output(1), &dimensions[1])?;
        let steps = input
            .chunks_exact(input_size.max(1))
            .zip(states.chunks_exact_mut((filters * memory).max(1)))
            .zip(elements.chunks_exact_mut(bias.len().max(1)));
        call.reserve::<f64>(filters + 2 * bias.len() + 2 * memory + 2)?;
        for ((step, state), output) in steps {
            let mut newest = vec![0.0; filters];
            add_products(call, &mut newest, &features, step.iter().copied().map(f64::from))?;
            let mut sums = bias.clone();
            let memories =
                state.chunks_exact_mut(memory.max(1)).zip(time_weights.chunks_exact(memory.max(1)));
            for (filter, (remembered, weights)) in memories.enumerate() {
                call.work(remembered.len())?;
                let mut memory: Vec<f64> = remembered.iter().copied().map(f64::from).collect();
                if let Some(last) = memory.last_mut() {
                    *last = newest[filter];
                }
                let products = memory.iter().zip(weights).map(|(x, w)| x * f64::from(*w));
                sums[filter / self.rank as usize] += products.sum::<f64>();
                memory.push(0.0);
                write_row(remembered, &memory[1..]);
            }
            let sums: Vec<f64> = sums.into_iter().map(|sum| self.activation.apply(sum)).collect();
            write_row(output, &sums);
        }
        let outputs = call.outputs().iter().zip(dimensions).zip([states, elements]);
        outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, float, tensor};
    use HalVersion::{V1_0, V1_2};

    /// Two rows of two numbers, four filters that remember three results, two of them to a unit.
    fn example(operand_type: OperandType) -> Example {
        let tensor = |dimensions: &[u32]| tensor(operand_type, dimensions);
        let state: Vec<f64> = (1..=24).map(f64::from).collect();
        Example::new(OperationType::Svdf)
            .input(tensor(&[2, 2]), &[1.0, 2.0, -3.0, 0.5])
            .input(tensor(&[4, 2]), &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 0.0])
            .input(tensor(&[4, 3]), &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 1.0])
            .input(tensor(&[2]), &[0.25, -0.25])
            .input(tensor(&[2, 12]), &state)
            .int32s([2, 0])
            .output(tensor(&[]))
            .output(tensor(&[]))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for (operand_type, since) in [(TensorFloat32, V1_0), (TensorFloat16, V1_2)] {
            assert_eq!(example(operand_type).since(), Ok(since));
            assert_eq!(example(operand_type).without_input(3).since(), Ok(since));
            assert!(example(operand_type).run().is_ok());
        }
        assert!(example(OperandType::TensorQuant8Asymm).since().is_err());
    }

    #[test]
    fn values_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            // The newest results are 1 2 3 2 and -3 1/2 -5/2 -6. The oldest of the first filter and
            // the one in the middle of the second: 1 + 5 and 13 + 17. The newest of the third, and of
            // the fourth half of the middle: 3 + 11/2 + 2 and -5/2 + 23/2 - 6.
            let found = example(operand_type).results();
            assert_eq!(found[1], (vec![2, 2], vec![6.25, 10.25, 30.25, 2.75]));
            let first = [2.0, 1.0, 0.0, 5.0, 2.0, 0.0, 8.0, 3.0, 0.0, 11.0, 2.0, 0.0];
            let second = [14.0, -3.0, 0.0, 17.0, 0.5, 0.0, 20.0, -2.5, 0.0, 23.0, -6.0, 0.0];
            assert_eq!(found[0], (vec![2, 12], [first, second].concat()));
            let without_bias = example(operand_type).without_input(3).results();
            assert_eq!(without_bias[1].1, [6.0, 10.5, 30.0, 3.0]);
            let relu6 = example(operand_type).with_int32(6, 3).results();
            assert_eq!(relu6[1].1, [6.0, 6.0, 6.0, 2.75]);
            assert_eq!(relu6[0], found[0]);
        }
        let ranks = |rank, units: u32| {
            let bias = vec![0.0; units as usize];
            let example = example(TensorFloat32).with_int32(5, rank);
            example.with_input(3, float([units]), &bias).results().swap_remove(1)
        };
        assert_eq!(ranks(1, 4).1[..4], [1.0, 5.0, 3.0, 7.5]);
        assert_eq!(ranks(4, 1), (vec![2, 1], vec![16.5, 33.0]));
    }

    #[test]
    fn with_a_memory_of_one_nothing_is_kept() {
        let found = example(TensorFloat32)
            .with_input(2, float([4, 1]), &[1.0, 2.0, 3.0, 4.0])
            .with_input(4, float([2, 4]), &[99.0; 8])
            .results();
        assert_eq!(found[0].1, [0.0; 8]);
        assert_eq!(found[1].1, [5.25, 16.75, -1.75, -31.75]);
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(TensorFloat32);
        for (refused, message) in [
            (
                good.clone().with_input(0, float([4]), &[0.0; 4]),
                "rank of input 0 (input) is 1, expected 2",
            ),
            (
                good.clone().with_input(1, float([4, 3]), &[0.0; 12]),
                "shape of input 1 (feature weights) is [4, 3], expected length 2 along axis 1",
            ),
            (
                good.clone().with_input(2, float([3, 3]), &[0.0; 9]),
                "shape of input 2 (time weights) is [3, 3], expected length 4 along axis 0",
            ),
            (
                good.clone().with_input(2, float([4, 0]), &[]),
                "shape of input 2 (time weights) is [4, 0], expected no length of 0 along axis 1",
            ),
            (
                good.clone().with_input(3, float([4]), &[0.0; 4]),
                "shape of input 3 (bias) is [4], expected length 2 along axis 0",
            ),
            (
                good.clone().with_input(3, float([2, 1]), &[0.0; 2]),
                "rank of input 3 (bias) is 2, expected 1",
            ),
            (
                good.clone().with_input(4, float([2, 8]), &[0.0; 16]),
                "shape of input 4 (state (in)) is [2, 8], expected length 12 along axis 1",
            ),
            (
                good.clone().with_input(4, float([1, 12]), &[0.0; 12]),
                "shape of input 4 (state (in)) is [1, 12], expected length 2 along axis 0",
            ),
            (
                good.clone().with_int32(5, 3),
                "value of input 5 (rank) is 3, expected a divisor of 4 filters",
            ),
            (good.clone().with_int32(5, 0), "value of input 5 (rank) is 0, expected above 0"),
            (good.clone().with_int32(5, -2), "value of input 5 (rank) is -2, expected 0 or more"),
            (
                good.clone().with_int32(6, 5),
                "value of input 6 (activation) is 5, expected 0 to 4 or 6",
            ),
            (good.without_input(4), "value of input 4 (state (in)) is left out, expected a value"),
        ] {
            assert_eq!(refused.refusal(), format!("SVDF: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |known: &[(usize, &[u32])]| {
            let unknown = (0..5).fold(example(TensorFloat32), |example, index| {
                let dimensions = known.iter().find(|(given, _)| *given == index);
                example.with_input_to_come(index, float(dimensions.map_or(&[][..], |it| it.1)))
            });
            unknown.shapes()
        };
        let expected = |batch, remembered, units| {
            Ok(vec![Shape::new([batch, remembered]), Shape::new([batch, units])])
        };
        assert_eq!(shapes(&[]), expected(None, None, None));
        assert_eq!(shapes(&[(0, &[5, 0]), (1, &[6, 0])]), expected(Some(5), None, Some(3)));
        assert_eq!(shapes(&[(4, &[5, 0]), (2, &[6, 7])]), expected(Some(5), Some(42), Some(3)));
        assert_eq!(shapes(&[(4, &[0, 42])]), expected(None, Some(42), None));
        assert_eq!(
            shapes(&[(2, &[1 << 16, 1 << 16])]).unwrap_err().to_string(),
            "SVDF: shape of input 2 (time weights) is [65536, 65536], expected below 2^32 elements"
        );
        let empty = example(TensorFloat32).with_input(0, float([0, 2]), &[]).with_input(
            4,
            float([0, 12]),
            &[],
        );
        assert_eq!(empty.results(), [(vec![0, 12], vec![]), (vec![0, 2], vec![])]);
    }
}
