//! Depthwise convolution with filters of 3x3 and AVX2 alone, by products of bytes whose sums stay in 16 bits.
//!
//! `vpmaddubsw` adds two products of an unsigned and a signed byte in 16 bits and saturates. A weight is 16 times its
//! upper part, from -8 to 8, and its lower part, from -8 to 7. Sums of nine products with inputs up to 255 are then
//! 18360 at most: so all nine are added in 16 bits, for both parts, and only then in 32.
//!
//! Channels are computed in two halves, so that the sums of four pixels are in registers, which share what is loaded and
//! interleaved. The bytes of two taps are interleaved: of a column the upper two, which all pixels that see it share, and the
//! lower one with that of the next column. That takes fewer shuffles than the bytes of four taps, and no
//! widening.
#![allow(unsafe_code)]
// Helpers are inlined into the functions that have the instructions enabled.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::packing::{LOWER_LAST, LOWER_PAIR, Layout, PAIR_BYTES, Packing};
use super::super::pixels::{FULL, FULL_PAIR, PAIR, PARTIAL, Vectors};
use super::super::problem::{Problem, Run};
use super::{Bytes32, store_pixel};
use crate::requantize::avx2::{Constants, Limits};
use crate::requantize::{ChannelLanes, Form};
use std::arch::x86_64::*;

/// How [`compute`] finds weights.
pub(in crate::depthwise::quantized) const PACKING: Packing =
    Packing { layout: Layout::Nibbles, lanes: Bytes32::LANES };

/// Computes the pixels of a run.
///
/// # Safety
/// As of [`pixels::compute`](super::super::pixels::compute), for a filter of 3x3 and weights of [`Layout::Nibbles`](super::super::packing::Layout::Nibbles); the processor has
/// AVX2.
pub(in crate::depthwise::quantized) unsafe fn compute(problem: &Problem, run: &Run<'_>) {
    let is_full = run.block.channels * run.block.pixels == Bytes32::LANES;
    let kernel = match (run.block.pixels, is_full) {
        (1, true) => of_share::<FULL>(problem),
        (1, false) => of_share::<PARTIAL>(problem),
        (_, true) => of_share::<FULL_PAIR>(problem),
        (_, false) => of_share::<PAIR>(problem),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(problem, run) }
}

