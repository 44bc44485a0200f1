//! GROUPED_CONV_2D with one channel in each group is DEPTHWISE_CONV_2D: its products are too small for a GEMM.

use super::channels_last;
use crate::graph::{Graph, Node, Origin, Value, Work};
use nnhal_driver::{Budget, EngineError, MemoryUse};
use nnhal_hal::{ExtraParams, Operand};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::DepthwiseConv2d;
use nnhal_ops::rules::layout::Layout;
use std::borrow::Cow;

pub(crate) fn run(graph: &mut Graph<'_>, budget: &Budget) -> Result<(), EngineError> {
    for index in 0..graph.nodes.len() {
        let Some(operation) = depthwise(graph, &graph.nodes[index]) else { continue };
        budget.check()?;
        let place = graph.nodes[index].place;
        let filter = &graph.values[graph.nodes[index].inputs[1]];
        graph.held.grow(filter.bytes() as u64, MemoryUse::Operation(place))?;
        let Some(filter) = depthwise_filter(filter) else { continue };
        graph.nodes[index].work = Work::Operation(operation);
        graph.nodes[index].inputs[1] = graph.values.len();
        graph.values.push(filter);
    }
    Ok(())
}

/// A grouped convolution as a depthwise one, if it is one.
fn depthwise(graph: &Graph<'_>, node: &Node) -> Option<AnyOperation> {
    let Work::Operation(AnyOperation::GroupedConv2d(grouped)) = &node.work else { return None };
    let filter = &graph.values[node.inputs[1]];
    let [_, _, _, 1] = filter.dimensions[..] else { return None };
    let channels = graph.values[node.inputs[0]].dimensions.last()?;
    let outputs = graph.values[node.outputs[0]].dimensions.last()?;
    let is_depthwise =
        filter.is_constant() && grouped.layout == Layout::Nhwc && grouped.groups == *channels;
    is_depthwise.then_some(())?;
    let multiplier = outputs.checked_div(*channels).filter(|it| *it > 0)?;
    Some(AnyOperation::DepthwiseConv2d(DepthwiseConv2d {
        window: grouped.window,
        multiplier,
        activation: grouped.activation,
        layout: grouped.layout,
    }))
}

/// The filter of a grouped convolution, `[outputs, height, width, 1]`, as `[1, height, width, outputs]`.
fn depthwise_filter<'source>(filter: &Value<'source>) -> Option<Value<'source>> {
    let [outputs, height, width, _] = filter.dimensions[..] else { return None };
    let pixels = height as usize * width as usize;
    let transposed = channels_last(filter, [outputs as usize, pixels])?;
    let dimensions = vec![1, height, width, outputs];
    let mut operand =
        Operand { dimensions: dimensions.clone(), ..filter.operand.clone().into_owned() };
    if let ExtraParams::ChannelQuant(quant) = &mut operand.extra_params {
        quant.channel_dim = 3;
    }
    Some(Value {
        operand: Cow::Owned(operand),
        dimensions,
        origin: Origin::Constant(transposed),
        is_widened: filter.is_widened,
        index: None,
    })
}
