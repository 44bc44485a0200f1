//! [`QuantizedProduct`]: MUL of quantized tensors.

use super::sum::{clamped, for_each_vector};
use crate::InstructionSet;
use crate::broadcast::{Operand, Walk};
use crate::multiplier::Multiplier;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial, store_bytes_partial};
use std::marker::PhantomData;

/// Prepared MUL of `u8` or `i8` tensors that broadcast.
#[derive(Debug, Clone)]
pub struct QuantizedProduct<T> {
    isa: Isa,
    walk: Walk,
    exact: Exact,
    stored: PhantomData<T>,
}

/// The product by its definition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact {
    pub(super) zero_points: [i32; 3],
    multiplier: Multiplier,
    pub(super) range: (i32, i32),
    /// Whether nothing overflows in vectors.
    pub(super) fits_vectors: bool,
}

impl<T: Byte> QuantizedProduct<T> {
    /// The product of tensors of two shapes, clamped to stored values from `range.0` to `range.1`.
    ///
    /// # Panics
    /// If the shapes do not broadcast.
    pub fn prepare(
        set: InstructionSet,
        shapes: [&[usize]; 2],
        inputs: [Quantization; 2],
        output: Quantization,
        range: (i32, i32),
    ) -> Self {
        let exact = Exact::new::<T>(inputs, output, range);
        Self { isa: Isa::of(set), walk: Walk::new(&shapes), exact, stored: PhantomData }
    }

    /// The products of two tensors' elements.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, a: &[T], b: &[T], output: &mut [T]) {
        self.walk.run(team, &[a, b], output, &|operands, output| {
            self.isa.run(Block { exact: self.exact, a: operands[0], b: operands[1], output });
        });
    }
}

impl<T: Byte> PreparedKernel for QuantizedProduct<T> {
    fn name(&self) -> String {
        format!("elementwise product {}", T::NAME)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), inputs.of(1), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

impl Exact {
    pub(super) fn new<T: Byte>(
        [a, b]: [Quantization; 2],
        output: Quantization,
        range: (i32, i32),
    ) -> Self {
        // The product of the scales is one of floats.
        let real = f64::from(a.scale * b.scale) / f64::from(output.scale);
        let multiplier = Multiplier::from_real(real);
        let zero_points = [a.zero_point, b.zero_point, output.zero_point];
        let of_type = T::RANGE.0..=T::RANGE.1;
        Self {
            zero_points,
            multiplier,
            range: (range.0.max(T::RANGE.0), range.1.min(T::RANGE.1)),
            fits_vectors: multiplier.never_shifts_left()
                && zero_points.iter().all(|zero| of_type.contains(zero)),
        }
    }

    pub(super) fn scalar<T: Byte>(&self, x: T, y: T) -> T {
        let [zero_of_a, zero_of_b, zero] = self.zero_points;
        let (x, y) = (x.wide().wrapping_sub(zero_of_a), y.wide().wrapping_sub(zero_of_b));
        let product = self.multiplier.apply(x.wrapping_mul(y));
        T::nearest(product.saturating_add(zero).max(self.range.0).min(self.range.1))
    }

    /// Not clamped.
    #[inline(always)]
    pub(super) fn vector<S: Simd>(&self, simd: S, x: S::I, y: S::I) -> S::I {
        let [zero_of_a, zero_of_b, zero] = self.zero_points.map(|zero| simd.isplat(zero));
        let product = simd.imul(simd.isub(x, zero_of_a), simd.isub(y, zero_of_b));
        simd.iadd(self.multiplier.apply_to_vector(simd, product), zero)
    }
}

struct Block<'a, T> {
    exact: Exact,
    a: Operand<'a, T>,
    b: Operand<'a, T>,
    output: &'a mut [T],
}

impl<T: Byte> Kernel for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let exact = self.exact;
        if exact.fits_vectors {
            for_each_vector!(simd, self, exact.range, |x, y| exact.vector(simd, x, y));
            return;
        }
        for (index, output) in self.output.iter_mut().enumerate() {
            *output = exact.scalar(self.a.at(index), self.b.at(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<T: Byte>(inputs: [Quantization; 2], output: Quantization, range: (i32, i32)) {
        let all: Vec<T> = (T::RANGE.0..=T::RANGE.1).map(T::nearest).collect();
        for set in InstructionSet::available() {
            let shapes = [&[256, 1][..], &[256][..]];
            let product = QuantizedProduct::<T>::prepare(set, shapes, inputs, output, range);
            let mut found = vec![T::zeroed(); 256 * 256];
            product.run(&mut Team::new(2), &all, &all, &mut found);
            for (index, found) in found.into_iter().enumerate() {
                let expected = product.exact.scalar(all[index / 256], all[index % 256]);
                assert_eq!(found, expected, "{set}");
            }
        }
    }

    #[test]
    fn by_hand() {
        let of = |scale, zero_point| Quantization { scale, zero_point };
        let shape = [&[4][..], &[1][..]];
        for set in InstructionSet::available() {
            let inputs = [of(0.5, 10), of(0.25, 0)];
            let product = QuantizedProduct::<u8>::prepare(set, shape, inputs, of(1.0, 3), (0, 200));
            let mut output = [0; 4];
            product.run(&mut Team::alone(), &[10, 18, 0, 255], &[40], &mut output);
            // 0; 4 * 10; -5 * 10; 122.5 * 10.
            assert_eq!(output, [3, 43, 0, 200]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10))]

        #[test]
        fn all_pairs_of_operands(
            scales in proptest::array::uniform3(0.001..1.0_f32),
            zeros in proptest::array::uniform3(0..256),
        ) {
            let of = |index: usize, offset| {
                Quantization { scale: scales[index], zero_point: zeros[index] - offset }
            };
            check::<u8>([of(0, 0), of(1, 0)], of(2, 0), (3, 250));
            check::<i8>([of(0, 128), of(1, 128)], of(2, 128), (-128, 127));
        }
    }
}
