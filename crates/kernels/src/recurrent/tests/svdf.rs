//! SVDF layers.

use super::super::*;
use super::{ACTIVATIONS, activate, any, dot, near, wide};
use crate::InstructionSet;
use crate::preparation::prepared_twice;
use crate::team::Team;
use proptest::prelude::*;

fn check(shape: SvdfShape, activation: Activation, has_bias: bool, seed: u64) {
    let SvdfShape { batch, input, units, rank, memory } = shape;
    let filters = units * rank;
    let random = &mut fastrand::Rng::with_seed(seed);
    let [features, times, bias] =
        [filters * input, filters * memory, units].map(|count| any(random, count, 1.0));
    let [x, mut state] = [batch * input, batch * filters * memory].map(|it| any(random, it, 1.0));
    let mut expected = [Vec::new(), Vec::new()];
    for sequence in 0..batch {
        let x = wide(&x[sequence * input..][..input]);
        for (unit, bias) in bias.iter().enumerate() {
            let mut sum = if has_bias { f64::from(*bias) } else { 0.0 };
            for filter in unit * rank..(unit + 1) * rank {
                let state = &mut state[(sequence * filters + filter) * memory..][..memory];
                let mut results = wide(state);
                results[memory - 1] = dot(&features[filter * input..][..input], &x);
                sum += dot(&times[filter * memory..][..memory], &results);
                expected[0].extend(&results[1..]);
                expected[0].push(0.0);
                // Whatever stands there is not to be read.
                state[memory - 1] = f32::NAN;
            }
            expected[1].push(activate(activation, sum));
        }
    }
    for set in InstructionSet::available() {
        for threads in [1, 2] {
            let svdf = prepared_twice(set, threads, |preparation| {
                let bias = has_bias.then_some(&bias[..]);
                Svdf::prepare(shape, &features, &times, bias, activation, preparation)
            });
            let mut after = vec![9.0; state.len()];
            let mut output = vec![9.0; batch * units];
            let mut scratch = vec![9.0; svdf.scratch_elements()];
            let team = &mut Team::new(threads);
            svdf.run(team, &x, &state, &mut after, &mut output, &mut scratch);
            near(&after, &expected[0], &format!("{set} {shape:?}, state"));
            near(&output, &expected[1], &format!("{set} {shape:?}"));
        }
    }
}

#[test]
fn a_larger_one_on_several_threads() {
    for activation in ACTIVATIONS {
        let shape = SvdfShape { batch: 2, input: 40, units: 300, rank: 2, memory: 40 };
        check(shape, activation, true, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn layers_of_all_sizes(
        batch in 0..4_usize, input in 1..20_usize, units in 1..20_usize, rank in 1..4_usize,
        memory in 1..40_usize, has_bias: bool,
        activation in prop::sample::select(ACTIVATIONS.to_vec()), seed: u64,
    ) {
        check(SvdfShape { batch, input, units, rank, memory }, activation, has_bias, seed);
    }
}
