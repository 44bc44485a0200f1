//! LSTMs of integers: one step, with the arithmetic of the reference kernels of TensorFlow Lite, to
//! the bit.
//!
//! Numbers of 16 bits are kept in 32 while they are computed with. An activation has 15 bits behind
//! the point; what goes into one has 3 before it.

mod fixed_point;
mod lstm_16;
mod lstm_8;
mod matrix;
mod normalization;
#[cfg(test)]
mod tests;

pub use lstm_8::{Gate8, Lstm8, Projection8, Settings8, Term, Weights8};
pub use lstm_16::{Gate16, Lstm16, Settings16};

use crate::Multiplier;
use crate::team::Pace;
use crate::vector::Simd;

/// The sizes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepShape {
    /// How many sequences.
    pub batch: usize,
    /// Elements of an input.
    pub input: usize,
    /// Elements of the cell.
    pub units: usize,
    /// Elements of the output.
    pub output: usize,
}

/// What a step reads and writes.
#[derive(Debug)]
pub struct Step<'a, T> {
    /// `[batch, input]`
    pub input: &'a [T],
    /// `[batch, output]`
    pub output_before: &'a [T],
    /// `[batch, units]`
    pub cell_before: &'a [i16],
    /// `[batch, units]`
    pub cell: &'a mut [i16],
    /// `[batch, output]`
    pub output: &'a mut [T],
}

impl<T> Step<'_, T> {
    /// # Panics
    /// If a slice has another size.
    fn check(&self, StepShape { batch, input, units, output }: StepShape) {
        let is = |length: usize, expected: usize| Some(length) == batch.checked_mul(expected);
        assert!(is(self.input.len(), input), "inputs of another size");
        assert!(is(self.output_before.len(), output), "outputs before of another size");
        assert!(is(self.cell_before.len(), units), "cells before of another size");
        assert!(is(self.cell.len(), units) && is(self.output.len(), output), "room for others");
    }
}

/// Numbers less their zero point.
fn center<T: Copy + Into<i16>>(pace: &mut Pace<'_>, from: &[T], zero_point: i16, to: &mut [i16]) {
    for block in pace.blocks(from.len(), 1) {
        for (to, from) in to[block.clone()].iter_mut().zip(&from[block]) {
            *to = (*from).into() - zero_point;
        }
    }
}

/// Bits before the point of what goes into a gate's activation.
const GATE_BITS: u32 = 3;

/// What an activation of a number takes, in multiplications.
const ACTIVATION: usize = 8;

/// Replaces numbers by what a function gives for vectors of them, as long as that is wanted.
#[inline(always)]
fn for_all<S: Simd>(
    pace: &mut Pace<'_>,
    simd: S,
    numbers: &mut [i32],
    function: impl Fn(S::I) -> S::I,
) {
    for block in pace.blocks(numbers.len(), ACTIVATION) {
        for numbers in numbers[block].chunks_mut(S::LANES) {
            // Called in one place, so that it becomes a part of this.
            let result = function(load(simd, numbers));
            if numbers.len() == S::LANES {
                simd.istore(result, numbers);
            } else {
                let mut all = [0; 16];
                simd.istore(result, &mut all);
                numbers.copy_from_slice(&all[..numbers.len()]);
            }
        }
    }
}

/// At most as many numbers as a vector has, and zeros.
#[inline(always)]
fn load<S: Simd>(simd: S, numbers: &[i32]) -> S::I {
    if numbers.len() == S::LANES {
        return simd.iload(numbers);
    }
    let mut all = [0; 16];
    all[..numbers.len()].copy_from_slice(numbers);
    simd.iload(&all)
}

/// The nearest number of 16 bits.
#[inline(always)]
fn saturate_16(value: i32) -> i32 {
    value.clamp(i16::MIN.into(), i16::MAX.into())
}

/// [`Multiplier::apply`] to all.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // The factor is below 1.
fn multiply_all(multiplier: Multiplier, numbers: &mut [i32]) {
    let Multiplier { mantissa, exponent } = multiplier;
    if !multiplier.never_shifts_left() {
        for number in numbers {
            *number = multiplier.apply(*number);
        }
    } else if exponent == 0 {
        for number in numbers {
            *number = upper_half(*number, mantissa) as i32;
        }
    } else {
        let shift = exponent.unsigned_abs();
        for number in numbers {
            let product = upper_half(*number, mantissa);
            // Halves of negative numbers must go down: they are moved just below the half.
            *number = ((product + (1 << (shift - 1)) + (product >> 63)) >> shift) as i32;
        }
    }
}

#[inline(always)]
fn upper_half(number: i32, mantissa: i32) -> i64 {
    (i64::from(number) * i64::from(mantissa) + (1 << 30)) >> 31
}
