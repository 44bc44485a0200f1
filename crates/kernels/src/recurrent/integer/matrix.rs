//! [`Matrix`]: weights of 8 or 16 bits.

use super::multiply_all;
use crate::preparation::PackedValues;
use crate::vector::{Kernel, Simd};
use crate::{Multiplier, Preparation, TooLarge};
use bytemuck::Pod;
use std::ops::Range;

/// A matrix of weights, `[rows, inputs]`.
#[derive(Debug)]
pub(super) struct Matrix<T> {
    weights: PackedValues<T>,
    inputs: usize,
    count: usize,
}

impl<T: Pod> Matrix<T> {
    /// `fill` gets room for the weights of a row, with the row's number.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(super) fn new(
        preparation: &mut Preparation,
        [rows, inputs]: [usize; 2],
        fill: impl Fn(usize, &mut [T]),
    ) -> Result<Self, TooLarge> {
        let too_large = TooLarge::beyond_addresses("packed weights");
        let count = rows.checked_mul(inputs).ok_or(too_large)?;
        let weights = preparation.pack(count, |weights, pace| {
            for (row, weights) in weights.chunks_exact_mut(inputs.max(1)).enumerate() {
                if pace.is_over(inputs) {
                    return;
                }
                fill(row, weights);
            }
        })?;
        Ok(Self { weights, inputs, count })
    }

    /// How many weights there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// Products that are computed without a question whether to go on.
const MOST_PRODUCTS: usize = 1 << 20;

/// Rows of this many inputs, in parts between which it is asked whether to go on.
pub(super) fn rows_between(
    rows: Range<usize>,
    inputs: usize,
) -> impl Iterator<Item = Range<usize>> {
    let step = (MOST_PRODUCTS / inputs.max(1)).max(1);
    let end = rows.end;
    rows.step_by(step).map(move |first| first..end.min(first + step))
}

/// Products of some rows of a matrix with numbers, which have 9 bits, added to what is in `sums`, and
/// then multiplied. Sums wrap.
pub(super) struct Products<'a, T> {
    pub(super) matrix: &'a Matrix<T>,
    pub(super) rows: Range<usize>,
    pub(super) numbers: &'a [i16],
    pub(super) sums: &'a mut [i32],
    pub(super) multiplier: Multiplier,
}

impl<T: Pod + Into<i32>> Kernel for Products<'_, T> {
    type Output = ();

    // Compilers make of this what each instruction set has for pairs of numbers of 16 bits.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { matrix, rows, numbers, sums, multiplier } = self;
        let inputs = matrix.inputs;
        assert_eq!(numbers.len(), inputs, "numbers of another size");
        let weights = &matrix.weights.values()[rows.start * inputs..rows.end * inputs];
        for (sum, weights) in sums.iter_mut().zip(weights.chunks_exact(inputs.max(1))) {
            let products = weights.iter().zip(numbers).map(|(w, x)| (*w).into() * i32::from(*x));
            *sum = products.fold(*sum, i32::wrapping_add);
        }
        multiply_all(multiplier, sums);
    }
}
