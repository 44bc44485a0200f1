//! Recurrent operations, with lengths of up to `most`.

use crate::calls::random::Random;
use crate::calls::sample::{Given, Quant, Sample};
use nnhal_hal::OperationType as Op;

const RESULT: Quant = Quant::Fit(1.0);

/// A call of a recurrent operation; `None` of others.
pub fn draw(operation: Op, random: &mut Random, most: u32) -> Option<Sample> {
    Some(match operation {
        Op::BidirectionalSequenceLstm => bidirectional_sequence_lstm(random, most),
        Op::BidirectionalSequenceRnn => bidirectional_sequence_rnn(random, most),
        Op::Lstm => lstm(random, most),
        Op::Quantized16bitLstm => quantized_16bit_lstm(random, most),
        Op::QuantizedLstm => quantized_lstm(random, most),
        Op::Rnn => rnn(random, most),
        Op::Svdf => svdf(random, most),
        Op::UnidirectionalSequenceLstm => unidirectional_sequence_lstm(random, most),
        Op::UnidirectionalSequenceRnn => unidirectional_sequence_rnn(random, most),
        _ => return None,
    })
}

fn weights(dimensions: &[u32], random: &mut Random) -> Given {
    Given::tensor(dimensions, random.reals(dimensions, -0.8, 0.8))
}

fn present(is_present: bool, dimensions: &[u32], random: &mut Random) -> Given {
    if is_present { weights(dimensions, random) } else { Given::omitted() }
}

fn all(sample: Sample, inputs: Vec<Given>) -> Sample {
    inputs.into_iter().fold(sample, Sample::input)
}

/// A shape with time as its first or second axis.
fn sequence(is_time_major: bool, batch: u32, time: u32, length: u32) -> [u32; 3] {
    if is_time_major { [time, batch, length] } else { [batch, time, length] }
}

fn rnn(random: &mut Random, most: u32) -> Sample {
    let (batch, input, units) =
        (random.length(1, most - 1), random.length(1, most), random.length(1, most));
    let shapes: [&[u32]; 5] =
        [&[batch, input], &[units, input], &[units, units], &[units], &[batch, units]];
    let inputs = shapes.map(|shape| weights(shape, random)).to_vec();
    all(Sample::new(Op::Rnn), inputs).ints(&[random.int(0, 3)]).output(RESULT).output(RESULT)
}

fn unidirectional_sequence_rnn(random: &mut Random, most: u32) -> Sample {
    let (batch, input, units) =
        (random.length(1, most - 1), random.length(1, most), random.length(1, most));
    let is_time_major = random.coin();
    let sequence = sequence(is_time_major, batch, random.length(1, most), input);
    let shapes: [&[u32]; 5] =
        [&sequence, &[units, input], &[units, units], &[units], &[batch, units]];
    let inputs = shapes.map(|shape| weights(shape, random)).to_vec();
    let sample = all(Sample::new(Op::UnidirectionalSequenceRnn), inputs)
        .ints(&[random.int(0, 3), i32::from(is_time_major)])
        .output(RESULT);
    if random.coin() { sample.output(RESULT) } else { sample }
}

fn bidirectional_sequence_rnn(random: &mut Random, most: u32) -> Sample {
    let (batch, time, input) =
        (random.length(1, most - 1), random.length(1, most), random.length(1, most));
    let [forward, backward] = [(); 2].map(|()| random.length(1, most));
    let auxiliary = random.length(1, 2);
    let is_time_major = random.coin();
    // None; an input of the backward cell alone; an input with weights.
    let kind = random.int(0, 2);
    let backward_input = if kind == 1 { auxiliary } else { input };
    let shape = sequence(is_time_major, batch, time, input);
    let mut inputs = vec![weights(&shape, random)];
    for (units, input) in [(forward, input), (backward, backward_input)] {
        let shapes: [&[u32]; 4] = [&[units, input], &[units, units], &[units], &[batch, units]];
        inputs.extend(shapes.map(|shape| weights(shape, random)));
    }
    let shape = sequence(is_time_major, batch, time, auxiliary);
    inputs.push(present(kind > 0, &shape, random));
    inputs.push(present(kind == 2, &[forward, auxiliary], random));
    inputs.push(present(kind == 2, &[backward, auxiliary], random));
    let merge = random.int(0, 1);
    let sample = all(Sample::new(Op::BidirectionalSequenceRnn), inputs)
        .form(usize::try_from(merge).unwrap())
        .ints(&[random.int(0, 3), i32::from(is_time_major), merge]);
    let outputs = if merge == 1 { 1 } else { 2 } + random.pick(&[0, 2]);
    (0..outputs).fold(sample, |sample, _| sample.output(RESULT))
}

