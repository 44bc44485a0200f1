//! The LSTM cell in real numbers: one step of one sequence.
//!
//! With the input `x`, the output `h` and the cell `c` of the step before, and `g` for the
//! activation:
//!
//! ```text
//! i  = sigmoid(n(Wi x + Ai a + Ri h + Pi * c) + bi)        input gate; 1 - f if it is coupled
//! f  = sigmoid(n(Wf x + Af a + Rf h + Pf * c) + bf)        forget gate
//! c' = clip(f * c + i * g(n(Wc x + Ac a + Rc h) + bc))     cell
//! o  = sigmoid(n(Wo x + Ao a + Ro h + Po * c') + bo)       output gate
//! h' = o * g(c'), or clip(Wp (o * g(c')) + bp) with a projection
//! ```
//!
//! `a` is the auxiliary input and `n` layer normalization, `(v - mean(v)) / sqrt(variance(v) + 1e-8)`
//! times weights, over the units; each is left out where its weights are. `*` is by element.
//!
//! Everything is computed in double precision, and so are the states between two steps of the same
//! operation.
//!
//! Source: `types.hal` 1.3, LSTM; the 1e-8 from the reference implementation.

use crate::call::{Argument, Call};
use crate::error::Fault;
use crate::rules::cell_activation::{Activation, sigmoid};
use crate::rules::lstm_arguments::{GATES, Gate, LstmArguments};
use crate::rules::recurrence::{
    Direction, Inputs, Rows, Sequences, add_products, clip, to_f64, write_row,
};

/// What keeps layer normalization from dividing by 0.
const LEAST_VARIANCE: f64 = 1e-8;

/// What a cell does besides its weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Of the candidate and of what comes out of the cell.
    pub activation: Activation,
    /// The cell stays within so much of 0; 0 means no limit.
    pub cell_clip: f32,
    /// The projected output stays within so much of 0; 0 means no limit.
    pub projection_clip: f32,
}

impl Settings {
    /// Reads three arguments: activation, cell clip, projection clip.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], a number that is no activation, or a clip that is negative or NaN.
    pub fn decode(call: &Call<'_>, first: usize) -> Result<Self, Fault> {
        Ok(Self {
            activation: Activation::decode_of_lstm(call.input(first))?,
            cell_clip: decode_clip(call.input(first + 1))?,
            projection_clip: decode_clip(call.input(first + 2))?,
        })
    }
}

/// Reads the distance from 0 that something stays within.
///
/// # Errors
/// [`Fault::NotKnown`], or it is negative or NaN.
pub fn decode_clip(argument: &Argument<'_>) -> Result<f32, Fault> {
    let clip = argument.f32()?;
    if clip >= 0.0 { Ok(clip) } else { Err(argument.wrong("value", clip, "0 or more")) }
}

/// What is left of all sequences after their last step, rounded.
#[derive(Debug, Clone, PartialEq)]
pub struct States {
    /// `[batch, output]`
    pub output: Vec<f32>,
    /// `[batch, units]`
    pub cell: Vec<f32>,
}

/// The weights of a gate.
struct GateWeights {
    input: Vec<f32>,
    auxiliary: Option<Vec<f32>>,
    recurrent: Vec<f32>,
    peephole: Option<Vec<f32>>,
    layer_norm: Option<Vec<f32>>,
    bias: Vec<f32>,
}

/// A cell with its weights.
struct Cell {
    settings: Settings,
    /// `None`: coupled to the forget gate.
    input: Option<GateWeights>,
    forget: GateWeights,
    candidate: GateWeights,
    output: GateWeights,
    /// Weights and bias.
    projection: Option<(Vec<f32>, Option<Vec<f32>>)>,
    units: usize,
    output_size: usize,
}

/// One sequence between two steps.
struct State {
    output: Vec<f64>,
    cell: Vec<f64>,
}

/// What goes into a step.
#[derive(Clone, Copy)]
struct Step<'a> {
    input: &'a [f32],
    auxiliary: Option<&'a [f32]>,
}

