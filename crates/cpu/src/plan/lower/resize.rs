//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::OperandType;
use nnhal_kernels::Preparation;
use nnhal_kernels::resize::{Place, Resize};
use nnhal_ops::operations::resize;
use nnhal_ops::rules::layout::Layout;

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    resize: &resize::Resize,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let (argument, result) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let ([batch, height, width, channels], [_, out_height, out_width, _]) =
        (argument.image()?, result.image()?);
    if resize.layout != Layout::Nhwc {
        return Err(Why::ChannelsFirst);
    }
    if height == 0 || width == 0 {
        return Err(argument.empty());
    }
    let (input, output) = ([height, width], [out_height, out_width]);
    let place = |axis: usize, index| {
        let it = resize.place(index, input[axis], output[axis]);
        Place { lower: it.lower, upper: it.upper, weight: it.weight }
    };
    let (sizes, inputs) = ([input, output], [node.inputs[0]]);
    /// The kernel for images of a type.
    macro_rules! of {
        ($T:ty) => {
            Draft::new(
                node,
                Resize::<$T>::prepare(preparation, batch, sizes, channels, place)?,
                inputs,
            )
        };
    }
    Ok(match argument.operand_type() {
        _ if argument.is_float() => of!(f32),
        OperandType::TensorQuant8Asymm => of!(u8),
        OperandType::TensorQuant8AsymmSigned => of!(i8),
        _ => return Err(argument.of_other_type("floats or 8-bit integers")),
    })
}