fn svdf(random: &mut Random, most: u32) -> Sample {
    let (batch, input, memory) =
        (random.length(1, most - 1), random.length(1, most), random.length(1, 4));
    let (rank, units) = (random.length(1, 2), random.length(1, most));
    let filters = rank * units;
    let inputs = vec![
        weights(&[batch, input], random),
        weights(&[filters, input], random),
        weights(&[filters, memory], random),
        present(random.coin(), &[units], random),
        weights(&[batch, filters * memory], random),
    ];
    all(Sample::new(Op::Svdf), inputs)
        .ints(&[i32::try_from(rank).unwrap(), random.int(0, 3)])
        .output(RESULT)
        .output(RESULT)
}

/// What an LSTM cell has.
struct Cell {
    batch: u32,
    input: u32,
    units: u32,
    output: u32,
    has_input_gate: bool,
    has_peepholes: bool,
    has_projection: bool,
    has_projection_bias: bool,
    has_layer_norm: bool,
}

impl Cell {
    fn draw(random: &mut Random, most: u32, [batch, input]: [u32; 2]) -> Self {
        let has_projection = random.coin();
        let units = random.length(1, most);
        Self {
            batch,
            input,
            units,
            output: if has_projection { random.length(1, units) } else { units },
            has_input_gate: random.coin(),
            has_peepholes: random.coin(),
            has_projection,
            has_projection_bias: has_projection && random.coin(),
            has_layer_norm: random.coin(),
        }
    }

    /// Weights and biases, in the order of the interface.
    fn weights(&self, random: &mut Random) -> Vec<Given> {
        let (units, gate) = (self.units, self.has_input_gate);
        let mut inputs = vec![present(gate, &[units, self.input], random)];
        inputs.extend([(); 3].map(|()| weights(&[units, self.input], random)));
        inputs.push(present(gate, &[units, self.output], random));
        inputs.extend([(); 3].map(|()| weights(&[units, self.output], random)));
        inputs.push(present(gate && self.has_peepholes, &[units], random));
        inputs.extend([(); 2].map(|()| present(self.has_peepholes, &[units], random)));
        inputs.push(present(gate, &[units], random));
        inputs.extend([(); 3].map(|()| weights(&[units], random)));
        inputs.push(present(self.has_projection, &[self.output, units], random));
        inputs.push(present(self.has_projection_bias, &[self.output], random));
        inputs
    }

    /// Output state and cell state.
    fn states(&self, random: &mut Random) -> Vec<Given> {
        vec![
            weights(&[self.batch, self.output], random),
            weights(&[self.batch, self.units], random),
        ]
    }

    fn layer_norm(&self, random: &mut Random) -> Vec<Given> {
        let has = self.has_layer_norm;
        let mut inputs = vec![present(has && self.has_input_gate, &[self.units], random)];
        inputs.extend([(); 3].map(|()| present(has, &[self.units], random)));
        inputs
    }
}

/// Activation: RELU, RELU6, TANH, sigmoid.
fn activation(random: &mut Random) -> i32 {
    random.pick(&[1, 3, 4, 4, 6])
}

fn clips(random: &mut Random) -> [f64; 2] {
    [(); 2].map(|()| random.pick(&[0.0, 0.5, 4.0]))
}

fn lstm(random: &mut Random, most: u32) -> Sample {
    let (batch, input) = (random.length(1, most - 1), random.length(1, most));
    let mut cell = Cell::draw(random, most, [batch, input]);
    let has_trailing = random.coin();
    cell.has_layer_norm &= has_trailing;
    let mut inputs = vec![weights(&[batch, input], random)];
    inputs.extend(cell.weights(random));
    inputs.extend(cell.states(random));
    let sample =
        all(Sample::new(Op::Lstm), inputs).ints(&[activation(random)]).scalars(&clips(random));
    let sample = if has_trailing { all(sample, cell.layer_norm(random)) } else { sample };
    (0..4).fold(sample, |sample, _| sample.output(RESULT))
}

fn unidirectional_sequence_lstm(random: &mut Random, most: u32) -> Sample {
    let (batch, input) = (random.length(1, most - 1), random.length(1, most));
    let cell = Cell::draw(random, most, [batch, input]);
    let is_time_major = random.coin();
    let shape = sequence(is_time_major, batch, random.length(1, most), input);
    let mut inputs = vec![weights(&shape, random)];
    inputs.extend(cell.weights(random));
    inputs.extend(cell.states(random));
    let sample = all(Sample::new(Op::UnidirectionalSequenceLstm), inputs)
        .ints(&[activation(random)])
        .scalars(&clips(random))
        .ints(&[i32::from(is_time_major)]);
    let sample = all(sample, cell.layer_norm(random));
    (0..random.pick(&[1, 3])).fold(sample, |sample, _| sample.output(RESULT))
}