/// As [`pixels`].
type Kernel = unsafe fn(&Problem, &Run<'_>);

fn of_share<const SHARE: u8>(problem: &Problem) -> Kernel {
    match (problem.stride, problem.dilation) {
        (1, 1) => pixels::<1, SHARE>,
        (2, 1) => pixels::<2, SHARE>,
        _ => alone::<SHARE>,
    }
}

/// The pixels of a run, which are `S` columns from each other, by fours, a last one alone.
///
/// # Safety
/// As of [`compute`], where the block is as the parameters say.
#[target_feature(enable = "avx2")]
unsafe fn pixels<const S: usize, const SHARE: u8>(problem: &Problem, run: &Run<'_>) {
    if run.count < GROUP || matches!(run.block.form, Form::Scalar | Form::Sums) {
        // SAFETY: the caller's promises.
        return unsafe { alone::<SHARE>(problem, run) };
    }
    let mut first = 0;
    while first + 1 < run.count {
        // The last ones may be computed again, together with some before them.
        first = first.min(run.count - GROUP);
        // SAFETY: the caller's promises; a group is within the run.
        unsafe { group::<GROUP, S, SHARE>(problem, &run.after(first, problem.stride)) };
        first += GROUP;
    }
    if first < run.count {
        // SAFETY: the caller's promises; the last pixel of the run.
        unsafe { alone::<SHARE>(problem, &run.after(first, problem.stride)) };
    }
}

/// Pixels that are computed together.
const GROUP: usize = 4;

/// The pixels of a run one by one, with any distances.
///
/// # Safety
/// As of [`pixels`].
#[target_feature(enable = "avx2")]
unsafe fn alone<const SHARE: u8>(problem: &Problem, run: &Run<'_>) {
    for first in 0..run.count {
        let run = run.after(first, problem.stride);
        // SAFETY: the caller's promises; a pixel of the run.
        unsafe {
            match run.block.form {
                Form::Scalar | Form::Sums => one_by_one::<SHARE>(problem, &run),
                _ => group::<1, 1, SHARE>(problem, &run),
            }
        }
    }
}

/// The first `P` pixels of a run, first half of the channels, then the other: the sums of all would not fit in the registers.
///
/// # Safety
/// As of [`pixels`].
#[inline(always)]
unsafe fn group<const P: usize, const S: usize, const SHARE: u8>(problem: &Problem, run: &Run<'_>) {
    let lanes: &[ChannelLanes; 2] = run.lanes.try_into().expect("of 32 channels");
    // SAFETY: the caller's promises.
    unsafe {
        let lower = words::<P, S, SHARE, 0>(problem, run, &lanes[0]);
        let upper = words::<P, S, SHARE, 1>(problem, run, &lanes[1]);
        let limits = Limits::new(problem.requantization.min, problem.requantization.max);
        for p in 0..P {
            store_pixel::<SHARE>(run, p, limits.narrow2(lower[p], upper[p]));
        }
    }
}

/// The first pixel of a run, requantized by the definition.
///
/// # Safety
/// As of [`pixels`].
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn one_by_one<const SHARE: u8>(problem: &Problem, run: &Run<'_>) {
    let lanes: &[ChannelLanes; 2] = run.lanes.try_into().expect("of 32 channels");
    // SAFETY: the caller's promises; there are the constants of 32 channels.
    unsafe {
        let ([a, b], [c, d]) = (
            wide(half::<1, 1, SHARE, 0>(problem, run)[0]),
            wide(half::<1, 1, SHARE, 1>(problem, run)[0]),
        );
        let mut sums = [a, b, c, d];
        for (quarter, sum) in sums.iter_mut().enumerate() {
            *sum = _mm256_add_epi32(Bytes32::first(lanes, quarter), *sum);
        }
        run.store_scalar::<32>(problem, bytemuck::cast_slice(&[sums]));
    }
}

/// Sums of a pixel in 16 bits, by part of the weights.
type Sums = [__m256i; 2];

/// Outputs of half of the channels before they are clamped, in 16 bits. A function by itself: the two halves in one would load
/// inputs and weights once for both and have no registers for them, and compilers take much longer for them.
///
/// # Safety
/// As of [`pixels`].
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn words<const P: usize, const S: usize, const SHARE: u8, const HALF: usize>(
    problem: &Problem,
    run: &Run<'_>,
    lanes: &ChannelLanes,
) -> [__m256i; P] {
    // SAFETY: the caller's promises.
    unsafe {
        let sums = half::<P, S, SHARE, HALF>(problem, run);
        match run.block.form {
            Form::Plain => requantized::<P, false>(&sums, lanes),
            _ => requantized::<P, true>(&sums, lanes),
        }
    }
}

/// Outputs of sums.
#[inline]
#[target_feature(enable = "avx2")]
fn requantized<const P: usize, const NUDGED: bool>(
    sums: &[Sums; P],
    lanes: &ChannelLanes,
) -> [__m256i; P] {
    let mut outputs = [_mm256_setzero_si256(); P];
    let constants = [Constants::load(lanes, 0), Constants::load(lanes, 1)];
    // SAFETY: halves of 16 numbers.
    let first = unsafe {
        let bias = lanes.bias.as_ptr().cast::<__m256i>();
        [_mm256_loadu_si256(bias), _mm256_loadu_si256(bias.add(1))]
    };
    for p in 0..P {
        let [low, high] = wide(sums[p]);
        let low = constants[0].apply::<NUDGED>(_mm256_add_epi32(first[0], low));
        let high = constants[1].apply::<NUDGED>(_mm256_add_epi32(first[1], high));
        outputs[p] = _mm256_packs_epi32(low, high);
    }
    outputs
}

/// The sums of both parts, in 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn wide([low, high]: Sums) -> [__m256i; 2] {
    let factors = _mm256_set1_epi32(16 << 16 | 1);
    [
        _mm256_madd_epi16(_mm256_unpacklo_epi16(low, high), factors),
        _mm256_madd_epi16(_mm256_unpackhi_epi16(low, high), factors),
    ]
}

