//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::OperandType;
use nnhal_kernels::resize::{Place, Resize, ResizeImages};
use nnhal_kernels::{ElementType, Preparation};
use nnhal_ops::operations::resize;
use nnhal_ops::rules::layout::Layout;

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    resize: &resize::Resize,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let ([batch, height, width, channels], [_, out_height, out_width, _]) =
        (input.image()?, output.image()?);
    if resize.layout != Layout::Nhwc {
        return Err(Why::ChannelsFirst);
    }
    if height == 0 || width == 0 {
        return Err(input.empty());
    }
    let elements = match input.operand_type() {
        _ if input.is_float() => ElementType::F32,
        OperandType::TensorQuant8Asymm => ElementType::U8,
        OperandType::TensorQuant8AsymmSigned => ElementType::I8,
        _ => return Err(input.of_other_type("floats or 8-bit integers")),
    };
    let (input, output) = ([height, width], [out_height, out_width]);
    let place = |axis: usize, index| {
        let it = resize.place(index, input[axis], output[axis]);
        Place { lower: it.lower, upper: it.upper, weight: it.weight }
    };
    let resize = Resize::prepare(preparation, batch, [input, output], channels, place)?;
    Ok(Draft::new(node, ResizeImages { resize, elements }, [node.inputs[0]]))
}
