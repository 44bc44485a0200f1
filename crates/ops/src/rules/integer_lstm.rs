//! The LSTM cell in integers, exact to the bit: TensorFlow Lite's arithmetic with stored numbers of 8
//! bits for input and output and of 16 bits inside. The formulas are those of
//! [`lstm_cell`](crate::rules::lstm_cell), with TANH for the activation.
//!
//! Steps of what is inside: a gate before its activation 2^-12 (but before layer normalization, its
//! own scale), an activation 2^-15, the cell its operand's scale, which is a power of two.
//!
//! Every matrix product and every peephole is brought to the gate's scale, rounded, added, and
//! saturated to 16 bits, in this order: input, output before, cell. The gate's bias is added to
//! the first product before it is rounded; with layer normalization it is added after that instead,
//! in 1/1024 of the steps of the normalization's weights.

use crate::call::{Argument, Call};
use crate::error::Fault;
use crate::rules::fixed_point::{logistic, saturate_16, tanh};
use crate::rules::inverse_square_root::inverse_square_root;
use crate::rules::lstm_arguments::{GATES, Gate, LstmArguments};
use crate::rules::requantize::{Multiplier, divide_by_power_of_two, saturate};

/// Integer bits of what goes into a gate's activation.
const GATE_BITS: u32 = 3;

/// What a cell has besides its weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scales {
    /// Of what goes into each gate, before layer normalization where there is one.
    pub gates: [f32; 4],
    /// Of the cell's output before the projection.
    pub hidden: f32,
    /// The zero point that goes with it.
    pub hidden_zero_point: i8,
    /// The cell stays within so much of 0; 0 means no limit.
    pub cell_clip: f32,
    /// The projected output stays within so much of 0; 0 means no limit.
    pub projection_clip: f32,
}

/// The exponent of a scale that is a power of two, to within a thousandth of the exponent.
#[allow(clippy::cast_possible_truncation)] // Exponents are small; a NaN becomes 0 and is not close.
pub fn exponent_of(scale: f32) -> Option<i32> {
    let exponent = f64::from(scale).log2();
    let nearest = exponent.round();
    ((exponent - nearest).abs() < 1e-3).then_some(nearest as i32)
}

/// One row of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The cell state, as stored.
    pub cell: Vec<i32>,
    /// The output, as stored.
    pub output: Vec<i32>,
}

/// A matrix product that is brought to another scale.
struct Product {
    weights: Vec<i32>,
    multiplier: Multiplier,
}

/// What makes up the input of a gate.
struct GateWeights {
    input: Product,
    recurrent: Product,
    peephole: Option<Product>,
    layer_norm: Option<Product>,
    bias: Vec<i32>,
}

/// A cell with its weights.
pub struct Cell {
    /// `None`: coupled to the forget gate.
    input: Option<GateWeights>,
    forget: GateWeights,
    candidate: GateWeights,
    output: GateWeights,
    projection: Option<(Product, Vec<i32>)>,
    /// From products of activations to stored hidden numbers.
    hidden: Multiplier,
    hidden_zero_point: i32,
    output_zero_point: i32,
    /// The power of two that is the cell's scale.
    cell_exponent: i32,
    /// In steps of the cell and of the output.
    clips: [Option<i32>; 2],
}

impl Product {
    fn read(weights: &Argument<'_>, scale: f32) -> Result<Self, Fault> {
        let multiplier = Multiplier::from_real(scale.into());
        Ok(Self { weights: weights.integers()?, multiplier })
    }

    /// The sum of products of each row, started from what is given.
    fn sums<'a>(
        &'a self,
        call: &'a Call<'_>,
        numbers: &'a [i32],
        start: impl Fn(usize) -> i32 + 'a,
    ) -> impl Iterator<Item = Result<i32, Fault>> + 'a {
        let rows = self.weights.chunks_exact(numbers.len().max(1));
        rows.enumerate().map(move |(row, weights)| {
            let mut sum = start(row);
            call.each(weights.iter().zip(numbers), |(w, x)| {
                sum = sum.wrapping_add(w.wrapping_mul(*x));
            })?;
            Ok(self.multiplier.apply(sum))
        })
    }
}

