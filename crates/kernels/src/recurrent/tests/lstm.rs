//! LSTMs against their formulas in double precision.

use super::super::*;
use super::{ACTIVATIONS, activate, dot, near, sequences, sigmoid, wide};
use crate::InstructionSet;
use crate::preparation::prepared_twice;
use crate::team::Team;
use proptest::prelude::*;

/// A gate's weights with what they are made of.
struct OwnedGate {
    input: Vec<f32>,
    auxiliary: Option<Vec<f32>>,
    recurrent: Vec<f32>,
    peephole: Option<Vec<f32>>,
    layer_norm: Option<Vec<f32>>,
    bias: Vec<f32>,
}

impl OwnedGate {
    fn gate(&self) -> Gate<'_> {
        Gate {
            input: &self.input,
            auxiliary: self.auxiliary.as_deref(),
            recurrent: &self.recurrent,
            peephole: self.peephole.as_deref(),
            layer_norm: self.layer_norm.as_deref(),
            bias: &self.bias,
        }
    }
}

fn clip(x: f64, distance: f32) -> f64 {
    let distance = f64::from(distance);
    if distance > 0.0 { x.clamp(-distance, distance) } else { x }
}

/// What goes into a gate's activation, for all units.
fn sums(gate: &Gate<'_>, [x, a]: [&[f64]; 2], h: &[f64], c: Option<&[f64]>) -> Vec<f64> {
    let units = gate.bias.len();
    let mut sums: Vec<f64> = (0..units)
        .map(|unit| {
            let input = dot(&gate.input[unit * x.len()..][..x.len()], x);
            let auxiliary =
                gate.auxiliary.map_or(0.0, |weights| dot(&weights[unit * a.len()..][..a.len()], a));
            let recurrent = dot(&gate.recurrent[unit * h.len()..][..h.len()], h);
            let peephole = match (gate.peephole, c) {
                (Some(peephole), Some(c)) => f64::from(peephole[unit]) * c[unit],
                _ => 0.0,
            };
            input + auxiliary + recurrent + peephole
        })
        .collect();
    if let Some(weights) = gate.layer_norm {
        #[allow(clippy::cast_precision_loss)]
        let count = units as f64;
        let mean = sums.iter().sum::<f64>() / count;
        let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / count;
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = (*sum - mean) / (variance + 1e-8).sqrt() * f64::from(*weight);
        }
    }
    for (sum, bias) in sums.iter_mut().zip(gate.bias) {
        *sum += f64::from(*bias);
    }
    sums
}

/// One step of one sequence.
fn step(
    weights: &Weights<'_>,
    settings: &Settings,
    x: [&[f64]; 2],
    h: &mut Vec<f64>,
    c: &mut [f64],
) {
    let forget: Vec<f64> = sums(&weights.forget, x, h, Some(c)).into_iter().map(sigmoid).collect();
    let input: Vec<f64> = match &weights.input {
        Some(gate) => sums(gate, x, h, Some(c)).into_iter().map(sigmoid).collect(),
        None => forget.iter().map(|forget| 1.0 - forget).collect(),
    };
    let candidate = sums(&weights.cell, x, h, None);
    for (unit, c) in c.iter_mut().enumerate() {
        let candidate = activate(settings.activation, candidate[unit]);
        *c = clip(*c * forget[unit] + input[unit] * candidate, settings.cell_clip);
    }
    let output = sums(&weights.output, x, h, Some(c));
    let hidden: Vec<f64> = output
        .into_iter()
        .zip(&*c)
        .map(|(output, c)| sigmoid(output) * activate(settings.activation, *c))
        .collect();
    *h = match weights.projection {
        None => hidden,
        Some((projection, bias)) => (0..h.len())
            .map(|row| {
                let bias = bias.map_or(0.0, |bias| f64::from(bias[row]));
                let sum = bias + dot(&projection[row * hidden.len()..][..hidden.len()], &hidden);
                clip(sum, settings.projection_clip)
            })
            .collect(),
    };
}

