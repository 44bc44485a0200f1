//! The model: how much of each tone there is in a window, averaged over the windows before.
//!
//! ```text
//! parts    = samples * waves          cosine and sine of each frequency
//! power    = parts[cosine]^2 + parts[sine]^2
//! energies = 0.6 * energies of the window before + 0.4 * power
//! ```

use crate::tones::{FREQUENCIES, RATE};
use nnhal::hal::{OperandSpec, OperationType, SubgraphBuilder};
use nnhal::tflite::State;
use nnhal::{Model, Result};

/// Samples that are looked at together: 25 ms.
pub const WINDOW: usize = 200;

/// How many frequencies there are.
pub const TONES: usize = FREQUENCIES.len();

/// How much of the windows before stays.
const MEMORY: f32 = 0.6;

/// Builds the model.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // Small numbers.
pub fn build() -> Result<Model> {
    const PARTS: u32 = 2 * TONES as u32;
    let (window, tones) = (WINDOW as u32, TONES as u32);
    let mut graph = SubgraphBuilder::new();
    let samples = graph.input("samples", OperandSpec::tensor_float32([1, window]));
    let before = graph.input("energies before", OperandSpec::tensor_float32([1, tones]));
    let none = graph.scalar_i32(0);

    let mut waves = Vec::with_capacity(2 * TONES * WINDOW);
    for phase in [0.25, 0.0] {
        for frequency in FREQUENCIES {
            let wave = |sample: usize| {
                let turns = sample as f32 * frequency / RATE + phase;
                (turns * std::f32::consts::TAU).sin() * 2.0 / WINDOW as f32
            };
            waves.extend((0..WINDOW).map(wave));
        }
    }
    let waves = graph.constant(OperandSpec::tensor_float32([PARTS, window]), &waves);
    let bias = graph.constant(OperandSpec::tensor_float32([PARTS]), &[0.0_f32; 2 * TONES]);
    let parts = graph.operation(
        OperationType::FullyConnected,
        [samples, waves, bias, none],
        OperandSpec::tensor_float32([1, PARTS]),
    );
    let squares = graph.operation(
        OperationType::Mul,
        [parts, parts, none],
        OperandSpec::tensor_float32([1, PARTS]),
    );
    let pairs = graph.constant(OperandSpec::tensor_int32([3]), &[1_i32, 2, tones as i32]);
    let pairs = graph.operation(
        OperationType::Reshape,
        [squares, pairs],
        OperandSpec::tensor_float32([1, 2, tones]),
    );
    let axis = graph.constant(OperandSpec::tensor_int32([1]), &[1_i32]);
    let keep = graph.scalar_bool(false);
    let power = graph.operation(
        OperationType::ReduceSum,
        [pairs, axis, keep],
        OperandSpec::tensor_float32([1, tones]),
    );

    let mut scaled = |value, factor: f32| {
        let factor = graph.constant(OperandSpec::tensor_float32([1]), &[factor]);
        let spec = OperandSpec::tensor_float32([1, tones]);
        graph.operation(OperationType::Mul, [value, factor, none], spec)
    };
    let (kept, new) = (scaled(before, MEMORY), scaled(power, 1.0 - MEMORY));
    // What the caller gets, and what the next run takes: an output each.
    let spec = || OperandSpec::tensor_float32([1, tones]);
    let energies = graph.operation(OperationType::Add, [kept, new, none], spec());
    let state = graph.operation(OperationType::Add, [kept, new, none], spec());
    graph.output(energies);
    graph.output(state);
    Model::from_hal(graph.into_model()?)?
        .with_names(&["samples"], &["energies"])
        .with_states(vec![State::new(1, 1)])
}
