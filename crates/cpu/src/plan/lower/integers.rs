//! Integers, element by element.

use crate::graph::{Argument, Node};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::ElementType;
use nnhal_kernels::elementwise::{IntegerFunction, IntegerMap, IntegerUnary, Integers};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::arithmetic::Operator;
use nnhal_ops::operations::elementwise::Elementwise;
use nnhal_ops::operations::extension::binary::Binary;
use nnhal_ops::operations::extension::division::Division;
use nnhal_ops::operations::maximum_minimum::MaximumMinimum;

/// The type of an argument's integers, quantized ones as they are stored.
fn stored(argument: Argument<'_>) -> Result<ElementType, Why> {
    let elements = argument.element_type().filter(|it| it.is_integer());
    elements.ok_or_else(|| argument.of_other_type("integers"))
}

/// The function of two integers that an operation is; `None` of others.
pub(super) fn function(operation: &AnyOperation) -> Option<IntegerFunction> {
    Some(match operation {
        AnyOperation::Arithmetic(it) => match it.operator {
            Operator::Add => IntegerFunction::Add,
            Operator::Sub => IntegerFunction::Sub,
            Operator::Mul => IntegerFunction::Mul,
            Operator::Div => IntegerFunction::FloorDiv,
        },
        AnyOperation::MaximumMinimum(MaximumMinimum::Maximum) => IntegerFunction::Maximum,
        AnyOperation::MaximumMinimum(MaximumMinimum::Minimum) => IntegerFunction::Minimum,
        AnyOperation::Division(Division::Div) => IntegerFunction::Div,
        AnyOperation::Division(Division::FloorDiv) => IntegerFunction::FloorDiv,
        AnyOperation::Division(Division::FloorMod) => IntegerFunction::FloorMod,
        AnyOperation::Binary(Binary::And) => IntegerFunction::And,
        AnyOperation::Binary(Binary::Xor) => IntegerFunction::Xor,
        AnyOperation::Binary(Binary::ShiftLeft) => IntegerFunction::ShiftLeft,
        AnyOperation::Binary(Binary::ShiftRight) => IntegerFunction::ShiftRight,
        _ => return None,
    })
}

/// Of integers that are all quantized alike, if they are quantized.
pub(super) fn paired(
    builder: &Builder<'_, '_>,
    node: &Node,
    function: IntegerFunction,
) -> Result<Draft, Why> {
    let elements = stored(builder.graph.output(node, 0))?;
    let set = builder.settings.instruction_set;
    Ok(Draft::of_pair(builder.graph, node, |shapes| {
        Integers::prepare(set, shapes, function, elements)
    }))
}

pub(super) fn elementwise(
    builder: &Builder<'_, '_>,
    node: &Node,
    function: Elementwise,
) -> Result<Draft, Why> {
    match function {
        Elementwise::Abs => unary(builder, node, IntegerUnary::Abs),
        Elementwise::Neg => unary(builder, node, IntegerUnary::Neg),
        _ => Err(builder.graph.output(node, 0).of_other_type("floats")),
    }
}

pub(super) fn unary(
    builder: &Builder<'_, '_>,
    node: &Node,
    function: IntegerUnary,
) -> Result<Draft, Why> {
    let elements = stored(builder.graph.output(node, 0))?;
    let set = builder.settings.instruction_set;
    Ok(Draft::new(node, IntegerMap { set, function, elements }, [node.inputs[0]]))
}
