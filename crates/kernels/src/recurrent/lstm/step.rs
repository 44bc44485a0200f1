//! The kernels of an LSTM's step.
#![allow(unsafe_code)]

use super::{GATES, Lstm, Settings, UNIT_VECTORS, VECTORS};
use crate::disjoint::DisjointOutput;
use crate::recurrent::packed::{Packed, ROWS};
use crate::team::{Pace, Stop};
use crate::vector::{Kernel, Simd, functions};
use std::ops::Range;

/// What keeps layer normalization from dividing by 0.
const LEAST_VARIANCE: f32 = 1e-8;

/// A step of all sequences, for the units of some panels.
pub(super) struct Step<'a> {
    pub(super) lstm: &'a Lstm,
    pub(super) panels: Range<usize>,
    /// The number of the step.
    pub(super) step: usize,
    /// `[gates, rows, units]`
    pub(super) contributions: &'a [f32],
    pub(super) before: &'a [f32],
    /// `[batch, units]`, of which those of these panels are no one else's; as are the next ones.
    pub(super) cells: &'a DisjointOutput<'a, f32>,
    pub(super) hiddens: &'a DisjointOutput<'a, f32>,
    /// `[gates, batch, units]`, for normalization.
    pub(super) sums: &'a DisjointOutput<'a, f32>,
    pub(super) stop: &'a Stop,
}

impl Kernel for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let batch = self.lstm.shape.sequences.batch;
        let mut pace = Pace::new(self.stop);
        for panel in self.panels.clone() {
            if pace.is_over(self.lstm.recurrent.panel_products() * batch) {
                return;
            }
            let mut first = 0;
            while first + ROWS <= batch {
                self.sequences::<S, ROWS>(simd, panel, first);
                first += ROWS;
            }
            for last in first..batch {
                self.sequences::<S, 1>(simd, panel, last);
            }
        }
    }
}

impl Step<'_> {
    /// The units of a panel of `N` sequences.
    #[inline(always)]
    fn sequences<S: Simd, const N: usize>(&self, simd: S, panel: usize, first: usize) {
        let Self { lstm, before, cells, hiddens, sums, .. } = *self;
        let outputs = lstm.shape.output;
        let rows: [&[f32]; N] =
            std::array::from_fn(|index| &before[(first + index) * outputs..][..outputs]);
        let mut gates = [[simd.splat(0.0); VECTORS]; N];
        for (index, gates) in gates.iter_mut().enumerate() {
            self.load(simd, panel, first + index, gates);
        }
        lstm.recurrent.add_products(simd, panel, rows, &mut gates);
        for (index, gates) in gates.iter().enumerate() {
            let sequence = first + index;
            if lstm.layer_norm.is_none() {
                // SAFETY: this panel's units are this task's alone.
                unsafe {
                    lstm.update_cell(simd, sequence, panel, gates, cells);
                    lstm.update_hidden(simd, sequence, panel, gates, cells, hiddens);
                }
                continue;
            }
            for (at, gates) in gates.iter().enumerate() {
                let (gate, vector) = (at / UNIT_VECTORS, at % UNIT_VECTORS);
                let (start, count) = lstm.units_of::<S>(sequence, panel, vector);
                let start = gate * lstm.shape.sequences.batch * lstm.shape.units + start;
                // SAFETY: this panel's sums are this task's alone.
                simd.store_partial(*gates, unsafe { sums.slice(start, count) });
            }
        }
    }

    /// What the inputs contribute to the gates of a panel.
    #[inline(always)]
    fn load<S: Simd>(&self, simd: S, panel: usize, sequence: usize, gates: &mut [S::F; VECTORS]) {
        let Self { lstm, contributions, step, .. } = *self;
        let row = lstm.shape.sequences.row(sequence, step);
        let by_gate = lstm.shape.sequences.rows() * lstm.shape.units;
        for (gate, gates) in gates.chunks_exact_mut(UNIT_VECTORS).enumerate() {
            if lstm.contributions[gate].is_none() {
                continue;
            }
            for (vector, sum) in gates.iter_mut().enumerate() {
                let (start, count) = lstm.units_of::<S>(row, panel, vector);
                *sum = simd.load_partial(&contributions[gate * by_gate + start..][..count], 0.0);
            }
        }
    }
}

/// Normalizes the sums of all gates and updates the cells.
pub(super) struct Normalized<'a> {
    pub(super) lstm: &'a Lstm,
    /// Weights and biases by gate.
    pub(super) weights: &'a [[Vec<f32>; 2]; GATES],
    /// No one else's, as are the next ones.
    pub(super) sums: &'a DisjointOutput<'a, f32>,
    pub(super) cells: &'a DisjointOutput<'a, f32>,
    pub(super) hiddens: &'a DisjointOutput<'a, f32>,
}

