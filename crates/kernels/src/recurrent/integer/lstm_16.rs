//! [`Lstm16`]: unsigned numbers of 8 bits in and out, of which 128 is 0, and a cell of 16.
//!
//! ```text
//! gate   = bias + [recurrent weights | weights] * [input | output before], in steps of 2^-12
//! cell'  = logistic(forget gate) * cell + logistic(input gate) * tanh(cell gate)
//! output = logistic(output gate) * tanh(cell')
//! ```
//!
//! The two matrices of a gate are one, the recurrent weights on the left, and so are the two vectors,
//! but the input first.
#![allow(unsafe_code)]

use super::fixed_point::{logistic, product, saturate, tanh};
use super::matrix::{Matrix, Products, rows_between};
use super::{ACTIVATION, GATE_BITS, Step, StepShape, center, load, saturate_16};
use crate::disjoint::DisjointOutput;
use crate::multiplier::divide_vector_by_power_of_two;
use crate::recurrent::sequences::Workers;
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Multiplier, Preparation, TooLarge};

/// Bits before the point of the cell.
const CELL_BITS: u32 = 4;

/// Where 0 is.
const ZERO: i16 = 128;

/// The weights of a gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate16<'a> {
    /// `[units, input]`
    pub input: &'a [u8],
    /// `[units, units]`
    pub recurrent: &'a [u8],
    /// `[units]`
    pub bias: &'a [i32],
}

/// What all gates have besides.
#[derive(Debug, Clone, Copy)]
pub struct Settings16 {
    /// Which weight is 0.
    pub zero_point: u8,
    /// From products to steps of 2^-12.
    pub multiplier: Multiplier,
}

/// A prepared LSTM.
#[derive(Debug)]
pub struct Lstm16 {
    isa: Isa,
    pub(in super::super) shape: StepShape,
    multiplier: Multiplier,
    /// Of all gates: input, forget, cell, output.
    matrix: Matrix<i16>,
    bias: Vec<i32>,
}

