//! [`Integers`]: functions of two integers, and [`IntegerMap`]: of one.

use super::map::map;
use super::pairs::Broadcast;
use crate::InstructionSet;
use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue, for_integers};
use crate::team::Team;

/// A function of two integers of a type; results are taken modulo 2 to the number of its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerFunction {
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `x * y`
    Mul,
    /// `x / y` towards minus infinity; 0 for a divisor of 0
    FloorDiv,
    /// `x / y` towards 0; 0 for a divisor of 0
    Div,
    /// What [`Self::FloorDiv`] leaves, with the sign of the divisor; 0 for a divisor of 0
    FloorMod,
    /// The greater one
    Maximum,
    /// The lesser one
    Minimum,
    /// The bits that both have
    And,
    /// The bits that one of both has
    Xor,
    /// `x * 2^y`; 0 where `y` is negative or has no bit to move to
    ShiftLeft,
    /// `x / 2^y` towards minus infinity; by 0 where `y` is negative
    ShiftRight,
}

impl IntegerFunction {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::FloorDiv => "floor div",
            Self::Div => "div",
            Self::FloorMod => "floor mod",
            Self::Maximum => "max",
            Self::Minimum => "min",
            Self::And => "and",
            Self::Xor => "xor",
            Self::ShiftLeft => "shift left",
            Self::ShiftRight => "shift right",
        }
    }
}

/// A prepared function of two tensors of integers that broadcast.
#[derive(Debug, Clone)]
pub struct Integers {
    pairs: Broadcast,
    function: IntegerFunction,
    elements: ElementType,
}

impl Integers {
    /// For tensors of two shapes, aligned at their last axes.
    ///
    /// # Panics
    /// If they do not broadcast to a common shape, or elements are no integers.
    pub fn prepare(
        set: InstructionSet,
        shapes: [&[usize]; 2],
        function: IntegerFunction,
        elements: ElementType,
    ) -> Self {
        assert!(elements.is_integer(), "elements of {}", elements.name());
        Self { pairs: Broadcast::prepare(set, shapes), function, elements }
    }
}

impl PreparedKernel for Integers {
    fn name(&self) -> String {
        format!("elementwise {} {}", self.function.name(), self.elements.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        for_integers!(
            self.elements,
            T => {
                let output = bytemuck::cast_slice_mut(output);
                let (pairs, inputs) = (&self.pairs, [inputs.of::<T>(0), inputs.of(1)]);
                match self.function {
                    IntegerFunction::Add => pairs.by_element(team, inputs, output, T::wrapping_add),
                    IntegerFunction::Sub => pairs.by_element(team, inputs, output, T::wrapping_sub),
                    IntegerFunction::Mul => pairs.by_element(team, inputs, output, T::wrapping_mul),
                    IntegerFunction::FloorDiv => pairs.by_element(team, inputs, output, T::floor_div),
                    IntegerFunction::Div => pairs.by_element(team, inputs, output, T::div),
                    IntegerFunction::FloorMod => pairs.by_element(team, inputs, output, |x, y| {
                        let rest = x.wrapping_sub(x.floor_div(y).wrapping_mul(y));
                        if y == 0 { y } else { rest }
                    }),
                    IntegerFunction::Maximum => pairs.by_element(team, inputs, output, T::max),
                    IntegerFunction::Minimum => pairs.by_element(team, inputs, output, T::min),
                    IntegerFunction::And => pairs.by_element(team, inputs, output, |x, y| x & y),
                    IntegerFunction::Xor => pairs.by_element(team, inputs, output, |x, y| x ^ y),
                    IntegerFunction::ShiftLeft => pairs.by_element(team, inputs, output, T::shift_left),
                    IntegerFunction::ShiftRight => pairs.by_element(team, inputs, output, T::shift_right),
                }
            },
            _ => unreachable!("refused when it was prepared"),
        );
        Ok(())
    }
}

/// A function of one integer, which wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerUnary {
    /// The magnitude
    Abs,
    /// With the other sign
    Neg,
    /// 1, 0 or -1
    Sign,
}

/// A prepared function of any number of integers.
#[derive(Debug, Clone, Copy)]
pub struct IntegerMap {
    /// With which instructions it is computed.
    pub set: InstructionSet,
    /// The function.
    pub function: IntegerUnary,
    /// The type of the integers.
    pub elements: ElementType,
}

