//! Pooling, and means over images.

use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run, name};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_hal::{FusedActivation, OperandType};
use nnhal_kernels::pooling::{FloatPooling, QuantizedPooling, Reduction, Shape};
use nnhal_kernels::{Image, ImageMut};
use nnhal_ops::operations::pooling;
use nnhal_ops::operations::reduce;
use nnhal_ops::rules::activation_range;
use nnhal_ops::rules::layout::Layout;
use nnhal_ops::rules::padding::Window;

/// A pooling of numbers of some type.
#[derive(Debug)]
struct PoolingKernel {
    pooling: Typed,
    /// For its name.
    operation: &'static str,
    filter: [usize; 2],
    input_stride: usize,
    output_stride: usize,
}

#[derive(Debug)]
enum Typed {
    Float(FloatPooling),
    Unsigned(QuantizedPooling<u8>),
    Signed(QuantizedPooling<i8>),
}

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
    let pooling = match input.operand_type() {
        _ if input.is_float() => {
            return draft(builder, node, shape, Reduction::Average, FusedActivation::None).ok();
        }
        OperandType::TensorQuant8Asymm => {
            Typed::Unsigned(QuantizedPooling::prepare_mean(set, shape, zero_point))
        }
        OperandType::TensorQuant8AsymmSigned => {
            Typed::Signed(QuantizedPooling::prepare_mean(set, shape, zero_point))
        }
        _ => return None,
    };
    Some(finished(builder, node, shape, pooling, Reduction::Average))
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
    let pooling = if output.is_float() {
        let range = activation_range::real(activation);
        Typed::Float(FloatPooling::prepare(set, shape, reduction, range))
    } else {
        let range = output.stored_range(activation, expected)?;
        match output.operand_type() {
            _ if reduction == Reduction::L2 => return Err(output.of_other_type("floats")),
            OperandType::TensorQuant8Asymm => {
                Typed::Unsigned(QuantizedPooling::prepare(set, shape, reduction, range))
            }
            OperandType::TensorQuant8AsymmSigned => {
                Typed::Signed(QuantizedPooling::prepare(set, shape, reduction, range))
            }
            _ => return Err(output.of_other_type(expected)),
        }
    };
    Ok(finished(builder, node, shape, pooling, reduction))
}

fn finished(
    builder: &Builder<'_, '_>,
    node: &Node,
    shape: Shape,
    pooling: Typed,
    reduction: Reduction,
) -> Draft {
    let operation = match reduction {
        Reduction::Average => "average pool",
        Reduction::Max => "max pool",
        Reduction::L2 => "l2 pool",
    };
    let stride = |value| builder.row_stride(value).unwrap_or(shape.channels);
    let (input_stride, output_stride) = (stride(node.inputs[0]), stride(node.outputs[0]));
    let filter = shape.filter;
    let kernel = PoolingKernel { pooling, operation, filter, input_stride, output_stride };
    Draft::new(node, kernel, [node.inputs[0]])
}

impl Kernel for PoolingKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        /// Both images, as numbers of the type that is wanted.
        macro_rules! images {
            () => {
                (
                    Image {
                        values: bytemuck::cast_slice(inputs.bytes(0)),
                        pixel_stride: self.input_stride,
                    },
                    ImageMut {
                        values: bytemuck::cast_slice_mut(output),
                        pixel_stride: self.output_stride,
                    },
                )
            };
        }
        match &self.pooling {
            Typed::Float(pooling) => {
                let (input, output) = images!();
                pooling.run(run.team, input, output);
            }
            Typed::Unsigned(pooling) => {
                let (input, output) = images!();
                pooling.run(run.team, input, output);
            }
            Typed::Signed(pooling) => {
                let (input, output) = images!();
                pooling.run(run.team, input, output);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        let Self { operation, filter: [height, width], .. } = self;
        let element = match self.pooling {
            Typed::Float(_) => "f32",
            Typed::Unsigned(_) => name::quantized(false),
            Typed::Signed(_) => name::quantized(true),
        };
        format!("{operation} {height}x{width} {element}")
    }
}
