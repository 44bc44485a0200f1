//! LSTMs of integers: one step each.

use super::Arguments;
use crate::graph::{Argument, Node, Weights};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use bytemuck::Pod;
use nnhal_kernels::recurrent::integer::{
    Gate8, Gate16, Lstm8, Lstm16, Projection8, Settings8, Settings16, StepShape, Term, Weights8,
};
use nnhal_kernels::{Multiplier, Preparation};
use nnhal_ops::operations::QuantizedLstm;
use nnhal_ops::operations::quantized_lstm::ARGUMENTS;
use nnhal_ops::rules::integer_lstm::{Scales, clip_in_steps, exponent_of};
use nnhal_ops::rules::lstm_arguments::{self, GATES};
use std::borrow::Cow;

/// Where the arguments of QUANTIZED_16BIT_LSTM stand: those of input gate, forget gate, cell and
/// output gate follow each other.
const WEIGHTS: usize = 1;
const RECURRENT: usize = 5;
const BIAS: usize = 9;
const CELL: usize = 13;
const OUTPUT: usize = 14;

/// Elements of 16 or 32 bits of a constant, without a copy where they are aligned; none of one that is left
/// out.
fn elements<T: Pod, const BYTES: usize>(
    arguments: Arguments<'_>,
    position: usize,
    of_bytes: impl Fn([u8; BYTES]) -> T,
) -> Result<Option<Cow<'_, [T]>>, Why> {
    let Some(value) = arguments.given(position) else { return Ok(None) };
    let bytes = value.bytes()?;
    if cfg!(target_endian = "little")
        && let Ok(elements) = bytemuck::try_cast_slice(bytes)
    {
        return Ok(Some(Cow::Borrowed(elements)));
    }
    let (elements, _) = bytes.as_chunks();
    Ok(Some(elements.iter().map(|bytes| of_bytes(*bytes)).collect()))
}

/// Bytes to be packed; none of what is left out.
fn bytes<'a>(
    arguments: Arguments<'a>,
    position: usize,
    preparation: &Preparation,
) -> Result<Option<Weights<'a, u8>>, Why> {
    let of = |value: Argument<'a>| value.weights(preparation, arguments.scratch);
    arguments.given(position).map(of).transpose()
}

fn scale(arguments: Arguments<'_>, position: usize) -> Result<f32, Why> {
    Ok(arguments.value(position)?.operand.scale)
}

/// An LSTM whose cell has 16 bits and whose weights have a zero point.
pub(super) fn step_16(
    builder: &Builder<'_, '_>,
    node: &Node,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let units = arguments.length(OUTPUT, 1)?;
    let shape = StepShape {
        batch: arguments.length_above_0(0, 0)?,
        input: arguments.length(0, 1)?,
        units,
        output: units,
    };
    let gate = |gate: usize| -> Result<_, Why> {
        let weights =
            |position: usize| arguments.wanted(position, bytes(arguments, position, preparation)?);
        let bias = elements(arguments, BIAS + gate, i32::from_le_bytes)?;
        let bias = arguments.wanted(BIAS + gate, bias)?;
        Ok((weights(WEIGHTS + gate)?, weights(RECURRENT + gate)?, bias))
    };
    let gates = [gate(0)?, gate(1)?, gate(2)?, gate(3)?];
    let settings = Settings16 {
        zero_point: zero_point(arguments, WEIGHTS)?,
        multiplier: Multiplier::from_real(f64::from(scale(arguments, BIAS)?) * 4096.0),
    };
    // Each bias has a scale of its own, if only by a little.
    for gate in 1..4 {
        let multiplier = Multiplier::from_real(f64::from(scale(arguments, BIAS + gate)?) * 4096.0);
        if multiplier != settings.multiplier {
            let found = "that of another gate".to_owned();
            return Err(Why::Form { what: "scale of a gate's bias", found, expected: "the same" });
        }
    }
    let borrowed =
        gates.each_ref().map(|(input, recurrent, bias)| Gate16 { input, recurrent, bias });
    let lstm = Lstm16::prepare(shape, borrowed, settings, preparation)?;
    Ok(Draft::new(node, lstm, [0, CELL, OUTPUT].map(|position| node.inputs[position])))
}

