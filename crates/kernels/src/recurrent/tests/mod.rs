//! Layers against their formulas in double precision.

mod lstm;
mod rnn;
mod svdf;

use super::{Activation, Sequences};

fn sequences(batch: usize, time: usize, is_time_major: bool, is_backward: bool) -> Sequences {
    Sequences { batch, time, is_time_major, is_backward }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

fn dot(weights: &[f32], x: &[f64]) -> f64 {
    weights.iter().zip(x).map(|(weight, x)| f64::from(*weight) * x).sum()
}

fn any(random: &mut fastrand::Rng, count: usize, size: f32) -> Vec<f32> {
    (0..count).map(|_| (random.f32() - 0.5) * size).collect()
}

fn near(found: &[f32], expected: &[f64], about: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let error = (f64::from(*found) - expected).abs();
        let bound = 2e-4_f64.min(2e-5 * (1.0 + expected.abs()));
        assert!(error < bound, "{about}: {found} {expected}");
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Relu1 => x.clamp(-1.0, 1.0),
        Activation::Relu6 => x.clamp(0.0, 6.0),
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => sigmoid(x),
    }
}

/// All of them.
const ACTIVATIONS: [Activation; 6] = [
    Activation::None,
    Activation::Relu,
    Activation::Relu1,
    Activation::Relu6,
    Activation::Tanh,
    Activation::Sigmoid,
];
