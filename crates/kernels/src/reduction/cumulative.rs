//! [`CumulativeSum`]: the sums of all elements up to each one along an axis.
#![allow(clippy::needless_range_loop)] // Plain counters are what becomes vectors.

use crate::InstructionSet;
use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue};
use crate::sharing::{Cut, ELEMENTS_OF_TASK, for_each_rows};
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};
use bytemuck::Pod;

/// Rows whose sums are computed together.
const ROWS: usize = 4;

/// Columns whose sums are computed side by side, at most.
const COLUMNS: usize = 64;

/// A prepared CUMSUM. Floats are summed in double precision; sums of integers wrap.
#[derive(Debug, Clone)]
pub struct CumulativeSum {
    isa: Isa,
    elements: ElementType,
    sizes: [usize; 3],
    order: Order,
}

/// Which elements are in a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Whether an element is left out of its own sum.
    pub exclusive: bool,
    /// Whether the last element comes first.
    pub reverse: bool,
}

impl CumulativeSum {
    /// Of a tensor with these lengths before the axis, along it and behind it.
    ///
    /// # Panics
    /// If elements are neither 32-bit floats nor integers of 32 or 64 bits.
    pub fn prepare(
        set: InstructionSet,
        elements: ElementType,
        sizes: [usize; 3],
        order: Order,
    ) -> Self {
        let is_known = matches!(
            elements,
            ElementType::F32 | ElementType::I32 | ElementType::I64 | ElementType::U32
        );
        assert!(is_known, "elements of {}", elements.name());
        Self { isa: Isa::of(set), elements, sizes, order }
    }

    fn run<T: Cumulative>(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        let [outer, length, inner] = self.sizes;
        let image = length * inner;
        assert_eq!(input.len(), outer * image, "an input of another size");
        assert_eq!(output.len(), input.len(), "an output of another size");
        let cut = Cut { each: image, least: ELEMENTS_OF_TASK, multiple: ROWS };
        for_each_rows(team, (output, image), cut, |part, output, pace| {
            let input = &input[part.start * image..part.end * image];
            let (sizes, order) = ([length, inner], self.order);
            self.isa.run(Images { sizes, order, input, output, pace });
        });
    }
}