/// Adds numbers to others, saturated to 16 bits.
fn add_all(
    sums: &mut [i16],
    numbers: impl Iterator<Item = Result<i32, Fault>>,
) -> Result<(), Fault> {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum = saturate_16(number?.saturating_add((*sum).into()));
    }
    Ok(())
}

impl GateWeights {
    fn read(
        call: &Call<'_>,
        arguments: LstmArguments,
        gate: Gate,
        scale: f32,
    ) -> Result<Self, Fault> {
        let (input, output) = (call.input(0), call.input(arguments.output_state()));
        let weights = call.input(arguments.input_weights(gate));
        let recurrent = call.input(arguments.recurrent_weights(gate));
        let peephole = arguments.peephole(gate).and_then(|index| call.optional(index));
        // The exponent stands for the scale, which may be a little off.
        let cell_scale = exponent_of(call.input(arguments.cell_state()).scale)
            .map_or(0.0, |exponent| 2_f64.powi(exponent));
        #[allow(clippy::cast_possible_truncation)] // The rounding that is wanted.
        let of_cell = |peephole: &Argument<'_>| {
            (cell_scale * f64::from(peephole.scale) / f64::from(scale)) as f32
        };
        let layer_norm = call.optional(arguments.layer_norm(gate));
        Ok(Self {
            input: Product::read(weights, weights.scale * input.scale / scale)?,
            recurrent: Product::read(recurrent, recurrent.scale * output.scale / scale)?,
            peephole: peephole.map(|it| Product::read(it, of_cell(it))).transpose()?,
            layer_norm: layer_norm.map(|it| Product::read(it, it.scale)).transpose()?,
            bias: call.input(arguments.bias(gate)).i32s()?,
        })
    }

    /// What goes into the gate's activation.
    fn sums(&self, call: &Call<'_>, [input, output, cell]: [&[i32]; 3]) -> Result<Vec<i16>, Fault> {
        let mut sums = vec![0; self.bias.len()];
        let has_norm = self.layer_norm.is_some();
        let bias = |row| if has_norm { 0 } else { self.bias[row] };
        add_all(&mut sums, self.input.sums(call, input, bias))?;
        add_all(&mut sums, self.recurrent.sums(call, output, |_| 0))?;
        if let Some(Product { weights, multiplier }) = &self.peephole {
            let products = weights.iter().zip(cell).map(|(w, c)| w.wrapping_mul(*c));
            add_all(&mut sums, products.map(|product| Ok(multiplier.apply(product))))?;
        }
        if let Some(layer_norm) = &self.layer_norm {
            normalize(&mut sums, layer_norm, &self.bias);
        }
        Ok(sums)
    }

    fn opened(&self, call: &Call<'_>, step: [&[i32]; 3]) -> Result<Vec<i32>, Fault> {
        let sums = self.sums(call, step)?.into_iter();
        Ok(sums.map(|sum| logistic(sum, GATE_BITS).into()).collect())
    }
}

