//! [`IntegerFunction`]: functions of two integers of 32 bits.

use super::pairs::{Broadcast, PairFunction};
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

impl PairFunction for IntegerFunction {
    type Input = i32;
    type Output = i32;

    fn name(&self) -> String {
        let function = match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Maximum => "max",
            Self::Minimum => "min",
        };
        format!("elementwise {function} i32")
    }

    fn run(&self, pairs: &Broadcast, team: &mut Team, inputs: [&[i32]; 2], output: &mut [i32]) {
        match self {
            Self::Add => pairs.by_element(team, inputs, output, i32::wrapping_add),
            Self::Sub => pairs.by_element(team, inputs, output, i32::wrapping_sub),
            Self::Mul => pairs.by_element(team, inputs, output, i32::wrapping_mul),
            Self::Div => pairs.by_element(team, inputs, output, floor_div),
            Self::Maximum => pairs.by_element(team, inputs, output, i32::max),
            Self::Minimum => pairs.by_element(team, inputs, output, i32::min),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;
    use crate::elementwise::Pairs;

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
            let kernel = Pairs::prepare(set, shapes, IntegerFunction::Div);
            let mut output = vec![7; a.len()];
            kernel.run(&mut Team::alone(), &a, &b, &mut output);
            assert_eq!(output, expected, "{set}");
        }
    }
}
