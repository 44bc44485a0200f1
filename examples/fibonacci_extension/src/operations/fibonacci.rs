//! FIBONACCI: the first numbers of the sequence 0, 1, 1, 2, 3, 5, ..., each the sum of the two
//! before it.
//!
//! | input | | type | shape | |
//! |---|---|---|---|---|
//! | 0 | count | INT32 | scalar | how many numbers, not negative |
//! | 1 | modulus | UINT64 (the extension's) | scalar | optional; at least 1 |
//!
//! | output | | type | shape | |
//! |---|---|---|---|---|
//! | 0 | numbers | TENSOR_UINT64 (the extension's) | `[count]` | exact |
//!
//! With a modulus each number is its remainder. Without one there are [`LONGEST`] numbers at most:
//! the next exceeds 64 bits.

use super::expect_types;
use crate::vocabulary::Vocabulary;
use nnhal_driver::{Budget, Interruption};
use nnhal_hal::OperandType;
use nnhal_ops::{Call, Fault, Output, Shape};
use std::num::NonZeroU64;

/// How many numbers of the sequence there are below 2^64.
pub const LONGEST: u32 = 94;

/// The budget is checked once for this many numbers, which take less than a millisecond.
const NUMBERS_BETWEEN_QUESTIONS: usize = 1 << 14;

/// The arguments of FIBONACCI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fibonacci {
    /// How many numbers.
    pub count: u32,
    /// What they are divided by, to leave the remainder.
    pub modulus: Option<NonZeroU64>,
}

impl Fibonacci {
    pub(super) fn expect_types(call: &Call<'_>, words: Vocabulary) -> Result<(), Fault> {
        let (count, modulus) = (OperandType::Int32, words.uint64());
        expect_types(call, &[&[count], &[count, modulus]], words.tensor_uint64())?;
        call.output(0).expect_rank(1)
    }

    pub(super) fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let count = call.input(0).non_negative()?;
        let Some(argument) = call.optional(1) else {
            if count > LONGEST {
                let expected = format!("at most {LONGEST} without modulus");
                return Err(call.input(0).wrong("value", count, expected));
            }
            return Ok(Self { count, modulus: None });
        };
        let bytes = argument.bytes()?;
        let wrong_size = || argument.wrong("size", format!("{} bytes", bytes.len()), "8 bytes");
        let modulus = u64::from_le_bytes(bytes.try_into().map_err(|_| wrong_size())?);
        let modulus =
            NonZeroU64::new(modulus).ok_or_else(|| argument.wrong("value", 0, "at least 1"))?;
        Ok(Self { count, modulus: Some(modulus) })
    }

    pub(super) fn output_shape(&self) -> Shape {
        Shape::known([self.count])
    }

    pub(super) fn compute(&self, budget: &Budget) -> Result<Output, Interruption> {
        let reduce = |number: u128| match self.modulus {
            Some(modulus) => number % u128::from(modulus.get()),
            None => number,
        };
        // Two numbers below 2^64 make one below 2^65. The one computed last is never written, so
        // that it needs more than 64 bits after the longest sequence does no harm.
        let (mut this, mut next) = (reduce(0), reduce(1));
        let mut bytes = Vec::new();
        for index in 0..self.count as usize {
            if index % NUMBERS_BETWEEN_QUESTIONS == 0 {
                budget.check_inside()?;
            }
            bytes.extend_from_slice(&this.to_le_bytes()[..size_of::<u64>()]);
            (this, next) = (next, reduce(this + next));
        }
        Ok(Output { dimensions: vec![self.count], bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: u32, modulus: Option<u64>) -> Vec<u64> {
        let modulus = modulus.map(|modulus| NonZeroU64::new(modulus).unwrap());
        let output = Fibonacci { count, modulus }.compute(&Budget::unlimited()).unwrap();
        assert_eq!(output.dimensions, [count]);
        output.bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn the_sequence_begins_with_0_and_1() {
        assert_eq!(numbers(10, None), [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]);
        assert_eq!(numbers(0, None), [0_u64; 0]);
        assert_eq!(numbers(1, None), [0]);
    }

    #[test]
    fn the_longest_sequence_ends_below_64_bits() {
        let all = numbers(LONGEST, None);
        // Number 93 by Binet's formula, in decimal arithmetic of 40 digits.
        assert_eq!(all[93], 12_200_160_415_121_876_738);
        assert_eq!(all[93].checked_add(all[92]), None);
        for three in all.windows(3) {
            assert_eq!(three[0] + three[1], three[2]);
        }
    }

    #[test]
    fn remainders_repeat() {
        // Modulo 10 the sequence repeats after 60 (Pisano's period).
        let remainders = numbers(180, Some(10));
        assert_eq!(remainders[..60], remainders[60..120]);
        assert_eq!(remainders[..60], remainders[120..]);
        assert_eq!(numbers(5, Some(1)), [0; 5]);
        // Remainders of what fits are those of the numbers themselves.
        let modulus = u64::MAX - 58;
        let expected: Vec<_> = numbers(94, None).iter().map(|number| number % modulus).collect();
        assert_eq!(numbers(94, Some(modulus)), expected);
    }

    #[test]
    fn a_long_sequence_can_be_stopped() {
        let cancellation = nnhal_hal::Cancellation::new();
        cancellation.cancel();
        let budget = Budget::unlimited().with_cancellation(cancellation);
        let long = Fibonacci { count: u32::MAX, modulus: NonZeroU64::new(10) };
        assert_eq!(long.compute(&budget), Err(Interruption::Cancelled));
    }
}
