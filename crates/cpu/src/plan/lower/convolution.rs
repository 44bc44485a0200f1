//! Convolutions.

use crate::graph::{self, Argument, Convolution, Node, Weights, elements_before};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::FusedActivation;
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::convolution::float::{Convolution3d, Depth, Layer};
use nnhal_kernels::depthwise::float::DepthwiseConvolution;
use nnhal_kernels::fully_connected::{FullyConnected, Sizes, Storage};
use nnhal_kernels::grouped_convolution::float::GroupedConvolution;
use nnhal_kernels::separable_convolution::float::SeparableConvolution;
use nnhal_kernels::transposed_convolution::float::TransposedConvolution;
use nnhal_kernels::unpacked_convolution::float::UnpackedConvolution;
use nnhal_kernels::{Epilogue, OfImages, PixelStrides, Preparation, TooLarge};
use nnhal_ops::operations::Conv3d;
use nnhal_ops::rules::activation_range;
use std::borrow::Cow;

/// The epilogue of a kernel for floats.
pub(super) fn float_epilogue(epilogue: graph::Epilogue) -> Epilogue {
    match epilogue {
        graph::Epilogue::HardSwish => Epilogue::HARD_SWISH,
        graph::Epilogue::Clamp(FusedActivation::None) => Epilogue::NONE,
        graph::Epilogue::Clamp(activation) => {
            let (min, max) = activation_range::real(activation);
            Epilogue { min, max, ..Epilogue::NONE }
        }
    }
}

/// The distances of pixels of a node whose first input is the image and whose fourth one is the residual, if
/// there is one. What is contiguous has the channels of the shape, whatever its last length is.
pub(super) fn strides(builder: &Builder<'_, '_>, node: &Node, shape: &Shape) -> PixelStrides {
    let residual = node.inputs.get(3);
    PixelStrides {
        input: builder.pixel_stride(node.inputs[0], shape.input_channels),
        residual: residual.map_or(0, |it| builder.pixel_stride(*it, shape.output_channels)),
        output: builder.pixel_stride(node.outputs[0], shape.output_channels),
    }
}

/// The filter of floats that is this input of a node, to be packed, and the bias behind it.
fn constants<'a>(
    builder: &'a Builder<'_, '_>,
    node: &Node,
    filter: usize,
    preparation: &Preparation,
) -> Result<(Weights<'a, f32>, Cow<'a, [f32]>), TooLarge> {
    let value = |position: usize| &builder.graph.values[node.inputs[position]];
    let bias = value(filter + 1);
    let filter = value(filter).weight_floats(preparation, &builder.scratch)?;
    Ok((filter, bias.constant_floats().ok_or_else(|| bias.unreadable())?))
}

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &Convolution,
    epilogue: graph::Epilogue,
    preparation: &mut Preparation,
) -> Result<Draft, TooLarge> {
    let Convolution { shape, is_depthwise, .. } = convolution;
    let shape = &shape.along_rows();
    let graph = builder.graph;
    let value = |position: usize| &graph.values[node.inputs[position]];
    let strides = strides(builder, node, shape);
    let epilogue = float_epilogue(epilogue);
    if !value(1).is_constant() || !value(2).is_constant() {
        let kernel = UnpackedConvolution::prepare(
            shape,
            strides.input,
            *is_depthwise,
            epilogue,
            preparation,
        )?;
        let kernel = OfImages { kernel, strides };
        return Ok(Draft::new(node, kernel, node.inputs.iter().copied()));
    }
    let (filter, bias) = constants(builder, node, 1, preparation)?;
    let layer = Layer { filter: &filter, bias: &bias, epilogue };
    let inputs = [node.inputs[0]].into_iter().chain(node.inputs.get(3).copied());
    if *is_depthwise {
        let kernel = DepthwiseConvolution::prepare(shape, strides.input, layer, preparation)?;
        return Ok(Draft::new(node, OfImages { kernel, strides }, inputs));
    }
    // Of a single pixel that is all of the image.
    if shape.output_pixels() == 1 && shape.is_matrix_product() && shape.groups == 1 {
        let sizes = Sizes { rows: 1, inputs: shape.input_channels, units: shape.output_channels };
        let storage = if value(1).fits_float16() { Storage::Half } else { Storage::Full };
        let kernel =
            FullyConnected::prepare(sizes, &filter, &bias, storage, epilogue, preparation)?;
        return Ok(Draft::new(node, kernel, inputs));
    }
    if shape.groups > 1 {
        let kernel = GroupedConvolution::prepare(shape, strides.input, layer, preparation)?;
        return Ok(Draft::new(node, OfImages { kernel, strides }, inputs));
    }
    let kernel = nnhal_kernels::convolution::float::Convolution::prepare(
        shape,
        strides.input,
        layer,
        preparation,
    )?;
    Ok(Draft::new(node, OfImages { kernel, strides }, inputs))
}

