//! Recurrent layers in the shapes of speech networks; see `convolution`. Half of the work of an LSTM is
//! a matrix product; the other half reads all weights for every step, a megabyte of them in
//! lstm_speech, and takes as long as that does.

mod measure;

use measure::{Settings, values};
use nnhal_kernels::recurrent::integer::{
    Gate8, Gate16, Lstm8, Lstm16, Settings8, Settings16, Step, StepShape, Term, Weights8,
};
use nnhal_kernels::recurrent::{
    Activation, Gate, Layer, Lstm, Outputs, Rnn, RnnShape, RnnWeights, Sequences, Settings as Cell,
    Shape, Steps, Svdf, SvdfShape, Weights, run, run_both, scratch_elements,
};
use nnhal_kernels::{Multiplier, Preparation, PreparedKernel, Team};

/// Name, batch, time, inputs, units, elements of the projected output or 0.
type Row = (&'static str, usize, usize, usize, usize, usize);

const LSTMS: &[Row] = &[
    ("lstm_speech", 1, 100, 256, 256, 0),
    ("wake word", 1, 49, 40, 64, 0),
    ("listener with projection", 1, 50, 512, 1024, 320),
    ("translation, 8 sequences", 8, 20, 512, 512, 0),
    ("single step", 1, 1, 128, 256, 0),
];

fn main() {
    let settings = Settings::from_arguments();
    lstms(&settings);
    rnns(&settings);
    svdfs(&settings);
    integer_lstms(&settings);
}

/// Name, batch, time, inputs, units.
const RNNS: &[(&str, usize, usize, usize, usize)] = &[
    ("rnn, characters", 1, 64, 96, 256),
    ("rnn, 4 sequences", 4, 32, 128, 512),
    ("rnn, single step", 1, 1, 64, 128),
];

fn rnns(settings: &Settings) {
    for &(name, batch, time, input, units) in RNNS {
        if !settings.wants(name) {
            continue;
        }
        let sequences = Sequences { batch, time, is_time_major: false, is_backward: false };
        let shape = RnnShape { sequences, input, auxiliary: 0, units };
        let [of_input, recurrent, bias] = [units * input, units * units, units].map(values);
        let weights =
            RnnWeights { input: &of_input, auxiliary: None, recurrent: &recurrent, bias: &bias };
        let rnn = Rnn::prepare(
            shape,
            &weights,
            Activation::Relu1,
            &mut Preparation::new(settings.set, settings.threads),
        )
        .unwrap();
        let mut team = Team::new(settings.threads);
        let (inputs, mut state) = (values(batch * time * input), values(batch * units));
        let mut output = vec![0.0; batch * time * units];
        let mut scratch = vec![0.0; scratch_elements(&rnn)];
        settings.measure(name, "rnn", rnn.operations(), || {
            let (steps, states) = (Steps::of(&inputs), [&mut state[..], &mut []]);
            run(&rnn, &mut team, steps, states, &mut output, &mut scratch);
        });
    }
}

/// Keyword spotting: name, inputs, units, rank, memory.
const SVDFS: &[(&str, usize, usize, usize, usize)] = &[
    ("svdf, keyword", 40, 256, 1, 8),
    ("svdf, speech", 40, 1280, 1, 10),
    ("svdf, of rank 2", 128, 512, 2, 32),
];

fn svdfs(settings: &Settings) {
    for &(name, input, units, rank, memory) in SVDFS {
        if !settings.wants(name) {
            continue;
        }
        let shape = SvdfShape { batch: 1, input, units, rank, memory };
        let filters = units * rank;
        let [features, times, bias] = [filters * input, filters * memory, units].map(values);
        let bias_given = Some(&bias[..]);
        let svdf = Svdf::prepare(
            shape,
            &features,
            &times,
            bias_given,
            Activation::Relu,
            &mut Preparation::new(settings.set, settings.threads),
        )
        .unwrap();
        let mut team = Team::new(settings.threads);
        let (inputs, state) = (values(input), values(filters * memory));
        let (mut after, mut output) = (state.clone(), bias.clone());
        let mut scratch = vec![0.0; svdf.scratch_elements()];
        settings.measure(name, "svdf", svdf.arithmetic(), || {
            svdf.run(&mut team, &inputs, &state, &mut after, &mut output, &mut scratch);
        });
    }
}

/// Name, inputs, units.
const INTEGERS: &[(&str, usize, usize)] =
    &[("integer lstm, large", 512, 1024), ("integer lstm, small", 64, 128)];

fn integer_lstms(settings: &Settings) {
    for &(name, input, units) in INTEGERS {
        if !settings.wants(name) {
            continue;
        }
        let mut random = fastrand::Rng::with_seed(1);
        let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
        let (of_input, recurrent) = (bytes(units * input), bytes(units * units));
        let (x, h) = (bytes(input), bytes(units));
        let (bias, c) = (vec![100; units], vec![1000_i16; units]);
        let shape = StepShape { batch: 1, input, units, output: units };
        let multiplier = Multiplier::from_real(0.004);
        let mut team = Team::new(settings.threads);
        let (mut cell, mut output) = (c.clone(), h.clone());

        let preparation = || Preparation::new(settings.set, settings.threads);
        let gate = Gate16 { input: &of_input, recurrent: &recurrent, bias: &bias };
        let of_16 = Settings16 { zero_point: 128, multiplier };
        let lstm = Lstm16::prepare(shape, [gate; 4], of_16, &mut preparation()).unwrap();
        let mut scratch = vec![0; lstm.scratch_elements()];
        settings.measure(name, "lstm of 16 bits", lstm.arithmetic(), || {
            let (cell, output) = (&mut cell[..], &mut output[..]);
            let step = Step { input: &x, output_before: &h, cell_before: &c, cell, output };
            lstm.run(&mut team, step, &mut scratch);
        });

        let weights = |weights| Term { weights: bytemuck::cast_slice(weights), multiplier };
        let gate = Gate8 {
            input: weights(&of_input),
            recurrent: weights(&recurrent),
            peephole: None,
            layer_norm: None,
            bias: &bias,
        };
        let (forget, cell_gate, output_gate) = (gate, gate, gate);
        let weights = Weights8 {
            input: Some(gate),
            forget,
            cell: cell_gate,
            output: output_gate,
            projection: None,
        };
        let of_8 = Settings8 {
            input_zero_point: 0,
            output_zero_point: 0,
            hidden_zero_point: 0,
            hidden: Multiplier::from_real(2_f64.powi(-23)),
            cell_exponent: -11,
            cell_clip: None,
            projection_clip: None,
        };
        let lstm = Lstm8::prepare(shape, &weights, of_8, &mut preparation()).unwrap();
        let mut scratch = vec![0; lstm.scratch_elements()];
        settings.measure(name, "lstm of 8 bits", lstm.arithmetic(), || {
            let (input, output_before) = (bytemuck::cast_slice(&x), bytemuck::cast_slice(&h));
            let (cell, output) = (&mut cell[..], bytemuck::cast_slice_mut(&mut output));
            let step = Step { input, output_before, cell_before: &c, cell, output };
            lstm.run(&mut team, step, &mut scratch);
        });
    }
}

fn lstms(settings: &Settings) {
    let cell = Cell { activation: Activation::Tanh, cell_clip: 0.0, projection_clip: 0.0 };
    for &(name, batch, time, input, units, projected) in LSTMS {
        let output = if projected == 0 { units } else { projected };
        let sequences = Sequences { batch, time, is_time_major: false, is_backward: false };
        let shape = Shape { sequences, input, auxiliary: 0, units, output };
        let weights = |count: usize| values(count).iter().map(|it| it * 0.1).collect::<Vec<_>>();
        let (of_input, recurrent) = (weights(units * input), weights(units * output));
        let (projection, bias) = (weights(output * units), values(units));
        let gate = Gate {
            input: &of_input,
            auxiliary: None,
            recurrent: &recurrent,
            peephole: None,
            layer_norm: None,
            bias: &bias,
        };
        let weights = Weights {
            input: Some(gate),
            forget: gate,
            cell: gate,
            output: gate,
            projection: (projected > 0).then_some((&projection, None)),
        };
        let prepare = |sequences| {
            Lstm::prepare(
                Shape { sequences, ..shape },
                &weights,
                cell,
                &mut Preparation::new(settings.set, settings.threads),
            )
            .unwrap()
        };
        let lstms =
            [false, true].map(|is_backward| prepare(Sequences { is_backward, ..sequences }));
        let mut team = Team::new(settings.threads);
        let inputs = values(batch * time * input);
        let steps = Steps::of(&inputs);
        let mut hidden = [(); 2].map(|()| values(batch * output));
        let mut cells = [(); 2].map(|()| values(batch * units));
        let mut results = vec![0.0; 2 * batch * time * output];
        let mut scratch = vec![0.0; 2 * scratch_elements(&lstms[0])];
        if settings.wants(name) {
            settings.measure(name, "lstm", lstms[0].operations(), || {
                let states = [&mut hidden[0][..], &mut cells[0]];
                let results = &mut results[..batch * time * output];
                run(&lstms[0], &mut team, steps, states, results, &mut scratch);
            });
        }
        let name = format!("{name}, both directions");
        if time > 1 && settings.wants(&name) {
            settings.measure(&name, "lstm", 2 * lstms[0].operations(), || {
                let outputs = Outputs::Merged(&mut results);
                let [[h, h_behind], [c, c_behind]] = [&mut hidden, &mut cells];
                let states = [[&mut h[..], c], [h_behind, c_behind]];
                let both = lstms.each_ref();
                run_both(both, &mut team, [steps; 2], states, outputs, &mut scratch);
            });
        }
    }
}
