//! Numbers of float32 as three parts of bfloat16, in the order of tiles.
#![allow(unsafe_code)]

use super::super::turn_avx512::turn;
use crate::amx::{ROW_BYTES, TILE_ROWS};
use std::arch::x86_64::*;

/// Parts of a number.
pub(super) const PARTS: usize = 3;

/// Rows and columns that are computed together: two tiles of each.
pub(super) const PAIR: usize = 2 * TILE_ROWS;

/// Depth of a product of tiles.
pub(super) const STEP: usize = ROW_BYTES / size_of::<u16>();

/// Values of a tile of parts.
pub(super) const TILE: usize = TILE_ROWS * STEP;

/// Values of the parts of a pair of tiles, of one step.
pub(super) const OF_STEP: usize = PARTS * 2 * TILE;

/// The parts of a number, the greatest first; of one that is not finite only the first.
pub(super) fn split(value: f32) -> [u16; PARTS] {
    let upper = |value: f32| (value.to_bits() >> 16) as u16;
    if value.is_nan() {
        return [upper(f32::NAN), 0, 0];
    }
    if value.is_infinite() {
        return [upper(value), 0, 0];
    }
    let mut rest = value;
    [(); PARTS].map(|()| {
        let part = upper(rest);
        rest -= joined([part, 0, 0]);
        part
    })
}

/// The number of which these are the parts.
pub(super) fn joined(parts: [u16; PARTS]) -> f32 {
    let [first, second, third] = parts.map(|part| f32::from_bits(u32::from(part) << 16));
    first + (second + third)
}

/// Where a weight's part is among those of a step: `tdpbf16ps` takes two values of the depth of each column.
pub(super) fn place(part: usize, k: usize, column: usize) -> usize {
    let tile = part * 2 + column / TILE_ROWS;
    tile * TILE + k / 2 * STEP + column % TILE_ROWS * 2 + k % 2
}

/// Splits values of a row, of which the first is at depth `k`, and enters their parts. Returns whether any is not
/// finite.
///
/// # Safety
/// The processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn split_values(from: &[f32], parts: &mut [u16], k: usize) -> bool {
    const LANES: usize = 16;
    let upper = _mm512_set1_epi32(0xFFFF_0000_u32.cast_signed());
    let magnitude = _mm512_set1_epi32(i32::MAX);
    let infinity = _mm512_set1_epi32(f32::INFINITY.to_bits().cast_signed());
    let last = (k + from.len() - 1) / STEP * OF_STEP + (PARTS - 1) * 2 * TILE + STEP;
    assert!(last <= parts.len(), "{last} of {} values of parts", parts.len());
    let mut special = 0;
    let (mut at, mut k) = (0, k);
    while at < from.len() {
        // Up to the end of the step.
        let count = LANES.min(from.len() - at).min(STEP - k % STEP);
        let mask = u16::MAX >> (LANES - count);
        // SAFETY: this many values are read, and written at a depth below that of the last one, whose place is there.
        unsafe {
            let value = _mm512_maskz_loadu_ps(mask, from.as_ptr().add(at));
            let bits = _mm512_castps_si512(value);
            special |= _mm512_cmpge_epi32_mask(_mm512_and_si512(bits, magnitude), infinity);
            let to = parts.as_mut_ptr().add(k / STEP * OF_STEP + k % STEP);
            let mut rest = value;
            for part in 0..PARTS {
                let bits = _mm512_castps_si512(rest);
                let words = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(bits));
                let to = to.add(part * 2 * TILE);
                if count == LANES {
                    _mm256_storeu_si256(to.cast(), words);
                } else {
                    _mm256_mask_storeu_epi16(to.cast(), mask, words);
                }
                rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(_mm512_and_si512(bits, upper)));
            }
        }
        at += count;
        k += count;
    }
    special != 0
}

/// The parts of a pair of tiles, of one step.
#[repr(C, align(64))]
pub(super) struct Parts(pub(super) [u16; OF_STEP]);

/// Splits the values that the columns of a block have in a step, and enters their parts where [`place`] has them, through
/// `scratch`. Returns whether any is not finite, and then has not entered what [`split`] gives.
///
/// # Safety
/// The processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn split_columns<'a>(
    columns: impl Iterator<Item = &'a [f32]>,
    Parts(scratch): &mut Parts,
    to: &mut [u16],
) -> bool {
    scratch.fill(0);
    let mut is_special = false;
    for (column, values) in columns.enumerate() {
        // SAFETY: the caller's promise.
        is_special |= unsafe { split_values(values, &mut scratch[column * STEP..], 0) };
    }
    // Two parts that are multiplied together are moved as one.
    const PAIRS: usize = STEP / 2;
    let (from, _): (&[[f32; PAIRS]], _) = bytemuck::cast_slice(&*scratch).as_chunks();
    let to: &mut [f32] = bytemuck::cast_slice_mut(to);
    for (from, to) in from.chunks_exact(TILE_ROWS).zip(to.chunks_exact_mut(TILE_ROWS * PAIRS)) {
        turn(&std::array::from_fn(|row| from[row].as_slice()), 0, TILE_ROWS, to);
    }
    is_special
}
