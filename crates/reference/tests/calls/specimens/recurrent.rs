//! Recurrent operations, with lengths of up to `most`.

use crate::calls::dice::Dice;
use crate::calls::specimen::{Given, Quant, Specimen};
use nnhal_hal::OperationType as Op;

const RESULT: Quant = Quant::Fit(1.0);

/// A call of a recurrent operation; `None` of others.
pub fn draw(operation: Op, dice: &mut Dice, most: u32) -> Option<Specimen> {
    Some(match operation {
        Op::BidirectionalSequenceLstm => bidirectional_sequence_lstm(dice, most),
        Op::BidirectionalSequenceRnn => bidirectional_sequence_rnn(dice, most),
        Op::Lstm => lstm(dice, most),
        Op::Quantized16bitLstm => quantized_16bit_lstm(dice, most),
        Op::QuantizedLstm => quantized_lstm(dice, most),
        Op::Rnn => rnn(dice, most),
        Op::Svdf => svdf(dice, most),
        Op::UnidirectionalSequenceLstm => unidirectional_sequence_lstm(dice, most),
        Op::UnidirectionalSequenceRnn => unidirectional_sequence_rnn(dice, most),
        _ => return None,
    })
}

fn weights(dimensions: &[u32], dice: &mut Dice) -> Given {
    Given::tensor(dimensions, dice.reals(dimensions, -0.8, 0.8))
}

fn present(is_present: bool, dimensions: &[u32], dice: &mut Dice) -> Given {
    if is_present { weights(dimensions, dice) } else { Given::omitted() }
}

fn all(specimen: Specimen, inputs: Vec<Given>) -> Specimen {
    inputs.into_iter().fold(specimen, Specimen::input)
}

/// A shape with time as its first or second axis.
fn sequence(is_time_major: bool, batch: u32, time: u32, length: u32) -> [u32; 3] {
    if is_time_major { [time, batch, length] } else { [batch, time, length] }
}

fn rnn(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, input, units) =
        (dice.length(1, most - 1), dice.length(1, most), dice.length(1, most));
    let shapes: [&[u32]; 5] =
        [&[batch, input], &[units, input], &[units, units], &[units], &[batch, units]];
    let inputs = shapes.map(|shape| weights(shape, dice)).to_vec();
    all(Specimen::new(Op::Rnn), inputs).ints(&[dice.int(0, 3)]).output(RESULT).output(RESULT)
}

fn unidirectional_sequence_rnn(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, input, units) =
        (dice.length(1, most - 1), dice.length(1, most), dice.length(1, most));
    let is_time_major = dice.coin();
    let sequence = sequence(is_time_major, batch, dice.length(1, most), input);
    let shapes: [&[u32]; 5] =
        [&sequence, &[units, input], &[units, units], &[units], &[batch, units]];
    let inputs = shapes.map(|shape| weights(shape, dice)).to_vec();
    let specimen = all(Specimen::new(Op::UnidirectionalSequenceRnn), inputs)
        .ints(&[dice.int(0, 3), i32::from(is_time_major)])
        .output(RESULT);
    if dice.coin() { specimen.output(RESULT) } else { specimen }
}

fn bidirectional_sequence_rnn(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, time, input) =
        (dice.length(1, most - 1), dice.length(1, most), dice.length(1, most));
    let [forward, backward] = [(); 2].map(|()| dice.length(1, most));
    let auxiliary = dice.length(1, 2);
    let is_time_major = dice.coin();
    // None; an input of the backward cell alone; an input with weights.
    let kind = dice.int(0, 2);
    let backward_input = if kind == 1 { auxiliary } else { input };
    let shape = sequence(is_time_major, batch, time, input);
    let mut inputs = vec![weights(&shape, dice)];
    for (units, input) in [(forward, input), (backward, backward_input)] {
        let shapes: [&[u32]; 4] = [&[units, input], &[units, units], &[units], &[batch, units]];
        inputs.extend(shapes.map(|shape| weights(shape, dice)));
    }
    let shape = sequence(is_time_major, batch, time, auxiliary);
    inputs.push(present(kind > 0, &shape, dice));
    inputs.push(present(kind == 2, &[forward, auxiliary], dice));
    inputs.push(present(kind == 2, &[backward, auxiliary], dice));
    let merge = dice.int(0, 1);
    let specimen = all(Specimen::new(Op::BidirectionalSequenceRnn), inputs)
        .form(usize::try_from(merge).unwrap())
        .ints(&[dice.int(0, 3), i32::from(is_time_major), merge]);
    let outputs = if merge == 1 { 1 } else { 2 } + dice.pick(&[0, 2]);
    (0..outputs).fold(specimen, |specimen, _| specimen.output(RESULT))
}

