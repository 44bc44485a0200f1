//! Images of floats as 8-bit numbers, each image with a scale and a zero point of its own.
#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::parts::TASKS_BY_THREAD;
use crate::team::{Pace, part};
use crate::vector::{Isa, Kernel, Simd, store_bytes_partial};
use crate::{LINE_BYTES, Line, Team};
use bytemuck::{Pod, Zeroable};
use std::ops;

/// Elements of images that are worth a task of their own.
const ELEMENTS_PER_TASK: usize = 16 << 10;
/// Bytes behind the last image that may be read.
const SLACK: usize = 4;

/// What the stored numbers of an image stand for: `step * (q - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub(super) struct Meaning {
    /// NaN if an element is infinite or NaN, or the image's range is.
    pub(super) step: f32,
    /// From 0 to 255.
    pub(super) zero_point: i32,
}

/// Stores a part: the image, the part's elements of all, whether it is the image's first one, and how its elements
/// are stored, unless they are not finite.
type Store<'a> = dyn Fn(usize, ops::Range<usize>, bool, Option<Scale>, &mut Pace<'_>) + Sync + 'a;

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
        let most = if threads > 1 { threads.saturating_mul(TASKS_BY_THREAD) } else { 1 };
        let tasks = (count.saturating_mul(elements) / ELEMENTS_PER_TASK).clamp(1, most);
        let parts = (tasks / count.max(1)).max(1);
        Self { isa, count, elements, parts, tasks: tasks.min(count * parts).max(1) }
    }

    /// Bytes of all images as 8-bit numbers, with some behind them that may be read.
    pub(super) fn bytes(&self) -> usize {
        self.count * self.elements + SLACK
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
        let stored = DisjointOutput::new(&mut bytes[..self.count * self.elements]);
        let known = DisjointOutput::new(&mut *meanings);
        self.each_part(team, input, ranges, &|image, part, is_first, scale, pace| {
            // SAFETY: each part is one task's, which has it once, and so is the first one of each image.
            let to = unsafe { stored.slice(part.start, part.len()) };
            if is_first {
                let meaning = scale.map_or(Meaning { step: f32::NAN, zero_point: 0 }, |scale| {
                    Meaning { step: 1.0 / scale.factor, zero_point: scale.zero_point }
                });
                // SAFETY: as above.
                let known = unsafe { known.slice(image, 1) };
                known[0] = meaning;
            }
            let from = &input[part];
            for block in pace.blocks(to.len(), 1) {
                match scale {
                    Some(scale) => {
                        let output = &mut to[block.clone()];
                        self.isa.run(Quantize { input: &from[block], output, scale });
                    }
                    None => to[block].fill(0),
                }
            }
        });
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
        let (_, ranges) = self.split(memory);
        let output = DisjointOutput::new(&mut output[..self.count * self.elements]);
        self.each_part(team, input, ranges, &|_, part, _, scale, pace| {
            // SAFETY: each part is one task's, which has it once.
            let to = unsafe { output.slice(part.start, part.len()) };
            let from = &input[part];
            for block in pace.blocks(to.len(), 1) {
                match scale {
                    Some(scale) => {
                        let output = &mut to[block.clone()];
                        self.isa.run(Round { input: &from[block], output, scale });
                    }
                    None => to[block].fill(f32::NAN),
                }
            }
        });
    }

    /// Memory for what is known of the images, and of their parts if there are several.
    fn split<'a>(&self, memory: &'a mut [Line]) -> (&'a mut [Meaning], &'a mut [Range]) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(memory);
        let (meanings, rest) = bytes.split_at_mut(self.count * size_of::<Meaning>());
        let ranges = if self.parts > 1 { self.count * self.parts } else { 0 };
        let ranges = &mut rest[..ranges * size_of::<Range>()];
        (bytemuck::cast_slice_mut(meanings), bytemuck::cast_slice_mut(ranges))
    }

    /// Has all parts stored.
    fn each_part(&self, team: &mut Team, input: &[f32], ranges: &mut [Range], store: &Store<'_>) {
        let Self { isa, count, elements, parts, tasks } = *self;
        let all = |index: usize| {
            let of_image = part(elements, parts, index % parts);
            let first = index / parts * elements;
            first + of_image.start..first + of_image.end
        };
        if parts > 1 {
            let found = DisjointOutput::new(&mut *ranges);
            team.run_long(tasks, &|task, stop| {
                let mut pace = Pace::new(stop);
                for index in part(count * parts, tasks, task) {
                    // SAFETY: each part is one task's, which has it once.
                    let found = unsafe { found.slice(index, 1) };
                    found[0] = range(isa, &input[all(index)], &mut pace);
                }
            });
        }
        let ranges = &*ranges;
        team.run_long(tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            for index in part(count * parts, tasks, task) {
                let (image, elements) = (index / parts, all(index));
                if pace.is_over(elements.len()) {
                    return;
                }
                let found = if parts > 1 {
                    let of_image = &ranges[image * parts..][..parts];
                    of_image.iter().fold(Range::EMPTY, |range, part| range.merged(*part))
                } else {
                    range(isa, &input[elements.clone()], &mut pace)
                };
                store(image, elements, index % parts == 0, Scale::of(found), &mut pace);
            }
        });
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
    fn run<S: Simd>(self, simd: S) {
        let scale = Steps::new(simd, self.scale);
        let zero_point = simd.isplat(self.scale.zero_point);
        let stored = |x| simd.iadd(simd.to_i32(scale.of(simd, x)), zero_point);
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            simd.store_u8(stored(simd.load(input)), output);
        }
        let rest = stored(simd.load_partial(inputs.remainder(), 0.0));
        store_bytes_partial(simd, rest, outputs.into_remainder());
    }
}

struct Round<'a> {
    input: &'a [f32],
    output: &'a mut [f32],
    scale: Scale,
}

impl Kernel for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let scale = Steps::new(simd, self.scale);
        let rounded = |x| {
            let whole = simd.to_f32(simd.to_i32(scale.of(simd, x)));
            simd.div(whole, scale.factor)
        };
        let mut inputs = self.input.chunks_exact(S::LANES);
        let mut outputs = self.output.chunks_exact_mut(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            simd.store(rounded(simd.load(input)), output);
        }
        let rest = rounded(simd.load_partial(inputs.remainder(), 0.0));
        simd.store_partial(rest, outputs.into_remainder());
    }
}

/// [`Scale`] in vectors.
#[derive(Clone, Copy)]
struct Steps<S: Simd> {
    factor: S::F,
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
            low: simd.splat(-zero_point as f32),
            high: simd.splat((255 - zero_point) as f32),
        }
    }

    /// Elements in steps, not yet whole.
    #[inline(always)]
    fn of(self, simd: S, x: S::F) -> S::F {
        simd.min(simd.max(simd.mul(x, self.factor), self.low), self.high)
    }
}
