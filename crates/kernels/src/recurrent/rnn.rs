//! [`Rnn`]: the basic recurrent layer, `h' = activation(W x + A a + R h + b)`, with the input `x`, the
//! auxiliary input `a` where it has weights, and the output `h` of the step before.
#![allow(unsafe_code)]

use super::activation::{Activate, Activation};
use super::contribution::Contribution;
use super::layer::{Layer, States, scratch_elements};
use super::packed::{Packed, ROWS};
use super::sequences::{Rows, Sequences, Steps, Workers};
use crate::disjoint::DisjointOutput;
use crate::prepared::multiply_adds;
use crate::team::{Pace, Stop, Team};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Preparation, TooLarge};
use std::ops::Range;

/// Most vectors of a panel.
const MOST_VECTORS: usize = 8;

/// The sizes of a basic recurrent layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RnnShape {
    /// The steps.
    pub sequences: Sequences,
    /// Elements of an input.
    pub input: usize,
    /// Elements of an auxiliary input.
    pub auxiliary: usize,
    /// Elements of the output.
    pub units: usize,
}

/// The weights of a basic recurrent layer.
#[derive(Debug, Clone, Copy)]
pub struct RnnWeights<'a> {
    /// `[units, input]`
    pub input: &'a [f32],
    /// `[units, auxiliary]`
    pub auxiliary: Option<&'a [f32]>,
    /// `[units, units]`
    pub recurrent: &'a [f32],
    /// `[units]`
    pub bias: &'a [f32],
}

/// A prepared basic recurrent layer.
#[derive(Debug)]
pub struct Rnn {
    isa: Isa,
    shape: RnnShape,
    contribution: Contribution,
    /// Vectors of a panel: 1, 2, 4 or 8.
    vectors: usize,
    recurrent: Packed,
    activation: Activation,
}

impl Rnn {
    /// Packs the weights.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If weights have not the sizes that the shape says.
    pub fn prepare(
        shape: RnnShape,
        weights: &RnnWeights<'_>,
        activation: Activation,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let RnnShape { sequences, input, auxiliary, units } = shape;
        let RnnWeights { bias, recurrent, .. } = *weights;
        assert_eq!(bias.len(), units, "not a bias for each unit");
        let expected = units.checked_mul(units).expect("weights beyond memory");
        preparation.check_count(recurrent.len(), expected, "recurrent weights");
        let isa = Isa::of(preparation.set());
        // Several panels for each thread, of which each has sums enough in flight.
        let wanted = units.div_ceil(isa.lanes()).div_ceil(preparation.threads());
        let vectors = wanted.next_power_of_two().clamp(1, MOST_VECTORS);
        let contribution = Contribution::prepare(
            sequences.rows(),
            bias,
            (weights.input, input),
            weights.auxiliary.map(|weights| (weights, auxiliary)),
            preparation,
        )?;
        let recurrent = Packed::new(preparation, vectors, &[Some(recurrent)], [units, units])?;
        let prepared = Self { isa, shape, contribution, vectors, recurrent, activation };
        preparation.check_scratch::<f32>(&[scratch_elements(&prepared)])?;
        Ok(prepared)
    }
}

impl Layer for Rnn {
    const NAME: &'static str = "rnn";
    const STATES: usize = 1;
    const HAS_SCRATCH_OUTPUT: bool = false;

    fn operations(&self) -> u64 {
        let RnnShape { sequences, units, .. } = self.shape;
        let steps = multiply_adds(&[sequences.rows(), units, units]);
        steps.saturating_add(self.contribution.operations())
    }

    fn sequences(&self) -> Sequences {
        self.shape.sequences
    }

    fn output_size(&self) -> usize {
        self.shape.units
    }

    fn contributions(&self) -> usize {
        self.contribution.elements().saturating_add(self.contribution.scratch_elements())
    }

    fn step_scratch(&self) -> usize {
        // The outputs of two steps.
        self.shape.sequences.batch.saturating_mul(2 * self.shape.units)
    }

    fn step_products(&self) -> usize {
        self.shape.sequences.batch.saturating_mul(self.recurrent.products())
    }

    fn contribute(&self, team: &mut Team, steps: Steps<'_>, to: &mut [f32]) {
        let (to, scratch) = to.split_at_mut(self.contribution.elements());
        self.contribution.run(team, steps, to, scratch);
    }