impl Kernel for Normalized<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { lstm, cells, hiddens, .. } = self;
        for sequence in 0..lstm.shape.sequences.batch {
            // Input, forget and cell gates look at the cell before, the output gate at that after.
            for gate in 0..GATES {
                if gate == GATES - 1 {
                    for panel in 0..lstm.recurrent.panels() {
                        let gates = self.load(simd, sequence, panel);
                        // SAFETY: no one else has the cells, and no other slice of them is held.
                        unsafe { lstm.update_cell(simd, sequence, panel, &gates, cells) };
                    }
                }
                if lstm.contributions[gate].is_some() {
                    self.normalize(simd, sequence, gate);
                }
            }
            for panel in 0..lstm.recurrent.panels() {
                let gates = self.load(simd, sequence, panel);
                // SAFETY: as above.
                unsafe { lstm.update_hidden(simd, sequence, panel, &gates, cells, hiddens) };
            }
        }
    }
}

impl Normalized<'_> {
    /// Adds what a gate sees of the cell, and normalizes.
    #[inline(always)]
    fn normalize<S: Simd>(&self, simd: S, sequence: usize, gate: usize) {
        let Self { lstm, weights, sums, cells, .. } = *self;
        let (batch, units) = (lstm.shape.sequences.batch, lstm.shape.units);
        let start = (gate * batch + sequence) * units;
        // SAFETY: no one else has the sums and the cells, and no other slice of them is held.
        let (sums, cells) =
            unsafe { (sums.slice(start, units), cells.slice(sequence * units, units)) };
        if let Some(peephole) = &lstm.peephole[gate] {
            for ((sum, weight), cell) in sums.iter_mut().zip(peephole).zip(&*cells) {
                *sum += weight * *cell;
            }
        }
        let [weights, bias] = &weights[gate];
        normalize(simd, sums, weights, bias);
    }

    /// The sums of a panel.
    #[inline(always)]
    fn load<S: Simd>(&self, simd: S, sequence: usize, panel: usize) -> [S::F; VECTORS] {
        let Self { lstm, sums, .. } = *self;
        let mut gates = [simd.splat(0.0); VECTORS];
        for (at, gates) in gates.iter_mut().enumerate() {
            let (gate, vector) = (at / UNIT_VECTORS, at % UNIT_VECTORS);
            let (start, count) = lstm.units_of::<S>(sequence, panel, vector);
            let start = gate * lstm.shape.sequences.batch * lstm.shape.units + start;
            // SAFETY: as above.
            *gates = simd.load_partial(unsafe { sums.slice(start, count) }, 0.0);
        }
        gates
    }
}

/// Calls `work` with parts of `0..length` as long as a vector, and a last one that may be shorter.
#[inline(always)]
fn for_each_vector<S: Simd>(length: usize, mut work: impl FnMut(Range<usize>)) {
    let mut start = 0;
    while start < length {
        let end = length.min(start + S::LANES);
        work(start..end);
        start = end;
    }
}

/// Shifts and scales sums to mean 0 and variance 1, multiplies them with weights and adds biases.
#[inline(always)]
#[allow(clippy::cast_precision_loss)] // The rounding does not matter.
fn normalize<S: Simd>(simd: S, sums: &mut [f32], weights: &[f32], bias: &[f32]) {
    let count = sums.len() as f32;
    let mut total = simd.splat(0.0);
    for_each_vector::<S>(sums.len(), |at| {
        total = simd.add(total, simd.load_partial(&sums[at], 0.0));
    });
    let average = simd.sum(total) / count;
    let mean = simd.splat(average);
    let mut squares = simd.splat(0.0);
    for_each_vector::<S>(sums.len(), |at| {
        let distance = simd.sub(simd.load_partial(&sums[at], average), mean);
        squares = simd.fma(distance, distance, squares);
    });
    let factor = simd.splat(1.0 / (simd.sum(squares) / count + LEAST_VARIANCE).sqrt());
    for_each_vector::<S>(sums.len(), |at| {
        let distance = simd.sub(simd.load_partial(&sums[at.clone()], 0.0), mean);
        let weight = simd.mul(factor, simd.load_partial(&weights[at.clone()], 0.0));
        let sum = simd.fma(distance, weight, simd.load_partial(&bias[at.clone()], 0.0));
        simd.store_partial(sum, &mut sums[at]);
    });
}

impl Lstm {
    /// A gate's sum with what it sees of the cell, for a vector of a panel's units.
    #[inline(always)]
    fn peek<S: Simd>(
        &self,
        simd: S,
        gate: usize,
        (panel, vector): (usize, usize),
        sum: S::F,
        cell: S::F,
    ) -> S::F {
        match &self.peephole[gate] {
            // With normalization they have been added before.
            Some(peephole) if self.layer_norm.is_none() => {
                let (start, count) = self.units_of::<S>(0, panel, vector);
                simd.fma(simd.load_partial(&peephole[start..start + count], 0.0), cell, sum)
            }
            _ => sum,
        }
    }

