//! Integers, element by element.

use crate::graph::{Argument, Node};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::ElementType;
use nnhal_kernels::elementwise::{IntegerFunction, IntegerMap, IntegerUnary, Integers};
use nnhal_ops::operations::arithmetic::{Arithmetic, Operator};
use nnhal_ops::operations::elementwise::Elementwise;
use nnhal_ops::operations::extension::binary::Binary;
use nnhal_ops::operations::extension::division::Division;
use nnhal_ops::operations::maximum_minimum::MaximumMinimum;

/// The type of an argument's integers, quantized ones as they are stored.
fn stored(argument: Argument<'_>) -> Result<ElementType, Why> {
    let elements = argument.element_type().filter(|it| it.is_integer());
    elements.ok_or_else(|| argument.of_other_type("integers"))
}

pub(super) fn arithmetic(
    builder: &Builder<'_, '_>,
    node: &Node,
    arithmetic: &Arithmetic,
) -> Result<Draft, Why> {
    paired(
        builder,
        node,
        match arithmetic.operator {
            Operator::Add => IntegerFunction::Add,
            Operator::Sub => IntegerFunction::Sub,
            Operator::Mul => IntegerFunction::Mul,
            Operator::Div => IntegerFunction::FloorDiv,
        },
    )
}

/// Of integers that are all quantized alike, if they are quantized.
pub(super) fn extreme(
    builder: &Builder<'_, '_>,
    node: &Node,
    which: MaximumMinimum,
) -> Result<Draft, Why> {
    let function = match which {
        MaximumMinimum::Maximum => IntegerFunction::Maximum,
        MaximumMinimum::Minimum => IntegerFunction::Minimum,
    };
    paired(builder, node, function)
}

pub(super) fn quotient(
    builder: &Builder<'_, '_>,
    node: &Node,
    division: Division,
) -> Result<Draft, Why> {
    let function = match division {
        Division::Div => IntegerFunction::Div,
        Division::FloorDiv => IntegerFunction::FloorDiv,
        Division::FloorMod => IntegerFunction::FloorMod,
    };
    paired(builder, node, function)
}

pub(super) fn binary(builder: &Builder<'_, '_>, node: &Node, binary: Binary) -> Result<Draft, Why> {
    let function = match binary {
        Binary::And => IntegerFunction::And,
        Binary::Xor => IntegerFunction::Xor,
        Binary::ShiftLeft => IntegerFunction::ShiftLeft,
        Binary::ShiftRight => IntegerFunction::ShiftRight,
        Binary::Atan2 | Binary::Pow => return Err(Why::Operation),
    };
    paired(builder, node, function)
}

fn paired(builder: &Builder<'_, '_>, node: &Node, function: IntegerFunction) -> Result<Draft, Why> {
    let elements = stored(builder.graph.output(node, 0))?;
    let shapes = [0, 1].map(|position| builder.graph.input(node, position).lengths());
    let shapes = shapes.each_ref().map(Vec::as_slice);
    let set = builder.settings.instruction_set;
    let kernel = Integers::prepare(set, shapes, function, elements);
    Ok(Draft::new(node, kernel, node.inputs[..2].iter().copied()))
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
