//! Layers of floats that are multiplied as integers of 8 bits.

use super::convolution::float_epilogue;
use crate::graph::{Epilogue, Node};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::{ExtraParams, FusedActivation};
use nnhal_kernels::Preparation;
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::dynamic::{Convolution, RoundedConvolution, Rounding};
use nnhal_ops::operations::{DynamicConv2d, DynamicFullyConnected, DynamicRound};

/// DYNAMIC_FULLY_CONNECTED with constant weights and a constant bias.
pub(super) fn fully_connected(
    builder: &Builder<'_, '_>,
    node: &Node,
    layer: &DynamicFullyConnected,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let (weights, output) = (builder.graph.input(node, 1), builder.graph.output(node, 0));
    let [units, inputs] = weights.dimensions[..] else { return Err(weights.of_other_rank("2")) };
    let [rows, _] = output.dimensions[..] else { return Err(output.of_other_rank("2")) };
    let sizes = [rows, inputs, units].map(|length| length as usize);
    let shape = Convolution::fully_connected(sizes);
    lower(builder, node, &shape, layer.activation, preparation)
}

/// DYNAMIC_CONV_2D with a constant filter and a constant bias.
pub(super) fn convolution(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &DynamicConv2d,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let [input, filter] = [0, 1].map(|position| builder.graph.input(node, position).image());
    let ([.., channels], [.., of_group]) = (input?, filter?);
    let groups = channels.checked_div(of_group).unwrap_or(1);
    let shape = builder.graph.image_shape(node, convolution.windows, groups)?;
    lower(builder, node, &shape, convolution.activation, preparation)
}

fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    shape: &Shape,
    activation: FusedActivation,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let [weights, bias] = [1, 2].map(|position| builder.graph.input(node, position));
    let form = |found: &str, expected| {
        Err(Why::Form { what: "size of an argument", found: found.to_owned(), expected })
    };
    if !shape.is_valid() {
        return form("more than a kernel's", "fewer");
    }
    if shape.output_pixels() == 0 {
        return Err(builder.graph.output(node, 0).empty());
    }
    // What a filter that is larger than its image sees is mostly copies of padding.
    if shape.is_mostly_padding() {
        return form("one whose windows are mostly padding", "others");
    }
    // Before weights are packed in vain.
    let bias = bias.floats()?;
    let numbers = weights.weights(preparation, &builder.scratch)?;
    let of_all = [weights.operand.scale];
    let scales = match &weights.operand.extra_params {
        ExtraParams::ChannelQuant(quant) => &quant.scales[..],
        _ => &of_all[..],
    };
    let epilogue = float_epilogue(Epilogue::Clamp(activation));
    if RoundedConvolution::suits(shape, preparation.set()) {
        let kernel =
            RoundedConvolution::prepare(shape, &numbers, scales, &bias, epilogue, preparation)?;
        return Ok(Draft::new(node, kernel, [node.inputs[0]]));
    }
    let kernel = Convolution::prepare(shape, &numbers, scales, &bias, epilogue, preparation)?;
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}

/// DYNAMIC_ROUND.
pub(super) fn round(
    builder: &Builder<'_, '_>,
    node: &Node,
    rounding: &DynamicRound,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    if rounding.is_symmetric {
        let (found, expected) = ("symmetric".to_owned(), "from the least to the greatest");
        return Err(Why::Form { what: "range", found, expected });
    }
    let input = builder.graph.input(node, 0);
    let Some(count) = input.dimensions.first().map(|length| *length as usize) else {
        return Err(input.of_other_rank("1 or more"));
    };
    // Lengths beside a 0 may have any product.
    if input.elements() == 0 {
        return Err(input.empty());
    }
    let elements = input.elements() / count;
    let kernel = Rounding::prepare([count, elements], preparation)?;
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}