/// Sums of half of the channels, that of the lower or the upper eight of each 16, of the first `P` pixels.
///
/// # Safety
/// As of [`pixels`].
#[inline(always)]
unsafe fn half<const P: usize, const S: usize, const SHARE: u8, const HALF: usize>(
    problem: &Problem,
    run: &Run<'_>,
) -> [Sums; P] {
    // SAFETY: entries of taps of pixels, pairs of weights that there are, and the caller's promises.
    unsafe {
        // Written out, for closures are not always inlined.
        macro_rules! load {
            ($row:expr, $column:expr) => {{
                // Within the table. Of one pixel columns may have a distance.
                let column = if P == 1 { problem.dilation.wrapping_mul($column) } else { $column };
                let entry = run.columns.wrapping_mul($row).wrapping_add(column);
                Bytes32::load::<SHARE>(problem, run, entry)
            }};
        }
        let mut sums: [Sums; P] = [[_mm256_setzero_si256(); 2]; P];
        /// Written out, for a loop would keep the sums in memory.
        macro_rules! columns {
            ($($column:literal)+) => {$(
                if const { $column < seen(P, S) } {
                    let lower = load!(2, $column);
                    let upper = interleaved::<HALF>(load!(0, $column), load!(1, $column));
                    // Behind the last column is nothing, whose weight is zero.
                    let next = if const { $column + 1 < seen(P, S) } { load!(2, $column + 1) } else { lower };
                    let lower = interleaved::<HALF>(lower, next);
                    columns!(@ $column, upper, lower, [0 1 2 3]);
                }
            )+};
            (@ $column:literal, $upper:ident, $lower:ident, [$($p:literal)+]) => {$(
                if const { $p < P && $column >= $p * S && $column < seen($p + 1, S) } {
                    let sums = &mut sums[$p];
                    let column = $column - $p * S;
                    add::<HALF>(run.weights, column, $upper, sums);
                    match column {
                        0 => add::<HALF>(run.weights, LOWER_PAIR, $lower, sums),
                        2 => add::<HALF>(run.weights, LOWER_LAST, $lower, sums),
                        _ => {}
                    }
                }
            )+};
        }
        columns!(0 1 2 3 4 5 6 7 8);
        sums
    }
}

/// Columns that this many pixels see.
const fn seen(pixels: usize, stride: usize) -> usize {
    (pixels - 1) * stride + 3
}

/// The bytes of two taps, for each channel of a half one behind the other.
#[inline]
#[target_feature(enable = "avx2")]
fn interleaved<const HALF: usize>(a: __m256i, b: __m256i) -> __m256i {
    if HALF == 0 { _mm256_unpacklo_epi8(a, b) } else { _mm256_unpackhi_epi8(a, b) }
}

/// Adds the products of two taps with a pair of weights.
///
/// # Safety
/// The block has the pair; the processor has AVX2.
#[inline(always)]
unsafe fn add<const HALF: usize>(
    weights: *const u8,
    pair: usize,
    inputs: __m256i,
    sums: &mut Sums,
) {
    for part in 0..2 {
        let at = pair.wrapping_mul(PAIR_BYTES).wrapping_add((HALF * 2 + part) * 32);
        // SAFETY: the caller's promises; weights begin on a line.
        unsafe {
            let weights = _mm256_load_si256(weights.add(at).cast());
            sums[part] = _mm256_add_epi16(sums[part], _mm256_maddubs_epi16(inputs, weights));
        }
    }
}
