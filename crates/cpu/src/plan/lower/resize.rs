//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_hal::OperandType;
use nnhal_kernels::resize::{Place, Resize};
use nnhal_kernels::{Image, ImageMut, Preparation};
use nnhal_ops::operations::resize;
use nnhal_ops::rules::layout::Layout;

#[derive(Debug)]
struct ResizeKernel {
    resize: Resize,
    channels: usize,
    elements: Elements,
}

#[derive(Debug, Clone, Copy)]
enum Elements {
    Float,
    Unsigned,
    Signed,
}

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
        _ if input.is_float() => Elements::Float,
        OperandType::TensorQuant8Asymm => Elements::Unsigned,
        OperandType::TensorQuant8AsymmSigned => Elements::Signed,
        _ => return Err(input.of_other_type("floats or 8-bit integers")),
    };
    let (input, output) = ([height, width], [out_height, out_width]);
    let place = |axis: usize, index| {
        let it = resize.place(index, input[axis], output[axis]);
        Place { lower: it.lower, upper: it.upper, weight: it.weight }
    };
    let resize = Resize::prepare(preparation, batch, [input, output], channels, place)?;
    Ok(Draft::new(node, ResizeKernel { resize, channels, elements }, [node.inputs[0]]))
}

impl Kernel for ResizeKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        /// Both images, as numbers of the type that is wanted.
        macro_rules! images {
            () => {
                (
                    Image::contiguous(bytemuck::cast_slice(inputs.bytes(0)), self.channels),
                    ImageMut::contiguous(bytemuck::cast_slice_mut(output), self.channels),
                )
            };
        }
        match self.elements {
            Elements::Float => {
                let (input, output) = images!();
                self.resize.run_f32(run.team, input, output);
            }
            Elements::Unsigned => {
                let (input, output) = images!();
                self.resize.run_8bit::<u8>(run.team, input, output);
            }
            Elements::Signed => {
                let (input, output) = images!();
                self.resize.run_8bit::<i8>(run.team, input, output);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self.elements {
            Elements::Float => "resize f32".to_owned(),
            Elements::Unsigned => "resize u8".to_owned(),
            Elements::Signed => "resize i8".to_owned(),
        }
    }
}
