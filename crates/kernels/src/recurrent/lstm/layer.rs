//! An LSTM as a [`Layer`]: how its steps are shared among threads.

use super::step::{Normalized, Project, Step};
use super::{GATES, Lstm, Shape};
use crate::disjoint::DisjointOutput;
use crate::prepared::multiply_adds;
use crate::recurrent::contribution::Contribution;
use crate::recurrent::layer::{Layer, States};
use crate::recurrent::sequences::{Rows, Sequences, Steps, Workers};
use crate::team::Team;

impl Layer for Lstm {
    const NAME: &'static str = "lstm";
    const STATES: usize = 2;
    const HAS_SCRATCH_OUTPUT: bool = true;

    fn operations(&self) -> u64 {
        let inputs = self.contributions.iter().flatten().map(Contribution::operations);
        let steps = multiply_adds(&[self.shape.sequences.rows(), self.step_weights()]);
        steps.saturating_add(inputs.sum())
    }

    fn sequences(&self) -> Sequences {
        self.shape.sequences
    }

    fn output_size(&self) -> usize {
        self.shape.output
    }

    fn contributions(&self) -> usize {
        let scratch = self.contributions.iter().flatten().map(Contribution::scratch_elements).max();
        self.by_gate().saturating_mul(GATES).saturating_add(scratch.unwrap_or(0))
    }

    fn step_scratch(&self) -> usize {
        let Shape { sequences, units, output, .. } = self.shape;
        // The outputs of two steps; what comes out of the cells; sums to be normalized.
        let by_sequence = 2 * output + units + GATES * units;
        sequences.batch.saturating_mul(by_sequence)
    }

    fn step_products(&self) -> usize {
        self.shape.sequences.batch.saturating_mul(self.step_weights())
    }

    fn contribute(&self, team: &mut Team, steps: Steps<'_>, to: &mut [f32]) {
        let (to, scratch) = to.split_at_mut(self.by_gate() * GATES);
        let by_gate = self.by_gate().max(1);
        for (contribution, to) in self.contributions.iter().zip(to.chunks_exact_mut(by_gate)) {
            if let Some(contribution) = contribution {
                contribution.run(team, steps, to, scratch);
            }
        }
    }

    fn take_steps(
        &self,
        mut workers: Workers<'_>,
        contributions: &[f32],
        [output_state, cell]: States<'_>,
        mut output: Rows<'_>,
        scratch: &mut [f32],
    ) {
        let Shape { sequences: Sequences { batch, time, .. }, units, output: outputs, .. } =
            self.shape;
        assert_eq!(Some(output_state.len()), batch.checked_mul(outputs), "another output state");
        assert_eq!(Some(cell.len()), batch.checked_mul(units), "another cell state");
        assert!(scratch.len() >= self.step_scratch(), "too little scratch");
        if batch == 0 || units == 0 {
            return;
        }
        let (sums, scratch) = scratch.split_at_mut(batch * GATES * units);
        let (hidden, scratch) = scratch.split_at_mut(batch * units);
        let (mut before, rest) = scratch.split_at_mut(batch * outputs);
        let mut after = &mut rest[..batch * outputs];
        before.copy_from_slice(output_state);
        for step in 0..time {
            let (cells, sums) = (DisjointOutput::new(cell), DisjointOutput::new(sums));
            let hiddens = match &self.projection {
                Some(_) => DisjointOutput::new(hidden),
                None => DisjointOutput::new(after),
            };
            let products = batch * self.recurrent.products();
            workers.share(self.recurrent.panels(), products, &|panels, stop| {
                self.isa.run(Step {
                    lstm: self,
                    panels,
                    step,
                    contributions,
                    before,
                    cells: &cells,
                    hiddens: &hiddens,
                    sums: &sums,
                    stop,
                });
            });
            if let Some(weights) = &self.layer_norm {
                let (cells, hiddens, sums) = (&cells, &hiddens, &sums);
                self.isa.run(Normalized { lstm: self, weights, sums, cells, hiddens });
            }
            if let Some(projection) = &self.projection {
                let output = DisjointOutput::new(after);
                let (hidden, output) = (&*hidden, &output);
                let products = batch * projection.products();
                workers.share(projection.panels(), products, &|panels, stop| {
                    self.isa.run(Project { lstm: self, projection, panels, hidden, output, stop });
                });
            }
            for (sequence, after) in after.chunks_exact(outputs.max(1)).enumerate() {
                output.write(self.shape.sequences.row(sequence, step), after);
            }
            std::mem::swap(&mut before, &mut after);
        }
        output_state.copy_from_slice(before);
    }
}
