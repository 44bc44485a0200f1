//! An LSTM of the size of lstm_speech's layers: 100 steps of 256 inputs, 256 units. The figure to
//! compare with is what a core computes, 242 GFLOP/s where this was written; half of the work is a
//! matrix product, the other half reads a megabyte of weights for every step.

use divan::Bencher;
use divan::counter::ItemsCount;
use kernels::recurrent::{Activation, Gate, Lstm, Settings, Shape, Weights};
use kernels::{InstructionSet, Preparation, Team};

fn main() {
    divan::main();
}

fn cases() -> Vec<(InstructionSet, usize)> {
    InstructionSet::available().flat_map(|set| [(set, 1), (set, 2)]).collect()
}

/// Items are floating-point operations.
#[divan::bench(args = cases())]
fn lstm_speech(bencher: Bencher<'_, '_>, (set, threads): (InstructionSet, usize)) {
    let shape = Shape { batch: 1, time: 100, input: 256, units: 256, output: 256 };
    let mut random = fastrand::Rng::with_seed(1);
    let mut any =
        |count: usize| -> Vec<f32> { (0..count).map(|_| (random.f32() - 0.5) * 0.1).collect() };
    let (matrix, bias, input) = (any(256 * 256), any(256), any(100 * 256));
    let gate =
        Gate { input: &matrix, recurrent: &matrix, peephole: None, layer_norm: None, bias: &bias };
    let weights =
        Weights { input: Some(gate), forget: gate, cell: gate, output: gate, projection: None };
    let settings = Settings {
        activation: Activation::Tanh,
        cell_clip: 0.0,
        projection_clip: 0.0,
        is_time_major: false,
    };
    let lstm = Lstm::prepare(shape, &weights, settings, &mut Preparation::new(set, threads));
    let mut team = Team::new(threads);
    let (mut h, mut c) = (any(256), any(256));
    let (mut output, mut scratch) = (any(100 * 256), vec![0.0; lstm.scratch_elements()]);
    let operations = 2 * 2 * 4 * 256 * 256 * 100_usize;
    bencher
        .counter(ItemsCount::new(operations))
        .bench_local(|| lstm.run(&mut team, &input, &mut h, &mut c, &mut output, &mut scratch));
}
