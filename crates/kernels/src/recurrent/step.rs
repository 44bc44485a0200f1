//! The kernels of an LSTM's step.
#![allow(unsafe_code)]

use super::lstm::{Activation, GATES, Lstm, ROWS, UNIT_VECTORS};
use super::packed::{Packed, VECTORS};
use crate::disjoint::DisjointOutput;
use crate::vector::{Kernel, Simd, functions};
use std::ops::Range;

/// What keeps layer normalisation from dividing by 0.
const LEAST_VARIANCE: f32 = 1e-8;

/// What inputs contribute to the gates: `[rows, columns]`, with the biases unless they come after a
/// normalisation.
pub(super) struct InputRows<'a> {
    pub(super) lstm: &'a Lstm,
    pub(super) input: &'a [f32],
    pub(super) output: &'a mut [f32],
}

impl Kernel for InputRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { lstm, input, output } = self;
        let (inputs, columns) = (lstm.of_input.inputs(), lstm.columns());
        let rows = output.len() / columns;
        let row = |row: usize| &input[row * inputs..(row + 1) * inputs];
        for panel in 0..lstm.panels {
            let mut first = 0;
            while first + ROWS <= rows {
                let some: [&[f32]; ROWS] = std::array::from_fn(|index| row(first + index));
                multiply::<S, ROWS>(simd, lstm, panel, some, &mut output[first * columns..]);
                first += ROWS;
            }
            for last in first..rows {
                multiply::<S, 1>(simd, lstm, panel, [row(last)], &mut output[last * columns..]);
            }
        }
    }
}

#[inline(always)]
fn multiply<S: Simd, const N: usize>(
    simd: S,
    lstm: &Lstm,
    panel: usize,
    rows: [&[f32]; N],
    output: &mut [f32],
) {
    let start = panel * VECTORS * S::LANES;
    let mut first = [simd.splat(0.0); VECTORS];
    if lstm.layer_norm.is_none() {
        load_panel(simd, &lstm.bias[start..], &mut first);
    }
    let mut sums = [first; N];
    lstm.of_input.add_products(simd, panel, rows, &mut sums);
    for (index, sums) in sums.iter().enumerate() {
        store_panel(simd, sums, &mut output[index * lstm.columns() + start..]);
    }
}

#[inline(always)]
fn load_panel<S: Simd>(simd: S, from: &[f32], panel: &mut [S::F; VECTORS]) {
    let from = &from[..VECTORS * S::LANES];
    for (index, vector) in panel.iter_mut().enumerate() {
        *vector = simd.load(&from[index * S::LANES..]);
    }
}

#[inline(always)]
fn store_panel<S: Simd>(simd: S, panel: &[S::F; VECTORS], to: &mut [f32]) {
    let to = &mut to[..VECTORS * S::LANES];
    for (index, vector) in panel.iter().enumerate() {
        simd.store(*vector, &mut to[index * S::LANES..]);
    }
}

/// A step of all sequences, for the units of some panels.
pub(super) struct Step<'a> {
    pub(super) lstm: &'a Lstm,
    pub(super) panels: Range<usize>,
    /// The row of inputs that belongs to a sequence.
    pub(super) row_of: &'a (dyn Fn(usize) -> usize + Sync),
    pub(super) of_input: &'a [f32],
    pub(super) before: &'a [f32],
    /// `[batch, units]`, of which those of these panels are nobody else's; as are the next ones.
    pub(super) cells: &'a DisjointOutput<'a, f32>,
    pub(super) hiddens: &'a DisjointOutput<'a, f32>,
    /// `[batch, columns]`, for normalisation.
    pub(super) sums: &'a DisjointOutput<'a, f32>,
}

