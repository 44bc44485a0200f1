//! LSTMs against their formulas in double precision.

use super::*;
use crate::InstructionSet;
use crate::packing::prepared_twice;
use crate::team::Team;
use proptest::prelude::*;

/// A gate's weights with what they are made of.
struct OwnedGate {
    input: Vec<f32>,
    recurrent: Vec<f32>,
    peephole: Option<Vec<f32>>,
    layer_norm: Option<Vec<f32>>,
    bias: Vec<f32>,
}

impl OwnedGate {
    fn gate(&self) -> Gate<'_> {
        Gate {
            input: &self.input,
            recurrent: &self.recurrent,
            peephole: self.peephole.as_deref(),
            layer_norm: self.layer_norm.as_deref(),
            bias: &self.bias,
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Relu6 => x.clamp(0.0, 6.0),
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => sigmoid(x),
    }
}

fn clip(x: f64, distance: f32) -> f64 {
    let distance = f64::from(distance);
    if distance > 0.0 { x.clamp(-distance, distance) } else { x }
}

fn dot(weights: &[f32], x: &[f64]) -> f64 {
    weights.iter().zip(x).map(|(weight, x)| f64::from(*weight) * x).sum()
}

/// What goes into a gate's activation, for all units.
fn sums(gate: &Gate<'_>, x: &[f64], h: &[f64], c: Option<&[f64]>) -> Vec<f64> {
    let units = gate.bias.len();
    let mut sums: Vec<f64> = (0..units)
        .map(|unit| {
            let input = dot(&gate.input[unit * x.len()..][..x.len()], x);
            let recurrent = dot(&gate.recurrent[unit * h.len()..][..h.len()], h);
            let peephole = match (gate.peephole, c) {
                (Some(peephole), Some(c)) => f64::from(peephole[unit]) * c[unit],
                _ => 0.0,
            };
            input + recurrent + peephole
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
fn step(weights: &Weights<'_>, settings: &Settings, x: &[f64], h: &mut Vec<f64>, c: &mut [f64]) {
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

/// Which parts a cell has, by bits: an input gate, peepholes, layer normalisation, a projection, its
/// bias, clips.
fn check(shape: Shape, parts: u8, activation: Activation, is_time_major: bool, seed: u64) {
    let has = |bit: u8| parts >> bit & 1 == 1;
    let shape = if has(3) { shape } else { Shape { output: shape.units, ..shape } };
    let Shape { batch, time, input: inputs, units, output: outputs } = shape;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut any = |count: usize, size: f32| -> Vec<f32> {
        (0..count).map(|_| (random.f32() - 0.5) * size).collect()
    };
    let mut gates: Vec<OwnedGate> = (0..4)
        .map(|_| OwnedGate {
            input: any(units * inputs, 0.5),
            recurrent: any(units * outputs, 0.5),
            peephole: has(1).then(|| any(units, 1.0)),
            layer_norm: has(2).then(|| any(units, 2.0)),
            bias: any(units, 1.0),
        })
        .collect();
    gates[2].peephole = None;
    let (projection, bias) = (any(units * outputs, 0.5), any(outputs, 0.5));
    let weights = Weights {
        input: has(0).then(|| gates[0].gate()),
        forget: gates[1].gate(),
        cell: gates[2].gate(),
        output: gates[3].gate(),
        projection: has(3).then_some((&projection[..], has(4).then_some(&bias[..]))),
    };
    let clip = if has(5) { 0.3 } else { 0.0 };
    let settings = Settings { activation, cell_clip: clip, projection_clip: clip, is_time_major };
    let input = any(batch * time * inputs, 2.0);
    let (h, c) = (any(batch * outputs, 1.0), any(batch * units, 1.0));

    let mut expected = vec![0.0; batch * time * outputs];
    let wide = |values: &[f32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
    let mut last = Vec::new();
    for sequence in 0..batch {
        let mut h = wide(&h[sequence * outputs..][..outputs]);
        let mut c = wide(&c[sequence * units..][..units]);
        for moment in 0..time {
            let row =
                if is_time_major { moment * batch + sequence } else { sequence * time + moment };
            step(&weights, &settings, &wide(&input[row * inputs..][..inputs]), &mut h, &mut c);
            expected[row * outputs..][..outputs].copy_from_slice(&h);
        }
        last.push((h, c));
    }
    for set in InstructionSet::available() {
        let lstm = prepared_twice(set, 1, |preparation| {
            Lstm::prepare(shape, &weights, settings, preparation)
        });
        for threads in [1, 2] {
            let (mut h, mut c) = (h.clone(), c.clone());
            let mut output = vec![9.0; expected.len()];
            let mut scratch = vec![9.0; lstm.scratch_elements()];
            let mut team = Team::new(threads);
            lstm.run(&mut team, &input, &mut h, &mut c, &mut output, &mut scratch);
            let near = |found: &[f32], expected: &[f64], what: &str| {
                for (found, expected) in found.iter().zip(expected) {
                    let error = (f64::from(*found) - expected).abs();
                    let bound = 2e-4_f64.min(2e-5 * (1.0 + expected.abs()));
                    assert!(error < bound, "{set} {what} {parts:b}: {found} {expected}");
                }
            };
            near(&output, &expected, "output");
            for (sequence, (last_h, last_c)) in last.iter().enumerate() {
                near(&h[sequence * outputs..], last_h, "output state");
                near(&c[sequence * units..], last_c, "cell state");
            }
        }
    }
}

#[test]
fn lstms_of_all_parts() {
    let shape = Shape { batch: 2, time: 5, input: 7, units: 37, output: 20 };
    for parts in 0..64 {
        check(shape, parts, Activation::Tanh, parts & 1 == 0, 1);
    }
}

#[test]
fn activations_and_a_larger_one() {
    let shape = Shape { batch: 1, time: 10, input: 40, units: 128, output: 128 };
    for activation in [Activation::Tanh, Activation::Sigmoid, Activation::Relu6, Activation::Relu] {
        check(shape, 0b10_0001, activation, false, 2);
    }
    check(shape, 0b10_0001, Activation::None, true, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn lstms_of_all_sizes(
        batch in 0..4_usize,
        time in 0..9_usize,
        input in 0..9_usize,
        units in prop_oneof![1..5_usize, 30..70_usize],
        output in 1..70_usize,
        parts in 0..64_u8,
        is_time_major: bool,
        seed: u64,
    ) {
        // Few units have sums that layer normalisation makes anything of.
        let parts = if units < 5 { parts & !4 } else { parts };
        check(Shape { batch, time, input, units, output }, parts, Activation::Tanh, is_time_major, seed);
    }
}
