//! Reductions over any axes.

use super::of_byte;
use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::OperandType;
use nnhal_kernels::reduction::{Reduce, ReduceStored, Reduction, StoredReduction};
use nnhal_ops::operations::reduce;

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    reduce: &reduce::Reduce,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let (set, lengths, axes) = (builder.settings.instruction_set, input.lengths(), &reduce.axes);
    let zero_point = input.operand.zero_point;
    let of_floats = match reduce.reduction {
        _ if !input.is_float() => None,
        reduce::Reduction::Mean => Some(Reduction::Mean),
        reduce::Reduction::Sum => Some(Reduction::Sum),
        reduce::Reduction::Max => Some(Reduction::Max),
        reduce::Reduction::Min => Some(Reduction::Min),
        // What becomes of nothing is left to the reference kernel.
        reduce::Reduction::Prod if input.elements() == 0 => return Err(input.empty()),
        reduce::Reduction::Prod => Some(Reduction::Product),
        _ => None,
    };
    if let Some(reduction) = of_floats {
        let kernel = Reduce::prepare(set, reduction, &lengths, axes);
        return Ok(Draft::new(node, kernel, [node.inputs[0]]));
    }
    let reduction = match (reduce.reduction, input.operand_type()) {
        // As above.
        (reduce::Reduction::All | reduce::Reduction::Any, OperandType::TensorBool8)
            if input.elements() == 0 =>
        {
            return Err(input.empty());
        }
        (reduce::Reduction::All, OperandType::TensorBool8) => StoredReduction::All,
        (reduce::Reduction::Any, OperandType::TensorBool8) => StoredReduction::Any,
        (reduction, OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned) => {
            let reduction = match reduction {
                reduce::Reduction::Max => StoredReduction::Max,
                reduce::Reduction::Min => StoredReduction::Min,
                reduce::Reduction::Mean => StoredReduction::Mean { zero_point },
                _ => return Err(input.of_other_type("floats")),
            };
            // As above.
            if axes.iter().any(|axis| lengths[*axis] == 0) {
                return Err(input.empty());
            }
            reduction
        }
        (reduce::Reduction::All | reduce::Reduction::Any, _) => {
            return Err(input.of_other_type("TENSOR_BOOL8"));
        }
        (reduce::Reduction::Sum | reduce::Reduction::Prod, _) => {
            return Err(input.of_other_type("floats"));
        }
        _ => return Err(input.of_other_type("floats or 8-bit integers")),
    };
    Ok(stored(builder, node, axes, reduction))
}

/// A reduction of 8-bit numbers.
fn stored(
    builder: &Builder<'_, '_>,
    node: &Node,
    axes: &[usize],
    reduction: StoredReduction,
) -> Draft {
    let input = &builder.graph.values[node.inputs[0]];
    let (set, lengths) = (builder.settings.instruction_set, input.lengths());
    of_byte!(input.is_signed() == Some(true), T => {
        let kernel = ReduceStored::<T>::prepare(set, reduction, &lengths, axes);
        Draft::new(node, kernel, [node.inputs[0]])
    })
}

/// See [`crate::graph::Work::RequantizedMean`].
pub(super) fn requantized_mean(builder: &Builder<'_, '_>, node: &Node, axes: &[usize]) -> Draft {
    let values = &builder.graph.values;
    let (from, to) =
        (values[node.inputs[0]].quantization(), values[node.outputs[0]].quantization());
    stored(builder, node, axes, StoredReduction::RequantizedMean { from, to })
}
