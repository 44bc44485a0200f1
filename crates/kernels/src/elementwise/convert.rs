//! QUANTIZE and DEQUANTIZE, and floats of 16 bits: from one type of element to another.

use crate::InstructionSet;
use crate::prepared::OneInput;
use crate::quantization::Quantization;
use crate::sharing::{Cut, ELEMENTS_OF_MAP, for_each_rows, for_each_slice};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd, Stored};
use bytemuck::{Pod, Zeroable};
use std::marker::PhantomData;
use std::ops::Range;

/// What vectors of elements are converted by.
trait Conversion: Copy + Sync {
    type From: Pod + Sync;
    type To: Pod + Send;

    /// A vector's first elements.
    fn convert<S: Simd>(self, simd: S, from: &[Self::From], to: &mut [Self::To]);
}

/// Converts all elements, on several threads.
fn convert<C: Conversion>(
    isa: Isa,
    team: &mut Team,
    conversion: C,
    input: &[C::From],
    output: &mut [C::To],
) {
    assert_eq!(input.len(), output.len(), "an output of another size");
    let cut = Cut { each: 1, least: ELEMENTS_OF_MAP, multiple: 64 };
    for_each_rows(team, (output, 1), cut, |part, output, _| {
        isa.run(Part { conversion, input: &input[part], output });
    });
}

struct Part<'a, C: Conversion> {
    conversion: C,
    input: &'a [C::From],
    output: &'a mut [C::To],
}

impl<C: Conversion> Kernel for Part<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            self.conversion.convert(simd, input, output);
        }
        let (input, output) = (inputs.remainder(), outputs.into_remainder());
        let (mut from, mut to) = ([C::From::zeroed(); 16], [C::To::zeroed(); 16]);
        from[..input.len()].copy_from_slice(input);
        self.conversion.convert(simd, &from, &mut to);
        output.copy_from_slice(&to[..output.len()]);
    }
}

/// [`Stored`] of 16 bits, as arrays of 32, which the compiler keeps in vectors.
macro_rules! stored_in_16_bits {
    ($T:ident) => {
        impl Stored for $T {
            const RANGE: (i32, i32) = ($T::MIN as i32, $T::MAX as i32);
            const NAME: &'static str = stringify!($T);

            #[inline(always)]
            fn load<S: Simd>(simd: S, from: &[Self]) -> S::I {
                let mut wide = [0; 16];
                wide.iter_mut().zip(&from[..S::LANES]).for_each(|(to, it)| *to = i32::from(*it));
                simd.iload(&wide)
            }

            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within the range.
            #[inline(always)]
            fn store<S: Simd>(simd: S, value: S::I, to: &mut [Self]) {
                let mut wide = [0; 16];
                simd.istore(value, &mut wide);
                to[..S::LANES].iter_mut().zip(wide).for_each(|(to, it)| *to = it as $T);
            }
        }
    };
}

stored_in_16_bits!(i16);
stored_in_16_bits!(u16);

/// Prepared QUANTIZE of any number of elements: the nearest stored numbers,
/// `round(real / scale) + zero_point`, halves away from zero, saturated; NaN gives the zero point.
#[derive(Debug, Clone, Copy)]
pub struct Quantize<T> {
    isa: Isa,
    quantization: Quantization,
    stored: PhantomData<T>,
}

impl<T: Stored> Quantize<T> {
    /// For numbers that are stored in this way.
    pub fn prepare(set: InstructionSet, quantization: Quantization) -> Self {
        Self { isa: Isa::of(set), quantization, stored: PhantomData }
    }
}

impl<T: Stored> OneInput for Quantize<T> {
    type Input = f32;
    type Output = T;

    fn name(&self) -> String {
        format!("quantize {}", T::NAME)
    }

    fn run(&self, team: &mut Team, input: &[f32], output: &mut [T]) {
        convert(self.isa, team, *self, input, output);
    }
}

impl<T: Stored> Conversion for Quantize<T> {
    type From = f32;
    type To = T;

