//! Operations on floats, element by element, become [`Work::Chain`]s, and those that follow each
//! other become one.

use super::Readers;
use crate::graph::{Graph, Node, ValueId, Work};
use crate::why::Why;
use nnhal_hal::FusedActivation;
use nnhal_kernels::elementwise::{Binary, Chain, Step, Unary};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::arithmetic::Operator;
use nnhal_ops::operations::elementwise::Elementwise;
use nnhal_ops::operations::maximum_minimum::MaximumMinimum;
use nnhal_ops::operations::{Activation, Unary as ExtensionUnary};
use nnhal_ops::rules::activation_range;

/// Most steps of a chain. Between two chains an execution asks whether its time is over.
const MOST_STEPS: usize = 32;

pub(crate) fn run(graph: &mut Graph<'_>) {
    for index in 0..graph.nodes.len() {
        if let Ok((steps, inputs)) = chain(graph, &graph.nodes[index]) {
            let node = &mut graph.nodes[index];
            node.work = Work::Chain(steps);
            node.inputs = inputs;
        }
    }
    join(graph);
}

/// The steps of an operation, and the values that they use; or why it has none.
pub(super) fn chain(graph: &Graph<'_>, node: &Node) -> Result<(Vec<Step>, Vec<ValueId>), Why> {
    let Work::Operation(operation) = &node.work else { return Err(Why::Operation) };
    if operation.by_element().is_none() {
        return Err(Why::Operation);
    }
    for argument in [graph.output(node, 0), graph.input(node, 0)] {
        if !argument.is_float() {
            return Err(argument.of_other_type("floats"));
        }
    }
    let one = |unary| Ok((vec![Step::Unary(unary)], vec![node.inputs[0]]));
    let two = |binary, activation: FusedActivation| {
        let mut steps = vec![Step::Binary(binary, 1)];
        steps.extend(clamp(activation).map(Step::Unary));
        Ok((steps, vec![node.inputs[0], node.inputs[1]]))
    };
    let none = FusedActivation::None;
    match operation {
        AnyOperation::Activation(Activation::Clamp(activation)) => {
            one(clamp(*activation).ok_or(Why::Operation)?)
        }
        AnyOperation::Activation(Activation::Tanh) => one(Unary::Tanh),
        AnyOperation::Activation(Activation::Logistic) => one(Unary::Logistic),
        AnyOperation::HardSwish(_) => one(Unary::HardSwish),
        AnyOperation::Elu(elu) => one(Unary::Elu { alpha: elu.alpha }),
        AnyOperation::Elementwise(function) => one(match function {
            Elementwise::Abs => Unary::Abs,
            Elementwise::Exp => Unary::Exp,
            Elementwise::Floor => Unary::Floor,
            Elementwise::Log => Unary::Log,
            Elementwise::Neg => Unary::Neg,
            Elementwise::Rsqrt => Unary::Rsqrt,
            Elementwise::Sin => Unary::Sin,
            Elementwise::Sqrt => Unary::Sqrt,
        }),
        AnyOperation::Unary(ExtensionUnary::Ceil) => {
            let steps = [Unary::Neg, Unary::Floor, Unary::Neg].map(Step::Unary);
            Ok((steps.to_vec(), vec![node.inputs[0]]))
        }
        AnyOperation::Unary(ExtensionUnary::Cos) => one(Unary::Cos),
        AnyOperation::Unary(ExtensionUnary::Gelu) => one(Unary::Gelu),
        AnyOperation::Unary(ExtensionUnary::Round) => one(Unary::Round),
        AnyOperation::Unary(ExtensionUnary::Sign) => one(Unary::Sign),
        AnyOperation::Arithmetic(arithmetic) => {
            let binary = match arithmetic.operator {
                Operator::Add => Binary::Add,
                Operator::Sub => Binary::Sub,
                Operator::Mul => Binary::Mul,
                Operator::Div => Binary::Div,
            };
            two(binary, arithmetic.activation)
        }
        AnyOperation::MaximumMinimum(MaximumMinimum::Maximum) => two(Binary::Maximum, none),
        AnyOperation::MaximumMinimum(MaximumMinimum::Minimum) => two(Binary::Minimum, none),
        AnyOperation::Prelu(_) => two(Binary::Prelu, none),
        AnyOperation::Pow(_) => match power(graph, node) {
            Some(power) => one(power),
            None => two(Binary::Pow, none),
        },
        _ => Err(Why::Operation),
    }
}

