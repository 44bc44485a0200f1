//! Integers of 32 bits (`TENSOR_INT32`), element by element.

use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::elementwise::{Function, IntegerFunction, Map, Pairs};
use nnhal_ops::operations::arithmetic::{Arithmetic, Operator};
use nnhal_ops::operations::elementwise::Elementwise;
use nnhal_ops::operations::maximum_minimum::MaximumMinimum;

pub(super) fn arithmetic(builder: &Builder<'_, '_>, node: &Node, arithmetic: &Arithmetic) -> Draft {
    let function = match arithmetic.operator {
        Operator::Add => IntegerFunction::Add,
        Operator::Sub => IntegerFunction::Sub,
        Operator::Mul => IntegerFunction::Mul,
        Operator::Div => IntegerFunction::Div,
    };
    paired(builder, node, function)
}

pub(super) fn extreme(builder: &Builder<'_, '_>, node: &Node, which: MaximumMinimum) -> Draft {
    let function = match which {
        MaximumMinimum::Maximum => IntegerFunction::Maximum,
        MaximumMinimum::Minimum => IntegerFunction::Minimum,
    };
    paired(builder, node, function)
}

fn paired(builder: &Builder<'_, '_>, node: &Node, function: IntegerFunction) -> Draft {
    let shapes = [0, 1].map(|position| builder.graph.input(node, position).lengths());
    let shapes = shapes.each_ref().map(Vec::as_slice);
    let kernel = Pairs::prepare(builder.settings.instruction_set, shapes, function);
    Draft::new(node, kernel, node.inputs[..2].iter().copied())
}

pub(super) fn elementwise(
    builder: &Builder<'_, '_>,
    node: &Node,
    function: Elementwise,
) -> Result<Draft, Why> {
    let function = match function {
        Elementwise::Abs => Function::Abs,
        Elementwise::Neg => Function::Neg,
        _ => return Err(builder.graph.output(node, 0).of_other_type("floats")),
    };
    let set = builder.settings.instruction_set;
    Ok(Draft::new(node, Map { set, function }, [node.inputs[0]]))
}