/// An LSTM with numbers to run it on, and what comes out.
struct Case {
    shape: Shape,
    settings: Settings,
    gates: Vec<OwnedGate>,
    has_input_gate: bool,
    projection: Option<Vec<f32>>,
    projection_bias: Option<Vec<f32>>,
    /// Input, auxiliary input, output state, cell state.
    given: [Vec<f32>; 4],
    /// Output, output state, cell state.
    expected: [Vec<f64>; 3],
}

impl Case {
    /// Which parts a cell has, by bits: an input gate, peepholes, layer normalization, a projection,
    /// its bias, clips, an auxiliary input.
    fn draw(shape: Shape, parts: u8, activation: Activation, seed: u64) -> Self {
        let has = |bit: u8| parts >> bit & 1 == 1;
        let shape = if has(3) { shape } else { Shape { output: shape.units, ..shape } };
        let auxiliary = if has(6) { shape.auxiliary } else { 0 };
        let shape = Shape { auxiliary, ..shape };
        let Shape { sequences, input, units, output, .. } = shape;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut any = |count: usize, size: f32| -> Vec<f32> {
            (0..count).map(|_| (random.f32() - 0.5) * size).collect()
        };
        let mut gates: Vec<OwnedGate> = (0..4)
            .map(|_| OwnedGate {
                input: any(units * input, 0.5),
                auxiliary: has(6).then(|| any(units * auxiliary, 0.5)),
                recurrent: any(units * output, 0.5),
                peephole: has(1).then(|| any(units, 1.0)),
                layer_norm: has(2).then(|| any(units, 2.0)),
                bias: any(units, 1.0),
            })
            .collect();
        gates[2].peephole = None;
        let clip = if has(5) { 0.3 } else { 0.0 };
        let settings = Settings { activation, cell_clip: clip, projection_clip: clip };
        let (rows, batch) = (sequences.rows(), sequences.batch);
        let mut case = Self {
            shape,
            settings,
            gates,
            has_input_gate: has(0),
            projection: has(3).then(|| any(units * output, 0.5)),
            projection_bias: has(4).then(|| any(output, 0.5)),
            given: [
                any(rows * input, 2.0),
                any(rows * auxiliary, 2.0),
                any(batch * output, 1.0),
                any(batch * units, 1.0),
            ],
            expected: [vec![0.0; rows * output], Vec::new(), Vec::new()],
        };
        case.expect();
        case
    }

    fn weights(&self) -> Weights<'_> {
        Weights {
            input: self.has_input_gate.then(|| self.gates[0].gate()),
            forget: self.gates[1].gate(),
            cell: self.gates[2].gate(),
            output: self.gates[3].gate(),
            projection: self.projection.as_deref().map(|it| (it, self.projection_bias.as_deref())),
        }
    }

    fn expect(&mut self) {
        let Shape { sequences, input, auxiliary, units, output } = self.shape;
        let [x, a, h, c] = self.given.each_ref().map(|values| wide(values));
        for sequence in 0..sequences.batch {
            let mut h = h[sequence * output..][..output].to_vec();
            let mut c = c[sequence * units..][..units].to_vec();
            for moment in 0..sequences.time {
                let row = sequences.row(sequence, moment);
                let x = [&x[row * input..][..input], &a[row * auxiliary..][..auxiliary]];
                step(&self.weights(), &self.settings, x, &mut h, &mut c);
                self.expected[0][row * output..][..output].copy_from_slice(&h);
            }
            self.expected[1].extend(h);
            self.expected[2].extend(c);
        }
    }

    fn prepared(&self, set: InstructionSet) -> Lstm {
        prepared_twice(set, 1, |preparation| {
            Lstm::prepare(self.shape, &self.weights(), self.settings, preparation)
        })
    }

    fn steps(&self) -> Steps<'_> {
        Steps { input: &self.given[0], auxiliary: &self.given[1] }
    }

    fn compare(&self, found: [&[f32]; 3], about: &str) {
        for (found, expected) in found.into_iter().zip(&self.expected) {
            near(found, expected, about);
        }
    }

    fn check(&self) {
        for set in InstructionSet::available() {
            let lstm = self.prepared(set);
            for threads in [1, 2] {
                let [_, _, mut h, mut c] = self.given.clone();
                let mut output = vec![9.0; self.expected[0].len()];
                let mut scratch = vec![9.0; scratch_elements(&lstm)];
                let team = &mut Team::new(threads);
                run(&lstm, team, self.steps(), [&mut h, &mut c], &mut output, &mut scratch);
                self.compare([&output, &h, &c], &format!("{set} {:?}", self.shape));
            }
        }
    }
}

