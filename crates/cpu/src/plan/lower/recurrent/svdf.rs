//! SVDF layers of floats.

use super::Arguments;
use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{Svdf, SvdfShape};
use nnhal_ops::operations;
use nnhal_ops::rules::activation_range;

#[derive(Debug)]
struct SvdfKernel(Svdf);

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
    let range = activation_range::real(operation.activation);
    let svdf = Svdf::prepare(shape, &features, &times, bias.as_deref(), range, preparation)?;
    Ok(Draft::new(node, SvdfKernel(svdf), [0, 4].map(|position| node.inputs[position])))
}

impl Kernel for SvdfKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [state, output], scratch) = operands.split();
        let [state, output, scratch] = [state, output, scratch].map(bytemuck::cast_slice_mut);
        self.0.run(run.team, inputs.floats(0), inputs.floats(1), state, output, scratch);
        Ok(())
    }

    fn name(&self) -> String {
        "svdf f32".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        self.0.scratch_elements() * size_of::<f32>()
    }

    fn arithmetic(&self) -> u64 {
        self.0.operations()
    }
}
