//! [`ReduceIntegers`]: sums, means, products and extremes of integers.
#![allow(clippy::needless_range_loop)] // Plain counters are what becomes vectors.

use super::{Axes, offset, split};
use crate::InstructionSet;
use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue};
use crate::sharing::ELEMENTS_OF_MAP;
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};
use bytemuck::Pod;
use std::marker::PhantomData;

/// What integers become together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerReduction {
    /// The sum, modulo 2 to the number of bits; 0 of nothing.
    Sum,
    /// The quotient of the sum, of 64 bits, and the number of elements, rounded towards 0; 0 of nothing.
    Mean,
    /// The product, modulo 2 to the number of bits; 1 of nothing.
    Product,
    /// The greatest; the least of the type of nothing.
    Max,
    /// The least; the greatest of the type of nothing.
    Min,
}

/// A prepared reduction of integers of 32 or 64 bits over any axes.
#[derive(Debug, Clone)]
pub struct ReduceIntegers {
    isa: Isa,
    reduction: IntegerReduction,
    elements: ElementType,
    axes: Axes,
}

impl ReduceIntegers {
    /// Of a contiguous tensor over the axes whose numbers are given.
    ///
    /// # Panics
    /// If there is no such axis, or elements are no integers of 32 or 64 bits.
    pub fn prepare(
        set: InstructionSet,
        reduction: IntegerReduction,
        elements: ElementType,
        lengths: &[usize],
        reduced: &[usize],
    ) -> Self {
        let is_known = matches!(elements, ElementType::I32 | ElementType::I64 | ElementType::U32);
        assert!(is_known, "elements of {}", elements.name());
        Self { isa: Isa::of(set), reduction, elements, axes: Axes::new(lengths, reduced) }
    }

    fn run<T: Integer>(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        match self.reduction {
            IntegerReduction::Sum => self.fold::<T, SumOf>(team, input, output),
            IntegerReduction::Mean => self.fold::<T, MeanOf>(team, input, output),
            IntegerReduction::Product => self.fold::<T, ProductOf>(team, input, output),
            IntegerReduction::Max => self.fold::<T, GreatestOf>(team, input, output),
            IntegerReduction::Min => self.fold::<T, LeastOf>(team, input, output),
        }
    }

    fn fold<T: Integer, F: Fold<T>>(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        let axes = &self.axes;
        axes.for_each_part(team, input, output, ELEMENTS_OF_MAP, |part, output, pace| {
            let (first, fold) = (part.start, PhantomData::<F>);
            self.isa.run(Part { axes, input, output, first, pace, fold });
        });
    }
}