impl Kernel for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { lstm, panels, row_of, of_input, before, cells, hiddens, sums } = self;
        let (columns, outputs) = (lstm.columns(), lstm.shape.output);
        let width = VECTORS * S::LANES;
        for panel in panels {
            for sequence in 0..lstm.shape.batch {
                let of_input = &of_input[row_of(sequence) * columns + panel * width..];
                let mut gates = [[simd.splat(0.0); VECTORS]];
                load_panel(simd, of_input, &mut gates[0]);
                let row = &before[sequence * outputs..(sequence + 1) * outputs];
                lstm.recurrent.add_products(simd, panel, [row], &mut gates);
                let [gates] = gates;
                if lstm.layer_norm.is_some() {
                    let start = sequence * columns + panel * width;
                    // SAFETY: this panel's sums are this task's alone.
                    store_panel(simd, &gates, unsafe { sums.slice(start, width) });
                } else {
                    // SAFETY: this panel's units are this task's alone.
                    unsafe { lstm.update(simd, sequence, panel, gates, cells, hiddens) };
                }
            }
        }
    }
}

/// Normalises the sums of all gates and updates the cells.
pub(super) struct Normalized<'a> {
    pub(super) lstm: &'a Lstm,
    pub(super) sums: &'a DisjointOutput<'a, f32>,
    pub(super) cells: &'a DisjointOutput<'a, f32>,
    pub(super) hiddens: &'a DisjointOutput<'a, f32>,
}

impl Kernel for Normalized<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { lstm, sums, cells, hiddens } = self;
        let columns = lstm.columns();
        let Some(weights) = lstm.layer_norm.as_deref() else { return };
        for sequence in 0..lstm.shape.batch {
            // SAFETY: no other task runs, and no other slice of the sums is held.
            let sums = unsafe { sums.slice(sequence * columns, columns) };
            let block = UNIT_VECTORS * S::LANES;
            // Input, forget and cell gates look at the cell before, the output gate at that after.
            for gate in 0..GATES - 1 {
                lstm.normalize(gate, block, sums, weights, |unit| {
                    // SAFETY: as above.
                    unsafe { cells.slice(sequence * lstm.shape.units, lstm.shape.units)[unit] }
                });
            }
            let output = GATES - 1;
            // The cells come first; the output gate is applied when it is known.
            for panel in 0..lstm.panels {
                let mut gates = [simd.splat(0.0); VECTORS];
                load_panel(simd, &sums[panel * VECTORS * S::LANES..], &mut gates);
                // SAFETY: as above.
                unsafe { lstm.update_cell(simd, sequence, panel, &gates, cells) };
            }
            lstm.normalize(output, block, sums, weights, |unit| {
                // SAFETY: as above.
                unsafe { cells.slice(sequence * lstm.shape.units, lstm.shape.units)[unit] }
            });
            for panel in 0..lstm.panels {
                let mut gates = [simd.splat(0.0); VECTORS];
                load_panel(simd, &sums[panel * VECTORS * S::LANES..], &mut gates);
                // SAFETY: as above.
                unsafe { lstm.update_hidden(simd, sequence, panel, &gates, cells, hiddens) };
            }
        }
    }
}

impl Lstm {
    /// Adds the peephole, normalises the sums of a gate over the units, and adds the bias.
    #[inline(always)]
    #[allow(clippy::cast_precision_loss)] // The rounding does not matter.
    fn normalize(
        &self,
        gate: usize,
        block: usize,
        sums: &mut [f32],
        weights: &[f32],
        cell: impl Fn(usize) -> f32,
    ) {
        let units = self.shape.units;
        let place = |unit: usize| (unit / block * GATES + gate) * block + unit % block;
        if let Some(peephole) = &self.peephole {
            for unit in 0..units {
                sums[place(unit)] += peephole[place(unit)] * cell(unit);
            }
        }
        let mean = (0..units).map(|unit| sums[place(unit)]).sum::<f32>() / units as f32;
        let square = |unit: usize| (sums[place(unit)] - mean) * (sums[place(unit)] - mean);
        let variance = (0..units).map(square).sum::<f32>() / units as f32;
        let factor = 1.0 / (variance + LEAST_VARIANCE).sqrt();
        for at in (0..units).map(place) {
            sums[at] = (sums[at] - mean) * factor * weights[at] + self.bias[at];
        }
    }