    #[inline(always)]
    fn convert<S: Simd>(self, simd: S, from: &[f32], to: &mut [T]) {
        T::store(simd, stored::<S, T>(simd, simd.load(from), self.quantization), to);
    }
}

/// Real numbers as they are stored.
#[inline(always)]
fn stored<S: Simd, T: Stored>(simd: S, real: S::F, quantization: Quantization) -> S::I {
    // Far outside of 16 bits, and still far from the limits of 32.
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

/// Prepared DEQUANTIZE of any number of elements: `(stored - zero_point) * scale`.
#[derive(Debug, Clone, Copy)]
pub struct Dequantize<T> {
    isa: Isa,
    quantization: Quantization,
    stored: PhantomData<T>,
}

impl<T: Stored> Dequantize<T> {
    /// Of numbers that are stored in this way.
    pub fn prepare(set: InstructionSet, quantization: Quantization) -> Self {
        Self { isa: Isa::of(set), quantization, stored: PhantomData }
    }
}

impl<T: Stored> OneInput for Dequantize<T> {
    type Input = T;
    type Output = f32;

    fn name(&self) -> String {
        format!("dequantize {}", T::NAME)
    }

    fn run(&self, team: &mut Team, input: &[T], output: &mut [f32]) {
        convert(self.isa, team, *self, input, output);
    }
}

impl<T: Stored> Conversion for Dequantize<T> {
    type From = T;
    type To = f32;

    #[inline(always)]
    fn convert<S: Simd>(self, simd: S, from: &[T], to: &mut [f32]) {
        let Quantization { scale, zero_point } = self.quantization;
        let steps = simd.isub(T::load(simd, from), simd.isplat(zero_point));
        simd.store(simd.mul(simd.to_f32(steps), simd.splat(scale)), to);
    }
}

/// Prepared DEQUANTIZE of signed numbers with a scale for each channel.
#[derive(Debug, Clone)]
pub struct DequantizeChannels {
    isa: Isa,
    /// Elements behind the channels' axis.
    inner: usize,
    scales: Vec<f32>,
}

impl DequantizeChannels {
    /// With the scales of the channels, along an axis behind which there are this many elements.
    pub fn prepare(set: InstructionSet, inner: usize, scales: Vec<f32>) -> Self {
        Self { isa: Isa::of(set), inner, scales }
    }
}

impl OneInput for DequantizeChannels {
    type Input = i8;
    type Output = f32;

    fn name(&self) -> String {
        "dequantize per channel i8".to_owned()
    }

    fn run(&self, team: &mut Team, input: &[i8], output: &mut [f32]) {
        assert_eq!(input.len(), output.len(), "an output of another size");
        let (inner, channels) = (self.inner.max(1), self.scales.len());
        for_each_slice(team, output, ELEMENTS_OF_MAP, |start, output| {
            let (mut at, end) = (start, start + output.len());
            while at < end {
                let channel = at / inner % channels;
                // What is left of a channel, or of all where each is a single element.
                let (left, scales) = if inner == 1 {
                    (channels - channel, &self.scales[channel..])
                } else {
                    (inner - at % inner, &self.scales[channel..=channel])
                };
                let part = at..end.min(at.saturating_add(left));
                let output = &mut output[part.start - start..part.end - start];
                self.isa.run(Scaling { input: &input[part.clone()], output, scales });
                at = part.end;
            }
        });
    }
}

/// With one scale, or one for each element.
struct Scaling<'a> {
    input: &'a [i8],
    output: &'a mut [f32],
    scales: &'a [f32],
}

impl Kernel for Scaling<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let all = self.output.iter_mut().zip(self.input);
        match *self.scales {
            [scale] => all.for_each(|(real, stored)| *real = f32::from(*stored) * scale),
            _ => {
                all.zip(self.scales)
                    .for_each(|((real, stored), scale)| *real = f32::from(*stored) * scale);
            }
        }
    }
}