/// The square or the cube that a POW is with a constant exponent.
fn power(graph: &Graph<'_>, node: &Node) -> Option<Unary> {
    let [base, exponent] = [0, 1].map(|position| graph.input(node, position));
    let is_shaped_alike = graph.output(node, 0).dimensions == base.dimensions;
    let exponent = exponent.floats().ok().filter(|_| is_shaped_alike)?;
    match *exponent {
        [2.0] => Some(Unary::Square),
        [3.0] => Some(Unary::Cube),
        _ => None,
    }
}

fn clamp(activation: FusedActivation) -> Option<Unary> {
    let (low, high) = activation_range::real(activation);
    (activation != FusedActivation::None).then_some(Unary::Clamp { low, high })
}

/// A chain whose result is read by one other chain only becomes that one's beginning. Between the
/// two nothing may get larger: what is computed once for many would be computed for each.
fn join(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let Some(output) = graph.nodes[index].outputs.first().copied() else { continue };
        let Work::Chain(first) = &graph.nodes[index].work else { continue };
        let Some(next) = readers.only_reader(output) else { continue };
        let Work::Chain(then) = &graph.nodes[next].work else { continue };
        let is_same = graph.values[output].dimensions
            == graph.values[graph.nodes[next].outputs[0]].dimensions;
        let position = graph.nodes[next].inputs.iter().position(|input| *input == output);
        let count = graph.nodes[index].inputs.len() + graph.nodes[next].inputs.len() - 1;
        if !is_same || count > Chain::MOST_OPERANDS || first.len() + then.len() > MOST_STEPS {
            continue;
        }
        let Some((position, then)) = position.and_then(|at| Some((at, started_with(then, at)?)))
        else {
            continue;
        };
        // The operands of the second chain, but for the one that the first chain computes, follow
        // those of the first.
        let before = graph.nodes[index].inputs.len();
        let mut steps = first.clone();
        let moved =
            |operand: usize| before + if operand > position { operand - 1 } else { operand };
        steps.extend(then.into_iter().map(|step| match step {
            Step::Binary(binary, operand) => Step::Binary(binary, moved(operand)),
            unary @ Step::Unary(_) => unary,
        }));
        let others = graph.nodes[next].inputs.clone();
        let others = others.into_iter().enumerate().filter(|(at, _)| *at != position);
        let mut inputs = graph.nodes[index].inputs.clone();
        inputs.extend(others.map(|(_, value)| value));
        // All operands are there when the second one runs.
        super::replace(graph, &[index, next], Work::Chain(steps), inputs);
    }
    super::remove_absorbed(graph);
}

/// The steps of a chain, that it may begin with the operand of this number; the value that it began
/// with is operand 0 then. `None` if it cannot.
fn started_with(steps: &[Step], operand: usize) -> Option<Vec<Step>> {
    if operand == 0 {
        return Some(steps.to_vec());
    }
    // Only the first step's operand can be what comes before it.
    let (first, rest) = steps.split_first()?;
    let is_used_later = |step: &Step| matches!(step, Step::Binary(_, used) if *used == operand);
    let Step::Binary(binary, used) = first else { return None };
    if *used != operand || rest.iter().any(is_used_later) {
        return None;
    }
    let turned = match binary {
        Binary::Add => Binary::Add,
        Binary::Mul => Binary::Mul,
        Binary::Sub => Binary::SubFrom,
        Binary::SubFrom => Binary::Sub,
        Binary::Div => Binary::DivFrom,
        Binary::DivFrom => Binary::Div,
        Binary::Maximum => Binary::Maximum,
        Binary::Minimum => Binary::Minimum,
        Binary::Pow => Binary::PowFrom,
        Binary::PowFrom => Binary::Pow,
        Binary::Prelu => return None,
    };
    Some([&[Step::Binary(turned, 0)], rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_turns_round_only_if_it_can() {
        let steps = [Step::Binary(Binary::Sub, 1), Step::Unary(Unary::Square)];
        assert_eq!(started_with(&steps, 0).unwrap(), steps);
        let turned = [Step::Binary(Binary::SubFrom, 0), Step::Unary(Unary::Square)];
        assert_eq!(started_with(&steps, 1).unwrap(), turned);
        let late = [Step::Unary(Unary::Square), Step::Binary(Binary::Sub, 1)];
        assert_eq!(started_with(&late, 1), None);
        assert_eq!(started_with(&[Step::Binary(Binary::Prelu, 1)], 1), None);
    }
}
