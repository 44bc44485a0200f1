//! Basic recurrent layers.

use super::super::*;
use super::{ACTIVATIONS, activate, any, dot, near, sequences, wide};
use crate::InstructionSet;
use crate::preparation::prepared_twice;
use crate::team::Team;
use proptest::prelude::*;

struct Case {
    shape: RnnShape,
    activation: Activation,
    /// Weights of the input, of the auxiliary input, of the state; bias.
    weights: [Vec<f32>; 4],
    /// Input, auxiliary input, state.
    given: [Vec<f32>; 3],
    /// Output, state.
    expected: [Vec<f64>; 2],
}

impl Case {
    fn draw(shape: RnnShape, activation: Activation, seed: u64) -> Self {
        let RnnShape { sequences, input, auxiliary, units } = shape;
        let random = &mut fastrand::Rng::with_seed(seed);
        let rows = sequences.rows();
        let weights = [units * input, units * auxiliary, units * units, units];
        let given = [rows * input, rows * auxiliary, sequences.batch * units];
        // Sums of inputs reach the ends of activations; those of states do not grow from step to step.
        let sizes = [3.0, 3.0, 1.0 / (units as f32).sqrt(), 0.5];
        let weights = [0, 1, 2, 3].map(|it| any(random, weights[it], sizes[it]));
        let given = given.map(|count| any(random, count, 2.0));
        let mut outputs = vec![0.0; rows * units];
        let mut states = Vec::new();
        let [x, a, h] = given.each_ref().map(|values| wide(values));
        let product =
            |weights: &[f32], x: &[f64], unit: usize| dot(&weights[unit * x.len()..][..x.len()], x);
        for sequence in 0..sequences.batch {
            let mut state = h[sequence * units..][..units].to_vec();
            for moment in 0..sequences.time {
                let row = sequences.row(sequence, moment);
                let x = [&x[row * input..][..input], &a[row * auxiliary..][..auxiliary], &state];
                let sum = |unit: usize| {
                    let products = weights.iter().zip(x).map(|(w, x)| product(w, x, unit));
                    products.sum::<f64>() + f64::from(weights[3][unit])
                };
                let sums = (0..units).map(sum);
                state = sums.map(|it| activate(activation, it)).collect();
                outputs[row * units..][..units].copy_from_slice(&state);
            }
            states.extend(state);
        }
        Self { shape, activation, weights, given, expected: [outputs, states] }
    }

    fn prepared(&self, set: InstructionSet, threads: usize) -> Rnn {
        let [input, auxiliary, recurrent, bias] = &self.weights;
        let auxiliary = (self.shape.auxiliary > 0).then_some(&auxiliary[..]);
        let weights = RnnWeights { input, auxiliary, recurrent, bias };
        prepared_twice(set, threads, |preparation| {
            Rnn::prepare(self.shape, &weights, self.activation, preparation)
        })
    }

    fn steps(&self) -> Steps<'_> {
        Steps { input: &self.given[0], auxiliary: &self.given[1] }
    }

    fn check(&self) {
        for set in InstructionSet::available() {
            for threads in [1, 2] {
                let rnn = self.prepared(set, threads);
                let mut state = self.given[2].clone();
                let mut output = vec![9.0; self.expected[0].len()];
                let mut scratch = vec![9.0; scratch_elements(&rnn)];
                let team = &mut Team::new(threads);
                let states = [&mut state[..], &mut []];
                run(&rnn, team, self.steps(), states, &mut output, &mut scratch);
                near(&output, &self.expected[0], &format!("{set} {:?}", self.shape));
                near(&state, &self.expected[1], &format!("{set} {:?}, state", self.shape));
            }
        }
    }
}

#[test]
fn layers_of_all_widths() {
    for (batch, units) in [(1, 1), (1, 17), (4, 40), (1, 70), (2, 130), (1, 300)] {
        let sequences = sequences(batch, 4, false, false);
        for activation in ACTIVATIONS {
            let shape = RnnShape { sequences, input: 9, auxiliary: 0, units };
            Case::draw(shape, activation, 5).check();
        }
    }
}

#[test]
fn two_directions() {
    let forward =
        RnnShape { sequences: sequences(3, 5, true, false), input: 4, auxiliary: 6, units: 9 };
    let backward = RnnShape { sequences: sequences(3, 5, true, true), units: 33, ..forward };
    let cases =
        [Case::draw(forward, Activation::Relu1, 6), Case::draw(backward, Activation::Tanh, 7)];
    for set in InstructionSet::available() {
        for threads in [1, 2, 4] {
            let rnns = cases.each_ref().map(|case| case.prepared(set, threads));
            let mut states = cases.each_ref().map(|case| case.given[2].clone());
            let mut outputs = cases.each_ref().map(|case| vec![9.0; case.expected[0].len()]);
            let scratch: usize = rnns.iter().map(scratch_elements).sum();
            run_both(
                rnns.each_ref(),
                &mut Team::new(threads),
                cases.each_ref().map(Case::steps),
                states.each_mut().map(|state| [&mut state[..], &mut []]),
                Outputs::Separate(outputs.each_mut().map(Vec::as_mut_slice)),
                &mut vec![9.0; scratch],
            );
            for (index, case) in cases.iter().enumerate() {
                near(&outputs[index], &case.expected[0], "output");
                near(&states[index], &case.expected[1], "state");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn layers_of_all_sizes(
        batch in 0..5_usize, time in 0..6_usize, input in 1..9_usize, auxiliary in 0..5_usize,
        units in 1..80_usize, is_time_major: bool, is_backward: bool,
        activation in prop::sample::select(ACTIVATIONS.to_vec()), seed: u64,
    ) {
        let sequences = sequences(batch, time, is_time_major, is_backward);
        Case::draw(RnnShape { sequences, input, auxiliary, units }, activation, seed).check();
    }
}
