//! SVDF layers of floats.

use super::Arguments;
use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
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
) -> Option<Draft> {
    let arguments = Arguments::of(builder, node);
    let batch = arguments.length(0, 0).filter(|batch| *batch > 0)?;
    let rank = operation.rank as usize;
    let shape = SvdfShape {
        batch,
        input: arguments.length(1, 1)?,
        units: arguments.length(1, 0)? / rank,
        rank,
        memory: arguments.length(2, 1).filter(|memory| *memory > 0)?,
    };
    let features = arguments.weights(1, preparation)??;
    let times = arguments.weights(2, preparation)??;
    let bias = arguments.vector(3)?;
    let range = activation_range::real(operation.activation);
    let svdf = Svdf::prepare(shape, &features, &times, bias.as_deref(), range, preparation).ok()?;
    Some(Draft {
        place: node.place,
        kernel: Box::new(SvdfKernel(svdf)),
        inputs: [0, 4].map(|position| Operand::Value(node.inputs[position])).to_vec(),
        outputs: node.outputs.clone(),
    })
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