    #[inline(always)]
    fn activated<S: Simd>(&self, simd: S, x: S::F) -> S::F {
        let (zero, six) = (simd.splat(0.0), simd.splat(6.0));
        match self.settings.activation {
            Activation::None => x,
            Activation::Relu => simd.max(zero, x),
            Activation::Relu6 => functions::clamp(simd, x, zero, six),
            Activation::Tanh => functions::tanh(simd, x),
            Activation::Sigmoid => functions::logistic(simd, x),
        }
    }

    /// The columns of a gate's peepholes in a panel, or zeros, times cells.
    #[inline(always)]
    fn peek<S: Simd>(&self, simd: S, panel: usize, vector: usize, sum: S::F, cell: S::F) -> S::F {
        match &self.peephole {
            // With normalisation they have been added before.
            Some(peephole) if self.layer_norm.is_none() => {
                let at = (panel * VECTORS + vector) * S::LANES;
                simd.fma(simd.load(&peephole[at..]), cell, sum)
            }
            _ => sum,
        }
    }

    /// The units of one vector of a panel, of a sequence: where they begin, and how many there are.
    #[inline(always)]
    fn units_of<S: Simd>(&self, sequence: usize, panel: usize, vector: usize) -> (usize, usize) {
        let first = (panel * UNIT_VECTORS + vector) * S::LANES;
        let count = self.shape.units.saturating_sub(first).min(S::LANES);
        (sequence * self.shape.units + first.min(self.shape.units), count)
    }

    /// # Safety
    /// The panel's units of the sequence are the caller's alone.
    #[inline(always)]
    unsafe fn update<S: Simd>(
        &self,
        simd: S,
        sequence: usize,
        panel: usize,
        gates: [S::F; VECTORS],
        cells: &DisjointOutput<'_, f32>,
        hiddens: &DisjointOutput<'_, f32>,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            self.update_cell(simd, sequence, panel, &gates, cells);
            self.update_hidden(simd, sequence, panel, &gates, cells, hiddens);
        }
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
        let clip = self.settings.cell_clip;
        for vector in 0..UNIT_VECTORS {
            let gate = |gate: usize| gate * UNIT_VECTORS + vector;
            let (start, count) = self.units_of::<S>(sequence, panel, vector);
            // SAFETY: as the caller promises.
            let cell = unsafe { cells.slice(start, count) };
            let before = simd.load_partial(cell, 0.0);
            let forget = self.peek(simd, panel, gate(1), gates[gate(1)], before);
            let forget = functions::logistic(simd, forget);
            let input = if self.is_coupled {
                simd.sub(simd.splat(1.0), forget)
            } else {
                let input = self.peek(simd, panel, gate(0), gates[gate(0)], before);
                functions::logistic(simd, input)
            };
            let candidate = self.activated(simd, gates[gate(2)]);
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
        for vector in 0..UNIT_VECTORS {
            let gate = (GATES - 1) * UNIT_VECTORS + vector;
            let (start, count) = self.units_of::<S>(sequence, panel, vector);
            // SAFETY: as the caller promises.
            let (cell, hidden) =
                unsafe { (cells.slice(start, count), hiddens.slice(start, count)) };
            let cell = simd.load_partial(cell, 0.0);
            let output = functions::logistic(simd, self.peek(simd, panel, gate, gates[gate], cell));
            simd.store_partial(simd.mul(output, self.activated(simd, cell)), hidden);
        }
    }
}

/// The projection of what came out of the cells.
pub(super) struct Project<'a> {
    pub(super) lstm: &'a Lstm,
    pub(super) projection: &'a Packed,
    pub(super) panels: Range<usize>,
    pub(super) hidden: &'a [f32],
    /// `[batch, output]`, of which those of these panels are nobody else's.
    pub(super) output: &'a DisjointOutput<'a, f32>,
}

impl Kernel for Project<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { lstm, projection, panels, hidden, output } = self;
        let (units, outputs) = (lstm.shape.units, lstm.shape.output);
        let clip = lstm.settings.projection_clip;
        for panel in panels {
            let first = panel * VECTORS * S::LANES;
            for sequence in 0..lstm.shape.batch {
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
