//! [`Lstm8`]: signed numbers of 8 bits in and out, and 16 bits within. The formulas are those of
//! [`Lstm`](crate::recurrent::Lstm) with the hyperbolic tangent for the activation.
//!
//! Steps of what is inside: a gate before its activation 2^-12 (but before layer normalization, its
//! own scale), an activation 2^-15, the cell a power of two.
//!
//! Every matrix product and every peephole is brought to the gate's scale, rounded, added, and
//! saturated to 16 bits, in this order: input, output before, cell. The gate's bias is added to the
//! first product before it is rounded; with layer normalization it is added after that instead.
#![allow(unsafe_code)]

use super::fixed_point::{logistic, tanh};
use super::matrix::{Matrix, Products, rows_between};
use super::normalization::normalize;
use super::{ACTIVATION, GATE_BITS, Step, StepShape, center, for_all, multiply_all, saturate_16};
use crate::disjoint::DisjointOutput;
use crate::recurrent::sequences::Workers;
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Multiplier, Preparation, TooLarge};

const GATES: usize = 4;

/// Weights, and what brings products with them to the scale that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a, T> {
    /// The stored numbers.
    pub weights: &'a [T],
    /// The factor.
    pub multiplier: Multiplier,
}

/// The weights of a gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate8<'a> {
    /// `[units, input]`
    pub input: Term<'a, i8>,
    /// `[units, output]`
    pub recurrent: Term<'a, i8>,
    /// `[units]`; not used for the cell.
    pub peephole: Option<Term<'a, i16>>,
    /// `[units]`
    pub layer_norm: Option<Term<'a, i16>>,
    /// `[units]`
    pub bias: &'a [i32],
}

/// What becomes of what comes out of the cell.
#[derive(Debug, Clone, Copy)]
pub struct Projection8<'a> {
    /// `[output, units]`
    pub weights: Term<'a, i8>,
    /// `[output]`
    pub bias: Option<&'a [i32]>,
}

/// All weights.
#[derive(Debug, Clone, Copy)]
pub struct Weights8<'a> {
    /// The input gate; `None` couples it to the forget gate.
    pub input: Option<Gate8<'a>>,
    /// The forget gate.
    pub forget: Gate8<'a>,
    /// What goes into the cell.
    pub cell: Gate8<'a>,
    /// The output gate.
    pub output: Gate8<'a>,
    /// `None`: what comes out of the cell is the output.
    pub projection: Option<Projection8<'a>>,
}

/// Scales and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings8 {
    /// Which input is 0.
    pub input_zero_point: i8,
    /// Which output is 0.
    pub output_zero_point: i8,
    /// Which number is 0 before the projection.
    pub hidden_zero_point: i8,
    /// From products of activations to numbers before the projection.
    pub hidden: Multiplier,
    /// The exponent of the power of two that is the cell's scale, from -15 to -9.
    pub cell_exponent: i32,
    /// The cell stays within this many steps of 0.
    pub cell_clip: Option<i32>,
    /// The projected output stays within this many steps of 0.
    pub projection_clip: Option<i32>,
}

/// A prepared LSTM.
#[derive(Debug)]
pub struct Lstm8 {
    isa: Isa,
    pub(in super::super) shape: StepShape,
    settings: Settings8,
    /// Input, forget, cell, output.
    gates: [Option<Gate>; GATES],
    projection: Option<(Weighted, Vec<i32>)>,
}

#[derive(Debug)]
struct Weighted {
    matrix: Matrix<i8>,
    multiplier: Multiplier,
}

#[derive(Debug)]
struct Gate {
    input: Weighted,
    recurrent: Weighted,
    peephole: Option<(Vec<i16>, Multiplier)>,
    layer_norm: Option<(Vec<i16>, Multiplier)>,
    bias: Vec<i32>,
}

impl Weighted {
    fn new(
        preparation: &mut Preparation,
        term: Term<'_, i8>,
        [rows, inputs]: [usize; 2],
    ) -> Result<Self, TooLarge> {
        let too_large = TooLarge::beyond_addresses("packed weights");
        let expected = rows.checked_mul(inputs).ok_or(too_large)?;
        preparation.check_count(term.weights.len(), expected, "weights");
        let matrix = Matrix::new(preparation, [rows, inputs], |row, to| {
            to.copy_from_slice(&term.weights[row * inputs..][..inputs]);
        })?;
        Ok(Self { matrix, multiplier: term.multiplier })
    }