    /// The units of one vector of a panel, in a row of all units: where they begin, and how many there
    /// are.
    #[inline(always)]
    fn units_of<S: Simd>(&self, row: usize, panel: usize, vector: usize) -> (usize, usize) {
        let first = (panel * UNIT_VECTORS + vector) * S::LANES;
        let count = self.shape.units.saturating_sub(first).min(S::LANES);
        (row * self.shape.units + first.min(self.shape.units), count)
    }

    /// # Safety
    /// The panel's units of the sequence are the caller's alone.
    #[inline(always)]
    unsafe fn update_cell<S: Simd>(
        &self,
        simd: S,
        sequence: usize,
        panel: usize,
        gates: &[S::F; VECTORS],
        cells: &DisjointOutput<'_, f32>,
    ) {
        let Settings { activation, cell_clip: clip, .. } = self.settings;
        for vector in 0..UNIT_VECTORS {
            let gate = |gate: usize| gate * UNIT_VECTORS + vector;
            let (start, count) = self.units_of::<S>(sequence, panel, vector);
            // SAFETY: as the caller promises.
            let cell = unsafe { cells.slice(start, count) };
            let before = simd.load_partial(cell, 0.0);
            let forget = self.peek(simd, 1, (panel, vector), gates[gate(1)], before);
            let forget = functions::logistic(simd, forget);
            let input = if self.contributions[0].is_none() {
                simd.sub(simd.splat(1.0), forget)
            } else {
                let input = self.peek(simd, 0, (panel, vector), gates[gate(0)], before);
                functions::logistic(simd, input)
            };
            let candidate = activation.apply(simd, gates[gate(2)]);
            let mut after = simd.fma(forget, before, simd.mul(input, candidate));
            if clip > 0.0 {
                after = functions::clamp(simd, after, simd.splat(-clip), simd.splat(clip));
            }
            simd.store_partial(after, cell);
        }
    }

    /// # Safety
    /// The panel's units of the sequence are the caller's alone.
    #[inline(always)]
    unsafe fn update_hidden<S: Simd>(
        &self,
        simd: S,
        sequence: usize,
        panel: usize,
        gates: &[S::F; VECTORS],
        cells: &DisjointOutput<'_, f32>,
        hiddens: &DisjointOutput<'_, f32>,
    ) {
        let activation = self.settings.activation;
        for vector in 0..UNIT_VECTORS {
            let gate = GATES - 1;
            let sum = gates[gate * UNIT_VECTORS + vector];
            let (start, count) = self.units_of::<S>(sequence, panel, vector);
            // SAFETY: as the caller promises.
            let (cell, hidden) =
                unsafe { (cells.slice(start, count), hiddens.slice(start, count)) };
            let cell = simd.load_partial(cell, 0.0);
            let output =
                functions::logistic(simd, self.peek(simd, gate, (panel, vector), sum, cell));
            simd.store_partial(simd.mul(output, activation.apply(simd, cell)), hidden);
        }
    }
}

/// The projection of what came out of the cells.
pub(super) struct Project<'a> {
    pub(super) lstm: &'a Lstm,
    pub(super) projection: &'a Packed,
    pub(super) panels: Range<usize>,
    pub(super) hidden: &'a [f32],
    /// `[batch, output]`, of which those of these panels are no one else's.
    pub(super) output: &'a DisjointOutput<'a, f32>,
    pub(super) stop: &'a Stop,
}

impl Kernel for Project<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { lstm, projection, panels, hidden, output, stop } = self;
        let mut pace = Pace::new(stop);
        let (units, outputs) = (lstm.shape.units, lstm.shape.output);
        let clip = lstm.settings.projection_clip;
        for panel in panels {
            let first = panel * VECTORS * S::LANES;
            for sequence in 0..lstm.shape.sequences.batch {
                if pace.is_over(projection.panel_products()) {
                    return;
                }
                let mut sums = [[simd.splat(0.0); VECTORS]];
                let row = &hidden[sequence * units..(sequence + 1) * units];
                projection.add_products(simd, panel, [row], &mut sums);
                for (index, sum) in sums[0].into_iter().enumerate() {
                    let first = (first + index * S::LANES).min(outputs);
                    let count = (outputs - first).min(S::LANES);
                    let bias = &lstm.projection_bias[first..first + count];
                    let mut value = simd.add(sum, simd.load_partial(bias, 0.0));
                    if clip > 0.0 {
                        value = functions::clamp(simd, value, simd.splat(-clip), simd.splat(clip));
                    }
                    // SAFETY: this panel's outputs are this task's alone.
                    let output = unsafe { output.slice(sequence * outputs + first, count) };
                    simd.store_partial(value, output);
                }
            }
        }
    }
}