/// Layer normalization: of the mean 10 more bits are kept, and of the normalized numbers. The
/// variance is in whole steps, at least 1.
fn normalize(sums: &mut [i16], layer_norm: &Product, bias: &[i32]) {
    let count = i64::try_from(sums.len()).unwrap_or(i64::MAX).max(1);
    let numbers = || sums.iter().map(|sum| i64::from(*sum));
    let mean = numbers().sum::<i64>() * 1024 / count;
    let squares: i64 = numbers().map(|number| number * number).sum();
    let variance = (squares.wrapping_mul((1 << 20) / count) - mean * mean) / (1 << 20);
    let inverse_deviation = inverse_square_root(variance);
    let Multiplier { mantissa, exponent } = layer_norm.multiplier;
    // From steps of 2^-10 of the weights' scale to steps of 2^-12, after 10 bits are rounded off.
    let multiplier = Multiplier { mantissa, exponent: exponent + 12 };
    for ((sum, weight), bias) in sums.iter_mut().zip(&layer_norm.weights).zip(bias) {
        let normalized = inverse_deviation.apply(saturate(i64::from(*sum) * 1024 - mean));
        let weighted = i64::from(normalized) * i64::from(*weight) + i64::from(*bias);
        let half = if weighted > 0 { 512 } else { -512 };
        *sum = saturate_16(multiplier.apply(saturate((weighted + half) / 1024)));
    }
}

/// A distance from 0 in steps, rounded towards 0; `None` if that is 0.
#[allow(clippy::cast_possible_truncation)] // Float casts saturate.
pub fn clip_in_steps(clip: f32, scale: f32, greatest: i32) -> Option<i32> {
    Some(((clip / scale) as i32).min(greatest)).filter(|steps| *steps > 0)
}

impl Cell {
    /// Reads the weights.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or an argument that is needed is left out.
    pub fn read(call: &Call<'_>, arguments: LstmArguments, scales: &Scales) -> Result<Self, Fault> {
        let gate =
            |gate: Gate| GateWeights::read(call, arguments, gate, scales.gates[gate as usize]);
        let [input, forget, candidate, output] = GATES;
        let has_input_gate = call.optional(arguments.input_weights(input)).is_some();
        let output_state = call.input(arguments.output_state());
        let cell_state = call.input(arguments.cell_state());
        let hidden_zero_point = i32::from(scales.hidden_zero_point);
        let projection = match call.optional(arguments.projection()) {
            None => None,
            Some(weights) => {
                let scale = weights.scale * scales.hidden / output_state.scale;
                let product = Product::read(weights, scale)?;
                let [rows, _] = weights.lengths_of()?;
                let bias = match call.optional(arguments.projection_bias()) {
                    Some(bias) => bias.i32s()?,
                    None => call.collect(rows, std::iter::repeat(0))?,
                };
                Some((product, bias))
            }
        };
        #[allow(clippy::cast_possible_truncation)] // The rounding that is wanted.
        let hidden = (2_f64.powi(-15) / f64::from(scales.hidden) * 2_f64.powi(-15)) as f32;
        Ok(Self {
            input: has_input_gate.then(|| gate(input)).transpose()?,
            forget: gate(forget)?,
            candidate: gate(candidate)?,
            output: gate(output)?,
            projection,
            hidden: Multiplier::from_real(hidden.into()),
            hidden_zero_point,
            output_zero_point: output_state.zero_point,
            cell_exponent: exponent_of(cell_state.scale).unwrap_or(0),
            clips: [
                clip_in_steps(scales.cell_clip, cell_state.scale, i16::MAX.into()),
                clip_in_steps(scales.projection_clip, output_state.scale, i8::MAX.into()),
            ],
        })
    }

