//! Normalizations of floats.

use super::of_byte;
use crate::graph::{Node, Normalization};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::PreparedKernel;
use nnhal_kernels::reduction::{
    self, AlongAxis, LayerNormalization, OfRows, QuantizedL2, RowNormalization,
};
use nnhal_ops::operations::{InstanceNormalization, L2Normalization, LocalResponseNormalization};
use nnhal_ops::rules::layout;

pub(super) fn lower(builder: &Builder<'_, '_>, node: &Node, normalization: Normalization) -> Draft {
    let Normalization { epsilon, has_scale, has_offset } = normalization;
    let input = &builder.graph.values[node.inputs[0]];
    let length = input.dimensions.last().map_or(1, |length| *length as usize);
    let rows = input.elements().checked_div(length).unwrap_or(0);
    let set = builder.settings.instruction_set;
    let kind = reduction::Normalization::Layer { epsilon };
    let rows = RowNormalization::prepare(set, kind, rows, length);
    let kernel = LayerNormalization { rows, has_scale, has_offset };
    Draft::new(node, kernel, node.inputs.iter().copied())
}

pub(super) fn l2(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &L2Normalization,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    if !input.is_float() {
        return quantized_l2(builder, node, normalization.axis);
    }
    let sizes = input.around(normalization.axis);
    let [outer, length, inner] = sizes;
    // As the operation has it.
    let kind = reduction::Normalization::L2 { least: 1e-6 };
    let set = builder.settings.instruction_set;
    let kernel = RowNormalization::prepare(set, kind, outer * inner, length);
    Ok(draft(node, AlongAxis::prepare(sizes, OfRows::L2(kernel))))
}

/// INSTANCE_NORMALIZATION of NHWC images of floats.
pub(super) fn instance(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &InstanceNormalization,
) -> Result<Draft, Why> {
    let [batch, height, width, channels] = builder.graph.input(node, 0).image()?;
    if normalization.layout != layout::Layout::Nhwc {
        return Err(Why::ChannelsFirst);
    }
    let pixels = height * width;
    let InstanceNormalization { gamma, beta, epsilon, .. } = *normalization;
    let (sizes, numbers) = ([batch, pixels, channels], [gamma, beta, epsilon]);
    Ok(draft(node, reduction::InstanceNormalization { sizes, numbers }))
}

pub(super) fn local_response(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &LocalResponseNormalization,
) -> Draft {
    let sizes = builder.graph.values[node.inputs[0]].around(normalization.axis);
    let LocalResponseNormalization { radius, bias, alpha, beta, .. } = *normalization;
    let numbers = [bias, alpha, beta];
    let kernel = OfRows::LocalResponse { length: sizes[1], radius: radius as usize, numbers };
    draft(node, AlongAxis::prepare(sizes, kernel))
}

fn draft(node: &Node, kernel: impl PreparedKernel + 'static) -> Draft {
    Draft::new(node, kernel, [node.inputs[0]])
}

fn quantized_l2(builder: &Builder<'_, '_>, node: &Node, axis: usize) -> Result<Draft, Why> {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let zero_points = [input.operand.zero_point, output.operand.zero_point];
    let sizes = input.around(axis);
    let is_signed = input.is_signed("floats or 8-bit integers")?;
    Ok(of_byte!(is_signed, T => draft(node, QuantizedL2::<T>::prepare(sizes, zero_points))))
}
