//! QUANTIZE, DEQUANTIZE, CAST: from one type of element to another.
#![allow(unsafe_code)]

use super::Quantization;
use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::parts::{Cut, for_each_part, for_each_slice};
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial, store_bytes_partial};

/// Elements from which on a second thread is worth waking.
const ELEMENTS_OF_TASK: usize = 16 * 1024;

/// Maps parts of the input to the same parts of the output, on several threads.
fn map<T: Sync, U: Send>(
    team: &mut Team,
    input: &[T],
    output: &mut [U],
    work: impl Fn(&[T], &mut [U]) + Sync,
) {
    assert_eq!(input.len(), output.len(), "an output of another size");
    let output = DisjointOutput::new(output);
    for_each_part(
        team,
        input.len(),
        Cut { each: 1, least: ELEMENTS_OF_TASK, multiple: 64 },
        |part, _| {
            // SAFETY: every part is another one.
            work(&input[part.clone()], unsafe { output.slice(part.start, part.len()) });
        },
    );
}

/// The nearest stored numbers: `round(real / scale) + zero_point`, halves away from zero, saturated;
/// NaN gives the zero point.
///
/// # Panics
/// If there are not as many outputs as inputs.
pub fn quantize<T: Byte>(
    set: InstructionSet,
    team: &mut Team,
    input: &[f32],
    output: &mut [T],
    quantization: Quantization,
) {
    let isa = Isa::of(set);
    map(team, input, output, |input, output| isa.run(Quantize { input, output, quantization }));
}

struct Quantize<'a, T> {
    input: &'a [f32],
    output: &'a mut [T],
    quantization: Quantization,
}

impl<T: Byte> Kernel for Quantize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            T::store(simd, stored::<S, T>(simd, simd.load(input), self.quantization), output);
        }
        let rest = simd.load_partial(inputs.remainder(), 0.0);
        let rest = stored::<S, T>(simd, rest, self.quantization);
        store_bytes_partial(simd, rest, outputs.into_remainder());
    }
}

/// Real numbers as they are stored.
#[inline(always)]
fn stored<S: Simd, T: Byte>(simd: S, real: S::F, quantization: Quantization) -> S::I {
    // Far outside of 8 bits, and still far from the limits of 32.
    let zero_point = simd.isplat(quantization.zero_point.clamp(-2_000_000, 2_000_000));
    let (low, high) = (simd.isplat(T::RANGE.0), simd.isplat(T::RANGE.1));
    let steps = simd.div(real, simd.splat(quantization.scale));
    let steps = simd.select(simd.eq(steps, steps), steps, simd.splat(0.0));
    let magnitude = simd.min(simd.abs(steps), simd.splat(1_000_000.0));
    let whole = simd.floor(magnitude);
    let is_less = simd.lt(simd.sub(magnitude, whole), simd.splat(0.5));
    let rounded = simd.select(is_less, whole, simd.add(whole, simd.splat(1.0)));
    let sign = simd.shift_right(simd.bits(steps), 31);
    let rounded = simd.isub(simd.ixor(simd.to_i32(rounded), sign), sign);
    simd.imax(low, simd.imin(high, simd.iadd(rounded, zero_point)))
}

/// What stored numbers stand for: `(stored - zero_point) * scale`.
///
/// # Panics
/// If there are not as many outputs as inputs.
pub fn dequantize<T: Byte>(
    set: InstructionSet,
    team: &mut Team,
    input: &[T],
    output: &mut [f32],
    quantization: Quantization,
) {
    let isa = Isa::of(set);
    map(team, input, output, |input, output| isa.run(Dequantize { input, output, quantization }));
}

struct Dequantize<'a, T> {
    input: &'a [T],
    output: &'a mut [f32],
    quantization: Quantization,
}

impl<T: Byte> Kernel for Dequantize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            simd.store(real(simd, T::load(simd, input), self.quantization), output);
        }
        let rest = load_bytes_partial(simd, inputs.remainder());
        simd.store_partial(real(simd, rest, self.quantization), outputs.into_remainder());
    }
}

/// What stored numbers stand for.
#[inline(always)]
fn real<S: Simd>(simd: S, stored: S::I, quantization: Quantization) -> S::F {
    let steps = simd.isub(stored, simd.isplat(quantization.zero_point));
    simd.mul(simd.to_f32(steps), simd.splat(quantization.scale))
}

/// Float16, by its bits, to float32.
///
/// # Panics
/// If there are not as many outputs as inputs.
pub fn f16_to_f32(set: InstructionSet, team: &mut Team, input: &[u16], output: &mut [f32]) {
    let isa = Isa::of(set);
    map(team, input, output, |input, output| isa.run(Widen { input, output }));
}

struct Widen<'a> {
    input: &'a [u16],
    output: &'a mut [f32],
}

impl Kernel for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            simd.store(simd.load_f16(input), output);
        }
        let (input, output) = (inputs.remainder(), outputs.into_remainder());
        let mut rest = [0; 16];
        rest[..input.len()].copy_from_slice(input);
        simd.store_partial(simd.load_f16(&rest), output);
    }
}

/// Float32 to float16, by its bits; rounded to the nearest, halves to even.
///
/// # Panics
/// If there are not as many outputs as inputs.
pub fn f32_to_f16(set: InstructionSet, team: &mut Team, input: &[f32], output: &mut [u16]) {
    let isa = Isa::of(set);
    map(team, input, output, |input, output| isa.run(Narrow { input, output }));
}

