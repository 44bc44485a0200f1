//! [`QuantizedProduct`]: MUL of quantized tensors.

use super::sum::{clamped, for_each_vector};
use super::trial::{Variant, floats_that_agree};
use crate::InstructionSet;
use crate::broadcast::Operand;
use crate::elementwise::pairs::{Broadcast, PairFunction};
use crate::multiplier::Multiplier;
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial, store_bytes_partial};
use std::marker::PhantomData;

/// MUL of `u8` or `i8` tensors.
#[derive(Debug, Clone, Copy)]
pub struct QuantizedProduct<T> {
    pub(super) zero_points: [i32; 3],
    multiplier: Multiplier,
    range: (i32, i32),
    pub(super) variant: Variant<Floats>,
    stored: PhantomData<T>,
}

/// `product * factor`, moved away from 0 by a number, to the nearest integer.
///
/// By definition products are rounded twice. The second rounding, to `2^exponent` steps of the first one, takes all up that are
/// half a step of the first one short of a half: which is that number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Floats {
    factor: f32,
    away: f32,
}

impl<T: Byte> QuantizedProduct<T> {
    /// Clamped to stored values from `range.0` to `range.1`.
    pub fn new(
        set: InstructionSet,
        [a, b]: [Quantization; 2],
        output: Quantization,
        range: (i32, i32),
    ) -> Self {
        // The product of the scales is one of floats.
        let real = f64::from(a.scale * b.scale) / f64::from(output.scale);
        let multiplier = Multiplier::from_real(real);
        let zero_points = [a.zero_point, b.zero_point, output.zero_point];
        let of_type = T::RANGE.0..=T::RANGE.1;
        let mut prepared = Self {
            zero_points,
            multiplier,
            range: (range.0.max(T::RANGE.0), range.1.min(T::RANGE.1)),
            variant: Variant::Scalar,
            stored: PhantomData,
        };
        if multiplier.never_shifts_left() && zero_points.iter().all(|zero| of_type.contains(zero)) {
            prepared.variant = prepared.search(Isa::of(set), real);
        }
        prepared
    }

    /// In floats, if there are numbers with which all products are what they should be.
    #[allow(clippy::cast_possible_truncation)] // Rounded to the nearest.
    fn search(&self, isa: Isa, real: f64) -> Variant<Floats> {
        let factor = real as f32;
        let factors = [
            factor,
            factor.next_up(),
            factor.next_down(),
            factor.next_up().next_up(),
            factor.next_down().next_down(),
        ];
        let away = 0.5_f32.powi(1 - self.multiplier.exponent);
        // Half a unit in the last place of what is rounded, and a whole one.
        let moves = [0.0, 1.0, -1.0, 2.0, -2.0].map(|it| it * 0.5_f32.powi(17));
        let all = factors
            .into_iter()
            .flat_map(|factor| moves.map(|it| Floats { factor, away: away + it }));
        floats_that_agree(all, |variant, [a, b], output| {
            isa.run(Block { product: Self { variant, ..*self }, a, b, output });
        })
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
        match product.variant {
            Variant::Scalar => {
                for (index, output) in self.output.iter_mut().enumerate() {
                    *output = product.scalar(self.a.at(index), self.b.at(index));
                }
            }
            Variant::Integers => {
                for_each_vector!(simd, self, product.range, |x, y| product.vector(simd, x, y));
            }
            Variant::Floats(Floats { factor, away }) => {
                let [zero_of_a, zero_of_b, zero] = product.zero_points.map(|it| simd.isplat(it));
                let (factor, away) = (simd.splat(factor), simd.splat(away));
                let sign = simd.isplat(i32::MIN);
                for_each_vector!(simd, self, product.range, |x, y| {
                    // Exact, as of 18 bits.
                    let x = simd.to_f32(simd.isub(x, zero_of_a));
                    let product = simd.mul(x, simd.to_f32(simd.isub(y, zero_of_b)));
                    let sign = simd.iand(simd.bits(product), sign);
                    let away = simd.of_bits(simd.ior(simd.bits(away), sign));
                    simd.iadd(simd.to_i32(simd.fma(product, factor, away)), zero)
                });
            }
        }
    }
}
