//! [`QuantizedProduct`]: MUL of quantized tensors.

use super::sum::{clamped, for_each_vector};
use crate::broadcast::Operand;
use crate::elementwise::pairs::{Broadcast, PairFunction};
use crate::multiplier::Multiplier;
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::{Byte, Kernel, Simd, load_bytes_partial, store_bytes_partial};
use std::marker::PhantomData;

/// MUL of `u8` or `i8` tensors.
#[derive(Debug, Clone, Copy)]
pub struct QuantizedProduct<T> {
    pub(super) zero_points: [i32; 3],
    multiplier: Multiplier,
    range: (i32, i32),
    /// Whether nothing overflows in vectors.
    fits_vectors: bool,
    stored: PhantomData<T>,
}

impl<T: Byte> QuantizedProduct<T> {
    /// Clamped to stored values from `range.0` to `range.1`.
    pub fn new([a, b]: [Quantization; 2], output: Quantization, range: (i32, i32)) -> Self {
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
            stored: PhantomData,
        }
    }

    /// By its definition.
    pub(super) fn scalar(&self, x: T, y: T) -> T {
        let [zero_of_a, zero_of_b, zero] = self.zero_points;
        let (x, y) = (x.wide().wrapping_sub(zero_of_a), y.wide().wrapping_sub(zero_of_b));
        let product = self.multiplier.apply(x.wrapping_mul(y));
        T::nearest(product.saturating_add(zero).max(self.range.0).min(self.range.1))
    }

    /// Not clamped.
    #[inline(always)]
    fn vector<S: Simd>(&self, simd: S, x: S::I, y: S::I) -> S::I {
        let [zero_of_a, zero_of_b, zero] = self.zero_points.map(|zero| simd.isplat(zero));
        let product = simd.imul(simd.isub(x, zero_of_a), simd.isub(y, zero_of_b));
        simd.iadd(self.multiplier.apply_to_vector(simd, product), zero)
    }
}

impl<T: Byte> PairFunction for QuantizedProduct<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        format!("elementwise product {}", T::NAME)
    }

    fn run(&self, pairs: &Broadcast, team: &mut Team, inputs: [&[T]; 2], output: &mut [T]) {
        pairs.by_block(team, inputs, output, |isa, [a, b], output| {
            isa.run(Block { product: *self, a, b, output });
        });
    }
}

/// The products of a block.
pub(super) struct Block<'a, T> {
    pub(super) product: QuantizedProduct<T>,
    pub(super) a: Operand<'a, T>,
    pub(super) b: Operand<'a, T>,
    pub(super) output: &'a mut [T],
}

impl<T: Byte> Kernel for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let product = self.product;
        if product.fits_vectors {
            for_each_vector!(simd, self, product.range, |x, y| product.vector(simd, x, y));
            return;
        }
        for (index, output) in self.output.iter_mut().enumerate() {
            *output = product.scalar(self.a.at(index), self.b.at(index));
        }
    }
}
