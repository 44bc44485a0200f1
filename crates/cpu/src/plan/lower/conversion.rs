//! From one type of element to another: QUANTIZE, DEQUANTIZE and CAST.

use crate::graph::{Argument, Node};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::ExtraParams;
use nnhal_kernels::elementwise::{Cast, Dequantize, DequantizeChannels, Quantize};
use nnhal_kernels::{ElementType, Preparation};

/// How numbers are stored: in 8 or 16 bits.
fn stored(argument: Argument<'_>) -> Result<ElementType, Why> {
    let elements = argument.element_type().filter(|_| argument.is_quantized());
    elements.ok_or_else(|| argument.of_other_type("integers of 8 or 16 bits with a scale"))
}

pub(super) fn quantizing(builder: &Builder<'_, '_>, node: &Node) -> Result<Draft, Why> {
    let output = builder.graph.output(node, 0);
    let (set, quantization) = (builder.settings.instruction_set, output.quantization());
    let inputs = [node.inputs[0]];
    Ok(match stored(output)? {
        ElementType::I8 => Draft::new(node, Quantize::<i8>::prepare(set, quantization), inputs),
        ElementType::I16 => Draft::new(node, Quantize::<i16>::prepare(set, quantization), inputs),
        ElementType::U16 => Draft::new(node, Quantize::<u16>::prepare(set, quantization), inputs),
        _ => Draft::new(node, Quantize::<u8>::prepare(set, quantization), inputs),
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
        let [_, _, inner] = input.around(quant.channel_dim as usize);
        let scales = preparation.collected(quant.scales.iter().copied(), "scales of channels")?;
        return Ok(Draft::new(node, DequantizeChannels::prepare(set, inner, scales), inputs));
    }
    Ok(match stored(input)? {
        ElementType::I8 => Draft::new(node, Dequantize::<i8>::prepare(set, quantization), inputs),
        ElementType::I16 => Draft::new(node, Dequantize::<i16>::prepare(set, quantization), inputs),
        ElementType::U16 => Draft::new(node, Dequantize::<u16>::prepare(set, quantization), inputs),
        _ => Draft::new(node, Dequantize::<u8>::prepare(set, quantization), inputs),
    })
}

/// Whether integers become the nearest that the type holds, or their lowest bits.
pub(super) fn cast(builder: &Builder<'_, '_>, node: &Node, saturates: bool) -> Result<Draft, Why> {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let elements =
        |of: Argument<'_>| of.element_type().ok_or_else(|| of.of_other_type("real numbers"));
    let (from, to) = (elements(input)?, elements(output)?);
    let set = builder.settings.instruction_set;
    let is_narrow = output.is_float16() && !input.is_float16();
    Ok(Draft::new(node, Cast { set, from, to, saturates, is_narrow }, [node.inputs[0]]))
}