    /// One step of one sequence: the input less its zero point, the output before less its own, and
    /// the cell before.
    pub fn step(&self, call: &Call<'_>, [input, output, cell]: [&[i32]; 3]) -> Result<Step, Fault> {
        call.work(16 * cell.len())?;
        let before = [input, output, cell];
        let staying = self.forget.opened(call, before)?;
        let entering = match &self.input {
            Some(gate) => gate.opened(call, before)?,
            None => staying.iter().map(|staying| i32::from(i16::MAX) - staying).collect(),
        };
        let candidates = self.candidate.sums(call, before)?;
        let mut new_cell = Vec::with_capacity(cell.len());
        for (unit, candidate) in candidates.into_iter().enumerate() {
            let candidate = i32::from(tanh(candidate, GATE_BITS));
            let kept = divide_by_power_of_two(staying[unit] * cell[unit], 15);
            // Both activations have 15 bits behind the point.
            let shift = 30 + self.cell_exponent;
            let entering = divide_by_power_of_two(entering[unit] * candidate, shift);
            let sum = i32::from(saturate_16(kept + entering));
            new_cell.push(clipped(sum, self.clips[0]));
        }
        let leaving = self.output.opened(call, [input, output, &new_cell])?;
        let integer_bits = u32::try_from(15 + self.cell_exponent).map_or(0, |bits| bits.min(6));
        let products = leaving.iter().zip(&new_cell).map(|(leaving, cell)| {
            self.hidden.apply(leaving * i32::from(tanh(saturate_16(*cell), integer_bits)))
        });
        let stored = |number: i32| number.clamp(i8::MIN.into(), i8::MAX.into());
        let output = match &self.projection {
            None => products
                .map(|number| stored(number.saturating_add(self.hidden_zero_point)))
                .collect(),
            Some((projection, bias)) => {
                // The reference takes the zero point with the other sign here, and back below:
                // what 8 bits saturate is on the other side.
                let hidden: Vec<i32> = products
                    .map(|number| stored(number.saturating_sub(self.hidden_zero_point)))
                    .map(|number| number + self.hidden_zero_point)
                    .collect();
                let output = |sum: i32| {
                    clipped(stored(sum.saturating_add(self.output_zero_point)), self.clips[1])
                };
                let sums = projection.sums(call, &hidden, |row| bias[row]);
                sums.map(|sum| sum.map(output)).collect::<Result<_, _>>()?
            }
        };
        Ok(Step { cell: new_cell, output })
    }
}

/// Within a distance of 0, if there is one.
fn clipped(number: i32, distance: Option<i32>) -> i32 {
    distance.map_or(number, |distance| number.clamp(-distance, distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_powers_of_two_or_nearly() {
        for exponent in [-15, -9, 0, 3] {
            let scale = 2.0_f32.powi(exponent);
            for nearly in [scale, scale * 1.0006, scale / 1.0006] {
                assert_eq!(exponent_of(nearly), Some(exponent), "{nearly}");
            }
            assert_eq!(exponent_of(scale * 1.0008), None);
        }
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(exponent_of(scale), None, "{scale}");
        }
    }

    #[test]
    fn clips_in_steps() {
        assert_eq!(clip_in_steps(1.0, 0.25, 127), Some(4));
        assert_eq!(clip_in_steps(1.9, 1.0, 127), Some(1));
        assert_eq!(clip_in_steps(0.9, 1.0, 127), None);
        assert_eq!(clip_in_steps(0.0, 1.0, 127), None);
        assert_eq!(clip_in_steps(f32::MAX, 1e-30, 127), Some(127));
    }

    #[test]
    fn normalizing_by_hand() {
        // Mean 0, variance 1000^2: 1 and -1, times weights of 1 in steps of 2^-12, and a bias of 1/4.
        let norm = |weights: &[i32]| Product {
            weights: weights.to_vec(),
            multiplier: Multiplier::from_real(2.0_f64.powi(-12)),
        };
        let mut sums = [1000, -1000];
        normalize(&mut sums, &norm(&[4096, 4096]), &[0, 1 << 20]);
        assert_eq!(sums, [4096, -3072]);
        // Equal numbers have no variance, and nothing is left of them.
        let mut sums = [777; 3];
        normalize(&mut sums, &norm(&[4096; 3]), &[0, 1 << 20, -(1 << 20)]);
        assert_eq!(sums, [0, 1024, -1024]);
        // What is beyond 8 saturates.
        let mut sums = [1000, -1000];
        normalize(&mut sums, &norm(&[32767, 32767]), &[1 << 24, -(1 << 24)]);
        assert_eq!(sums, [i16::MAX, i16::MIN]);
    }
}