/// CONV_3D of floats whose filter and bias are constants.
pub(super) fn volumes(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &Conv3d,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    fn lengths(argument: Argument<'_>) -> Result<[usize; 5], Why> {
        let lengths: Vec<usize> = argument.lengths();
        lengths.try_into().map_err(|_| argument.of_other_rank("5"))
    }
    let [input, filter, bias] = [0, 1, 2].map(|position| builder.graph.input(node, position));
    filter.expect_constant()?;
    bias.expect_constant()?;
    let output = lengths(builder.graph.output(node, 0))?;
    let [[batch, depth, height, width, channels], of_filter] = [lengths(input)?, lengths(filter)?];
    let windows = &convolution.windows;
    let before = |axis: usize| {
        let [of_input, of_filter] = [input.dimensions[1 + axis], filter.dimensions[axis]];
        elements_before(windows[axis].padding(of_input, of_filter).0)
    };
    let depth = Depth {
        batch,
        input: depth,
        output: output[1],
        filter: of_filter[0],
        stride: windows[0].stride as usize,
        dilation: windows[0].dilation as usize,
        padding_before: before(0),
    };
    let plane = Shape {
        batch: 1,
        input: [height, width],
        input_channels: channels,
        output: [output[2], output[3]],
        output_channels: output[4],
        filter: [of_filter[1], of_filter[2]],
        stride: [1, 2].map(|axis| windows[axis].stride as usize),
        dilation: [1, 2].map(|axis| windows[axis].dilation as usize),
        padding_before: [before(1), before(2)],
        groups: 1,
    };
    if !depth.suits(&plane) {
        let found = "mostly over padding, or large".to_owned();
        return Err(Why::Form { what: "the filter", found, expected: "mostly over volumes" });
    }
    let (filter, bias) = constants(builder, node, 1, preparation)?;
    let epilogue = float_epilogue(graph::Epilogue::Clamp(convolution.activation));
    let layer = Layer { filter: &filter, bias: &bias, epilogue };
    let kernel = Convolution3d::prepare(depth, &plane, layer, preparation)?;
    let strides = strides(builder, node, &plane);
    Ok(Draft::new(node, OfImages { kernel, strides }, [node.inputs[0]]))
}

pub(super) fn separable(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &graph::SeparableConvolution,
    preparation: &mut Preparation,
) -> Result<Draft, TooLarge> {
    let graph::SeparableConvolution { shapes, epilogues } = convolution;
    // Where the filter of each convolution is among the inputs, and behind it the bias.
    let mut next = 1;
    let positions = epilogues.map(|epilogue| {
        epilogue.map(|epilogue| {
            next += 2;
            (next - 2, float_epilogue(epilogue))
        })
    });
    let residual = node.inputs.get(next).copied();
    // Of all three: a kernel packs them one after the other.
    let mut packed = Vec::new();
    for (position, epilogue) in positions.into_iter().flatten() {
        let (filter, bias) = constants(builder, node, position, preparation)?;
        packed.push((filter, bias, epilogue));
    }
    let mut layers =
        packed.iter().map(|(filter, bias, epilogue)| Layer { filter, bias, epilogue: *epilogue });
    let layers = positions.map(|position| position.and_then(|_| layers.next()));
    let image = shapes.before.as_ref().unwrap_or(&shapes.depthwise);
    let output_channels = shapes.behind.as_ref().unwrap_or(&shapes.depthwise).output_channels;
    let strides = PixelStrides {
        input: builder.pixel_stride(node.inputs[0], image.input_channels),
        residual: residual.map_or(0, |it| builder.pixel_stride(it, output_channels)),
        output: builder.pixel_stride(node.outputs[0], output_channels),
    };
    let kernel = SeparableConvolution::prepare(shapes, strides.input, layers, preparation)?;
    let inputs = [node.inputs[0]].into_iter().chain(residual);
    Ok(Draft::new(node, OfImages { kernel, strides }, inputs))
}

pub(super) fn transposed(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &graph::TransposedConvolution,
    epilogue: graph::Epilogue,
    preparation: &mut Preparation,
) -> Result<Draft, TooLarge> {
    let graph::TransposedConvolution { shape, .. } = convolution;
    let strides = strides(builder, node, shape);
    let (filter, bias) = constants(builder, node, 1, preparation)?;
    let layer = Layer { filter: &filter, bias: &bias, epilogue: float_epilogue(epilogue) };
    let PixelStrides { input, output, .. } = strides;
    let kernel = TransposedConvolution::prepare(shape, [input, output], layer, preparation)?;
    Ok(Draft::new(node, OfImages { kernel, strides }, [node.inputs[0]]))
}