/// An LSTM of signed numbers of 8 bits.
pub(super) fn step_8(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &QuantizedLstm,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let scales = &operation.scales;
    let [output_at, cell_at] = [ARGUMENTS.output_state(), ARGUMENTS.cell_state()];
    let shape = StepShape {
        batch: arguments.length_above_0(0, 0)?,
        input: arguments.length(0, 1)?,
        units: arguments.length(cell_at, 1)?,
        output: arguments.length(output_at, 1)?,
    };
    let gate = |gate| Owned::read(arguments, gate, scales, preparation);
    let wanted = |name| arguments.wanted(ARGUMENTS.input_weights(name), gate(name)?);
    let [of_input, of_forget, of_cell, of_output] = GATES;
    let input = gate(of_input)?;
    let (forget, cell, output) = (wanted(of_forget)?, wanted(of_cell)?, wanted(of_output)?);
    let projection = bytes(arguments, ARGUMENTS.projection(), preparation)?;
    let bias = elements(arguments, ARGUMENTS.projection_bias(), i32::from_le_bytes)?;
    let output_scale = scale(arguments, output_at)?;
    let of_projection = scale(arguments, ARGUMENTS.projection())? * scales.hidden / output_scale;
    let weights = Weights8 {
        input: input.as_ref().map(Owned::borrowed),
        forget: forget.borrowed(),
        cell: cell.borrowed(),
        output: output.borrowed(),
        projection: projection.as_deref().map(|weights| Projection8 {
            weights: term(bytemuck::cast_slice(weights), of_projection),
            bias: bias.as_deref(),
        }),
    };
    let cell_scale = scale(arguments, cell_at)?;
    #[allow(clippy::cast_possible_truncation)] // The rounding that is wanted.
    let hidden = (2_f64.powi(-15) / f64::from(scales.hidden) * 2_f64.powi(-15)) as f32;
    let settings = Settings8 {
        input_zero_point: zero_point(arguments, 0)?,
        output_zero_point: zero_point(arguments, output_at)?,
        hidden_zero_point: scales.hidden_zero_point,
        hidden: Multiplier::from_real(hidden.into()),
        cell_exponent: exponent(cell_scale)?,
        cell_clip: clip_in_steps(scales.cell_clip, cell_scale, i16::MAX.into()),
        projection_clip: clip_in_steps(scales.projection_clip, output_scale, i8::MAX.into()),
    };
    let lstm = Lstm8::prepare(shape, &weights, settings, preparation)?;
    let inputs = [0, output_at, cell_at].map(|position| node.inputs[position]);
    Ok(Draft::new(node, lstm, inputs))
}

/// The zero point of an argument, within the range of its type.
fn zero_point<T: TryFrom<i32>>(arguments: Arguments<'_>, position: usize) -> Result<T, Why> {
    let found = arguments.value(position)?.operand.zero_point;
    let expected = "within the range of the type";
    let wrong = |_| Why::Form { what: "zero point", found: found.to_string(), expected };
    T::try_from(found).map_err(wrong)
}

/// The power of two that a scale is.
fn exponent(scale: f32) -> Result<i32, Why> {
    let wrong = || Why::Form {
        what: "scale of the cell state",
        found: scale.to_string(),
        expected: "a power of two",
    };
    exponent_of(scale).ok_or_else(wrong)
}

/// The weights of a gate.
struct Owned<'a> {
    input: (Weights<'a, u8>, f32),
    recurrent: (Weights<'a, u8>, f32),
    peephole: Option<Numbers<'a>>,
    layer_norm: Option<Numbers<'a>>,
    bias: Cow<'a, [i32]>,
}

/// Numbers of units and what a step of them is, as a part of the sum's.
type Numbers<'a> = (Cow<'a, [i16]>, f32);

fn term<T>(weights: &[T], real: f32) -> Term<'_, T> {
    Term { weights, multiplier: Multiplier::from_real(real.into()) }
}

fn matrix<'a>((weights, real): &'a (Weights<'_, u8>, f32)) -> Term<'a, i8> {
    term(bytemuck::cast_slice(weights), *real)
}

fn vector<'a>(vector: &'a Option<Numbers<'_>>) -> Option<Term<'a, i16>> {
    vector.as_ref().map(|(weights, real)| term(&weights[..], *real))
}

impl<'a> Owned<'a> {
    fn read(
        arguments: Arguments<'a>,
        gate: lstm_arguments::Gate,
        scales: &Scales,
        preparation: &Preparation,
    ) -> Result<Option<Self>, Why> {
        let to = scales.gates[gate as usize];
        let weights = |position: usize| bytes(arguments, position, preparation);
        let [input, recurrent] = [ARGUMENTS.input_weights(gate), ARGUMENTS.recurrent_weights(gate)];
        let Some(input_weights) = weights(input)? else { return Ok(None) };
        let real = |position: usize, numbers: usize| -> Result<f32, Why> {
            Ok(scale(arguments, position)? * scale(arguments, numbers)? / to)
        };
        // The exponent stands for the scale, which may be a little off.
        let cell_scale = 2_f64.powi(exponent(scale(arguments, ARGUMENTS.cell_state())?)?);
        let vector = |position: usize, real: &dyn Fn(f32) -> f32| -> Result<_, Why> {
            let Some(numbers) = elements(arguments, position, i16::from_le_bytes)? else {
                return Ok(None);
            };
            Ok(Some((numbers, real(scale(arguments, position)?))))
        };
        #[allow(clippy::cast_possible_truncation)] // The rounding that is wanted.
        let of_cell = |scale: f32| (cell_scale * f64::from(scale) / f64::from(to)) as f32;
        let (peephole, bias) = (ARGUMENTS.peephole(gate), ARGUMENTS.bias(gate));
        let recurrent_weights = arguments.wanted(recurrent, weights(recurrent)?)?;
        Ok(Some(Self {
            input: (input_weights, real(input, 0)?),
            recurrent: (recurrent_weights, real(recurrent, ARGUMENTS.output_state())?),
            peephole: peephole.map_or(Ok(None), |position| vector(position, &of_cell))?,
            layer_norm: vector(ARGUMENTS.layer_norm(gate), &|scale| scale)?,
            bias: arguments.wanted(bias, elements(arguments, bias, i32::from_le_bytes)?)?,
        }))
    }

    fn borrowed(&self) -> Gate8<'_> {
        Gate8 {
            input: matrix(&self.input),
            recurrent: matrix(&self.recurrent),
            peephole: vector(&self.peephole),
            layer_norm: vector(&self.layer_norm),
            bias: &self.bias,
        }
    }
}
