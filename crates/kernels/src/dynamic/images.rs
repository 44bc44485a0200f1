//! Images of floats as 8-bit numbers, each image with a scale and a zero point of its own.
#![allow(unsafe_code)]

use crate::convolution::quantized::SumConvolution;
use crate::disjoint::DisjointOutput;
use crate::sharing::shared_tasks;
use crate::team::{Pace, part};
use crate::vector::{Isa, Kernel, Simd, store_bytes_partial};
use crate::{LINE_BYTES, Line, Team};
use bytemuck::{Pod, Zeroable};

/// Elements of images that are worth a task of their own.
const ELEMENTS_PER_TASK: usize = 16 << 10;
/// Elements of short images that are rounded by one call, so that processors begin with one of them before they are done with
/// the range of the one before it.
const ELEMENTS_TOGETHER: usize = 4 << 10;

/// What the stored numbers of an image stand for: `step * (q - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Meaning {
    /// NaN if an element is infinite or NaN, or the image's range is.
    pub(super) step: f32,
    /// From 0 to 255.
    pub(super) zero_point: i32,
}

/// Images, and how their rounding is cut into tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Images {
    isa: Isa,
    count: usize,
    /// Of an image.
    elements: usize,
    /// Parts of each image, whose ranges are found first if there are several.
    parts: usize,
    /// Tasks that the parts of all images are shared among.
    tasks: usize,
}

impl Images {
    pub(super) fn new(isa: Isa, [count, elements]: [usize; 2], threads: usize) -> Self {
        let tasks = shared_tasks(count.saturating_mul(elements), ELEMENTS_PER_TASK, threads);
        let parts = (tasks / count.max(1)).max(1);
        Self { isa, count, elements, parts, tasks: tasks.min(count * parts).max(1) }
    }

    /// Bytes of all images as 8-bit numbers, with some behind them that may be read.
    pub(super) fn bytes(&self) -> usize {
        self.count * self.elements + SumConvolution::SLACK
    }

    /// Lines of memory for what is known of the images.
    pub(super) fn meaning_lines(&self) -> usize {
        let ranges = if self.parts > 1 { self.parts * size_of::<Range>() } else { 0 };
        (self.count * (size_of::<Meaning>() + ranges)).div_ceil(LINE_BYTES)
    }

