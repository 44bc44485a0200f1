//! From one type to another.

use super::softmax::around;
use crate::graph::{Argument, Node};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, ELEMENTS_BY_THREAD, Kernel, Run, name};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_hal::{ExtraParams, OperandType};
use nnhal_kernels::quantized_elementwise::{Quantization, dequantize, quantize};
use nnhal_kernels::{InstructionSet, Preparation, for_each_slice};

/// QUANTIZE or DEQUANTIZE.
#[derive(Debug)]
struct Conversion {
    set: InstructionSet,
    quantization: Quantization,
    direction: Direction,
    is_signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToFloat,
    FromFloat,
}

pub(super) fn quantizing(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    draft(builder, node, builder.graph.output(node, 0), Direction::FromFloat)
}

pub(super) fn dequantizing(
    builder: &Builder<'_, '_>,
    node: &Node,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let stored = builder.graph.input(node, 0);
    if let ExtraParams::ChannelQuant(quant) = &stored.operand.extra_params {
        let sizes = around(&stored, quant.channel_dim as usize);
        let scales = preparation.collected(quant.scales.iter().copied(), "scales of channels")?;
        return Ok(Draft::new(node, ByChannel { sizes, scales }, [node.inputs[0]]));
    }
    draft(builder, node, stored, Direction::ToFloat)
}

fn draft(
    builder: &Builder<'_, '_>,
    node: &Node,
    stored: Argument<'_>,
    direction: Direction,
) -> Result<Draft, Why> {
    let is_signed = match stored.operand_type() {
        OperandType::TensorQuant8Asymm => false,
        OperandType::TensorQuant8AsymmSigned | OperandType::TensorQuant8Symm => true,
        _ => return Err(stored.of_other_type("8-bit integers")),
    };
    let quantization = stored.quantization();
    let set = builder.settings.instruction_set;
    let kernel = Conversion { set, quantization, direction, is_signed };
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}

impl Kernel for Conversion {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let Self { set, quantization, .. } = *self;
        let (team, bytes) = (&mut *run.team, inputs.bytes(0));
        match (self.direction, self.is_signed) {
            (Direction::ToFloat, false) => {
                dequantize::<u8>(set, team, bytes, bytemuck::cast_slice_mut(output), quantization);
            }
            (Direction::ToFloat, true) => {
                let output = bytemuck::cast_slice_mut(output);
                dequantize::<i8>(set, team, bytemuck::cast_slice(bytes), output, quantization);
            }
            (Direction::FromFloat, false) => {
                quantize::<u8>(set, team, inputs.floats(0), output, quantization);
            }
            (Direction::FromFloat, true) => {
                let output = bytemuck::cast_slice_mut(output);
                quantize::<i8>(set, team, inputs.floats(0), output, quantization);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        let operation = match self.direction {
            Direction::ToFloat => "dequantize",
            Direction::FromFloat => "quantize",
        };
        format!("{operation} {}", name::quantized(self.is_signed))
    }
}

/// DEQUANTIZE of signed numbers with a scale for each channel.
#[derive(Debug)]
struct ByChannel {
    /// Lengths before the channels' axis, along it and behind it.
    sizes: [usize; 3],
    scales: Vec<f32>,
}

impl Kernel for ByChannel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let input: &[i8] = bytemuck::cast_slice(inputs.bytes(0));
        let output: &mut [f32] = bytemuck::cast_slice_mut(output);
        let [_, _, inner] = self.sizes;
        if output.is_empty() {
            return Ok(());
        }
        for_each_slice(run.team, output, ELEMENTS_BY_THREAD, |start, part| {
            let (mut at, end) = (start, start + part.len());
            while at < end {
                // What is left of a channel.
                let channel = at..end.min((at / inner + 1) * inner);
                let scale = self.scales[at / inner % self.scales.len()];
                at = channel.end;
                let reals = &mut part[channel.start - start..channel.end - start];
                for (stored, real) in input[channel].iter().zip(reals) {
                    *real = f32::from(*stored) * scale;
                }
            }
        });
        Ok(())
    }

    fn name(&self) -> String {
        "dequantize per channel i8".to_owned()
    }
}
