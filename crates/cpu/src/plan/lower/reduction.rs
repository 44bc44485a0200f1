//! Reductions of floats over any axes.

use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use driver::EngineError;
use kernels::reduction::{Reduce, Reduction};
use ops::operations::reduce;

#[derive(Debug)]
struct ReduceKernel(Reduce);

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    reduce: &reduce::Reduce,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    if !input.is_float() {
        return None;
    }
    let reduction = match reduce.reduction {
        reduce::Reduction::Mean => Reduction::Mean,
        reduce::Reduction::Sum => Reduction::Sum,
        reduce::Reduction::Max => Reduction::Max,
        reduce::Reduction::Min => Reduction::Min,
        reduce::Reduction::Prod | reduce::Reduction::All | reduce::Reduction::Any => return None,
    };
    let lengths: Vec<usize> = input.dimensions.iter().map(|length| *length as usize).collect();
    let set = builder.settings.instruction_set;
    Some(Draft {
        place: node.place,
        kernel: Box::new(ReduceKernel(Reduce::prepare(set, reduction, &lengths, &reduce.axes))),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
}

impl Kernel for ReduceKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        self.0.run(run.team, inputs.floats(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }

    fn name(&self) -> String {
        "reduction".to_owned()
    }
}