fn svdf(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, input, memory) =
        (dice.length(1, most - 1), dice.length(1, most), dice.length(1, 4));
    let (rank, units) = (dice.length(1, 2), dice.length(1, most));
    let filters = rank * units;
    let inputs = vec![
        weights(&[batch, input], dice),
        weights(&[filters, input], dice),
        weights(&[filters, memory], dice),
        present(dice.coin(), &[units], dice),
        weights(&[batch, filters * memory], dice),
    ];
    all(Specimen::new(Op::Svdf), inputs)
        .ints(&[i32::try_from(rank).unwrap(), dice.int(0, 3)])
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
    fn draw(dice: &mut Dice, most: u32, [batch, input]: [u32; 2]) -> Self {
        let has_projection = dice.coin();
        let units = dice.length(1, most);
        Self {
            batch,
            input,
            units,
            output: if has_projection { dice.length(1, units) } else { units },
            has_input_gate: dice.coin(),
            has_peepholes: dice.coin(),
            has_projection,
            has_projection_bias: has_projection && dice.coin(),
            has_layer_norm: dice.coin(),
        }
    }

    /// Weights and biases, in the order of the interface.
    fn weights(&self, dice: &mut Dice) -> Vec<Given> {
        let (units, gate) = (self.units, self.has_input_gate);
        let mut inputs = vec![present(gate, &[units, self.input], dice)];
        inputs.extend([(); 3].map(|()| weights(&[units, self.input], dice)));
        inputs.push(present(gate, &[units, self.output], dice));
        inputs.extend([(); 3].map(|()| weights(&[units, self.output], dice)));
        inputs.push(present(gate && self.has_peepholes, &[units], dice));
        inputs.extend([(); 2].map(|()| present(self.has_peepholes, &[units], dice)));
        inputs.push(present(gate, &[units], dice));
        inputs.extend([(); 3].map(|()| weights(&[units], dice)));
        inputs.push(present(self.has_projection, &[self.output, units], dice));
        inputs.push(present(self.has_projection_bias, &[self.output], dice));
        inputs
    }

    /// Output state and cell state.
    fn states(&self, dice: &mut Dice) -> Vec<Given> {
        vec![weights(&[self.batch, self.output], dice), weights(&[self.batch, self.units], dice)]
    }

    fn layer_norm(&self, dice: &mut Dice) -> Vec<Given> {
        let has = self.has_layer_norm;
        let mut inputs = vec![present(has && self.has_input_gate, &[self.units], dice)];
        inputs.extend([(); 3].map(|()| present(has, &[self.units], dice)));
        inputs
    }
}

/// Activation: RELU, RELU6, TANH, sigmoid.
fn activation(dice: &mut Dice) -> i32 {
    dice.pick(&[1, 3, 4, 4, 6])
}

fn clips(dice: &mut Dice) -> [f64; 2] {
    [(); 2].map(|()| dice.pick(&[0.0, 0.5, 4.0]))
}

fn lstm(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, input) = (dice.length(1, most - 1), dice.length(1, most));
    let mut cell = Cell::draw(dice, most, [batch, input]);
    let has_trailing = dice.coin();
    cell.has_layer_norm &= has_trailing;
    let mut inputs = vec![weights(&[batch, input], dice)];
    inputs.extend(cell.weights(dice));
    inputs.extend(cell.states(dice));
    let specimen =
        all(Specimen::new(Op::Lstm), inputs).ints(&[activation(dice)]).scalars(&clips(dice));
    let specimen = if has_trailing { all(specimen, cell.layer_norm(dice)) } else { specimen };
    (0..4).fold(specimen, |specimen, _| specimen.output(RESULT))
}

fn unidirectional_sequence_lstm(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, input) = (dice.length(1, most - 1), dice.length(1, most));
    let cell = Cell::draw(dice, most, [batch, input]);
    let is_time_major = dice.coin();
    let shape = sequence(is_time_major, batch, dice.length(1, most), input);
    let mut inputs = vec![weights(&shape, dice)];
    inputs.extend(cell.weights(dice));
    inputs.extend(cell.states(dice));
    let specimen = all(Specimen::new(Op::UnidirectionalSequenceLstm), inputs)
        .ints(&[activation(dice)])
        .scalars(&clips(dice))
        .ints(&[i32::from(is_time_major)]);
    let specimen = all(specimen, cell.layer_norm(dice));
    (0..dice.pick(&[1, 3])).fold(specimen, |specimen, _| specimen.output(RESULT))
}

