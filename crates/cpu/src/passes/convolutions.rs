//! Operations that are convolutions, and FULLY_CONNECTED, become [`Work::Convolution`], or
//! [`Work::TransposedConvolution`] where their weights are constants.

use crate::graph::{Convolution, Epilogue, Graph, Node, TransposedConvolution, Value, Work};
use nnhal_hal::FusedActivation;
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::transposed_convolution;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::TransposeConv2d;
use nnhal_ops::rules::layout::Layout;
use nnhal_ops::rules::padding::Window2d;

pub(crate) fn run(graph: &mut Graph<'_>) {
    for index in 0..graph.nodes.len() {
        if let Some(work) = rewritten(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.work = work;
            node.inputs.truncate(3);
        }
    }
}

fn rewritten(graph: &Graph<'_>, node: &Node) -> Option<Work> {
    let Work::Operation(operation) = &node.work else { return None };
    let value = |position: usize| &graph.values[node.inputs[position]];
    let has_constant_weights = || [1, 2].into_iter().all(|position| value(position).is_constant());
    let (window, groups, activation) = match operation {
        AnyOperation::FullyConnected(connected) => {
            return finished(connected_shape(value(0), value(1))?, false, connected.activation);
        }
        AnyOperation::Conv2d(it) if it.layout == Layout::Nhwc => (it.window, 1, it.activation),
        AnyOperation::GroupedConv2d(it) if it.layout == Layout::Nhwc => {
            (it.window, it.groups as usize, it.activation)
        }
        AnyOperation::DepthwiseConv2d(it) if it.layout == Layout::Nhwc => {
            (it.window, channels(value(0)).max(1), it.activation)
        }
        AnyOperation::TransposeConv2d(it)
            if it.layout == Layout::Nhwc && has_constant_weights() =>
        {
            return transposed(value(0), value(1), &graph.values[node.outputs[0]], it);
        }
        _ => return None,
    };
    let is_depthwise = matches!(operation, AnyOperation::DepthwiseConv2d(_));
    let output = &graph.values[node.outputs[0]];
    convolution(value(0), value(1), output, window, groups, is_depthwise, activation)
}

fn convolution(
    input: &Value<'_>,
    filter: &Value<'_>,
    output: &Value<'_>,
    window: Window2d,
    groups: usize,
    is_depthwise: bool,
    activation: FusedActivation,
) -> Option<Work> {
    let [batch, height, width, input_channels] = lengths(input)?;
    let [_, out_height, out_width, output_channels] = lengths(output)?;
    let [_, filter_height, filter_width, _] = lengths(filter)?;
    let before = |window: &nnhal_ops::rules::padding::Window, length: usize, taps: usize| {
        let (before, _) = window.padding(u32::try_from(length).ok()?, u32::try_from(taps).ok()?);
        usize::try_from(before).ok()
    };
    let shape = Shape {
        batch,
        input: [height, width],
        input_channels,
        output: [out_height, out_width],
        output_channels,
        filter: [filter_height, filter_width],
        stride: [window.height.stride as usize, window.width.stride as usize],
        dilation: [window.height.dilation as usize, window.width.dilation as usize],
        padding_before: [
            before(&window.height, height, filter_height)?,
            before(&window.width, width, filter_width)?,
        ],
        groups,
    };
    finished(shape, is_depthwise, activation)
}

fn transposed(
    input: &Value<'_>,
    filter: &Value<'_>,
    output: &Value<'_>,
    operation: &TransposeConv2d,
) -> Option<Work> {
    let [batch, height, width, input_channels] = lengths(input)?;
    let [_, out_height, out_width, output_channels] = lengths(output)?;
    let [_, filter_height, filter_width, _] = lengths(filter)?;
    let spreads = [&operation.height, &operation.width];
    let before = |axis: usize, taps: usize| {
        usize::try_from(spreads[axis].before(u32::try_from(taps).ok()?)).ok()
    };
    let shape = transposed_convolution::Shape {
        batch,
        input: [height, width],
        input_channels,
        output: [out_height, out_width],
        output_channels,
        filter: [filter_height, filter_width],
        stride: spreads.map(|spread| spread.stride as usize),
        padding_before: [before(0, filter_height)?, before(1, filter_width)?],
    };
    let epilogue = Epilogue::Clamp(operation.activation);
    let work = TransposedConvolution { shape, epilogue };
    shape.is_valid().then_some(Work::TransposedConvolution(work))
}

/// The sizes of FULLY_CONNECTED as those of a convolution: every row of the input is a pixel.
fn connected_shape(input: &Value<'_>, weights: &Value<'_>) -> Option<Shape> {
    let [units, inputs] = weights.dimensions[..] else { return None };
    let (units, inputs) = (units as usize, inputs as usize);
    let rows = input.elements().checked_div(inputs)?;
    Some(Shape {
        batch: 1,
        input: [rows, 1],
        input_channels: inputs,
        output: [rows, 1],
        output_channels: units,
        filter: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding_before: [0, 0],
        groups: 1,
    })
}

fn finished(shape: Shape, is_depthwise: bool, activation: FusedActivation) -> Option<Work> {
    let epilogue = Epilogue::Clamp(activation);
    // Numbers near the limits of 32 bits are left to the reference kernel, and what is mostly padding,
    // over which it passes.
    (shape.is_valid() && !shape.is_mostly_padding()).then_some(Work::Convolution(Convolution {
        shape,
        is_depthwise,
        has_residual: false,
        epilogue,
    }))
}

fn lengths(value: &Value<'_>) -> Option<[usize; 4]> {
    let lengths: Vec<usize> = value.dimensions.iter().map(|length| *length as usize).collect();
    lengths.try_into().ok()
}

fn channels(value: &Value<'_>) -> usize {
    value.dimensions.last().map_or(0, |length| *length as usize)
}