impl PreparedKernel for IntegerMap {
    fn name(&self) -> String {
        let function = match self.function {
            IntegerUnary::Abs => "abs",
            IntegerUnary::Neg => "neg",
            IntegerUnary::Sign => "sign",
        };
        format!("elementwise {function} {}", self.elements.name())
    }

    /// # Panics
    /// If elements are no integers.
    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        for_integers!(
            self.elements,
            T => {
                let (input, output) = (inputs.of::<T>(0), bytemuck::cast_slice_mut(output));
                match self.function {
                    IntegerUnary::Abs => map(self.set, team, input, output, T::magnitude),
                    IntegerUnary::Neg => map(self.set, team, input, output, T::wrapping_neg),
                    IntegerUnary::Sign => map(self.set, team, input, output, T::sign),
                }
            },
            other => panic!("elements of {}", other.name()),
        );
        Ok(())
    }
}

/// Functions of integers that the standard library does not have for all types of them, modulo 2 to the number of bits.
trait Integer {
    fn floor_div(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn shift_left(self, by: Self) -> Self;
    fn shift_right(self, by: Self) -> Self;
    fn magnitude(self) -> Self;
    fn sign(self) -> Self;
}

macro_rules! integer {
    ($T:ident, $magnitude:expr, $sign:expr, $quotients:ident) => {
        impl Integer for $T {
            $quotients!($T);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked before.
            #[allow(
                clippy::cast_possible_wrap,
                unused_comparisons,
                clippy::absurd_extreme_comparisons
            )]
            #[inline(always)]
            fn shift_left(self, by: Self) -> Self {
                let is_there = by >= 0 && by < Self::BITS as Self;
                if is_there { self.wrapping_shl(by as u32) } else { 0 }
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped before.
            #[allow(clippy::cast_possible_wrap)]
            #[inline(always)]
            fn shift_right(self, by: Self) -> Self {
                self.wrapping_shr(by.clamp(0, Self::BITS as Self - 1) as u32)
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                $magnitude(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                $sign(self)
            }
        }
    };
}

/// Quotients of numbers of up to 32 bits have room in doubles, and are further from the next integer than doubles are rounded:
/// instructions that there are for vectors.
macro_rules! of_doubles {
    ($T:ident) => {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It has room or wraps.
        #[inline(always)]
        fn floor_div(self, other: Self) -> Self {
            let quotient = wrapped((f64::from(self) / f64::from(other)).floor());
            if other == 0 { 0 } else { quotient as Self }
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // As above.
        #[inline(always)]
        fn div(self, other: Self) -> Self {
            let quotient = wrapped((f64::from(self) / f64::from(other)).trunc());
            if other == 0 { 0 } else { quotient as Self }
        }
    };
}

/// As 32 bits hold it; the only one that they do not is that of the least number and -1.
#[allow(clippy::cast_possible_truncation)] // Wrapped before.
#[inline(always)]
fn wrapped(quotient: f64) -> i32 {
    (if quotient >= 2_147_483_648.0 { -quotient } else { quotient }) as i32
}

macro_rules! of_integers {
    ($T:ident) => {
        #[allow(unused_comparisons, clippy::absurd_extreme_comparisons)] // Of types without a sign.
        #[inline(always)]
        fn floor_div(self, other: Self) -> Self {
            if other == 0 {
                return 0;
            }
            let (quotient, rest) = (self.wrapping_div(other), self.wrapping_rem(other));
            let is_above = rest != 0 && (rest < 0) != (other < 0);
            quotient.wrapping_sub(Self::from(is_above))
        }
        #[inline(always)]
        fn div(self, other: Self) -> Self {
            if other == 0 { 0 } else { self.wrapping_div(other) }
        }
    };
}

integer!(i8, i8::wrapping_abs, i8::signum, of_doubles);
integer!(i16, i16::wrapping_abs, i16::signum, of_doubles);
integer!(i32, i32::wrapping_abs, i32::signum, of_doubles);
integer!(i64, i64::wrapping_abs, i64::signum, of_integers);
integer!(u8, |it| it, |it: u8| it.min(1), of_doubles);
integer!(u16, |it| it, |it: u16| it.min(1), of_doubles);
integer!(u32, |it| it, |it: u32| it.min(1), of_integers);
integer!(u64, |it| it, |it: u64| it.min(1), of_integers);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared::tests::outputs;

    const ALL: [IntegerFunction; 12] = [
        IntegerFunction::Add,
        IntegerFunction::Sub,
        IntegerFunction::Mul,
        IntegerFunction::FloorDiv,
        IntegerFunction::Div,
        IntegerFunction::FloorMod,
        IntegerFunction::Maximum,
        IntegerFunction::Minimum,
        IntegerFunction::And,
        IntegerFunction::Xor,
        IntegerFunction::ShiftLeft,
        IntegerFunction::ShiftRight,
    ];

    /// As integers of 128 bits compute it.
    fn expected(function: IntegerFunction, x: i128, y: i128, bits: i128) -> i128 {
        let floor = |x: i128, y: i128| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0);
        match function {
            IntegerFunction::Add => x + y,
            IntegerFunction::Sub => x - y,
            IntegerFunction::Mul => x.wrapping_mul(y),
            IntegerFunction::Maximum => x.max(y),
            IntegerFunction::Minimum => x.min(y),
            IntegerFunction::And => x & y,
            IntegerFunction::Xor => x ^ y,
            IntegerFunction::ShiftLeft if (0..bits).contains(&y) => x << y,
            IntegerFunction::ShiftLeft => 0,
            IntegerFunction::ShiftRight => x >> y.clamp(0, bits - 1),
            _ if y == 0 => 0,
            IntegerFunction::FloorDiv => floor(x, y),
            IntegerFunction::Div => x / y,
            IntegerFunction::FloorMod => x - floor(x, y) * y,
        }
    }

