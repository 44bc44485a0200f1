//! [`Lstm`]: a long short-term memory over sequences.
//!
//! ```text
//! i  = sigmoid(n(Wi x + Ri h + Pi * c) + bi)        input gate; 1 - f if it is coupled
//! f  = sigmoid(n(Wf x + Rf h + Pf * c) + bf)        forget gate
//! c' = clip(f * c + i * g(n(Wc x + Rc h) + bc))     cell
//! o  = sigmoid(n(Wo x + Ro h + Po * c') + bo)       output gate
//! h' = o * g(c'), or clip(Wp (o * g(c')) + bp) with a projection
//! ```
//!
//! `n` is layer normalisation with an epsilon of 1e-8; it, the peepholes P and the projection are
//! left out where there are no weights for them.
#![allow(unsafe_code)]

use super::packed::{Packed, VECTORS};
use super::step::{InputRows, Normalized, Project, Step};
use crate::Preparation;
use crate::disjoint::DisjointOutput;
use crate::parts::for_each_part;
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};

/// Gates in the order of a panel: input, forget, cell, output.
pub(super) const GATES: usize = 4;

/// Vectors of units in a panel, which holds all gates of them.
pub(super) const UNIT_VECTORS: usize = VECTORS / GATES;

/// Rows of inputs that are multiplied together.
pub(super) const ROWS: usize = 3;

/// The sizes of an LSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many sequences.
    pub batch: usize,
    /// How many steps.
    pub time: usize,
    /// Elements of an input.
    pub input: usize,
    /// Elements of the cell.
    pub units: usize,
    /// Elements of the output; as many as units if there is no projection.
    pub output: usize,
}

/// The activation of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The number itself.
    None,
    /// `max(0, x)`
    Relu,
    /// `min(6, max(0, x))`
    Relu6,
    /// The hyperbolic tangent, the usual one.
    Tanh,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
}

/// What a cell does besides its weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Of the candidate and of what comes out of the cell.
    pub activation: Activation,
    /// The cell stays within so much of 0; 0 means no limit.
    pub cell_clip: f32,
    /// The projected output stays within so much of 0; 0 means no limit.
    pub projection_clip: f32,
    /// Whether inputs and outputs are `[time, batch, ...]` and not `[batch, time, ...]`.
    pub is_time_major: bool,
}

/// The weights of a gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    /// `[units, input]`
    pub input: &'a [f32],
    /// `[units, output]`
    pub recurrent: &'a [f32],
    /// `[units]`; not used for the cell.
    pub peephole: Option<&'a [f32]>,
    /// `[units]`; for all gates or for none.
    pub layer_norm: Option<&'a [f32]>,
    /// `[units]`
    pub bias: &'a [f32],
}

/// All weights.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// The input gate; `None` couples it to the forget gate.
    pub input: Option<Gate<'a>>,
    /// The forget gate.
    pub forget: Gate<'a>,
    /// What goes into the cell.
    pub cell: Gate<'a>,
    /// The output gate.
    pub output: Gate<'a>,
    /// `[output, units]`, and a bias `[output]`.
    pub projection: Option<(&'a [f32], Option<&'a [f32]>)>,
}

/// A prepared LSTM.
#[derive(Debug, Clone)]
pub struct Lstm {
    isa: Isa,
    pub(super) shape: Shape,
    pub(super) settings: Settings,
    pub(super) is_coupled: bool,
    /// Panels of units.
    pub(super) panels: usize,
    pub(super) of_input: Packed,
    pub(super) recurrent: Packed,
    pub(super) projection: Option<Packed>,
    /// In the order of the panels' columns.
    pub(super) bias: Vec<f32>,
    /// In the order of the panels' columns; the cell's are 0.
    pub(super) peephole: Option<Vec<f32>>,
    /// In the order of the panels' columns.
    pub(super) layer_norm: Option<Vec<f32>>,
    pub(super) projection_bias: Vec<f32>,
}

/// The lanes of an instruction set.
struct Lanes;

impl Kernel for Lanes {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> usize {
        S::LANES
    }
}