/// Float16, by its bits, to float32.
///
/// # Panics
/// If there are not as many outputs as inputs.
pub fn f16_to_f32(set: InstructionSet, team: &mut Team, input: &[u16], output: &mut [f32]) {
    convert(Isa::of(set), team, Widen, input, output);
}

#[derive(Clone, Copy)]
struct Widen;

impl Conversion for Widen {
    type From = u16;
    type To = f32;

    #[inline(always)]
    fn convert<S: Simd>(self, simd: S, from: &[u16], to: &mut [f32]) {
        simd.store(simd.load_f16(from), to);
    }
}

/// Float16, whose bits fill the second half of the memory, to float32, which fill it all: these elements,
/// after all that come before them, on this thread.
///
/// # Panics
/// If there are fewer elements.
pub fn f16_to_f32_in_place(set: InstructionSet, values: &mut [f32], elements: Range<usize>) {
    assert!(elements.end <= values.len(), "elements {elements:?} of {}", values.len());
    Isa::of(set).run(WidenInPlace { values, elements });
}

struct WidenInPlace<'a> {
    values: &'a mut [f32],
    elements: Range<usize>,
}

impl Kernel for WidenInPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { values, elements } = self;
        let half = values.len();
        for start in elements.clone().step_by(S::LANES) {
            let count = S::LANES.min(elements.end - start);
            let mut narrow = [0; 16];
            // What is written ends before what is read next: 4 * end <= 2 * (half + end).
            let halves: &[u16] = bytemuck::cast_slice(values);
            narrow[..count].copy_from_slice(&halves[half + start..half + start + count]);
            let wide = simd.load_f16(&narrow);
            if count == S::LANES {
                simd.store(wide, &mut values[start..start + S::LANES]);
            } else {
                simd.store_partial(wide, &mut values[start..start + count]);
            }
        }
    }
}

/// Float32 to float16, by its bits, on this thread; rounded to the nearest, halves to even.
///
/// # Panics
/// If there are not as many outputs as inputs.
pub fn f32_to_f16(set: InstructionSet, input: &[f32], output: &mut [u16]) {
    assert_eq!(input.len(), output.len(), "an output of another size");
    Isa::of(set).run(Part { conversion: Narrow, input, output });
}

#[derive(Clone, Copy)]
struct Narrow;

impl Conversion for Narrow {
    type From = f32;
    type To = u16;

    #[inline(always)]
    fn convert<S: Simd>(self, simd: S, from: &[f32], to: &mut [u16]) {
        simd.store_f16(simd.load(from), to);
    }
}

/// Floats to the nearest floats that float16 has, halves to even.
pub(crate) fn round_to_f16(set: InstructionSet, team: &mut Team, values: &mut [f32]) {
    for_each_slice(team, values, ELEMENTS_OF_MAP, |_, values| Isa::of(set).run(Round(values)));
}

struct Round<'a>(&'a mut [f32]);

