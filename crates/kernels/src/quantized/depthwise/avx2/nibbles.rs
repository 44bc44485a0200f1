//! Depthwise convolution with filters of 3x3 and AVX2 alone, by products of bytes whose sums stay in 16 bits.
//!
//! `vpmaddubsw` adds two products of an unsigned and a signed byte in 16 bits and saturates. A weight is 16 times its
//! upper part, from -8 to 8, and its lower part, from -8 to 7. Sums of nine products with inputs up to 255 are then
//! 18360 at most: so all nine are added in 16 bits, for both parts, and only then in 32.
//!
//! The bytes of two taps are interleaved: of a column the upper two, which all pixels that see it share, and the
//! lower one with that of the next column. That takes fewer shuffles than the bytes of four taps, and no
//! widening.
#![allow(unsafe_code)]
// Helpers are inlined into the functions that have the instructions enabled.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::packing::{LOWER_LAST, LOWER_PAIR, Layout, PAIR_BYTES, Packing};
use super::super::pixels::{FULL, FULL_PAIR, PAIR, PARTIAL, Vectors};
use super::super::problem::{Problem, Run};
use super::Bytes32;
use std::arch::x86_64::*;

/// How [`compute`] finds weights.
pub(in crate::quantized::depthwise) const PACKING: Packing =
    Packing { layout: Layout::Nibbles, lanes: Bytes32::LANES };

/// Computes the pixels of a run.
///
/// # Safety
/// As of [`pixels::compute`](super::super::pixels::compute), for a filter of 3x3 and weights of [`Layout::Nibbles`](super::super::packing::Layout::Nibbles); the processor has
/// AVX2.
pub(in crate::quantized::depthwise) unsafe fn compute(problem: &Problem, run: &Run<'_>) {
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
        (1, 1) => pixels::<2, 1, SHARE>,
        (2, 1) => pixels::<2, 2, SHARE>,
        _ => pixels::<1, 1, SHARE>,
    }
}

/// The pixels of a run, by `P`, which are `S` columns from each other.
///
/// # Safety
/// As of [`compute`], where the block is as the parameters say.
#[target_feature(enable = "avx2")]
unsafe fn pixels<const P: usize, const S: usize, const SHARE: u8>(
    problem: &Problem,
    run: &Run<'_>,
) {
    assert_eq!(run.lanes.len(), 2);
    // SAFETY: the caller's promises; groups of pixels are within the run.
    unsafe {
        let mut first = 0;
        while first + P <= run.count {
            group::<P, S, SHARE>(problem, &run.after(first, problem.stride));
            first += P;
            if first < run.count && first + P > run.count {
                // The last ones together with some that are computed again.
                first = run.count - P;
            }
        }
        for first in first..run.count {
            group::<1, 1, SHARE>(problem, &run.after(first, problem.stride));
        }
    }
}

/// Sums of a pixel: of the halves that interleaving gives, by part of the weights.
type Sums = [[__m256i; 2]; 2];

/// The first `P` pixels of a run.
///
/// # Safety
/// As of [`pixels`].
#[inline(always)]
unsafe fn group<const P: usize, const S: usize, const SHARE: u8>(problem: &Problem, run: &Run<'_>) {
    // Of the last pixel's last tap.
    let last = (P - 1) * S + 2;
    // SAFETY: entries of taps of pixels, pairs of weights that there are, and the caller's promises.
    unsafe {
        let load = |row: usize, column: usize| {
            // Within the table. Of one pixel columns may have a distance.
            let column = if P == 1 { column.wrapping_mul(problem.dilation) } else { column };
            let entry = run.columns.wrapping_mul(row).wrapping_add(column);
            Bytes32::load::<SHARE, true>(problem, run, entry)
        };
        let mut sums: [Sums; P] = [[[_mm256_setzero_si256(); 2]; 2]; P];
        /// Written out, for a loop would keep the sums in memory.
        macro_rules! columns {
            ($($column:literal)+) => {$(
                if (0..=last).contains(&$column) {
                    let lower = load(2, $column);
                    let upper = interleaved(load(0, $column), load(1, $column));
                    // Behind the last column is nothing, whose weight is zero.
                    let next = if $column < last { load(2, $column + 1) } else { lower };
                    let lower = interleaved(lower, next);
                    columns!(@ $column, upper, lower, [0 1]);
                }
            )+};
            (@ $column:literal, $upper:ident, $lower:ident, [$($p:literal)+]) => {$(
                if $p < P && ($p * S..=$p * S + 2).contains(&$column) {
                    let sums = &mut sums[$p];
                    let column = $column - $p * S;
                    add(run, column, $upper, sums);
                    match column {
                        0 => add(run, LOWER_PAIR, $lower, sums),
                        2 => add(run, LOWER_LAST, $lower, sums),
                        _ => {}
                    }
                }
            )+};
        }
        columns!(0 1 2 3 4);
        let mut wide = [[_mm256_setzero_si256(); 4]; P];
        for p in 0..P {
            for quarter in 0..4 {
                let [low, high] = sums[p][quarter / 2];
                let both = if quarter % 2 == 0 {
                    _mm256_unpacklo_epi16(low, high)
                } else {
                    _mm256_unpackhi_epi16(low, high)
                };
                let total = _mm256_madd_epi16(both, _mm256_set1_epi32(16 << 16 | 1));
                wide[p][quarter] = _mm256_add_epi32(Bytes32::first(run.lanes, quarter), total);
            }
        }
        Bytes32::store::<P, SHARE, true>(problem, run, wide);
    }
}

/// The bytes of two taps, for each channel one behind the other.
#[inline]
#[target_feature(enable = "avx2")]
fn interleaved(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
}

/// Adds the products of two taps with a pair of weights.
///
/// # Safety
/// The block has the pair; the processor has AVX2.
#[inline(always)]
unsafe fn add(run: &Run<'_>, pair: usize, inputs: [__m256i; 2], sums: &mut Sums) {
    for half in 0..2 {
        for part in 0..2 {
            let at = pair.wrapping_mul(PAIR_BYTES).wrapping_add((half * 2 + part) * 32);
            // SAFETY: the caller's promises; weights begin on a line.
            unsafe {
                let weights = _mm256_load_si256(run.weights.add(at).cast());
                let products = _mm256_maddubs_epi16(inputs[half], weights);
                sums[half][part] = _mm256_add_epi16(sums[half][part], products);
            }
        }
    }
}