impl Lstm {
    /// Packs the weights.
    ///
    /// # Panics
    /// If weights have not the sizes that the shape says, or the output has not as many elements as
    /// the cell though there is no projection.
    pub fn prepare(
        shape: Shape,
        weights: &Weights<'_>,
        settings: Settings,
        preparation: &mut Preparation,
    ) -> Self {
        let isa = Isa::of(preparation.set());
        let lanes = isa.run(Lanes);
        let Shape { input, units, output, .. } = shape;
        let gates = [weights.input, Some(weights.forget), Some(weights.cell), Some(weights.output)];
        let size = |a: usize, b: usize| a.checked_mul(b).expect("weights beyond memory");
        for gate in gates.into_iter().flatten() {
            preparation.check_count(gate.input.len(), size(units, input), "input weights");
            preparation.check_count(gate.recurrent.len(), size(units, output), "recurrent weights");
            for vector in [gate.peephole, gate.layer_norm, Some(gate.bias)].into_iter().flatten() {
                assert_eq!(vector.len(), units, "not a weight for each unit");
            }
        }
        match weights.projection {
            None => assert_eq!(units, output, "without a projection the output is the cell's"),
            Some((weights, bias)) => {
                preparation.check_count(weights.len(), size(output, units), "projection weights");
                assert!(bias.is_none_or(|bias| bias.len() == output), "a bias of another size");
            }
        }
        let block = UNIT_VECTORS * lanes;
        let panels = units.div_ceil(block);
        // Which gate and unit a column is.
        let column = |panel: usize, column: usize| {
            let (gate, unit) = (column / block, panel * block + column % block);
            gates[gate].filter(|_| unit < units).map(|gate| (gate, unit))
        };
        let of_columns = |weight: &dyn Fn(Gate<'_>, usize) -> f32| -> Vec<f32> {
            let width = VECTORS * lanes;
            (0..panels * width)
                .map(|at| {
                    column(at / width, at % width).map_or(0.0, |(gate, unit)| weight(gate, unit))
                })
                .collect()
        };
        let of = |vector: Option<&[f32]>, unit: usize| vector.map_or(0.0, |vector| vector[unit]);
        let some = gates.into_iter().flatten();
        let has_peephole = some.clone().any(|gate| gate.peephole.is_some());
        let has_layer_norm = some.clone().any(|gate| gate.layer_norm.is_some());
        let projection = weights.projection.map(|(weights, _)| {
            let width = VECTORS * lanes;
            let panels = output.div_ceil(width);
            Packed::new(preparation, lanes, panels, units, |panel, column, unit| {
                let row = panel * width + column;
                if row < output { weights[row * units + unit] } else { 0.0 }
            })
        });
        let projection_bias = match weights.projection {
            Some((_, Some(bias))) => bias.to_vec(),
            _ => vec![0.0; output],
        };
        Self {
            isa,
            shape,
            settings,
            is_coupled: weights.input.is_none(),
            panels,
            of_input: Packed::new(preparation, lanes, panels, input, |panel, at, index| {
                column(panel, at).map_or(0.0, |(gate, unit)| gate.input[unit * input + index])
            }),
            recurrent: Packed::new(preparation, lanes, panels, output, |panel, at, index| {
                column(panel, at).map_or(0.0, |(gate, unit)| gate.recurrent[unit * output + index])
            }),
            projection,
            bias: of_columns(&|gate, unit| gate.bias[unit]),
            peephole: has_peephole.then(|| of_columns(&|gate, unit| of(gate.peephole, unit))),
            layer_norm: has_layer_norm.then(|| of_columns(&|gate, unit| of(gate.layer_norm, unit))),
            projection_bias,
        }
    }

    /// Columns of all panels.
    pub(super) fn columns(&self) -> usize {
        self.bias.len()
    }

    /// How many floats of scratch a run wants.
    pub fn scratch_elements(&self) -> usize {
        let Shape { batch, time, units, output, .. } = self.shape;
        let rows = batch.saturating_mul(time);
        // What the inputs contribute; two outputs; what comes out of the cells; sums of a step.
        rows.saturating_add(batch)
            .saturating_mul(self.columns())
            .saturating_add(batch.saturating_mul(2 * output + units))
    }

