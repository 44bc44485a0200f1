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
use crate::rules::recurrence::{Extent, Extents, add_products, clip, to_f64, write_row, zeros};
use crate::rules::{activation_range, recurrence};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32};
use hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// SVDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Svdf {
    /// Filters of a unit; above 0.
    pub rank: u32,
    /// What the output is clamped to.
    pub activation: FusedActivation,
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
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self {
            rank: call.input(5).positive()?,
            activation: activation_range::decode(call.input(6))?,
        })
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
            Some(bias) => to_f64(&bias.f32s()?),
            None => vec![0.0; dimensions[1][1] as usize],
        };
        let (least, greatest) = activation_range::real(self.activation);
        let (least, greatest) = (f64::from(least), f64::from(greatest));
        let mut states = call.input(4).f32s()?;
        let mut elements = zeros(call.output(1), &dimensions[1])?;
        let steps = input
            .chunks_exact(input_size.max(1))
            .zip(states.chunks_exact_mut((filters * memory).max(1)))
            .zip(elements.chunks_exact_mut(bias.len().max(1)));
        for ((step, state), output) in steps {
            let mut newest = vec![0.0; filters];
            add_products(&mut newest, &features, step.iter().copied().map(f64::from));
            let mut sums = bias.clone();
            let memories =
                state.chunks_exact_mut(memory.max(1)).zip(time_weights.chunks_exact(memory.max(1)));
            for (filter, (remembered, weights)) in memories.enumerate() {
                let mut memory = to_f64(remembered);
                if let Some(last) = memory.last_mut() {
                    *last = newest[filter];
                }
                let products = memory.iter().zip(weights).map(|(x, w)| x * f64::from(*w));
                sums[filter / self.rank as usize] += products.sum::<f64>();
                memory.push(0.0);
                write_row(remembered, &memory[1..]);
            }
            let sums: Vec<f64> = sums.into_iter().map(|sum| clip(sum, least, greatest)).collect();
            write_row(output, &sums);
        }
        let outputs = call.outputs().iter().zip(dimensions).zip([states, elements]);
        Ok(outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, &it)).collect())
    }
}
