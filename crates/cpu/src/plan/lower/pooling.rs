//! Pooling, and means over images.

use super::of_byte;
use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::FusedActivation;
use nnhal_kernels::pooling::{FloatPooling, QuantizedPooling, Reduction, Shape};
use nnhal_kernels::{ImageKernel, OfImages, PixelStrides};
use nnhal_ops::operations::pooling;
use nnhal_ops::operations::reduce;
use nnhal_ops::rules::activation_range;
use nnhal_ops::rules::layout::Layout;
use nnhal_ops::rules::padding::Window;

pub(super) fn pooling(
    builder: &Builder<'_, '_>,
    node: &Node,
    pooling: &pooling::Pooling,
) -> Result<Draft, Why> {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let ([batch, height, width, channels], [_, out_height, out_width, _]) =
        (input.image()?, output.image()?);
    if pooling.layout != Layout::Nhwc {
        return Err(Why::ChannelsFirst);
    }
    let window = &pooling.window;
    let before = |axis: usize, window: &Window| {
        let (before, _) = window.padding(input.dimensions[1 + axis], pooling.filter[axis]);
        usize::try_from(before).unwrap_or(usize::MAX)
    };
    let shape = Shape {
        batch,
        input: [height, width],
        output: [out_height, out_width],
        channels,
        filter: pooling.filter.map(|length| length as usize),
        stride: [window.height.stride as usize, window.width.stride as usize],
        padding_before: [before(0, &window.height), before(1, &window.width)],
    };
    let reduction = match pooling.reduction {
        pooling::Reduction::Average => Reduction::Average,
        pooling::Reduction::Max => Reduction::Max,
        pooling::Reduction::L2 => Reduction::L2,
    };
    draft(builder, node, shape, reduction, pooling.activation)
}

/// A mean over height and width of images; `None` of what is another reduction.
pub(super) fn mean(
    builder: &Builder<'_, '_>,
    node: &Node,
    reduce: &reduce::Reduce,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let is_mean = reduce.reduction == reduce::Reduction::Mean && reduce.axes == [1, 2];
    let [batch, height, width, channels] = input.lengths().try_into().ok()?;
    if !is_mean || height == 0 || width == 0 {
        return None;
    }
    let shape = Shape::global(batch, [height, width], channels);
    let (set, zero_point) = (builder.settings.instruction_set, input.operand.zero_point);
    if input.is_float() {
        return draft(builder, node, shape, Reduction::Average, FusedActivation::None).ok();
    }
    Some(of_byte!(input.is_signed()?, T => {
        let pooling = QuantizedPooling::<T>::prepare_mean(set, shape, zero_point);
        finished(builder, node, shape, pooling)
    }))
}

fn draft(
    builder: &Builder<'_, '_>,
    node: &Node,
    shape: Shape,
    reduction: Reduction,
    activation: FusedActivation,
) -> Result<Draft, Why> {
    let set = builder.settings.instruction_set;
    let output = builder.graph.output(node, 0);
    let expected = "floats or 8-bit integers";
    if output.is_float() {
        let range = activation_range::real(activation);
        let pooling = FloatPooling::prepare(set, shape, reduction, range);
        return Ok(finished(builder, node, shape, pooling));
    }
    let range = output.stored_range(activation, expected)?;
    if reduction == Reduction::L2 {
        return Err(output.of_other_type("floats"));
    }
    Ok(of_byte!(output.is_signed(expected)?, T => {
        let pooling = QuantizedPooling::<T>::prepare(set, shape, reduction, range);
        finished(builder, node, shape, pooling)
    }))
}

fn finished<K>(builder: &Builder<'_, '_>, node: &Node, shape: Shape, kernel: K) -> Draft
where
    K: ImageKernel + 'static,
{
    let [input, output] =
        [node.inputs[0], node.outputs[0]].map(|value| builder.pixel_stride(value, shape.channels));
    let strides = PixelStrides { input, residual: 0, output };
    Draft::new(node, OfImages { kernel, strides }, [node.inputs[0]])
}