impl Lstm16 {
    /// Packs the weights of input gate, forget gate, cell and output gate.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If weights have not the sizes that the shape says, or the output is not as long as the cell.
    pub fn prepare(
        shape: StepShape,
        gates: [Gate16<'_>; 4],
        settings: Settings16,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let StepShape { input, units, output, .. } = shape;
        assert_eq!(units, output, "the output is the cell's");
        let size = |a: usize, b: usize| a.checked_mul(b).expect("weights beyond memory");
        for gate in gates {
            preparation.check_count(gate.input.len(), size(units, input), "weights");
            preparation.check_count(gate.recurrent.len(), size(units, units), "recurrent weights");
            assert_eq!(gate.bias.len(), units, "not a bias for each unit");
        }
        let inputs = units.checked_add(input).expect("weights beyond memory");
        let zero_point = i16::from(settings.zero_point);
        let matrix = Matrix::new(preparation, [size(gates.len(), units), inputs], |row, to| {
            let (gate, unit) = (gates[row / units], row % units);
            let recurrent = &gate.recurrent[unit * units..][..units];
            let from = recurrent.iter().chain(&gate.input[unit * input..][..input]);
            for (to, from) in to.iter_mut().zip(from) {
                *to = i16::from(*from) - zero_point;
            }
        })?;
        let mut bias = preparation.room(size(gates.len(), units), "a bias")?;
        bias.extend(gates.iter().flat_map(|gate| gate.bias));
        let prepared = Self {
            isa: Isa::of(preparation.set()),
            shape,
            multiplier: settings.multiplier,
            matrix,
            bias,
        };
        preparation.check_scratch::<i32>(&[prepared.scratch_elements()])?;
        Ok(prepared)
    }

    /// How many weights there are.
    pub(in super::super) fn weights(&self) -> usize {
        self.matrix.count()
    }

    /// How many numbers of scratch a run wants.
    pub fn scratch_elements(&self) -> usize {
        let StepShape { batch, input, units, .. } = self.shape;
        // The numbers that are multiplied, two in each, and the sums of all gates.
        let by_sequence = (units + input).div_ceil(2).saturating_add(self.bias.len());
        batch.saturating_mul(by_sequence)
    }

    /// Takes a step.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for, or there is too little scratch.
    pub fn run(&self, team: &mut Team, step: Step<'_, u8>, scratch: &mut [i32]) {
        let StepShape { batch, input, units, .. } = self.shape;
        step.check(self.shape);
        let (numbers, rest) = scratch.split_at_mut(batch * (units + input).div_ceil(2));
        let sums = &mut rest[..batch * self.bias.len()];
        if sums.is_empty() {
            return;
        }
        let stride = 2 * (units + input).div_ceil(2);
        let numbers: &mut [i16] = bytemuck::cast_slice_mut(numbers);
        let before =
            step.input.chunks_exact(input.max(1)).zip(step.output_before.chunks_exact(units));
        let mut pace = team.pace();
        for (numbers, (of_input, of_output)) in numbers.chunks_exact_mut(stride).zip(before) {
            center(&mut pace, of_input, ZERO, numbers);
            center(&mut pace, of_output, ZERO, &mut numbers[input..]);
        }
        let (numbers, rows) = (&*numbers, self.bias.len());
        let all_sums = DisjointOutput::new(&mut *sums);
        let multiplier = self.multiplier;
        Workers::Team(team).share(rows, batch * self.matrix.count(), &|part, stop| {
            let mut pace = Pace::new(stop);
            for sequence in 0..batch {
                for part in rows_between(part.clone(), units + input) {
                    if pace.is_over(part.len() * (units + input)) {
                        return;
                    }
                    let start = sequence * rows + part.start;
                    // SAFETY: parts have different rows.
                    let sums = unsafe { all_sums.slice(start, part.len()) };
                    sums.copy_from_slice(&self.bias[part.clone()]);
                    let numbers = &numbers[sequence * stride..][..units + input];
                    let (matrix, rows) = (&self.matrix, part);
                    self.isa.run(Products { matrix, rows, numbers, sums, multiplier });
                    for sum in sums {
                        *sum = saturate_16(*sum);
                    }
                }
            }
        });
        let cells = step.cell.chunks_exact_mut(units).zip(step.cell_before.chunks_exact(units));
        let outputs = step.output.chunks_exact_mut(units);
        let mut pace = team.pace();
        for ((sums, (cell, before)), output) in sums.chunks_exact_mut(rows).zip(cells).zip(outputs)
        {
            let pace = &mut pace;
            self.isa.run(Update { units, sums, before, cell, output, pace });
        }
    }
}

/// The cells and outputs of a sequence.
struct Update<'a, 'p> {
    units: usize,
    /// Of all gates.
    sums: &'a mut [i32],
    before: &'a [i16],
    cell: &'a mut [i16],
    output: &'a mut [u8],
    pace: &'a mut Pace<'p>,
}

impl Kernel for Update<'_, '_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturated before.
    fn run<S: Simd>(self, simd: S) {
        let Self { units, sums, before, cell, output, pace } = self;
        for start in (0..units).step_by(S::LANES) {
            let count = S::LANES.min(units - start);
            if pace.is_over(S::LANES * 4 * ACTIVATION) {
                return;
            }
            let [input, forget, candidate, leaving] =
                [0, 1, 2, 3].map(|gate| &sums[gate * units + start..][..count]);
            let mut all = [0; 16];
            for (to, from) in all.iter_mut().zip(&before[start..start + count]) {
                *to = i32::from(*from);
            }
            let kept =
                product(simd, logistic(simd, load(simd, forget), GATE_BITS), simd.iload(&all));
            let candidate = tanh(simd, load(simd, candidate), GATE_BITS);
            let candidate = product(simd, logistic(simd, load(simd, input), GATE_BITS), candidate);
            let candidate = divide_vector_by_power_of_two(simd, candidate, CELL_BITS);
            let after = saturate(simd, simd.iadd(candidate, kept));
            simd.istore(after, &mut all);
            for (to, from) in cell[start..start + count].iter_mut().zip(all) {
                *to = from as i16;
            }
            // As much as tanh wants to distinguish fits 3 integer bits.
            let in_gate_bits = saturate(simd, simd.shift_left(after, 1));
            let result = tanh(simd, in_gate_bits, GATE_BITS);
            let result = product(simd, logistic(simd, load(simd, leaving), GATE_BITS), result);
            let stored = divide_vector_by_power_of_two(simd, result, 8);
            simd.istore(stored, &mut all);
            for (to, from) in output[start..start + count].iter_mut().zip(all) {
                *to = (from.clamp(-128, 127) + 128) as u8;
            }
        }
    }
}