#[test]
fn lstms_of_all_parts() {
    for parts in 0..128 {
        let sequences = sequences(4, 5, parts & 1 == 0, parts & 2 == 0);
        let shape = Shape { sequences, input: 7, auxiliary: 5, units: 37, output: 20 };
        Case::draw(shape, parts, Activation::Tanh, 1).check();
    }
}

#[test]
fn activations_and_a_larger_one() {
    let sequences = sequences(1, 10, false, false);
    let shape = Shape { sequences, input: 40, auxiliary: 0, units: 256, output: 256 };
    for activation in ACTIVATIONS {
        Case::draw(shape, 0b10_0001, activation, 2).check();
    }
    Case::draw(shape, 0b10_0001, Activation::None, 2).check();
}

/// Two over the same sequences, whose outputs are merged or not.
fn check_both(cases: [&Case; 2]) {
    for set in InstructionSet::available() {
        let lstms = cases.map(|case| case.prepared(set));
        for (threads, is_merged) in [(1, false), (1, true), (2, false), (2, true), (4, true)] {
            let [mut first, mut second] = cases.map(|case| case.given.clone());
            let sizes = cases.map(|case| case.shape.output);
            let rows = cases[0].shape.sequences.rows();
            let mut merged = vec![9.0; rows * (sizes[0] + sizes[1])];
            let mut separate = sizes.map(|size| vec![9.0; rows * size]);
            let outputs = if is_merged {
                Outputs::Merged(&mut merged)
            } else {
                Outputs::Separate(separate.each_mut().map(Vec::as_mut_slice))
            };
            let scratch: usize = lstms.iter().map(scratch_elements).sum();
            let mut scratch = vec![9.0; scratch];
            let states = [&mut first, &mut second].map(|[_, _, h, c]| [&mut h[..], &mut c[..]]);
            let steps = cases.map(Case::steps);
            let team = &mut Team::new(threads);
            run_both(lstms.each_ref(), team, steps, states, outputs, &mut scratch);
            if is_merged {
                for row in 0..rows {
                    let (of_first, of_second) = merged[row * (sizes[0] + sizes[1])..]
                        [..sizes[0] + sizes[1]]
                        .split_at(sizes[0]);
                    separate[0][row * sizes[0]..][..sizes[0]].copy_from_slice(of_first);
                    separate[1][row * sizes[1]..][..sizes[1]].copy_from_slice(of_second);
                }
            }
            for (index, [_, _, h, c]) in [first, second].iter().enumerate() {
                let about = format!("{set}, {threads} threads, direction {index}");
                cases[index].compare([&separate[index], h, c], &about);
            }
        }
    }
}

#[test]
fn two_directions() {
    for is_time_major in [false, true] {
        let sequences = sequences(2, 6, is_time_major, false);
        let forward = Shape { sequences, input: 7, auxiliary: 3, units: 20, output: 11 };
        let sequences = Sequences { is_backward: true, ..sequences };
        let backward = Shape { sequences, input: 7, auxiliary: 3, units: 35, output: 40 };
        for parts in [0b000_0001, 0b010_0000, 0b111_1111] {
            let forward = Case::draw(forward, parts, Activation::Tanh, 3);
            check_both([&forward, &Case::draw(backward, parts, Activation::Tanh, 4)]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn lstms_of_all_sizes(
        batch in 0..5_usize,
        time in 0..9_usize,
        input in 0..9_usize,
        auxiliary in 1..9_usize,
        units in prop_oneof![1..5_usize, 30..70_usize],
        output in 1..70_usize,
        parts in 0..128_u8,
        is_time_major: bool,
        is_backward: bool,
        seed: u64,
    ) {
        // Few units have sums that layer normalization makes anything of.
        let parts = if units < 5 { parts & !4 } else { parts };
        let sequences = sequences(batch, time, is_time_major, is_backward);
        let shape = Shape { sequences, input, auxiliary, units, output };
        Case::draw(shape, parts, Activation::Tanh, seed).check();
    }
}