    fn take_steps(
        &self,
        mut workers: Workers<'_>,
        contributions: &[f32],
        [state, _]: States<'_>,
        mut output: Rows<'_>,
        scratch: &mut [f32],
    ) {
        let RnnShape { sequences: Sequences { batch, time, .. }, units, .. } = self.shape;
        assert_eq!(Some(state.len()), batch.checked_mul(units), "a state of another size");
        assert!(scratch.len() >= self.step_scratch(), "too little scratch");
        if batch == 0 || units == 0 {
            return;
        }
        let (mut before, rest) = scratch.split_at_mut(batch * units);
        let mut after = &mut rest[..batch * units];
        before.copy_from_slice(state);
        for step in 0..time {
            let disjoint = DisjointOutput::new(after);
            workers.share(self.recurrent.panels(), self.step_products(), &|panels, stop| {
                let [first, end] = [panels.start, panels.end]
                    .map(|panel| units.min(panel * self.vectors * self.isa.lanes()));
                let step =
                    Step { rnn: self, panels, step, contributions, before, after: &disjoint, stop };
                match self.vectors {
                    1 => self.isa.run(StepOf::<1>(step)),
                    2 => self.isa.run(StepOf::<2>(step)),
                    4 => self.isa.run(StepOf::<4>(step)),
                    _ => self.isa.run(StepOf::<MOST_VECTORS>(step)),
                }
                for sequence in 0..batch {
                    // SAFETY: these panels' units are this task's alone.
                    let sums = unsafe { disjoint.slice(sequence * units + first, end - first) };
                    self.isa.run(Activate(self.activation, sums));
                }
            });
            for (sequence, after) in after.chunks_exact(units).enumerate() {
                output.write(self.shape.sequences.row(sequence, step), after);
            }
            std::mem::swap(&mut before, &mut after);
        }
        state.copy_from_slice(before);
    }
}

/// A step of all sequences, for the units of some panels.
struct Step<'a> {
    rnn: &'a Rnn,
    panels: Range<usize>,
    /// The number of the step.
    step: usize,
    /// `[rows, units]`
    contributions: &'a [f32],
    before: &'a [f32],
    /// `[batch, units]`, of which those of these panels are no one else's.
    after: &'a DisjointOutput<'a, f32>,
    stop: &'a Stop,
}

/// With panels of this many vectors.
struct StepOf<'a, const VECTORS: usize>(Step<'a>);

impl<const VECTORS: usize> Kernel for StepOf<'_, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let batch = self.0.rnn.shape.sequences.batch;
        let mut pace = Pace::new(self.0.stop);
        for panel in self.0.panels.clone() {
            if pace.is_over(self.0.rnn.recurrent.panel_products() * batch) {
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

impl<const VECTORS: usize> StepOf<'_, VECTORS> {
    /// The sums of the units of a panel of `N` sequences.
    #[inline(always)]
    fn sequences<S: Simd, const N: usize>(&self, simd: S, panel: usize, first: usize) {
        let Step { rnn, step, contributions, before, after, .. } = self.0;
        let RnnShape { sequences, units, .. } = rnn.shape;
        let of_vector = |vector: usize| {
            let start = ((panel * VECTORS + vector) * S::LANES).min(units);
            start..units.min(start + S::LANES)
        };
        let rows: [&[f32]; N] =
            std::array::from_fn(|index| &before[(first + index) * units..][..units]);
        let mut sums = [[simd.splat(0.0); VECTORS]; N];
        for (index, sums) in sums.iter_mut().enumerate() {
            let row = &contributions[sequences.row(first + index, step) * units..][..units];
            for (vector, sum) in sums.iter_mut().enumerate() {
                *sum = simd.load_partial(&row[of_vector(vector)], 0.0);
            }
        }
        rnn.recurrent.add_products(simd, panel, rows, &mut sums);
        for (index, sums) in sums.into_iter().enumerate() {
            for (vector, sum) in sums.into_iter().enumerate() {
                let at = of_vector(vector);
                // SAFETY: this panel's units are this task's alone.
                let after = unsafe { after.slice((first + index) * units + at.start, at.len()) };
                simd.store_partial(sum, after);
            }
        }
    }
}