struct Narrow<'a> {
    input: &'a [f32],
    output: &'a mut [u16],
}

impl Kernel for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            simd.store_f16(simd.load(input), output);
        }
        let (input, output) = (inputs.remainder(), outputs.into_remainder());
        let mut rest = [0; 16];
        simd.store_f16(simd.load_partial(input, 0.0), &mut rest);
        output.copy_from_slice(&rest[..output.len()]);
    }
}

/// Float32 to the nearest numbers that float16 has, halves to even.
pub fn round_to_f16(set: InstructionSet, team: &mut Team, values: &mut [f32]) {
    let isa = Isa::of(set);
    for_each_slice(team, values, ELEMENTS_OF_TASK, |_, values| isa.run(Round { values }));
}

struct Round<'a> {
    values: &'a mut [f32],
}

impl Kernel for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut halves = [0; 16];
        let mut all = self.values.chunks_exact_mut(S::LANES);
        for values in all.by_ref() {
            simd.store_f16(simd.load(values), &mut halves);
            simd.store(simd.load_f16(&halves), values);
        }
        let rest = all.into_remainder();
        simd.store_f16(simd.load_partial(rest, 0.0), &mut halves);
        simd.store_partial(simd.load_f16(&halves), rest);
    }
}

/// Float32 to int32: cut off towards zero, saturated; NaN gives 0.
///
/// # Panics
/// If there are not as many outputs as inputs.
#[allow(clippy::cast_possible_truncation)] // What it is for.
pub fn f32_to_i32(team: &mut Team, input: &[f32], output: &mut [i32]) {
    map(team, input, output, |input, output| {
        for (input, output) in input.iter().zip(output) {
            *output = *input as i32;
        }
    });
}

/// Int32 to the nearest float32.
///
/// # Panics
/// If there are not as many outputs as inputs.
#[allow(clippy::cast_precision_loss)] // What it is for.
pub fn i32_to_f32(team: &mut Team, input: &[i32], output: &mut [f32]) {
    map(team, input, output, |input, output| {
        for (input, output) in input.iter().zip(output) {
            *output = *input as f32;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_quantize<T: Byte>(input: &[f32], quantization: Quantization) {
        for set in InstructionSet::available() {
            let mut output = vec![T::zeroed(); input.len()];
            quantize(set, &mut Team::alone(), input, &mut output, quantization);
            for (real, stored) in input.iter().zip(output) {
                #[allow(clippy::cast_possible_truncation)]
                let steps = (real / quantization.scale).round() as i32;
                let expected = T::nearest(steps.saturating_add(quantization.zero_point));
                assert_eq!(stored, expected, "{set}: {real} {quantization:?}");
            }
        }
    }

    #[test]
    fn halves_go_away_from_zero() {
        let mut halves: Vec<f32> = (-300_i16..300).map(|it| f32::from(it) * 0.5).collect();
        halves.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 0.499_999_97]);
        for zero_point in [0, 3, -128, 255] {
            check_quantize::<u8>(&halves, Quantization { scale: 1.0, zero_point });
            check_quantize::<i8>(&halves, Quantization { scale: 1.0, zero_point });
        }
        check_quantize::<i8>(&halves, Quantization { scale: 0.0, zero_point: 1 });
        check_quantize::<i8>(&halves, Quantization { scale: f32::NAN, zero_point: 1 });
    }

    #[test]
    fn stored_numbers_and_halves_come_back() {
        let stored: Vec<u8> = (0..=255).collect();
        let quantization = Quantization { scale: 0.037, zero_point: 99 };
        let halves: Vec<u16> = (0..=u16::MAX).collect();
        for set in InstructionSet::available() {
            let mut team = Team::new(2);
            let (mut real, mut again) = (vec![0.0; 256], vec![0; 256]);
            dequantize(set, &mut team, &stored, &mut real, quantization);
            assert!((real[0] + 99.0 * 0.037).abs() < 1e-6);
            quantize(set, &mut team, &real, &mut again, quantization);
            assert_eq!(again, stored);
            let (mut wide, mut again) = (vec![0.0; 65_536], vec![0; 65_536]);
            f16_to_f32(set, &mut team, &halves, &mut wide);
            f32_to_f16(set, &mut team, &wide, &mut again);
            let mut between: Vec<f32> = wide.iter().map(|it| it * 1.000_2).collect();
            round_to_f16(set, &mut team, &mut between);
            for (rounded, before) in between.iter().zip(&wide) {
                let expected = half::f16::from_f32(before * 1.000_2).to_f32();
                assert!(*rounded == expected || expected.is_nan() && rounded.is_nan());
            }
            for (before, after) in halves.iter().zip(again) {
                let is_nan = before & 0x7FFF > 0x7C00;
                assert!(*before == after || (is_nan && after & 0x7FFF > 0x7C00));
            }
        }
    }

    proptest! {
        #[test]
        fn quantized_as_the_formula_says(
            input in prop::collection::vec(prop_oneof![-20.0..20.0_f32, any::<f32>()], 0..50),
            scale in 0.01..1.0_f32,
            zero_point in -128..128,
        ) {
            check_quantize::<i8>(&input, Quantization { scale, zero_point });
            check_quantize::<u8>(&input, Quantization { scale, zero_point: zero_point + 128 });
        }
    }
}