/// Runs a cell over all sequences of a batch, and writes the outputs of all steps.
///
/// # Errors
/// [`Fault::NotKnown`], or an argument that is needed is left out.
pub fn run(
    call: &Call<'_>,
    arguments: LstmArguments,
    settings: Settings,
    inputs: Inputs<'_, '_>,
    (sequences, direction): (Sequences, Direction),
    mut outputs: Rows<'_>,
) -> Result<States, Fault> {
    let cell = Cell::read(call, arguments, settings)?;
    let steps = inputs.input.f32s()?;
    let auxiliary = inputs.auxiliary.map(Argument::f32s).transpose()?;
    let rows = (sequences.batch * sequences.time).max(1);
    let row_of = |steps: &'_ [f32], row: usize| {
        let size = steps.len() / rows;
        row * size..(row + 1) * size
    };
    let mut states = States {
        output: call.input(arguments.output_state()).f32s()?,
        cell: call.input(arguments.cell_state()).f32s()?,
    };
    // What a step needs: the sums of the gates, what they open, the new states.
    call.reserve::<f64>(16 * (cell.units + cell.output_size))?;
    let kept = states
        .output
        .chunks_exact_mut(cell.output_size.max(1))
        .zip(states.cell.chunks_exact_mut(cell.units.max(1)));
    for (sequence, (kept_output, kept_cell)) in kept.enumerate() {
        let mut state =
            State { output: to_f64(call, kept_output)?, cell: to_f64(call, kept_cell)? };
        for row in sequences.rows(sequence, direction) {
            let auxiliary = auxiliary.as_deref().map(|steps| &steps[row_of(steps, row)]);
            cell.step(call, Step { input: &steps[row_of(&steps, row)], auxiliary }, &mut state)?;
            outputs.write(row, &state.output);
        }
        write_row(kept_output, &state.output);
        write_row(kept_cell, &state.cell);
    }
    Ok(states)
}

impl GateWeights {
    fn read(call: &Call<'_>, arguments: LstmArguments, gate: Gate) -> Result<Self, Fault> {
        let optional = |index: Option<usize>| {
            index.and_then(|index| call.optional(index)).map(Argument::f32s).transpose()
        };
        Ok(Self {
            input: call.input(arguments.input_weights(gate)).f32s()?,
            auxiliary: optional(arguments.auxiliary_weights(gate))?,
            recurrent: call.input(arguments.recurrent_weights(gate)).f32s()?,
            peephole: optional(arguments.peephole(gate))?,
            layer_norm: optional(Some(arguments.layer_norm(gate)))?,
            bias: call.input(arguments.bias(gate)).f32s()?,
        })
    }

    /// What goes into the gate's activation.
    fn sums(&self, call: &Call<'_>, step: Step<'_>, state: &State) -> Result<Vec<f64>, Fault> {
        let mut sums = vec![0.0; self.bias.len()];
        add_products(call, &mut sums, &self.input, step.input.iter().copied().map(f64::from))?;
        if let (Some(weights), Some(auxiliary)) = (&self.auxiliary, step.auxiliary) {
            add_products(call, &mut sums, weights, auxiliary.iter().copied().map(f64::from))?;
        }
        add_products(call, &mut sums, &self.recurrent, state.output.iter().copied())?;
        if let Some(weights) = &self.peephole {
            for ((sum, weight), cell) in sums.iter_mut().zip(weights).zip(&state.cell) {
                *sum += f64::from(*weight) * cell;
            }
        }
        if let Some(weights) = &self.layer_norm {
            normalize(&mut sums);
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum *= f64::from(*weight);
            }
        }
        for (sum, bias) in sums.iter_mut().zip(&self.bias) {
            *sum += f64::from(*bias);
        }
        Ok(sums)
    }
}

/// Shifts and scales numbers to mean 0 and variance 1.
#[allow(clippy::cast_precision_loss)] // Counts stay far below 2^53.
fn normalize(numbers: &mut [f64]) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
    let deviation = (variance + LEAST_VARIANCE).sqrt();
    for number in numbers {
        *number = (*number - mean) / deviation;
    }
}

