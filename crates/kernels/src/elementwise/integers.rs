//! Integers of 32 bits, element by element.

use super::{Pairs, map};
use crate::InstructionSet;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;

/// A function of two integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerFunction {
    /// `x + y`, wrapped
    Add,
    /// `x - y`, wrapped
    Sub,
    /// `x * y`, wrapped
    Mul,
    /// `x / y` towards minus infinity, wrapped; 0 for a divisor of 0
    Div,
    /// The greater one
    Maximum,
    /// The lesser one
    Minimum,
}

/// A prepared function of two tensors that broadcast.
#[derive(Debug, Clone)]
pub struct IntegerPairs {
    pairs: Pairs,
    function: IntegerFunction,
}

impl IntegerPairs {
    /// For tensors of two shapes, aligned at their last axes.
    ///
    /// # Panics
    /// If they do not broadcast to a common shape.
    pub fn prepare(set: InstructionSet, shapes: [&[usize]; 2], function: IntegerFunction) -> Self {
        Self { pairs: Pairs::prepare(set, shapes), function }
    }

    /// Of all elements.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, a: &[i32], b: &[i32], output: &mut [i32]) {
        let pairs = &self.pairs;
        match self.function {
            IntegerFunction::Add => pairs.run(team, a, b, output, i32::wrapping_add),
            IntegerFunction::Sub => pairs.run(team, a, b, output, i32::wrapping_sub),
            IntegerFunction::Mul => pairs.run(team, a, b, output, i32::wrapping_mul),
            IntegerFunction::Div => pairs.run(team, a, b, output, floor_div),
            IntegerFunction::Maximum => pairs.run(team, a, b, output, i32::max),
            IntegerFunction::Minimum => pairs.run(team, a, b, output, i32::min),
        }
    }
}

impl PreparedKernel for IntegerPairs {
    fn name(&self) -> String {
        let function = match self.function {
            IntegerFunction::Add => "add",
            IntegerFunction::Sub => "sub",
            IntegerFunction::Mul => "mul",
            IntegerFunction::Div => "div",
            IntegerFunction::Maximum => "max",
            IntegerFunction::Minimum => "min",
        };
        format!("elementwise {function} i32")
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), inputs.of(1), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

/// Quotients of 32-bit numbers have room in doubles, and are further from the next integer than doubles
/// are rounded.
#[allow(clippy::cast_possible_truncation)] // Wrapped before.
#[inline(always)]
fn floor_div(x: i32, y: i32) -> i32 {
    let quotient = (f64::from(x) / f64::from(y)).floor();
    // The only one that 32 bits cannot hold.
    let wrapped = if quotient >= 2_147_483_648.0 { -quotient } else { quotient };
    if y == 0 { 0 } else { wrapped as i32 }
}

/// A function of one integer, which wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignFunction {
    /// The magnitude
    Abs,
    /// `-x`
    Neg,
}

/// A prepared function of one integer.
#[derive(Debug, Clone, Copy)]
pub struct IntegerSign {
    set: InstructionSet,
    function: SignFunction,
}

impl IntegerSign {
    /// For any number of elements.
    pub fn prepare(set: InstructionSet, function: SignFunction) -> Self {
        Self { set, function }
    }

    /// Of all elements.
    ///
    /// # Panics
    /// If there are not as many outputs as inputs.
    pub fn run(&self, team: &mut Team, input: &[i32], output: &mut [i32]) {
        match self.function {
            SignFunction::Abs => map(self.set, team, input, output, i32::wrapping_abs),
            SignFunction::Neg => map(self.set, team, input, output, i32::wrapping_neg),
        }
    }
}

impl PreparedKernel for IntegerSign {
    fn name(&self) -> String {
        match self.function {
            SignFunction::Abs => "elementwise abs i32".to_owned(),
            SignFunction::Neg => "elementwise neg i32".to_owned(),
        }
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [i32; 12] =
        [0, 1, -1, 2, -2, 3, -7, 1000, i32::MAX, i32::MAX - 1, i32::MIN, i32::MIN + 1];

    #[test]
    fn quotients_are_rounded_down_and_wrap() {
        let (mut a, mut b, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for (x, y) in NUMBERS.into_iter().flat_map(|x| NUMBERS.map(|y| (x, y))) {
            a.push(x);
            b.push(y);
            let (x, y) = (i64::from(x), i64::from(y));
            #[allow(clippy::cast_possible_truncation)] // What wrapping is.
            expected.push(match y {
                0 => 0,
                _ => (x.div_euclid(y) - i64::from(y < 0 && x.rem_euclid(y) != 0)) as i32,
            });
        }
        for set in InstructionSet::available() {
            let shapes: [&[usize]; 2] = [&[a.len()], &[b.len()]];
            let kernel = IntegerPairs::prepare(set, shapes, IntegerFunction::Div);
            let mut output = vec![7; a.len()];
            kernel.run(&mut Team::alone(), &a, &b, &mut output);
            assert_eq!(output, expected, "{set}");
        }
    }

    #[test]
    fn signs_wrap() {
        for set in InstructionSet::available() {
            for (function, of) in [
                (SignFunction::Abs, i32::wrapping_abs as fn(i32) -> i32),
                (SignFunction::Neg, i32::wrapping_neg),
            ] {
                let mut output = [7; NUMBERS.len()];
                let kernel = IntegerSign::prepare(set, function);
                kernel.run(&mut Team::alone(), &NUMBERS, &mut output);
                assert_eq!(output, NUMBERS.map(of), "{set} {function:?}");
            }
        }
    }
}
