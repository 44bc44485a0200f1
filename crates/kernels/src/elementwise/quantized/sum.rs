//! ADD and SUB of quantized tensors.
//!
//! By definition both operands are brought to a common scale, with 20 more bits to round in, and
//! their sum to the output's: three multiplications in integers, of which two need 64 bits. The same
//! result nearly always comes out of `round(x * a + (y * b + c))` in f32, at a third of the cost.
//! As there are only 65,536 pairs of operands, preparing tries whether it does, for all of them, and
//! uses the short variant only then.

use super::Sign;
use super::trial::{Variant, floats_that_agree};
use crate::InstructionSet;
use crate::broadcast::Operand;
use crate::elementwise::pairs::{Broadcast, PairFunction};
use crate::multiplier::{Multiplier, divide_vector_by_power_of_two};
use crate::quantization::Quantization;
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial, store_bytes_partial};
use std::marker::PhantomData;

/// Bits behind the point of the common scale.
const EXTRA_BITS: u32 = 20;

/// ADD or SUB of `u8` or `i8` tensors.
#[derive(Debug, Clone)]
pub struct QuantizedSum<T> {
    exact: Exact,
    pub(super) variant: Variant<Floats>,
    stored: PhantomData<T>,
}

/// `x * of_a + (y * of_b + rest)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Floats {
    of_a: f32,
    of_b: f32,
    rest: f32,
}

/// The sum by its definition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact {
    zero_points: [i32; 3],
    multipliers: [Multiplier; 3],
    sign: Sign,
    range: (i32, i32),
}

impl<T: Byte> QuantizedSum<T> {
    /// The sum, or the difference, clamped to stored values from `range.0` to `range.1`.
    pub fn new(
        set: InstructionSet,
        inputs: [Quantization; 2],
        output: Quantization,
        sign: Sign,
        range: (i32, i32),
    ) -> Self {
        let range = (range.0.max(T::RANGE.0), range.1.min(T::RANGE.1));
        let exact = Exact::new(inputs, output, sign, range);
        let mut prepared = Self { exact, variant: Variant::Scalar, stored: PhantomData };
        if exact.fits_vectors::<T>() {
            let scales = inputs.map(|input| f64::from(input.scale) / f64::from(output.scale));
            prepared.variant = prepared.search(Isa::of(set), scales);
        }
        prepared
    }

    /// In floats, if there are numbers with which all sums are what they should be.
    #[allow(clippy::cast_possible_truncation)] // Rounded to the nearest.
    fn search(&self, isa: Isa, scales: [f64; 2]) -> Variant<Floats> {
        // Results beyond 32 bits are not defined, and there are none with factors like these.
        if !scales.iter().all(|scale| *scale < 65_536.0) {
            return Variant::Integers;
        }
        let [zero_of_a, zero_of_b, zero] = self.exact.zero_points.map(f64::from);
        // Slightly different factors shift the few sums that round to the other side.
        let numbers = (0..27_u32).map(|attempt| {
            let nudge = |place: u32, value: f64| {
                let value = value as f32;
                match attempt / place % 3 {
                    1 => value.next_up(),
                    2 => value.next_down(),
                    _ => value,
                }
            };
            let sign = if self.exact.sign == Sign::Plus { 1.0 } else { -1.0 };
            let (of_a, of_b) = (nudge(1, scales[0]), nudge(3, scales[1] * sign));
            let rest = zero - zero_of_a * scales[0] - zero_of_b * scales[1] * sign;
            Floats { of_a, of_b, rest: nudge(9, rest) }
        });
        floats_that_agree(numbers, |variant, operands, output| {
            self.exact.run::<T>(isa, variant, operands, output);
        })
    }
}

impl<T: Byte> PairFunction for QuantizedSum<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        format!("elementwise sum {}", T::NAME)
    }

    fn run(&self, pairs: &Broadcast, team: &mut Team, inputs: [&[T]; 2], output: &mut [T]) {
        pairs.by_block(team, inputs, output, |isa, operands, output| {
            self.exact.run(isa, self.variant, operands, output);
        });
    }
}