    /// The products of some rows with numbers, started from `start`, and rounded.
    fn products(
        &self,
        isa: Isa,
        rows: std::ops::Range<usize>,
        numbers: &[i16],
        start: Option<&[i32]>,
        to: &mut [i32],
    ) {
        match start {
            Some(start) => to.copy_from_slice(&start[rows.clone()]),
            None => to.fill(0),
        }
        let Self { matrix, multiplier } = self;
        isa.run(Products { matrix, rows, numbers, sums: to, multiplier: *multiplier });
    }
}

impl Lstm8 {
    /// Packs the weights.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If weights have not the sizes that the shape says, the output is not as long as the cell though
    /// there is no projection, or the cell's exponent is another.
    pub fn prepare(
        shape: StepShape,
        weights: &Weights8<'_>,
        settings: Settings8,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let StepShape { input, units, output, .. } = shape;
        assert!((-15..=-9).contains(&settings.cell_exponent), "another scale of the cell");
        let gates = [weights.input, Some(weights.forget), Some(weights.cell), Some(weights.output)];
        let mut prepared = [const { None }; GATES];
        for (gate, prepared) in gates.iter().zip(&mut prepared) {
            let Some(gate) = gate else { continue };
            let vector = |preparation: &mut Preparation, term: Option<Term<'_, i16>>| {
                let Some(Term { weights, multiplier }) = term else { return Ok(None) };
                assert_eq!(weights.len(), units, "not a weight for each unit");
                Ok(Some((preparation.copied(weights, "weights of units")?, multiplier)))
            };
            assert_eq!(gate.bias.len(), units, "not a bias for each unit");
            let (of_input, of_output) = ([units, input], [units, output]);
            *prepared = Some(Gate {
                input: Weighted::new(preparation, gate.input, of_input)?,
                recurrent: Weighted::new(preparation, gate.recurrent, of_output)?,
                peephole: vector(preparation, gate.peephole)?,
                layer_norm: vector(preparation, gate.layer_norm)?,
                bias: preparation.copied(gate.bias, "a bias")?,
            });
        }
        let projection = match weights.projection {
            Some(Projection8 { weights, bias }) => {
                assert!(bias.is_none_or(|bias| bias.len() == output), "a bias of another size");
                let weights = Weighted::new(preparation, weights, [output, units])?;
                let bias = match bias {
                    Some(bias) => preparation.copied(bias, "a bias")?,
                    None => preparation.filled(0, output, "a bias")?,
                };
                Some((weights, bias))
            }
            None => None,
        };
        assert!(projection.is_some() || units == output, "the output is the cell's");
        let isa = Isa::of(preparation.set());
        let prepared = Self { isa, shape, settings, gates: prepared, projection };
        preparation.check_scratch::<i32>(&[prepared.scratch_elements()])?;
        Ok(prepared)
    }

    /// How many numbers of scratch a run wants.
    pub fn scratch_elements(&self) -> usize {
        let StepShape { batch, units, .. } = self.shape;
        // Numbers that are multiplied, two in each; the sums of all gates; of a projection.
        let by_sequence = GATES * units + self.numbers();
        batch.saturating_mul(by_sequence).saturating_add(self.shape.output.max(units))
    }

    /// Elements for numbers that are multiplied: inputs and outputs before, or those before the
    /// projection.
    fn numbers(&self) -> usize {
        let StepShape { input, units, output, .. } = self.shape;
        input.div_ceil(2) + output.div_ceil(2) + units.div_ceil(2)
    }

    /// How many weights there are.
    pub(in super::super) fn weights(&self) -> usize {
        let gates = self.gates.iter().flatten();
        let weights: usize =
            gates.map(|gate| gate.input.matrix.count() + gate.recurrent.matrix.count()).sum();
        weights + self.projection.as_ref().map_or(0, |(it, _)| it.matrix.count())
    }

    /// Takes a step.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for, or there is too little scratch.
    pub fn run(&self, team: &mut Team, step: Step<'_, i8>, scratch: &mut [i32]) {
        let StepShape { batch, input, units, output } = self.shape;
        step.check(self.shape);
        if batch == 0 || units == 0 || output == 0 {
            return;
        }
        let (sums, scratch) = scratch.split_at_mut(batch * GATES * units);
        let (numbers, spare) = scratch.split_at_mut(batch * self.numbers());
        let numbers: &mut [i16] = bytemuck::cast_slice_mut(numbers);
        let stride = 2 * self.numbers();
        let outputs_at = input.next_multiple_of(2);
        let Settings8 { input_zero_point, output_zero_point, .. } = self.settings;
        let mut pace = team.pace();
        for (sequence, numbers) in numbers.chunks_exact_mut(stride).enumerate() {
            let inputs = &step.input[sequence * input..][..input];
            center(&mut pace, inputs, input_zero_point.into(), numbers);
            let outputs = &step.output_before[sequence * output..][..output];
            center(&mut pace, outputs, output_zero_point.into(), &mut numbers[outputs_at..]);
        }
        self.add_gates(team, numbers, stride, sums);
        let hidden_at = outputs_at + output.next_multiple_of(2);
        let mut pace = team.pace();
        for (sequence, sums) in sums.chunks_exact_mut(GATES * units).enumerate() {
            let before = &step.cell_before[sequence * units..][..units];
            let cell = &mut step.cell[sequence * units..][..units];
            let hidden = &mut numbers[sequence * stride + hidden_at..][..units];
            if pace.is_over(GATES * ACTIVATION) {
                return;
            }
            let pace = &mut pace;
            self.isa.run(Update { lstm: self, sums, before, cell, hidden, pace });
            let to = &mut step.output[sequence * output..][..output];
            match &self.projection {
                None => {
                    for block in pace.blocks(output, 1) {
                        let hidden = &hidden[block.clone()];
                        store(&mut to[block], hidden.iter().copied().map(i32::from));
                    }
                }
                Some((weights, bias)) => {
                    let spare = &mut spare[..output];
                    for rows in rows_between(0..output, units) {
                        if pace.is_over(rows.len() * units) {
                            return;
                        }
                        let sums = &mut spare[rows.clone()];
                        weights.products(self.isa, rows, hidden, Some(bias), sums);
                    }
                    let zero_point = i32::from(output_zero_point);
                    let stored = spare.iter().map(|sum| sum.saturating_add(zero_point));
                    let stored = stored.map(|number| number.clamp(-128, 127));
                    let clip = self.settings.projection_clip;
                    store(to, stored.map(|number| clipped(number, clip)));
                }
            }
        }
    }

    /// The products of all gates with inputs and outputs before.
    fn add_gates(&self, team: &mut Team, numbers: &[i16], stride: usize, sums: &mut [i32]) {
        let StepShape { batch, input, units, output } = self.shape;
        let sums = DisjointOutput::new(sums);
        let products = batch.saturating_mul(self.weights());
        Workers::Team(team).share(units, products, &|part, stop| {
            let mut pace = Pace::new(stop);
            for (index, gate) in self.gates.iter().enumerate() {
                let Some(gate) = gate else { continue };
                for sequence in 0..batch {
                    for part in rows_between(part.clone(), input + output) {
                        if pace.is_over(part.len() * (input + output)) {
                            return;
                        }
                        let at = (sequence * GATES + index) * units + part.start;
                        // SAFETY: parts have different units.
                        let sums = unsafe { sums.slice(at, part.len()) };
                        let numbers = &numbers[sequence * stride..];
                        let outputs = &numbers[input.next_multiple_of(2)..][..output];
                        gate.add(self.isa, part, &numbers[..input], outputs, sums);
                    }
                }
            }
        });
    }
}

