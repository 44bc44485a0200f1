//! QUANTIZE and DEQUANTIZE.

use super::softmax::around;
use crate::graph::{Argument, Node};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::{ExtraParams, OperandType};
use nnhal_kernels::Preparation;
use nnhal_kernels::elementwise::{Dequantize, DequantizeChannels, Quantize};

/// Whether stored numbers are signed.
fn is_signed(stored: Argument<'_>) -> Result<bool, Why> {
    match stored.operand_type() {
        OperandType::TensorQuant8Asymm => Ok(false),
        OperandType::TensorQuant8AsymmSigned | OperandType::TensorQuant8Symm => Ok(true),
        _ => Err(stored.of_other_type("8-bit integers")),
    }
}

pub(super) fn quantizing(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    let output = builder.graph.output(node, 0);
    let (set, quantization) = (builder.settings.instruction_set, output.quantization());
    let inputs = [node.inputs[0]];
    Ok(match is_signed(output)? {
        true => Draft::new(node, Quantize::<i8>::prepare(set, quantization), inputs),
        false => Draft::new(node, Quantize::<u8>::prepare(set, quantization), inputs),
    })
}

pub(super) fn dequantizing(
    builder: &Builder<'_, '_>,
    node: &Node,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let (set, quantization) = (builder.settings.instruction_set, input.quantization());
    let inputs = [node.inputs[0]];
    if let ExtraParams::ChannelQuant(quant) = &input.operand.extra_params {
        let [_, _, inner] = around(&input, quant.channel_dim as usize);
        let scales = preparation.collected(quant.scales.iter().copied(), "scales of channels")?;
        return Ok(Draft::new(node, DequantizeChannels::prepare(set, inner, scales), inputs));
    }
    Ok(match is_signed(input)? {
        true => Draft::new(node, Dequantize::<i8>::prepare(set, quantization), inputs),
        false => Draft::new(node, Dequantize::<u8>::prepare(set, quantization), inputs),
    })
}
