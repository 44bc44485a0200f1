//! Pooling, and means over images.

use crate::graph::{Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run, name};
use nnhal_driver::EngineError;
use nnhal_hal::{FusedActivation, OperandType};
use nnhal_kernels::pooling::{FloatPooling, QuantizedPooling, Reduction, Shape};
use nnhal_kernels::{Image, ImageMut};
use nnhal_ops::operations::pooling;
use nnhal_ops::operations::reduce;
use nnhal_ops::rules::activation_range;
use nnhal_ops::rules::layout::Layout;

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
) -> Option<Draft> {
    let values = &builder.graph.values;
    let (input, output) = (&values[node.inputs[0]], &values[node.outputs[0]]);
    let ([batch, height, width, channels], [_, out_height, out_width, _]) =
        (lengths(input)?, lengths(output)?);
    if pooling.layout != Layout::Nhwc {
        return None;
    }
    let window = &pooling.window;
    let (high, wide) = (
        window.height.padding(u32::try_from(height).ok()?, pooling.filter[0]),
        window.width.padding(u32::try_from(width).ok()?, pooling.filter[1]),
    );
    let shape = Shape {
        batch,
        input: [height, width],
        output: [out_height, out_width],
        channels,
        filter: pooling.filter.map(|length| length as usize),
        stride: [window.height.stride as usize, window.width.stride as usize],
        padding_before: [usize::try_from(high.0).ok()?, usize::try_from(wide.0).ok()?],
    };
    let reduction = match pooling.reduction {
        pooling::Reduction::Average => Reduction::Average,
        pooling::Reduction::Max => Reduction::Max,
        pooling::Reduction::L2 => Reduction::L2,
    };
    draft(builder, node, shape, reduction, pooling.activation)
}

/// A mean over height and width of images.
pub(super) fn mean(
    builder: &Builder<'_, '_>,
    node: &Node,
    reduce: &reduce::Reduce,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    if reduce.reduction != reduce::Reduction::Mean || reduce.axes != [1, 2] {
        return None;
    }
    let [batch, height, width, channels] = lengths(input)?;
    if height == 0 || width == 0 {
        return None;
    }
    let shape = Shape::global(batch, [height, width], channels);
    let (set, zero_point) = (builder.settings.instruction_set, input.operand.zero_point);
    let pooling = match input.operand_type() {
        _ if input.is_float() => {
            return draft(builder, node, shape, Reduction::Average, FusedActivation::None);
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
) -> Option<Draft> {
    let set = builder.settings.instruction_set;
    let output = &builder.graph.values[node.outputs[0]];
    let pooling = if output.is_float() {
        let range = activation_range::real(activation);
        Typed::Float(FloatPooling::prepare(set, shape, reduction, range))
    } else {
        let range = super::stored_range(output, activation)?;
        match output.operand_type() {
            _ if reduction == Reduction::L2 => return None,
            OperandType::TensorQuant8Asymm => {
                Typed::Unsigned(QuantizedPooling::prepare(set, shape, reduction, range))
            }
            OperandType::TensorQuant8AsymmSigned => {
                Typed::Signed(QuantizedPooling::prepare(set, shape, reduction, range))
            }
            _ => return None,
        }
    };
    Some(finished(builder, node, shape, pooling, reduction))
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
    Draft {
        place: node.place,
        kernel: Box::new(PoolingKernel {
            pooling,
            operation,
            filter: shape.filter,
            input_stride,
            output_stride,
        }),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    }
}

fn lengths(value: &Value<'_>) -> Option<[usize; 4]> {
    let lengths: Vec<usize> = value.dimensions.iter().map(|length| *length as usize).collect();
    lengths.try_into().ok()
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