impl Gate {
    /// The products of some units with inputs and outputs before.
    fn add(
        &self,
        isa: Isa,
        units: std::ops::Range<usize>,
        inputs: &[i16],
        outputs: &[i16],
        sums: &mut [i32],
    ) {
        let bias = self.layer_norm.is_none().then_some(&self.bias[..]);
        self.input.products(isa, units.clone(), inputs, bias, sums);
        let mut some = [0; 64];
        for (first, sums) in (units.start..).step_by(some.len()).zip(sums.chunks_mut(some.len())) {
            let some = &mut some[..sums.len()];
            let rows = first..first + sums.len();
            self.recurrent.products(isa, rows, outputs, None, some);
            for (sum, recurrent) in sums.iter_mut().zip(some) {
                *sum = saturate_16(recurrent.saturating_add(saturate_16(*sum)));
            }
        }
    }

    /// What goes into the gate's activation: what it sees of the cell, and the normalization.
    fn finish(&self, pace: &mut Pace<'_>, cell: &[i16], sums: &mut [i32]) {
        if let Some((weights, multiplier)) = &self.peephole {
            for block in pace.blocks(sums.len(), ACTIVATION) {
                let of_block = sums[block.clone()].iter_mut().zip(&weights[block.clone()]);
                for ((sum, weight), cell) in of_block.zip(&cell[block]) {
                    let product = multiplier.apply(i32::from(*weight) * i32::from(*cell));
                    *sum = saturate_16(product.saturating_add(*sum));
                }
            }
        }
        if let Some((weights, multiplier)) = &self.layer_norm {
            normalize(pace, sums, weights, &self.bias, *multiplier);
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // Clamped before.
fn store(to: &mut [i8], numbers: impl Iterator<Item = i32>) {
    for (to, number) in to.iter_mut().zip(numbers) {
        *to = number as i8;
    }
}

/// Within a distance of 0, if there is one.
fn clipped(number: i32, distance: Option<i32>) -> i32 {
    distance.map_or(number, |distance| number.clamp(-distance, distance))
}

/// Rounded to nearest, halves away from zero; magnitudes up to 2^30.
#[inline(always)]
fn divide_by_power_of_two(value: i32, exponent: u32) -> i32 {
    (value + (1 << (exponent - 1)) + (value >> 31)) >> exponent
}

/// What gates let through.
#[inline(always)]
fn open<S: Simd>(pace: &mut Pace<'_>, simd: S, sums: &mut [i32]) {
    for_all(pace, simd, sums, |it| logistic(simd, it, GATE_BITS));
}

/// The cells of a sequence, and what comes out of them.
struct Update<'a, 'p> {
    lstm: &'a Lstm8,
    /// Of all gates.
    sums: &'a mut [i32],
    before: &'a [i16],
    cell: &'a mut [i16],
    /// Before the projection less its zero point, or the output.
    hidden: &'a mut [i16],
    pace: &'a mut Pace<'p>,
}

impl Kernel for Update<'_, '_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // Saturated before.
    fn run<S: Simd>(self, simd: S) {
        let Self { lstm, sums, before, cell, hidden, pace } = self;
        let Settings8 { cell_exponent, cell_clip, hidden: to_hidden, .. } = lstm.settings;
        let units = lstm.shape.units;
        let (entering, sums) = sums.split_at_mut(units);
        let (staying, sums) = sums.split_at_mut(units);
        let (candidates, leaving) = sums.split_at_mut(units);
        let [input, forget, candidate, output] = &lstm.gates;
        for (gate, sums) in [(input, &mut *entering), (forget, &mut *staying)] {
            if let Some(gate) = gate {
                gate.finish(pace, before, sums);
                open(pace, simd, sums);
            }
        }
        if input.is_none() {
            for block in pace.blocks(units, 1) {
                for (entering, staying) in entering[block.clone()].iter_mut().zip(&staying[block]) {
                    *entering = i32::from(i16::MAX) - staying;
                }
            }
        }
        if let Some(gate) = candidate {
            gate.finish(pace, before, candidates);
        }
        for_all(pace, simd, candidates, |it| tanh(simd, it, GATE_BITS));
        // Both activations have 15 bits behind the point.
        let shift = (30 + cell_exponent).unsigned_abs();
        for block in pace.blocks(units, ACTIVATION) {
            let cells = cell[block.clone()].iter_mut().zip(&before[block.clone()]);
            let gates = staying[block.clone()].iter().zip(&entering[block.clone()]);
            let candidates = &mut candidates[block];
            for (((cell, before), (staying, entering)), candidate) in
                cells.zip(gates).zip(candidates)
            {
                let kept = divide_by_power_of_two(staying * i32::from(*before), 15);
                let entering = divide_by_power_of_two(entering * *candidate, shift);
                *cell = clipped(saturate_16(kept + entering), cell_clip) as i16;
                *candidate = i32::from(*cell);
            }
        }
        if let Some(gate) = output {
            gate.finish(pace, cell, leaving);
        }
        open(pace, simd, leaving);
        let integer_bits = (15 + cell_exponent).unsigned_abs();
        for_all(pace, simd, candidates, |it| tanh(simd, it, integer_bits));
        let zero_point = i32::from(lstm.settings.hidden_zero_point);
        let is_projected = lstm.projection.is_some();
        for block in pace.blocks(units, ACTIVATION) {
            let leaving = &mut leaving[block.clone()];
            for (leaving, candidate) in leaving.iter_mut().zip(&candidates[block.clone()]) {
                *leaving *= candidate;
            }
            multiply_all(to_hidden, leaving);
            for (hidden, number) in hidden[block].iter_mut().zip(&*leaving) {
                // With a projection the zero point is taken with the other sign, and back: what 8 bits
                // saturate is on the other side.
                *hidden = if is_projected {
                    (number.saturating_sub(zero_point).clamp(-128, 127) + zero_point) as i16
                } else {
                    number.saturating_add(zero_point).clamp(-128, 127) as i16
                };
            }
        }
    }
}
