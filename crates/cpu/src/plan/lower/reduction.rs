//! Reductions over any axes.

use super::of_byte;
use crate::graph::{Node, Value};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::OperandType;
use nnhal_kernels::ElementType;
use nnhal_kernels::reduction::{
    CumulativeSum, IntegerReduction, Order, Reduce, ReduceIntegers, ReduceStored, Reduction,
    StoredReduction,
};
use nnhal_ops::operations::extension::cumulative_sum;
use nnhal_ops::operations::reduce;

/// Which integers there are kernels for, for people.
const INTEGERS: &str = "floats or integers of 32 or 64 bits";

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
    let of_integers = match reduce.reduction {
        reduce::Reduction::Mean => Some(IntegerReduction::Mean),
        reduce::Reduction::Sum => Some(IntegerReduction::Sum),
        reduce::Reduction::Max => Some(IntegerReduction::Max),
        reduce::Reduction::Min => Some(IntegerReduction::Min),
        reduce::Reduction::Prod => Some(IntegerReduction::Product),
        reduce::Reduction::All | reduce::Reduction::Any => None,
    };
    if let (Some(reduction), Some(elements)) = (of_integers, integers(&input)) {
        // As above.
        if input.elements() == 0 {
            return Err(input.empty());
        }
        let kernel = ReduceIntegers::prepare(set, reduction, elements, &lengths, axes);
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
                _ => return Err(input.of_other_type(INTEGERS)),
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
            return Err(input.of_other_type(INTEGERS));
        }
        _ => return Err(input.of_other_type("floats or integers of 8, 32 or 64 bits")),
    };
    Ok(stored(builder, node, axes, reduction))
}

/// The type of integers that are not stored in another way than as themselves, of 32 or 64 bits.
fn integers(value: &Value) -> Option<ElementType> {
    let of_kernels =
        |it: &ElementType| matches!(it, ElementType::I32 | ElementType::I64 | ElementType::U32);
    value.integer_type().filter(of_kernels)
}

/// CUMSUM.
pub(super) fn cumulative_sum(
    builder: &Builder<'_, '_>,
    node: &Node,
    &cumulative_sum::CumulativeSum { axis, exclusive, reverse }: &cumulative_sum::CumulativeSum,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let elements = if input.is_float() { Some(ElementType::F32) } else { integers(&input) };
    let elements = elements.ok_or_else(|| input.of_other_type(INTEGERS))?;
    let (set, sizes) = (builder.settings.instruction_set, input.around(axis));
    let kernel = CumulativeSum::prepare(set, elements, sizes, Order { exclusive, reverse });
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
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