impl PreparedKernel for CumulativeSum {
    fn name(&self) -> String {
        format!("cumulative sum {}", self.elements.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        match self.elements {
            ElementType::F32 => {
                self.run::<f32>(team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
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

/// Elements that are summed.
trait Cumulative: Pod + Send + Sync {
    type Sum: Copy;
    const ZERO: Self::Sum;

    fn added_to(self, sum: Self::Sum) -> Self::Sum;
    fn rounded(sum: Self::Sum) -> Self;
}

impl Cumulative for f32 {
    type Sum = f64;
    const ZERO: f64 = 0.0;

    #[inline(always)]
    fn added_to(self, sum: f64) -> f64 {
        sum + f64::from(self)
    }

    #[allow(clippy::cast_possible_truncation)] // Rounded once.
    #[inline(always)]
    fn rounded(sum: f64) -> Self {
        sum as Self
    }
}

macro_rules! with_sums {
    ($($T:ident),*) => {$(
        impl Cumulative for $T {
            type Sum = Self;
            const ZERO: Self = 0;

            #[inline(always)]
            fn added_to(self, sum: Self) -> Self {
                sum.wrapping_add(self)
            }

            #[inline(always)]
            fn rounded(sum: Self) -> Self {
                sum
            }
        }
    )*};
}
with_sums!(i32, i64, u32);

/// Whole images, each of rows along the axis.
struct Images<'a, T> {
    /// Along the axis and behind it.
    sizes: [usize; 2],
    order: Order,
    input: &'a [T],
    output: &'a mut [T],
    pace: Pace<'a>,
}

impl<T: Cumulative> Kernel for Images<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) {
        let [length, inner] = self.sizes;
        let image = length * inner;
        let images = self.input.len().checked_div(image).unwrap_or(0);
        if inner > 1 {
            for number in 0..images {
                self.columns(number * image);
            }
            return;
        }
        // Each sum waits for the one before it: those of several rows wait together.
        let mut row = 0;
        while row + ROWS <= images {
            self.rows::<ROWS>(row * image);
            row += ROWS;
        }
        while row < images {
            self.rows::<1>(row * image);
            row += 1;
        }
    }
}

impl<T: Cumulative> Images<'_, T> {
    /// Rows of their own, one behind the other, from this element on.
    #[inline(always)]
    fn rows<const R: usize>(&mut self, start: usize) {
        let Self { sizes: [length, _], order, input, output, pace } = self;
        let (length, Order { exclusive, reverse }) = (*length, *order);
        let input = &input[start..start + R * length];
        let output = &mut output[start..start + R * length];
        let mut sums = [T::ZERO; R];
        for block in pace.blocks(length, R) {
            for index in block {
                let mut at = if reverse { length - 1 - index } else { index };
                for sum in &mut sums {
                    let before = *sum;
                    *sum = input[at].added_to(before);
                    output[at] = T::rounded(if exclusive { before } else { *sum });
                    at = at.wrapping_add(length);
                }
            }
        }
    }

    /// The columns of the image that begins with this element.
    #[inline(always)]
    fn columns(&mut self, start: usize) {
        let Self { sizes: [length, inner], order, input, output, pace } = self;
        let (length, inner, Order { exclusive, reverse }) = (*length, *inner, *order);
        let mut first = 0;
        while first < inner {
            let count = (inner - first).min(COLUMNS);
            let mut sums = [T::ZERO; COLUMNS];
            let sums = &mut sums[..count];
            for block in pace.blocks(length, count) {
                for index in block {
                    let index = if reverse { length - 1 - index } else { index };
                    let at = start + index * inner + first;
                    let (from, to) = (&input[at..at + count], &mut output[at..at + count]);
                    for column in 0..count {
                        let before = sums[column];
                        let sum = from[column].added_to(before);
                        sums[column] = sum;
                        to[column] = T::rounded(if exclusive { before } else { sum });
                    }
                }
            }
            first += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared::tests::outputs;

    fn sums<T: Pod>(elements: ElementType, sizes: [usize; 3], order: Order, input: &[T]) -> Vec<T> {
        let bytes: &[u8] = bytemuck::cast_slice(input);
        let mut all = InstructionSet::available().map(|set| {
            let kernel = CumulativeSum::prepare(set, elements, sizes, order);
            let [output] = outputs(&kernel, &[bytes], [bytes.len()]);
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

    #[test]
    fn sums_by_hand() {
        let order = |exclusive, reverse| Order { exclusive, reverse };
        let of = |order| sums(ElementType::I32, [2, 3, 1], order, &[1, 2, 3, 10, 20, 30]);
        assert_eq!(of(order(false, false)), [1, 3, 6, 10, 30, 60]);
        assert_eq!(of(order(true, false)), [0, 1, 3, 0, 10, 30]);
        assert_eq!(of(order(false, true)), [6, 5, 3, 60, 50, 30]);
        assert_eq!(of(order(true, true)), [5, 3, 0, 50, 30, 0]);
        let columns =
            sums(ElementType::I64, [1, 3, 2], order(false, true), &[1_i64, 2, 3, 4, 5, 6]);
        assert_eq!(columns, [9_i64, 12, 8, 10, 5, 6]);
        let wrapped = sums(ElementType::U32, [1, 2, 1], order(false, false), &[u32::MAX, 3]);
        assert_eq!(wrapped, [u32::MAX, 2]);
    }

    /// Below, equal to and above what is computed together.
    #[test]
    fn every_sum_is_that_of_the_elements_one_by_one() {
        for sizes in
            [[1, 7, 1], [3, 5, 1], [4, 9, 1], [9, 6, 1], [2, 5, 3], [1, 4, 64], [2, 3, 130]]
        {
            let [outer, length, inner] = sizes;
            let mut random = fastrand::Rng::with_seed(length as u64);
            let input: Vec<f32> = (0..outer * length * inner).map(|_| random.f32() - 0.5).collect();
            for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)]
            {
                let order = Order { exclusive, reverse };
                let found = sums(ElementType::F32, sizes, order, &input);
                for (place, found) in found.into_iter().enumerate() {
                    let (index, column) = (place / inner % length, place % inner);
                    let image = place / (length * inner) * length * inner;
                    let is_in = |other: &usize| match (reverse, exclusive) {
                        (false, false) => *other <= index,
                        (false, true) => *other < index,
                        (true, false) => *other >= index,
                        (true, true) => *other > index,
                    };
                    let mut summed: Vec<usize> = (0..length).filter(is_in).collect();
                    if reverse {
                        summed.reverse();
                    }
                    let at = |index: usize| f64::from(input[image + index * inner + column]);
                    let expected = summed.into_iter().map(at).fold(0.0, |sum, x| sum + x);
                    #[allow(clippy::cast_possible_truncation)] // As the definition has it.
                    let expected = expected as f32;
                    assert_eq!(found.to_bits(), expected.to_bits(), "{sizes:?} {order:?} {place}");
                }
            }
        }
    }
}