    /// Stores all images, and says what they stand for.
    ///
    /// # Panics
    /// If the input or memory is too small.
    pub(super) fn round<'a>(
        &self,
        team: &mut Team,
        input: &[f32],
        bytes: &mut [u8],
        memory: &'a mut [Line],
    ) -> &'a [Meaning] {
        let (meanings, ranges) = self.split(memory);
        self.store(team, input, &mut bytes[..self.count * self.elements], meanings, ranges);
        meanings
    }

    /// Stores what the 8-bit numbers stand for.
    ///
    /// # Panics
    /// If the input, the output or the memory is too small.
    pub(super) fn round_to_floats(
        &self,
        team: &mut Team,
        input: &[f32],
        output: &mut [f32],
        memory: &mut [Line],
    ) {
        let (meanings, ranges) = self.split(memory);
        self.store(team, input, &mut output[..self.count * self.elements], meanings, ranges);
    }

    /// Memory for what is known of the images, and of their parts if there are several.
    fn split<'a>(&self, memory: &'a mut [Line]) -> (&'a mut [Meaning], &'a mut [Range]) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(memory);
        let (meanings, rest) = bytes.split_at_mut(self.count * size_of::<Meaning>());
        let ranges = if self.parts > 1 { self.count * self.parts } else { 0 };
        let ranges = &mut rest[..ranges * size_of::<Range>()];
        (bytemuck::cast_slice_mut(meanings), bytemuck::cast_slice_mut(ranges))
    }

    /// Stores all images in one way or the other, and writes down what the 8-bit numbers stand for.
    fn store<T: Stored>(
        &self,
        team: &mut Team,
        input: &[f32],
        output: &mut [T],
        meanings: &mut [Meaning],
        ranges: &mut [Range],
    ) {
        let Self { isa, count, elements, parts, tasks } = *self;
        let (output, meanings) = (DisjointOutput::new(output), DisjointOutput::new(meanings));
        if parts == 1 {
            let together = (ELEMENTS_TOGETHER / elements.max(1)).max(1);
            team.run_long(tasks, &|task, stop| {
                let mut pace = Pace::new(stop);
                let images = part(count, tasks, task);
                for first in images.clone().step_by(together) {
                    let count = together.min(images.end - first);
                    if pace.is_over(count * elements) {
                        return;
                    }
                    let input = &input[first * elements..][..count * elements];
                    // SAFETY: each image is one task's, which has it once.
                    let (output, meanings) = unsafe {
                        (output.slice(first * elements, input.len()), meanings.slice(first, count))
                    };
                    if elements <= ELEMENTS_TOGETHER {
                        isa.run(StoreImages { input, output, meanings });
                    } else {
                        let scale = Scale::of(range(isa, input, &mut pace));
                        meanings[0] = Meaning::of(scale);
                        store_part(isa, input, output, scale, &mut pace);
                    }
                }
            });
            return;
        }
        let all = |index: usize| {
            let of_image = part(elements, parts, index % parts);
            let first = index / parts * elements;
            first + of_image.start..first + of_image.end
        };
        let found = DisjointOutput::new(&mut *ranges);
        team.run_long(tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            for index in part(count * parts, tasks, task) {
                // SAFETY: each part is one task's, which has it once.
                let found = unsafe { found.slice(index, 1) };
                found[0] = range(isa, &input[all(index)], &mut pace);
            }
        });
        let ranges = &*ranges;
        team.run_long(tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            for index in part(count * parts, tasks, task) {
                let (image, elements) = (index / parts, all(index));
                if pace.is_over(elements.len()) {
                    return;
                }
                let of_image = &ranges[image * parts..][..parts];
                let range = of_image.iter().fold(Range::EMPTY, |all, part| all.merged(*part));
                let scale = Scale::of(range);
                if index % parts == 0 {
                    // SAFETY: the first part of each image is one task's, which has it once.
                    let meaning = unsafe { meanings.slice(image, 1) };
                    meaning[0] = Meaning::of(scale);
                }
                // SAFETY: as above.
                let output = unsafe { output.slice(elements.start, elements.len()) };
                store_part(isa, &input[elements], output, scale, &mut pace);
            }
        });
    }
}

impl Meaning {
    /// None of an image that is not finite.
    fn of(scale: Option<Scale>) -> Self {
        scale.map_or(Self { step: f32::NAN, zero_point: 0 }, |Scale { factor, zero_point }| Self {
            step: 1.0 / factor,
            zero_point,
        })
    }
}

/// Stores elements of an image.
fn store_part<T: Stored>(
    isa: Isa,
    input: &[f32],
    output: &mut [T],
    scale: Option<Scale>,
    pace: &mut Pace<'_>,
) {
    for block in pace.blocks(input.len(), 1) {
        let (input, output) = (&input[block.clone()], &mut output[block]);
        match scale {
            Some(scale) => isa.run(StorePart { input, output, scale }),
            None => output.fill(T::NOT_FINITE),
        }
    }
}

fn range(isa: Isa, input: &[f32], pace: &mut Pace<'_>) -> Range {
    let blocks = pace.blocks(input.len(), 1);
    blocks.fold(Range::EMPTY, |range, block| range.merged(isa.run(FindRange(&input[block]))))
}

/// The range of elements, and 0.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(C)]
struct Range {
    least: f32,
    greatest: f32,
    /// Zero if all elements are finite, or else NaN.
    strange: f32,
}

impl Range {
    const EMPTY: Self = Self { least: 0.0, greatest: 0.0, strange: 0.0 };

    fn merged(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            strange: self.strange + other.strange,
        }
    }
}

/// How elements of an image are stored.
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