impl Cell {
    fn read(call: &Call<'_>, arguments: LstmArguments, settings: Settings) -> Result<Self, Fault> {
        let [input, forget, candidate, output] = GATES;
        let weights = |gate| GateWeights::read(call, arguments, gate);
        let has_input_gate = call.optional(arguments.input_weights(input)).is_some();
        let bias = || call.optional(arguments.projection_bias()).map(Argument::f32s).transpose();
        let projection = match call.optional(arguments.projection()) {
            Some(projection) => Some((projection.f32s()?, bias()?)),
            None => None,
        };
        let [_, output_size] = call.input(arguments.output_state()).lengths_of()?;
        let [_, units] = call.input(arguments.cell_state()).lengths_of()?;
        Ok(Self {
            settings,
            input: has_input_gate.then(|| weights(input)).transpose()?,
            forget: weights(forget)?,
            candidate: weights(candidate)?,
            output: weights(output)?,
            projection,
            units,
            output_size,
        })
    }

    fn step(&self, call: &Call<'_>, step: Step<'_>, state: &mut State) -> Result<(), Fault> {
        let Settings { activation, cell_clip, projection_clip } = self.settings;
        call.work(16 * self.units)?;
        let opened = |gate: &GateWeights, state: &State| -> Result<Vec<f64>, Fault> {
            Ok(gate.sums(call, step, state)?.into_iter().map(sigmoid).collect())
        };
        let forget = opened(&self.forget, state)?;
        let input = match &self.input {
            Some(gate) => opened(gate, state)?,
            None => forget.iter().map(|forget| 1.0 - forget).collect(),
        };
        let candidate = self.candidate.sums(call, step, state)?;
        for (unit, cell) in state.cell.iter_mut().enumerate() {
            *cell = *cell * forget[unit] + input[unit] * activation.apply(candidate[unit]);
        }
        clip_all(&mut state.cell, cell_clip);
        let output = opened(&self.output, state)?;
        let hidden: Vec<f64> = output
            .iter()
            .zip(&state.cell)
            .map(|(output, cell)| output * activation.apply(*cell))
            .collect();
        state.output = match &self.projection {
            None => hidden,
            Some((weights, bias)) => {
                let mut sums = match bias {
                    Some(bias) => bias.iter().copied().map(f64::from).collect(),
                    None => vec![0.0; self.output_size],
                };
                add_products(call, &mut sums, weights, hidden.iter().copied())?;
                clip_all(&mut sums, projection_clip);
                sums
            }
        };
        Ok(())
    }
}

/// Keeps numbers within a distance of 0, unless that is 0.
fn clip_all(numbers: &mut [f64], distance: f32) {
    let distance = f64::from(distance);
    if distance > 0.0 {
        numbers.iter_mut().for_each(|number| *number = clip(*number, -distance, distance));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_by_hand() {
        use Activation::{None, Relu, Relu6, Sigmoid, Tanh};
        let at = |x: f64| [None, Relu, Relu6, Tanh, Sigmoid].map(|it| it.apply(x));
        assert_eq!(at(0.0), [0.0, 0.0, 0.0, 0.0, 0.5]);
        assert_eq!(at(7.0)[..3], [7.0, 7.0, 6.0]);
        assert_eq!(at(-7.0)[..3], [-7.0, 0.0, 0.0]);
        assert!((at(1.0)[3] - 0.761_594_155_955_765).abs() < 1e-15);
        assert!((at(1.0)[4] - 0.731_058_578_630_005).abs() < 1e-15);
        assert!(at(f64::NAN).into_iter().all(f64::is_nan));
    }

    #[test]
    fn normalizing_by_hand() {
        let mut numbers = [1.0, 3.0];
        normalize(&mut numbers);
        assert!(numbers.iter().zip([-1.0, 1.0]).all(|(x, y)| (x - y).abs() < 1e-8));
        let mut equal = [5.0; 3];
        normalize(&mut equal);
        assert_eq!(equal, [0.0; 3]);
        // A variance of 1e-8 doubles under the root.
        let mut close = [-1e-4, 1e-4];
        normalize(&mut close);
        assert!((close[1] - 0.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn clipping_by_hand() {
        let mut numbers = [-3.0, 1.0, 3.0];
        clip_all(&mut numbers, 0.0);
        assert_eq!(numbers, [-3.0, 1.0, 3.0]);
        clip_all(&mut numbers, 2.0);
        assert_eq!(numbers, [-2.0, 1.0, 2.0]);
    }
}