impl Exact {
    pub(super) fn new(
        inputs: [Quantization; 2],
        output: Quantization,
        sign: Sign,
        range: (i32, i32),
    ) -> Self {
        let [a, b] = inputs;
        let common = 2.0 * f64::from(a.scale.max(b.scale));
        let extra = f64::from(1 << EXTRA_BITS);
        Self {
            zero_points: [a.zero_point, b.zero_point, output.zero_point],
            multipliers: [
                Multiplier::from_real(f64::from(a.scale) / common),
                Multiplier::from_real(f64::from(b.scale) / common),
                Multiplier::from_real(common / (extra * f64::from(output.scale))),
            ],
            sign,
            range,
        }
    }

    /// Of a block.
    fn run<T: Byte>(
        &self,
        isa: Isa,
        variant: Variant<Floats>,
        [a, b]: [Operand<'_, T>; 2],
        output: &mut [T],
    ) {
        isa.run(Block { exact: self, variant, a, b, output });
    }

    /// Whether nothing overflows in vectors: differences of 9 bits, factors below 1.
    fn fits_vectors<T: Byte>(&self) -> bool {
        self.multipliers.iter().all(|it| it.never_shifts_left())
            && self.zero_points.iter().all(|zero| (T::RANGE.0..=T::RANGE.1).contains(zero))
    }

    pub(super) fn scalar<T: Byte>(&self, x: T, y: T) -> T {
        let [of_a, of_b, of_sum] = self.multipliers;
        let [zero_of_a, zero_of_b, zero] = self.zero_points;
        let x = of_a.apply(x.wide().wrapping_sub(zero_of_a).wrapping_shl(EXTRA_BITS));
        let y = of_b.apply(y.wide().wrapping_sub(zero_of_b).wrapping_shl(EXTRA_BITS));
        let sum = match self.sign {
            Sign::Plus => x.wrapping_add(y),
            Sign::Minus => x.wrapping_sub(y),
        };
        T::nearest(of_sum.apply(sum).saturating_add(zero).max(self.range.0).min(self.range.1))
    }

    /// `multiplier.apply((x - zero point) << 20)`.
    ///
    /// With the mantissa cut into 20 upper and 11 lower bits, both products fit into 32 bits, and the
    /// bits that the shift put below are those that the rounding looks at.
    #[inline(always)]
    fn scaled<S: Simd>(&self, simd: S, side: usize, stored: S::I) -> S::I {
        let Multiplier { mantissa, exponent } = self.multipliers[side];
        let difference = simd.isub(stored, simd.isplat(self.zero_points[side]));
        if mantissa == 1 << 30 && exponent == 0 {
            return simd.shift_left(difference, EXTRA_BITS - 1);
        }
        let upper = simd.imul(difference, simd.isplat(mantissa >> 11));
        let lower = simd.imul(difference, simd.isplat(mantissa & 0x7FF));
        let lower = simd.shift_right(simd.iadd(lower, simd.isplat(1 << 10)), 11);
        divide_vector_by_power_of_two(simd, simd.iadd(upper, lower), exponent.unsigned_abs())
    }

    /// Not clamped.
    #[inline(always)]
    fn vector<S: Simd>(&self, simd: S, x: S::I, y: S::I) -> S::I {
        let (x, y) = (self.scaled(simd, 0, x), self.scaled(simd, 1, y));
        let sum = match self.sign {
            Sign::Plus => simd.iadd(x, y),
            Sign::Minus => simd.isub(x, y),
        };
        let sum = self.multipliers[2].apply_to_vector(simd, sum);
        simd.iadd(sum, simd.isplat(self.zero_points[2]))
    }
}

/// What one block is made of.
struct Block<'a, T> {
    exact: &'a Exact,
    variant: Variant<Floats>,
    a: Operand<'a, T>,
    b: Operand<'a, T>,
    output: &'a mut [T],
}