impl PreparedKernel for ReduceIntegers {
    fn name(&self) -> String {
        let function = match self.reduction {
            IntegerReduction::Sum => "sum",
            IntegerReduction::Mean => "mean",
            IntegerReduction::Product => "product",
            IntegerReduction::Max => "max",
            IntegerReduction::Min => "min",
        };
        format!("reduce {function} {}", self.elements.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        match self.elements {
            ElementType::I32 => {
                self.run::<i32>(team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
            ElementType::I64 => {
                self.run::<i64>(team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
            ElementType::U32 => {
                self.run::<u32>(team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
            other => unreachable!("elements of {}", other.name()),
        }
        Ok(())
    }
}

/// The types of integers.
trait Integer: Pod + Ord + Send + Sync {
    const LEAST: Self;
    const GREATEST: Self;
    const ZERO: Self;
    const ONE: Self;

    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn wide(self) -> i64;
    /// What it is modulo 2 to the number of bits.
    fn of_wide(wide: i64) -> Self;
}

macro_rules! integers {
    ($($T:ident),*) => {$(
        impl Integer for $T {
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn wide(self) -> i64 {
                i64::from(self)
            }

            // A mean is no greater than the numbers.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            #[inline(always)]
            fn of_wide(wide: i64) -> Self {
                wide as Self
            }
        }
    )*};
}
integers!(i32, i64, u32);

/// How integers become one.
trait Fold<T>: Sync {
    type All: Copy;
    const FIRST: Self::All;

    fn with(all: Self::All, element: T) -> Self::All;
    fn finish(all: Self::All, count: usize) -> T;
}

struct SumOf;
struct MeanOf;
struct ProductOf;
struct GreatestOf;
struct LeastOf;

macro_rules! folds {
    ($($Fold:ident: $first:ident, $with:expr;)*) => {$(
        impl<T: Integer> Fold<T> for $Fold {
            type All = T;
            const FIRST: T = T::$first;

            #[inline(always)]
            fn with(all: T, element: T) -> T {
                $with(all, element)
            }

            #[inline(always)]
            fn finish(all: T, _: usize) -> T {
                all
            }
        }
    )*};
}
folds! {
    SumOf: ZERO, T::plus;
    ProductOf: ONE, T::times;
    GreatestOf: LEAST, T::max;
    LeastOf: GREATEST, T::min;
}

impl<T: Integer> Fold<T> for MeanOf {
    type All = i64;
    const FIRST: i64 = 0;

    #[inline(always)]
    fn with(all: i64, element: T) -> i64 {
        all.wrapping_add(element.wide())
    }

    #[inline(always)]
    fn finish(all: i64, count: usize) -> T {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        T::of_wide(all.checked_div(count).unwrap_or(0))
    }
}

/// Columns that are reduced side by side, at most.
const COLUMNS: usize = 64;

struct Part<'a, T, F> {
    axes: &'a Axes,
    input: &'a [T],
    output: &'a mut [T],
    /// Number of the first output element.
    first: usize,
    pace: Pace<'a>,
    fold: PhantomData<F>,
}

impl<T: Integer, F: Fold<T>> Kernel for Part<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        if self.axes.last_is_reduced { self.rows() } else { self.columns() }
    }
}

impl<T: Integer, F: Fold<T>> Part<'_, T, F> {
    #[inline(always)]
    fn rows(self) {
        let Self { axes, input, output, first, mut pace, .. } = self;
        let (row, outer) = split(&axes.reduced);
        let rows = axes.count.checked_div(row.length).unwrap_or(0);
        for index in 0..output.len() {
            let start = offset(&axes.kept, first + index);
            let mut all = F::FIRST;
            for number in 0..rows {
                let start = start + offset(outer, number);
                let row = &input[start..start + row.length];
                for block in pace.blocks(row.len(), 1) {
                    for element in &row[block] {
                        all = F::with(all, *element);
                    }
                }
            }
            output[index] = F::finish(all, axes.count);
        }
    }

    /// The last kept axis is contiguous: neighbours are reduced side by side.
    #[inline(always)]
    fn columns(self) {
        let Self { axes, input, output, first, mut pace, .. } = self;
        let (last, outer) = split(&axes.kept);
        let mut done = 0;
        while done < output.len() {
            let number = first + done;
            let column = number % last.length;
            let start = offset(outer, number / last.length) + column;
            let count = (last.length - column).min(output.len() - done).min(COLUMNS);
            let mut all = [F::FIRST; COLUMNS];
            let all = &mut all[..count];
            for block in pace.blocks(axes.count, count) {
                for number in block {
                    let start = start + offset(&axes.reduced, number);
                    let elements = &input[start..start + count];
                    for column in 0..count {
                        all[column] = F::with(all[column], elements[column]);
                    }
                }
            }
            let output = &mut output[done..done + count];
            for column in 0..count {
                output[column] = F::finish(all[column], axes.count);
            }
            done += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared::tests::outputs;

    fn reduced<T: Pod>(
        (reduction, elements): (IntegerReduction, ElementType),
        (lengths, axes): (&[usize], &[usize]),
        input: &[T],
        results: usize,
    ) -> Vec<T> {
        let mut all = InstructionSet::available().map(|set| {
            let kernel = ReduceIntegers::prepare(set, reduction, elements, lengths, axes);
            let [output] =
                outputs(&kernel, &[bytemuck::cast_slice(input)], [results * size_of::<T>()]);
            bytemuck::pod_collect_to_vec(&output)
        });
        let first: Vec<T> = all.next().expect("an instruction set");
        for other in all {
            assert_eq!(
                bytemuck::cast_slice::<T, u8>(&other),
                bytemuck::cast_slice::<T, u8>(&first)
            );
        }
        first
    }

    const ALL: [IntegerReduction; 5] = [
        IntegerReduction::Sum,
        IntegerReduction::Mean,
        IntegerReduction::Product,
        IntegerReduction::Max,
        IntegerReduction::Min,
    ];

    #[test]
    fn results_by_hand() {
        let of = |reduction| {
            let input = [7, -3, i32::MAX, -8, 1, 1];
            reduced((reduction, ElementType::I32), (&[2, 3], &[1]), &input, 2)
        };
        assert_eq!(of(IntegerReduction::Sum), [i32::MIN + 3, -6]);
        assert_eq!(of(IntegerReduction::Mean), [(i32::MAX - 1) / 3 + 1, -2]);
        assert_eq!(of(IntegerReduction::Product), [i32::MIN + 21, -8]);
        assert_eq!(of(IntegerReduction::Max), [i32::MAX, 1]);
        assert_eq!(of(IntegerReduction::Min), [-3, -8]);
        let unsigned = [u32::MAX, 1, 5, u32::MAX];
        let of = |reduction| reduced((reduction, ElementType::U32), (&[2, 2], &[0]), &unsigned, 2);
        assert_eq!(of(IntegerReduction::Max), [u32::MAX, u32::MAX]);
        assert_eq!(of(IntegerReduction::Mean), [(1_u32 << 31) + 2, 1_u32 << 31]);
    }

    /// Rows and columns, of fewer and of more elements than are taken together, and several axes.
    #[test]
    fn every_result_is_that_of_the_elements_one_by_one() {
        let shapes: [(&[usize], &[usize]); 8] = [
            (&[5, 70], &[1]),
            (&[70, 5], &[0]),
            (&[9, 130], &[0]),
            (&[3, 4, 5, 6], &[1, 3]),
            (&[3, 4, 5, 6], &[0, 2]),
            (&[2, 3, 4, 5], &[0, 1, 2, 3]),
            (&[4, 6, 7], &[1, 2]),
            (&[6, 7], &[]),
        ];
        for (lengths, axes) in shapes {
            let elements: usize = lengths.iter().product();
            let mut random = fastrand::Rng::with_seed(elements as u64);
            let input: Vec<i64> =
                (0..elements).map(|_| random.i64(..) >> random.u32(0..60)).collect();
            let strides: Vec<usize> =
                (0..lengths.len()).map(|axis| lengths[axis + 1..].iter().product()).collect();
            let kept: Vec<usize> = (0..lengths.len()).filter(|axis| !axes.contains(axis)).collect();
            let results: usize = kept.iter().map(|axis| lengths[*axis]).product();
            let mut of_result: Vec<Vec<i64>> = vec![Vec::new(); results];
            for (place, element) in input.iter().enumerate() {
                let index = |axis: &usize| place / strides[*axis] % lengths[*axis];
                let result = kept.iter().fold(0, |all, axis| all * lengths[*axis] + index(axis));
                of_result[result].push(*element);
            }
            for reduction in ALL {
                let expected: Vec<i64> = of_result
                    .iter()
                    .map(|elements| {
                        let all = elements.iter().copied();
                        let sum = all.clone().fold(0, i64::wrapping_add);
                        match reduction {
                            IntegerReduction::Sum => sum,
                            IntegerReduction::Mean => sum / i64::try_from(elements.len()).unwrap(),
                            IntegerReduction::Product => all.fold(1, i64::wrapping_mul),
                            IntegerReduction::Max => all.max().unwrap(),
                            IntegerReduction::Min => all.min().unwrap(),
                        }
                    })
                    .collect();
                let found =
                    reduced((reduction, ElementType::I64), (lengths, axes), &input, results);
                assert_eq!(found, expected, "{reduction:?} of {lengths:?} over {axes:?}");
            }
        }
    }
}
