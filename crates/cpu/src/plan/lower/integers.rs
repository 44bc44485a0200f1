//! Integers of 32 bits (`TENSOR_INT32`), element by element.

use crate::graph::Node;
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_kernels::elementwise::Pairs;
use nnhal_ops::operations::arithmetic::{Arithmetic, Operator};
use nnhal_ops::operations::elementwise::Elementwise;
use nnhal_ops::operations::maximum_minimum::MaximumMinimum;

/// A function of two operands that broadcast.
#[derive(Debug)]
struct IntegerPairs {
    pairs: Pairs,
    function: Function,
}

#[derive(Debug, Clone, Copy)]
enum Function {
    Add,
    Sub,
    Mul,
    Div,
    Maximum,
    Minimum,
}

pub(super) fn arithmetic(builder: &Builder<'_, '_>, node: &Node, arithmetic: &Arithmetic) -> Draft {
    let function = match arithmetic.operator {
        Operator::Add => Function::Add,
        Operator::Sub => Function::Sub,
        Operator::Mul => Function::Mul,
        Operator::Div => Function::Div,
    };
    paired(builder, node, function)
}

pub(super) fn extreme(builder: &Builder<'_, '_>, node: &Node, which: MaximumMinimum) -> Draft {
    let function = match which {
        MaximumMinimum::Maximum => Function::Maximum,
        MaximumMinimum::Minimum => Function::Minimum,
    };
    paired(builder, node, function)
}

fn paired(builder: &Builder<'_, '_>, node: &Node, function: Function) -> Draft {
    let shapes = [0, 1].map(|position| builder.graph.input(node, position).lengths());
    let shapes = shapes.each_ref().map(Vec::as_slice);
    let pairs = Pairs::prepare(builder.settings.instruction_set, shapes);
    Draft::new(node, IntegerPairs { pairs, function }, node.inputs[..2].iter().copied())
}

/// As the operation has it: towards minus infinity, 0 for a divisor of 0, and wrapped. Quotients of
/// 32-bit numbers have room in doubles, and are further from the next integer than doubles are rounded.
#[allow(clippy::cast_possible_truncation)] // Wrapped before.
#[inline(always)]
fn floor_div(x: i32, y: i32) -> i32 {
    let quotient = (f64::from(x) / f64::from(y)).floor();
    // The only one that 32 bits cannot hold.
    let wrapped = if quotient >= 2_147_483_648.0 { -quotient } else { quotient };
    if y == 0 { 0 } else { wrapped as i32 }
}

impl Kernel for IntegerPairs {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let [a, b] = [0, 1].map(|index| bytemuck::cast_slice::<u8, i32>(inputs.bytes(index)));
        let output = bytemuck::cast_slice_mut(output);
        let (team, pairs) = (&mut *run.team, &self.pairs);
        match self.function {
            Function::Add => pairs.run(team, a, b, output, i32::wrapping_add),
            Function::Sub => pairs.run(team, a, b, output, i32::wrapping_sub),
            Function::Mul => pairs.run(team, a, b, output, i32::wrapping_mul),
            Function::Div => pairs.run(team, a, b, output, floor_div),
            Function::Maximum => pairs.run(team, a, b, output, i32::max),
            Function::Minimum => pairs.run(team, a, b, output, i32::min),
        }
        Ok(())
    }

    fn name(&self) -> String {
        let function = match self.function {
            Function::Add => "add",
            Function::Sub => "sub",
            Function::Mul => "mul",
            Function::Div => "div",
            Function::Maximum => "max",
            Function::Minimum => "min",
        };
        format!("elementwise {function} i32")
    }
}

/// ABS or NEG, which wrap.
#[derive(Debug)]
enum Sign {
    Abs,
    Neg,
}

pub(super) fn elementwise(
    builder: &Builder<'_, '_>,
    node: &Node,
    function: Elementwise,
) -> Result<Draft, Why> {
    let function = match function {
        Elementwise::Abs => Sign::Abs,
        Elementwise::Neg => Sign::Neg,
        _ => return Err(builder.graph.output(node, 0).of_other_type("floats")),
    };
    Ok(Draft::new(node, function, [node.inputs[0]]))
}

impl Kernel for Sign {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let input: &[i32] = bytemuck::cast_slice(inputs.bytes(0));
        let output: &mut [i32] = bytemuck::cast_slice_mut(output);
        match self {
            Self::Abs => run.map(input, output, i32::wrapping_abs),
            Self::Neg => run.map(input, output, i32::wrapping_neg),
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Self::Abs => "elementwise abs i32".to_owned(),
            Self::Neg => "elementwise neg i32".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::floor_div;

    #[test]
    fn quotients_are_rounded_down_and_wrap() {
        let numbers =
            [0, 1, -1, 2, -2, 3, -7, 1000, i32::MAX, i32::MAX - 1, i32::MIN, i32::MIN + 1];
        for (x, y) in numbers.into_iter().flat_map(|x| numbers.map(|y| (x, y))) {
            let expected = match y {
                0 => 0,
                _ => {
                    let (x, y) = (i64::from(x), i64::from(y));
                    #[allow(clippy::cast_possible_truncation)] // What wrapping is.
                    let quotient =
                        (x.div_euclid(y) - i64::from(y < 0 && x.rem_euclid(y) != 0)) as i32;
                    quotient
                }
            };
            assert_eq!(floor_div(x, y), expected, "{x} / {y}");
        }
    }
}