/// Vectors of a block, four by four, and the elements behind the last full ones; what is computed of them is clamped to a range,
/// which is one of `T`.
macro_rules! for_each_vector {
    ($simd:ident, $block:ident, $limits:expr, |$x:ident, $y:ident| $value:expr) => {{
        let Block { a, b, output, .. } = $block;
        let limits: (i32, i32) = $limits;
        match (a, b) {
            (Operand::Elements(a), Operand::Elements(b)) => {
                for_each_vector!(@all $simd, output, limits, range, at, $value,
                    [a = &a[range.0..range.1], $x = T::load($simd, &a[at..]), load_bytes_partial($simd, a)],
                    [b = &b[range.0..range.1], $y = T::load($simd, &b[at..]), load_bytes_partial($simd, b)])
            }
            (Operand::Same(a), Operand::Elements(b)) => {
                let a = $simd.isplat(a.wide());
                for_each_vector!(@all $simd, output, limits, range, at, $value,
                    [a = a, $x = a, a],
                    [b = &b[range.0..range.1], $y = T::load($simd, &b[at..]), load_bytes_partial($simd, b)])
            }
            (Operand::Elements(a), Operand::Same(b)) => {
                let b = $simd.isplat(b.wide());
                for_each_vector!(@all $simd, output, limits, range, at, $value,
                    [a = &a[range.0..range.1], $x = T::load($simd, &a[at..]), load_bytes_partial($simd, a)],
                    [b = b, $y = b, b])
            }
            (Operand::Same(a), Operand::Same(b)) => {
                let ($x, $y) = ($simd.isplat(a.wide()), $simd.isplat(b.wide()));
                let mut one = [T::zeroed()];
                store_bytes_partial($simd, clamped($simd, $value, limits), &mut one);
                output.fill(one[0]);
            }
        }
    }};
    (@all $simd:ident, $output:ident, $limits:ident, $range:ident, $at:ident, $value:expr,
        [$a:ident = $a_part:expr, $x:ident = $whole_x:expr, $rest_x:expr],
        [$b:ident = $b_part:expr, $y:ident = $whole_y:expr, $rest_y:expr]) => {{
        let four = 4 * S::LANES;
        let mut first = 0;
        let mut fours = $output.chunks_exact_mut(four);
        for output in &mut fours {
            // Parts of a known length, so that nothing is checked for each vector.
            let $range = (first, first + four);
            let ($a, $b) = ($a_part, $b_part);
            let mut values = [$simd.isplat(0); 4];
            for (index, value) in values.iter_mut().enumerate() {
                let $at = index * S::LANES;
                let ($x, $y) = ($whole_x, $whole_y);
                *value = $value;
            }
            T::store_four($simd, values, (T::nearest($limits.0), T::nearest($limits.1)), output);
            first += four;
        }
        let mut vectors = fours.into_remainder().chunks_exact_mut(S::LANES);
        for output in &mut vectors {
            let $range = (first, first + S::LANES);
            let ($a, $b) = ($a_part, $b_part);
            let $at = 0;
            let ($x, $y) = ($whole_x, $whole_y);
            T::store($simd, clamped($simd, $value, $limits), output);
            first += S::LANES;
        }
        let output = vectors.into_remainder();
        let $range = (first, first + output.len());
        let ($a, $b) = ($a_part, $b_part);
        let ($x, $y) = ($rest_x, $rest_y);
        store_bytes_partial($simd, clamped($simd, $value, $limits), output);
    }};
}

pub(super) use for_each_vector;

/// Numbers clamped to a range.
#[inline(always)]
pub(super) fn clamped<S: Simd>(simd: S, value: S::I, range: (i32, i32)) -> S::I {
    simd.imax(simd.isplat(range.0), simd.imin(simd.isplat(range.1), value))
}

impl<T: Byte> Kernel for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let exact = *self.exact;
        match self.variant {
            Variant::Scalar => {
                for (index, output) in self.output.iter_mut().enumerate() {
                    *output = exact.scalar(self.a.at(index), self.b.at(index));
                }
            }
            Variant::Integers => {
                for_each_vector!(simd, self, exact.range, |x, y| exact.vector(simd, x, y));
            }
            Variant::Floats(Floats { of_a, of_b, rest }) => {
                let (of_a, of_b) = (simd.splat(of_a), simd.splat(of_b));
                let rest = simd.splat(rest);
                for_each_vector!(simd, self, exact.range, |x, y| {
                    let sum = simd.fma(simd.to_f32(y), of_b, rest);
                    let sum = simd.fma(simd.to_f32(x), of_a, sum);
                    simd.to_i32(sum)
                });
            }
        }
    }
}
