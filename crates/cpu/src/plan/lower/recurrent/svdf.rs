//! SVDF layers of floats.

use super::Arguments;
use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{Svdf, SvdfShape};
use nnhal_ops::operations;

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &operations::Svdf,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let batch = arguments.length_above_0(0, 0)?;
    let rank = operation.rank as usize;
    let shape = SvdfShape {
        batch,
        input: arguments.length(1, 1)?,
        units: arguments.length(1, 0)? / rank,
        rank,
        memory: arguments.length_above_0(2, 1)?,
    };
    let features = arguments.wanted(1, arguments.weights(1, preparation)?)?;
    let times = arguments.wanted(2, arguments.weights(2, preparation)?)?;
    let bias = arguments.vector(3)?;
    let activation = super::activation(operation.activation);
    let svdf = Svdf::prepare(shape, &features, &times, bias.as_deref(), activation, preparation)?;
    Ok(Draft::new(node, svdf, [0, 4].map(|position| node.inputs[position])))
}
