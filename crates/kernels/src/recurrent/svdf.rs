//! [`Svdf`]: a layer over time whose weights are a sum of products of two vectors. Each filter
//! multiplies the input with its feature weights, remembers the last results, and multiplies those
//! with its time weights; a unit adds up `rank` filters next to each other.
#![allow(unsafe_code)]

use super::activation::{Activate, Activation};
use crate::disjoint::DisjointOutput;
use crate::fully_connected::{FullyConnected, Sizes, Storage};
use crate::preparation::PackedValues;
use crate::sharing::{Cut, for_each_part};
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Epilogue, Preparation, TooLarge};
use std::ops::Range;

/// The sizes of an SVDF layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SvdfShape {
    /// How many sequences.
    pub batch: usize,
    /// Elements of an input.
    pub input: usize,
    /// Elements of the output.
    pub units: usize,
    /// Filters of a unit.
    pub rank: usize,
    /// Results that a filter remembers, the newest one among them.
    pub memory: usize,
}

/// A prepared SVDF layer.
#[derive(Debug)]
pub struct Svdf {
    isa: Isa,
    pub(super) shape: SvdfShape,
    pub(super) features: FullyConnected,
    /// `[units, rank, memory]`
    time_weights: PackedValues<f32>,
    bias: Vec<f32>,
    activation: Activation,
}

/// Remembered results that are worth a task.
const LEAST_RESULTS: usize = 20_000;

impl Svdf {
    /// Packs the feature weights, `[filters, input]`; the time weights are `[filters, memory]`.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If weights have not the sizes that the shape says, or nothing is remembered.
    pub fn prepare(
        shape: SvdfShape,
        feature_weights: &[f32],
        time_weights: &[f32],
        bias: Option<&[f32]>,
        activation: Activation,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let SvdfShape { batch, input, units, rank, memory } = shape;
        let filters = units.checked_mul(rank).expect("filters beyond memory");
        let times = filters.checked_mul(memory).expect("time weights beyond memory");
        preparation.check_count(time_weights.len(), times, "time weights");
        assert!(memory > 0, "nothing is remembered");
        assert!(bias.is_none_or(|bias| bias.len() == units), "not a bias for each unit");
        let sizes = Sizes { rows: batch, inputs: input, units: filters };
        let none = preparation.filled(0.0, filters, "a bias")?;
        let features = FullyConnected::prepare(
            sizes,
            feature_weights,
            &none,
            Storage::Full,
            Epilogue::NONE,
            preparation,
        )?;
        let bias = match bias {
            Some(bias) => preparation.copied(bias, "a bias")?,
            None => preparation.filled(0.0, units, "a bias")?,
        };
        let prepared = Self {
            isa: Isa::of(preparation.set()),
            shape,
            features,
            time_weights: preparation.pack(times, |to: &mut [f32], pace| {
                for block in pace.blocks(times, 1) {
                    to[block.clone()].copy_from_slice(&time_weights[block]);
                }
            })?,
            bias,
            activation,
        };
        preparation.check_scratch::<f32>(&[prepared.scratch_elements()])?;
        Ok(prepared)
    }

    /// How many floats of scratch a run wants.
    pub fn scratch_elements(&self) -> usize {
        let features = self.shape.batch.saturating_mul(self.shape.units * self.shape.rank);
        features.saturating_add(self.features.scratch_elements())
    }

    /// One step: from the state before, `[batch, filters, memory]`, to the one after and the output,
    /// `[batch, units]`. The last result of each filter in a state is none yet.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for, or there is too little scratch.
    pub fn run(
        &self,
        team: &mut Team,
        input: &[f32],
        state: &[f32],
        state_after: &mut [f32],
        output: &mut [f32],
        scratch: &mut [f32],
    ) {
        let SvdfShape { batch, units, rank, memory, .. } = self.shape;
        let rows = batch.checked_mul(units).expect("outputs beyond memory");
        let remembered = batch.checked_mul(self.time_weights.values().len());
        assert_eq!(Some(input.len()), batch.checked_mul(self.shape.input), "another input");
        assert_eq!(Some(state.len()), remembered, "another state");
        assert_eq!(Some(state_after.len()), remembered, "room for another state");
        assert_eq!(output.len(), rows, "another output");
        let (newest, scratch) = scratch.split_at_mut(rows * rank);
        self.features.run_within(team, input, None, newest, scratch);
        let (states, outputs) = (DisjointOutput::new(state_after), DisjointOutput::new(output));
        let by_row = rank * memory;
        let cut = Cut { each: by_row, least: LEAST_RESULTS, multiple: 1 };
        for_each_part(team, rows, cut, |rows, pace| {
            let at = rows.start * by_row..rows.end * by_row;
            // SAFETY: each part has its own rows.
            let (after, output) = unsafe {
                (states.slice(at.start, at.len()), outputs.slice(rows.start, rows.len()))
            };
            let newest = &newest[rows.start * rank..rows.end * rank];
            let state = &state[at];
            self.isa.run(Remember { svdf: self, rows, newest, state, after, output, pace });
        });
    }
}

/// Some rows, of which each is a unit of a sequence.
struct Remember<'a> {
    svdf: &'a Svdf,
    rows: Range<usize>,
    newest: &'a [f32],
    state: &'a [f32],
    after: &'a mut [f32],
    output: &'a mut [f32],
    pace: Pace<'a>,
}

impl Kernel for Remember<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { svdf, rows, newest, state, after, output, mut pace } = self;
        let time_weights = svdf.time_weights.values();
        let SvdfShape { units, rank, memory, .. } = svdf.shape;
        let by_row = rank * memory;
        if state.is_empty() {
            return;
        }
        // All results move up by one place; those that come from other filters are written anew.
        let last = after.len() - 1;
        for block in pace.blocks(last, 1) {
            after[block.clone()].copy_from_slice(&state[1..][block]);
        }
        for (after, newest) in after.chunks_exact_mut(memory).zip(newest) {
            if memory > 1 {
                after[memory - 2] = *newest;
            }
            after[memory - 1] = 0.0;
        }
        for (index, (row, output)) in rows.zip(&mut *output).enumerate() {
            let unit = row % units;
            let weights = &time_weights[unit * by_row..][..by_row];
            let (state, newest) =
                (&state[index * by_row..][..by_row], &newest[index * rank..][..rank]);
            let mut sum = svdf.bias[unit];
            let filters = state.chunks_exact(memory).zip(weights.chunks_exact(memory));
            let mut sums = simd.splat(0.0);
            for ((state, weights), newest) in filters.zip(newest) {
                let (last, weights) = weights.split_last().unwrap_or((&0.0, &[]));
                sum += newest * last;
                let state = &state[..memory - 1];
                for block in pace.blocks(state.len(), 1) {
                    let (state, weights) = (&state[block.clone()], &weights[block]);
                    for (state, weights) in state.chunks(S::LANES).zip(weights.chunks(S::LANES)) {
                        let state = simd.load_partial(state, 0.0);
                        sums = simd.fma(state, simd.load_partial(weights, 0.0), sums);
                    }
                }
            }
            *output = sum + simd.sum(sums);
        }
        Activate(svdf.activation, output).run(simd);
    }
}
