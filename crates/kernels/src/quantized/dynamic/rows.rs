//! Rows of floats as 8-bit numbers, each row with a scale and a zero point of its own.

use crate::team::Pace;
use crate::vector::{Isa, Kernel, Simd, store_bytes_partial};
use bytemuck::{Pod, Zeroable};

/// What the stored numbers of a row stand for: `step * (q - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Row {
    /// NaN if an element is infinite or NaN, or the row's range is.
    pub(super) step: f32,
    /// From 0 to 255.
    pub(super) zero_point: i32,
}

/// Stores a row, and says what it stands for.
///
/// # Panics
/// If there is not as much room as there are elements.
pub(super) fn quantize(isa: Isa, input: &[f32], output: &mut [u8], pace: &mut Pace<'_>) -> Row {
    assert_eq!(input.len(), output.len(), "room for a row");
    let mut range = Range { least: 0.0, greatest: 0.0, strange: 0.0 };
    for block in pace.blocks(input.len(), 1) {
        let of_block = isa.run(FindRange(&input[block]));
        range.least = range.least.min(of_block.least);
        range.greatest = range.greatest.max(of_block.greatest);
        range.strange += of_block.strange;
    }
    let Some(scale) = Scale::of(range) else {
        output.fill(0);
        return Row { step: f32::NAN, zero_point: 0 };
    };
    for block in pace.blocks(input.len(), 1) {
        let output = &mut output[block.clone()];
        isa.run(Quantize { input: &input[block], output, scale });
    }
    Row { step: 1.0 / scale.factor, zero_point: scale.zero_point }
}

/// The range of elements, and 0.
#[derive(Debug, Clone, Copy)]
struct Range {
    least: f32,
    greatest: f32,
    /// Zero if all elements are finite, or else NaN.
    strange: f32,
}

/// How elements are stored.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Steps of 1.
    factor: f32,
    /// From 0 to 255.
    zero_point: i32,
}

impl Scale {
    /// None if the range is not finite.
    fn of(Range { least, greatest, strange }: Range) -> Option<Self> {
        let range = greatest - least;
        if !range.is_finite() || strange.is_nan() {
            return None;
        }
        let mut factor = 255.0 / range;
        // There are only zeros, or numbers that might as well be.
        if !factor.is_finite() {
            factor = 1.0;
        }
        let (low, high) = (least * factor, greatest * factor);
        // Of the two ends the one that is met better.
        let zero_point =
            if (-128.0 + low) + (127.0 + high) > 0.0 { -128.0 - low } else { 127.0 - high };
        #[allow(clippy::cast_possible_truncation)] // It has 8 bits.
        let zero_point = zero_point.clamp(-128.0, 127.0).round_ties_even() as i32 + 128;
        Some(Self { factor, zero_point })
    }
}

struct FindRange<'a>(&'a [f32]);

/// What was found so far, lane by lane.
#[derive(Clone, Copy)]
struct Found<S: Simd> {
    least: S::F,
    greatest: S::F,
    strange: S::F,
}

impl<S: Simd> Found<S> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        let zero = simd.splat(0.0);
        Self { least: zero, greatest: zero, strange: zero }
    }

    #[inline(always)]
    fn enter(&mut self, simd: S, x: S::F) {
        // Of a NaN and a number, these take the second.
        self.least = simd.min(x, self.least);
        self.greatest = simd.max(x, self.greatest);
        // What is not finite becomes NaN.
        self.strange = simd.fma(x, simd.splat(0.0), self.strange);
    }

    #[inline(always)]
    fn merge(&mut self, simd: S, other: Self) {
        self.least = simd.min(self.least, other.least);
        self.greatest = simd.max(self.greatest, other.greatest);
        self.strange = simd.add(self.strange, other.strange);
    }
}

impl Kernel for FindRange<'_> {
    type Output = Range;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Range {
        // Side by side: each of them takes some cycles.
        let mut first = Found::new(simd);
        let (mut second, mut third, mut fourth) = (first, first, first);
        let mut chunks = self.0.chunks_exact(4 * S::LANES);
        for chunk in chunks.by_ref() {
            first.enter(simd, simd.load(chunk));
            second.enter(simd, simd.load(&chunk[S::LANES..]));
            third.enter(simd, simd.load(&chunk[2 * S::LANES..]));
            fourth.enter(simd, simd.load(&chunk[3 * S::LANES..]));
        }
        for rest in chunks.remainder().chunks(S::LANES) {
            first.enter(simd, simd.load_partial(rest, 0.0));
        }
        first.merge(simd, second);
        third.merge(simd, fourth);
        first.merge(simd, third);
        Range {
            least: -simd.greatest(simd.sub(simd.splat(0.0), first.least)),
            greatest: simd.greatest(first.greatest),
            strange: simd.sum(first.strange),
        }
    }
}

struct Quantize<'a> {
    input: &'a [f32],
    output: &'a mut [u8],
    scale: Scale,
}

impl Kernel for Quantize<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::cast_precision_loss)] // Of 8 bits.
    fn run<S: Simd>(self, simd: S) {
        let Scale { factor, zero_point } = self.scale;
        let scale = Steps {
            factor: simd.splat(factor),
            low: simd.splat(-zero_point as f32),
            high: simd.splat((255 - zero_point) as f32),
            zero_point: simd.isplat(zero_point),
        };
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            simd.store_u8(stored(simd, simd.load(input), scale), output);
        }
        let rest = stored(simd, simd.load_partial(inputs.remainder(), 0.0), scale);
        store_bytes_partial(simd, rest, outputs.into_remainder());
    }
}

/// [`Scale`] in vectors.
#[derive(Clone, Copy)]
struct Steps<S: Simd> {
    factor: S::F,
    /// The ends of the range, in steps.
    low: S::F,
    high: S::F,
    zero_point: S::I,
}

/// Elements as they are stored.
#[inline(always)]
fn stored<S: Simd>(simd: S, x: S::F, scale: Steps<S>) -> S::I {
    let steps = simd.min(simd.max(simd.mul(x, scale.factor), scale.low), scale.high);
    simd.iadd(simd.to_i32(steps), scale.zero_point)
}