/// What elements are stored as.
trait Stored: Copy + Send + Sync {
    /// What is stored for the elements of an image that is not finite.
    const NOT_FINITE: Self;

    /// Stores elements.
    fn store<S: Simd>(simd: S, steps: &Steps<S>, input: &[f32], output: &mut [Self]);
}

/// Short images, one behind the other.
struct StoreImages<'a, T> {
    input: &'a [f32],
    output: &'a mut [T],
    meanings: &'a mut [Meaning],
}

impl<T: Stored> Kernel for StoreImages<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let elements = self.input.len() / self.meanings.len().max(1);
        for (index, meaning) in self.meanings.iter_mut().enumerate() {
            let input = &self.input[index * elements..][..elements];
            let output = &mut self.output[index * elements..][..elements];
            let scale = Scale::of(FindRange(input).run(simd));
            *meaning = Meaning::of(scale);
            match scale {
                Some(scale) => T::store(simd, &Steps::new(simd, scale), input, output),
                None => output.fill(T::NOT_FINITE),
            }
        }
    }
}

/// A part of an image.
struct StorePart<'a, T> {
    input: &'a [f32],
    output: &'a mut [T],
    scale: Scale,
}

impl<T: Stored> Kernel for StorePart<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        T::store(simd, &Steps::new(simd, self.scale), self.input, self.output);
    }
}

/// The stored numbers.
impl Stored for u8 {
    const NOT_FINITE: Self = 0;

    #[inline(always)]
    fn store<S: Simd>(simd: S, steps: &Steps<S>, input: &[f32], output: &mut [Self]) {
        // Ends of the range are whole, so that it does not matter whether elements are cut off or their stored numbers.
        let stored = |x| simd.iadd(simd.to_i32(simd.mul(x, steps.factor)), steps.zero_point);
        let mut inputs = input.chunks_exact(4 * S::LANES);
        let mut outputs = output.chunks_exact_mut(4 * S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            let mut four = [steps.zero_point; 4];
            for (index, to) in four.iter_mut().enumerate() {
                *to = stored(simd.load(&input[index * S::LANES..]));
            }
            simd.store_four_u8(four, (0, u8::MAX), output);
        }
        let rests = inputs.remainder().chunks(S::LANES);
        for (input, output) in rests.zip(outputs.into_remainder().chunks_mut(S::LANES)) {
            let stored = stored(simd.load_partial(input, 0.0));
            let stored = simd.imin(simd.imax(stored, simd.isplat(0)), simd.isplat(255));
            store_bytes_partial(simd, stored, output);
        }
    }
}

/// What the stored numbers stand for.
impl Stored for f32 {
    const NOT_FINITE: Self = Self::NAN;

    #[inline(always)]
    fn store<S: Simd>(simd: S, steps: &Steps<S>, input: &[f32], output: &mut [Self]) {
        let rounded = |x| {
            let x = simd.min(simd.max(simd.mul(x, steps.factor), steps.low), steps.high);
            simd.div(simd.to_f32(simd.to_i32(x)), steps.factor)
        };
        for (input, output) in input.chunks(S::LANES).zip(output.chunks_mut(S::LANES)) {
            if input.len() == S::LANES {
                simd.store(rounded(simd.load(input)), output);
            } else {
                simd.store_partial(rounded(simd.load_partial(input, 0.0)), output);
            }
        }
    }
}

/// [`Scale`] in vectors.
#[derive(Clone, Copy)]
struct Steps<S: Simd> {
    factor: S::F,
    zero_point: S::I,
    /// The ends of the range, in steps.
    low: S::F,
    high: S::F,
}

impl<S: Simd> Steps<S> {
    #[inline(always)]
    #[allow(clippy::cast_precision_loss)] // Of 8 bits.
    fn new(simd: S, Scale { factor, zero_point }: Scale) -> Self {
        Self {
            factor: simd.splat(factor),
            zero_point: simd.isplat(zero_point),
            low: simd.splat(-zero_point as f32),
            high: simd.splat((255 - zero_point) as f32),
        }
    }
}