impl Kernel for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut halves = [0; 16];
        let mut vectors = self.0.chunks_exact_mut(S::LANES);
        for vector in vectors.by_ref() {
            simd.store_f16(simd.load(vector), &mut halves);
            simd.store(simd.load_f16(&halves), vector);
        }
        let rest = vectors.into_remainder();
        simd.store_f16(simd.load_partial(rest, 0.0), &mut halves);
        simd.store_partial(simd.load_f16(&halves), rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_quantize<T: Stored + PartialEq + TryFrom<i32> + std::fmt::Debug>(
        input: &[f32],
        quantization: Quantization,
    ) {
        for set in InstructionSet::available() {
            let mut output = vec![T::zeroed(); input.len()];
            Quantize::prepare(set, quantization).run(&mut Team::alone(), input, &mut output);
            for (real, stored) in input.iter().zip(output) {
                #[allow(clippy::cast_possible_truncation)]
                let steps = (real / quantization.scale).round() as i32;
                let nearest = steps.saturating_add(quantization.zero_point);
                let expected = T::try_from(nearest.clamp(T::RANGE.0, T::RANGE.1)).ok();
                assert_eq!(Some(stored), expected, "{set}: {real} {quantization:?}");
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
            check_quantize::<u16>(&halves, Quantization { scale: 0.003, zero_point });
            check_quantize::<i16>(&halves, Quantization { scale: 0.003, zero_point });
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
            Dequantize::prepare(set, quantization).run(&mut team, &stored, &mut real);
            assert!((real[0] + 99.0 * 0.037).abs() < 1e-6);
            Quantize::prepare(set, quantization).run(&mut team, &real, &mut again);
            assert_eq!(again, stored);
            let wide: Vec<i16> = (i16::MIN..=i16::MAX).collect();
            let (mut real, mut again) = (vec![0.0; wide.len()], vec![0; wide.len()]);
            Dequantize::prepare(set, quantization).run(&mut team, &wide, &mut real);
            let at = usize::from(32_768_u16 + 1099);
            assert!((real[at] - 1000.0 * 0.037).abs() < 1e-4, "{set}: {}", real[at]);
            Quantize::prepare(set, quantization).run(&mut team, &real, &mut again);
            assert_eq!(again, wide);
            let (mut wide, mut again) = (vec![0.0; 65_536], vec![0; 65_536]);
            f16_to_f32(set, &mut team, &halves, &mut wide);
            f32_to_f16(set, &wide, &mut again);
            let between: Vec<f32> = wide.iter().map(|it| it * 1.000_2).collect();
            let mut rounded = between.clone();
            round_to_f16(set, &mut team, &mut rounded);
            for (rounded, before) in rounded.iter().zip(&between) {
                let expected = half::f16::from_f32(*before).to_f32();
                assert!(*rounded == expected || expected.is_nan() && rounded.is_nan());
            }
            for (before, after) in halves.iter().zip(again) {
                let is_nan = before & 0x7FFF > 0x7C00;
                assert!(*before == after || (is_nan && after & 0x7FFF > 0x7C00));
            }
        }
    }

    #[test]
    fn halves_widen_in_place() {
        for count in 0..40_u8 {
            let numbers: Vec<f32> = (0..count).map(|it| f32::from(it) - 2.5).collect();
            for set in InstructionSet::available() {
                for cut in [0, numbers.len() / 2, numbers.len()] {
                    let mut values = vec![9.0; numbers.len()];
                    let halves: &mut [u16] = bytemuck::cast_slice_mut(&mut values);
                    for (half, number) in halves[numbers.len()..].iter_mut().zip(&numbers) {
                        *half = half::f16::from_f32(*number).to_bits();
                    }
                    f16_to_f32_in_place(set, &mut values, 0..cut);
                    f16_to_f32_in_place(set, &mut values, cut..numbers.len());
                    assert_eq!(values, numbers, "{set}");
                }
            }
        }
    }

    #[test]
    fn channels_have_each_their_scale() {
        let scales: Vec<f32> = (0_u8..50).map(|it| f32::from(it) * 0.25 + 0.1).collect();
        for inner in [1, 3, 40] {
            let input: Vec<i8> =
                (0..100 * inner).map(|it| i8::try_from(it % 250 - 125).unwrap()).collect();
            let inner = usize::try_from(inner).unwrap();
            let scale = |at: usize| scales[at / inner % 50];
            let expected: Vec<f32> =
                input.iter().enumerate().map(|(at, it)| f32::from(*it) * scale(at)).collect();
            for set in InstructionSet::available() {
                let kernel = DequantizeChannels::prepare(set, inner, scales.clone());
                let mut output = vec![0.0; input.len()];
                kernel.run(&mut Team::new(2), &input, &mut output);
                assert_eq!(output, expected, "{set} {inner}");
            }
        }
        let none = DequantizeChannels::prepare(InstructionSet::best(), 1, Vec::new());
        none.run(&mut Team::alone(), &[], &mut []);
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
            check_quantize::<i16>(&input, Quantization { scale: scale / 256.0, zero_point });
        }
    }
}