fn bidirectional_sequence_lstm(random: &mut Random, most: u32) -> Sample {
    let (batch, time, input) =
        (random.length(1, most - 1), random.length(1, most), random.length(1, most));
    let auxiliary = random.length(1, 2);
    let kind = random.int(0, 2);
    let is_time_major = random.coin();
    let cells = [input, if kind == 1 { auxiliary } else { input }]
        .map(|input| Cell::draw(random, most, [batch, input]));
    let mut inputs = vec![weights(&sequence(is_time_major, batch, time, input), random)];
    inputs.extend(cells.iter().flat_map(|cell| cell.weights(random)));
    inputs.extend(cells.iter().flat_map(|cell| cell.states(random)));
    inputs.push(present(kind > 0, &sequence(is_time_major, batch, time, auxiliary), random));
    for cell in &cells {
        let shape = [cell.units, auxiliary];
        inputs.push(present(kind == 2 && cell.has_input_gate, &shape, random));
        inputs.extend([(); 3].map(|()| present(kind == 2, &shape, random)));
    }
    let merge = random.int(0, 1);
    let sample = all(Sample::new(Op::BidirectionalSequenceLstm), inputs)
        .form(usize::try_from(merge).unwrap())
        .ints(&[activation(random)])
        .scalars(&clips(random))
        .ints(&[merge, i32::from(is_time_major)]);
    let layer_norm = cells.iter().flat_map(|cell| cell.layer_norm(random)).collect();
    let outputs = if merge == 1 { 1 } else { 2 } + random.pick(&[0, 4]);
    (0..outputs).fold(all(sample, layer_norm), |sample, _| sample.output(RESULT))
}

fn stored(inputs: Vec<Given>, quant: Quant) -> Vec<Given> {
    inputs.into_iter().map(|given| Given { quant, ..given }).collect()
}

fn quantized_lstm(random: &mut Random, most: u32) -> Sample {
    let (batch, input) = (random.length(1, most - 1), random.length(1, most));
    let cell = Cell::draw(random, most, [batch, input]);
    let activations = Quant::Fixed(1.0 / 128.0, 128);
    let mut inputs = stored(vec![weights(&[batch, input], random)], activations);
    for (index, given) in cell.weights(random).into_iter().enumerate() {
        let quant = match index {
            // Peepholes.
            8..=10 => Quant::Scale(1.0 / 32768.0),
            // Biases; those of gates with layer norm are in steps of that.
            _ => Quant::Scale(1.0 / 128.0),
        };
        inputs.push(Given { quant, ..given });
    }
    let states = cell.states(random);
    inputs.push(Given { quant: activations, ..states[0].clone() });
    inputs.push(Given { quant: Quant::Scale(1.0 / 4096.0), ..states[1].clone() });
    inputs.extend(stored(cell.layer_norm(random), Quant::Scale(1.0 / 32768.0)));
    let clips = clips(random);
    all(Sample::new(Op::QuantizedLstm), inputs)
        .scalars(&clips)
        .scalars(&[1.0 / 512.0, 1.0 / 512.0, 1.0 / 512.0, 1.0 / 512.0])
        .ints(&[0])
        .scalars(&[1.0 / 128.0])
        .output(activations)
        .output(Quant::Scale(1.0 / 4096.0))
        .output(activations)
}

fn quantized_16bit_lstm(random: &mut Random, most: u32) -> Sample {
    let (batch, input, units) =
        (random.length(1, most - 1), random.length(1, most), random.length(1, most));
    let activations = Quant::Fixed(1.0 / 128.0, 128);
    let matrix = Quant::Fixed(1.0 / 256.0, 128);
    let mut inputs = stored(vec![weights(&[batch, input], random)], activations);
    let matrices = [[units, input]; 4].into_iter().chain([[units, units]; 4]);
    for shape in matrices {
        let half = random.reals(&shape, -0.4, 0.4);
        inputs.push(Given { quant: matrix, ..Given::tensor(&shape, half) });
    }
    let biases = [(); 4].map(|()| Given::tensor(&[units], random.reals(&[units], -0.4, 0.4)));
    inputs.extend(stored(biases.to_vec(), Quant::Product(0, 1)));
    inputs.push(weights(&[batch, units], random));
    inputs.last_mut().unwrap().quant = Quant::Scale(1.0 / 2048.0);
    inputs.extend(stored(vec![weights(&[batch, units], random)], activations));
    all(Sample::new(Op::Quantized16bitLstm), inputs)
        .output(Quant::Scale(1.0 / 2048.0))
        .output(activations)
}
