//! Operations that are convolutions, and FULLY_CONNECTED, become [`Work::Convolution`], or
//! [`Work::TransposedConvolution`] where their weights are constants.

use crate::graph::{
    Argument, Bytes, Convolution, Elements, Epilogue, Graph, Node, TransposedConvolution, Work,
    elements_before,
};
use crate::why::Why;
use nnhal_hal::FusedActivation;
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::transposed_convolution;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::TransposeConv2d;
use nnhal_ops::rules::layout::Layout;

pub(crate) fn run(graph: &mut Graph<'_>) {
    for index in 0..graph.nodes.len() {
        if let Ok(work) = rewritten(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.work = work;
            node.inputs.truncate(3);
        }
    }
}

/// What a node becomes, or why it stays an operation.
pub(super) fn rewritten(graph: &Graph<'_>, node: &Node) -> Result<Work, Why> {
    let Work::Operation(operation) = &node.work else { return Err(Why::Operation) };
    let in_nhwc = |layout: Layout| match layout {
        Layout::Nhwc => Ok(()),
        Layout::Nchw => Err(Why::ChannelsFirst),
    };
    let (layout, window, activation) = match operation {
        AnyOperation::FullyConnected(it) => {
            let shape = connected_shape(graph, node)?;
            return finished(graph, node, shape, false, it.activation);
        }
        AnyOperation::TransposeConv2d(it) => {
            in_nhwc(it.layout)?;
            return transposed(graph, node, it);
        }
        AnyOperation::Conv2d(it) => (it.layout, it.window, it.activation),
        AnyOperation::GroupedConv2d(it) => (it.layout, it.window, it.activation),
        AnyOperation::DepthwiseConv2d(it) => (it.layout, it.window, it.activation),
        _ => return Err(Why::Operation),
    };
    in_nhwc(layout)?;
    let groups = match operation {
        AnyOperation::GroupedConv2d(it) => it.groups as usize,
        AnyOperation::DepthwiseConv2d(_) => graph.input(node, 0).image()?[3].max(1),
        _ => 1,
    };
    let shape = graph.image_shape(node, [window.height, window.width], groups)?;
    let is_depthwise = matches!(operation, AnyOperation::DepthwiseConv2d(_));
    finished(graph, node, shape, is_depthwise, activation)
}

/// The weights of a node; none of it has more than one tensor of them.
fn weights<'a>(graph: &'a Graph<'_>, node: &'a Node) -> Result<Argument<'a>, Why> {
    let Work::Operation(operation) = &node.work else { return Err(Why::Operation) };
    let position = operation.weights().next().ok_or(Why::Operation)?;
    Ok(graph.input(node, position))
}

fn transposed(graph: &Graph<'_>, node: &Node, operation: &TransposeConv2d) -> Result<Work, Why> {
    let filter = weights(graph, node)?;
    for constant in [filter, graph.input(node, 2)] {
        constant.expect_constant()?;
    }
    let [batch, height, width, input_channels] = graph.input(node, 0).image()?;
    let [_, out_height, out_width, output_channels] = graph.output(node, 0).image()?;
    let [_, filter_height, filter_width, _] = filter.image()?;
    let spreads = [&operation.height, &operation.width];
    let shape = transposed_convolution::Shape(Shape {
        batch,
        input: [height, width],
        input_channels,
        output: [out_height, out_width],
        output_channels,
        filter: [filter_height, filter_width],
        stride: spreads.map(|spread| spread.stride as usize),
        padding_before: [0, 1]
            .map(|axis| elements_before(spreads[axis].before(filter.dimensions[1 + axis]))),
        dilation: [1, 1],
        groups: 1,
    });
    let elements = elements(graph, node, operation.activation)?;
    if !shape.is_valid() {
        return Err(beyond_memory());
    }
    Ok(Work::TransposedConvolution(TransposedConvolution { shape, elements }))
}

/// What is multiplied, if there are kernels for it.
fn elements(graph: &Graph<'_>, node: &Node, activation: FusedActivation) -> Result<Elements, Why> {
    let expected = "floats or 8-bit integers";
    let (input, weights) = (graph.input(node, 0), weights(graph, node)?);
    let output = graph.output(node, 0);
    if output.is_float() {
        let epilogue = Epilogue::Clamp(activation);
        return Ok(Elements::Floats { epilogue, has_residual: false });
    }
    let stored =
        |argument: Argument<'_>| argument.activations().ok_or(argument.of_other_type(expected));
    Ok(Elements::Bytes(Bytes {
        input: stored(input)?,
        weights: stored(weights)?,
        range: output.stored_range(activation, expected)?,
    }))
}

/// Numbers near the limits of 32 bits are left to the reference kernel.
fn beyond_memory() -> Why {
    let found = "more elements than memory can have".to_owned();
    Why::Form { what: "size of an argument", found, expected: "fewer" }
}

/// The sizes of FULLY_CONNECTED as those of a convolution: every row of the input is a pixel.
fn connected_shape(graph: &Graph<'_>, node: &Node) -> Result<Shape, Why> {
    let (input, weights) = (graph.input(node, 0), weights(graph, node)?);
    let [units, inputs] = weights.dimensions[..] else { return Err(weights.of_other_rank("2")) };
    let (units, inputs) = (units as usize, inputs as usize);
    let rows = input.elements().checked_div(inputs).ok_or_else(|| weights.empty())?;
    Ok(Shape::matrix_product([rows, inputs, units]))
}

fn finished(
    graph: &Graph<'_>,
    node: &Node,
    shape: Shape,
    is_depthwise: bool,
    activation: FusedActivation,
) -> Result<Work, Why> {
    let elements = elements(graph, node, activation)?;
    if !shape.is_valid() {
        return Err(beyond_memory());
    }
    if shape.is_mostly_padding() {
        // The reference kernel passes over it.
        let found = "mostly over padding".to_owned();
        return Err(Why::Form { what: "the filter", found, expected: "mostly over images" });
    }
    Ok(Work::Convolution(Convolution { shape, is_depthwise, elements }))
}