    /// Checks all functions of a type with the numbers at its ends, around 0 and others.
    macro_rules! check {
        ($T:ident, $elements:ident) => {
            let mut numbers: Vec<$T> =
                (0..=9).flat_map(|it| [$T::MIN + it, $T::MAX - it, it]).collect();
            numbers.extend((1..=9).map(|it: $T| (0 as $T).wrapping_sub(it)));
            numbers.extend([37, 100, $T::MAX / 3, $T::MAX / 7 * 5]);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for (x, y) in numbers.iter().flat_map(|x| numbers.iter().map(move |y| (*x, *y))) {
                a.push(x);
                b.push(y);
            }
            let bytes: [&[u8]; 2] = [bytemuck::cast_slice(&a), bytemuck::cast_slice(&b)];
            let elements = ElementType::$elements;
            for (set, function) in
                InstructionSet::available().flat_map(|set| ALL.map(|function| (set, function)))
            {
                let shapes: [&[usize]; 2] = [&[a.len()], &[b.len()]];
                let kernel = Integers::prepare(set, shapes, function, elements);
                let [found] = outputs(&kernel, &bytes, [bytes[0].len()]);
                let found: Vec<$T> = bytemuck::pod_collect_to_vec(&found);
                for ((x, y), found) in a.iter().zip(&b).zip(found) {
                    let expected = expected(function, (*x).into(), (*y).into(), $T::BITS.into());
                    assert_eq!(found, expected as $T, "{set} {function:?} of {x} and {y}");
                }
            }
            for set in InstructionSet::available() {
                for (function, expected) in [
                    (IntegerUnary::Abs, &(|it: i128| it.abs()) as &dyn Fn(i128) -> i128),
                    (IntegerUnary::Neg, &|it| -it),
                    (IntegerUnary::Sign, &|it| it.signum()),
                ] {
                    let kernel = IntegerMap { set, function, elements };
                    let [found] = outputs(&kernel, &bytes[..1], [bytes[0].len()]);
                    let found: Vec<$T> = bytemuck::pod_collect_to_vec(&found);
                    let expected: Vec<$T> =
                        a.iter().map(|it| expected((*it).into()) as $T).collect();
                    assert_eq!(found, expected, "{set} {function:?}");
                }
            }
        };
    }

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // What wrapping is.
    fn all_functions_wrap_as_wider_integers_say() {
        check!(i8, I8);
        check!(i16, I16);
        check!(i32, I32);
        check!(i64, I64);
        check!(u8, U8);
        check!(u16, U16);
        check!(u32, U32);
        check!(u64, U64);
    }
}