fn bidirectional_sequence_lstm(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, time, input) =
        (dice.length(1, most - 1), dice.length(1, most), dice.length(1, most));
    let auxiliary = dice.length(1, 2);
    let kind = dice.int(0, 2);
    let is_time_major = dice.coin();
    let cells = [input, if kind == 1 { auxiliary } else { input }]
        .map(|input| Cell::draw(dice, most, [batch, input]));
    let mut inputs = vec![weights(&sequence(is_time_major, batch, time, input), dice)];
    inputs.extend(cells.iter().flat_map(|cell| cell.weights(dice)));
    inputs.extend(cells.iter().flat_map(|cell| cell.states(dice)));
    inputs.push(present(kind > 0, &sequence(is_time_major, batch, time, auxiliary), dice));
    for cell in &cells {
        let shape = [cell.units, auxiliary];
        inputs.push(present(kind == 2 && cell.has_input_gate, &shape, dice));
        inputs.extend([(); 3].map(|()| present(kind == 2, &shape, dice)));
    }
    let merge = dice.int(0, 1);
    let specimen = all(Specimen::new(Op::BidirectionalSequenceLstm), inputs)
        .form(usize::try_from(merge).unwrap())
        .ints(&[activation(dice)])
        .scalars(&clips(dice))
        .ints(&[merge, i32::from(is_time_major)]);
    let layer_norm = cells.iter().flat_map(|cell| cell.layer_norm(dice)).collect();
    let outputs = if merge == 1 { 1 } else { 2 } + dice.pick(&[0, 4]);
    (0..outputs).fold(all(specimen, layer_norm), |specimen, _| specimen.output(RESULT))
}

fn stored(inputs: Vec<Given>, quant: Quant) -> Vec<Given> {
    inputs.into_iter().map(|given| Given { quant, ..given }).collect()
}

fn quantized_lstm(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, input) = (dice.length(1, most - 1), dice.length(1, most));
    let cell = Cell::draw(dice, most, [batch, input]);
    let activations = Quant::Fixed(1.0 / 128.0, 128);
    let mut inputs = stored(vec![weights(&[batch, input], dice)], activations);
    for (index, given) in cell.weights(dice).into_iter().enumerate() {
        let quant = match index {
            // Peepholes.
            8..=10 => Quant::Scale(1.0 / 32768.0),
            // Biases; those of gates with layer norm are in steps of that.
            _ => Quant::Scale(1.0 / 128.0),
        };
        inputs.push(Given { quant, ..given });
    }
    let states = cell.states(dice);
    inputs.push(Given { quant: activations, ..states[0].clone() });
    inputs.push(Given { quant: Quant::Scale(1.0 / 4096.0), ..states[1].clone() });
    inputs.extend(stored(cell.layer_norm(dice), Quant::Scale(1.0 / 32768.0)));
    let clips = clips(dice);
    all(Specimen::new(Op::QuantizedLstm), inputs)
        .scalars(&clips)
        .scalars(&[1.0 / 512.0, 1.0 / 512.0, 1.0 / 512.0, 1.0 / 512.0])
        .ints(&[0])
        .scalars(&[1.0 / 128.0])
        .output(activations)
        .output(Quant::Scale(1.0 / 4096.0))
        .output(activations)
}

fn quantized_16bit_lstm(dice: &mut Dice, most: u32) -> Specimen {
    let (batch, input, units) =
        (dice.length(1, most - 1), dice.length(1, most), dice.length(1, most));
    let activations = Quant::Fixed(1.0 / 128.0, 128);
    let matrix = Quant::Fixed(1.0 / 256.0, 128);
    let mut inputs = stored(vec![weights(&[batch, input], dice)], activations);
    let matrices = [[units, input]; 4].into_iter().chain([[units, units]; 4]);
    for shape in matrices {
        let half = dice.reals(&shape, -0.4, 0.4);
        inputs.push(Given { quant: matrix, ..Given::tensor(&shape, half) });
    }
    let biases = [(); 4].map(|()| Given::tensor(&[units], dice.reals(&[units], -0.4, 0.4)));
    inputs.extend(stored(biases.to_vec(), Quant::Product(0, 1)));
    inputs.push(weights(&[batch, units], dice));
    inputs.last_mut().unwrap().quant = Quant::Scale(1.0 / 2048.0);
    inputs.extend(stored(vec![weights(&[batch, units], dice)], activations));
    all(Specimen::new(Op::Quantized16bitLstm), inputs)
        .output(Quant::Scale(1.0 / 2048.0))
        .output(activations)
}