    /// Runs all steps. The states are those before the first step, and become those after the last.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for, or there is too little scratch.
    pub fn run(
        &self,
        team: &mut Team,
        input: &[f32],
        output_state: &mut [f32],
        cell_state: &mut [f32],
        output: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Shape { batch, time, input: inputs, units, output: outputs } = self.shape;
        let rows = batch.checked_mul(time).expect("sequences beyond memory");
        assert_eq!(Some(input.len()), rows.checked_mul(inputs), "inputs of another size");
        assert_eq!(Some(output.len()), rows.checked_mul(outputs), "outputs of another size");
        assert_eq!(Some(output_state.len()), batch.checked_mul(outputs), "a state of another size");
        assert_eq!(Some(cell_state.len()), batch.checked_mul(units), "cells of another size");
        assert!(scratch.len() >= self.scratch_elements(), "too little scratch");
        if rows == 0 || units == 0 {
            return;
        }
        let (of_input, scratch) = scratch.split_at_mut(rows * self.columns());
        let (sums, scratch) = scratch.split_at_mut(batch * self.columns());
        let (hidden, scratch) = scratch.split_at_mut(batch * units);
        let (mut before, rest) = scratch.split_at_mut(batch * outputs);
        let mut after = &mut rest[..batch * outputs];
        self.multiply_inputs(team, input, of_input);
        before.copy_from_slice(output_state);
        for step in 0..time {
            let row_of = |sequence: usize| {
                if self.settings.is_time_major {
                    step * batch + sequence
                } else {
                    sequence * time + step
                }
            };
            self.step(team, &row_of, of_input, before, cell_state, sums, hidden);
            match &self.projection {
                None => after.copy_from_slice(hidden),
                Some(projection) => self.project(team, projection, hidden, after),
            }
            for (sequence, after) in after.chunks_exact(outputs.max(1)).enumerate() {
                output[row_of(sequence) * outputs..][..outputs].copy_from_slice(after);
            }
            std::mem::swap(&mut before, &mut after);
        }
        output_state.copy_from_slice(before);
    }

    /// What the inputs of all steps contribute to the gates, and the biases.
    fn multiply_inputs(&self, team: &mut Team, input: &[f32], of_input: &mut [f32]) {
        let rows = self.shape.batch * self.shape.time;
        let columns = self.columns();
        let of_input = DisjointOutput::new(of_input);
        for_each_part(team, rows, (2 * ROWS, ROWS), |part| {
            // SAFETY: every part has its own rows.
            let output = unsafe { of_input.slice(part.start * columns, part.len() * columns) };
            let inputs = self.shape.input;
            let input = &input[part.start * inputs..part.end * inputs];
            self.isa.run(InputRows { lstm: self, input, output });
        });
    }

    /// One step of all sequences: from the outputs before and the cells to the cells and what comes
    /// out of them.
    #[allow(clippy::too_many_arguments)] // Parts of the scratch, lent one by one.
    fn step(
        &self,
        team: &mut Team,
        row_of: &(dyn Fn(usize) -> usize + Sync),
        of_input: &[f32],
        before: &[f32],
        cell: &mut [f32],
        sums: &mut [f32],
        hidden: &mut [f32],
    ) {
        let cells = DisjointOutput::new(cell);
        let hiddens = DisjointOutput::new(hidden);
        let all_sums = DisjointOutput::new(sums);
        // A task for each thread: which one takes which hardly ever changes from step to step, and
        // so the weights of a thread stay in its cache.
        let tasks = self.panels.min(team.threads());
        team.run(tasks, &|task| {
            let panels = self.panels * task / tasks..self.panels * (task + 1) / tasks;
            let (cells, hiddens, sums) = (&cells, &hiddens, &all_sums);
            self.isa.run(Step {
                lstm: self,
                panels,
                row_of,
                of_input,
                before,
                cells,
                hiddens,
                sums,
            });
        });
        if self.layer_norm.is_some() {
            self.isa.run(Normalized {
                lstm: self,
                sums: &all_sums,
                cells: &cells,
                hiddens: &hiddens,
            });
        }
    }

    fn project(&self, team: &mut Team, projection: &Packed, hidden: &[f32], after: &mut [f32]) {
        let output = DisjointOutput::new(after);
        let width = self.columns() / self.panels;
        let panels = self.shape.output.div_ceil(width);
        let tasks = panels.min(team.threads());
        team.run(tasks, &|task| {
            let panels = panels * task / tasks..panels * (task + 1) / tasks;
            self.isa.run(Project { lstm: self, projection, panels, hidden, output: &output });
        });
    }
}
