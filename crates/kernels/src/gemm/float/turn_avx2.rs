//! Blocks of eight rows and four columns of a matrix, turned in registers of 256 bits.
#![allow(unsafe_code)]

use super::matrix::Matrix;
use std::arch::x86_64::{
    __m256, _mm_loadu_ps, _mm256_castpd_ps, _mm256_castps_pd, _mm256_castps128_ps256,
    _mm256_insertf128_ps, _mm256_storeu_ps, _mm256_unpackhi_pd, _mm256_unpackhi_ps,
    _mm256_unpacklo_pd, _mm256_unpacklo_ps,
};
use std::ops::Range;

/// Rows of a block.
const ROWS: usize = 8;
/// Columns of a block.
const COLUMNS: usize = 4;

/// Turns all whole blocks, as [`super::pack::turned_until`] does; gives how many rows and columns these are.
/// To be called only where the processor has AVX2.
pub(super) fn blocks(
    matrix: &Matrix<'_>,
    rows: Range<usize>,
    depth: usize,
    stride: usize,
    to: &mut [f32],
) -> [usize; 2] {
    assert!(std::is_x86_feature_detected!("avx2"), "no AVX2");
    let done = [rows.len() - rows.len() % ROWS, depth - depth % COLUMNS];
    for lane in (0..done[0]).step_by(ROWS) {
        let from: [&[f32]; ROWS] =
            std::array::from_fn(|row| matrix.row(rows.start + lane + row, 0..done[1]));
        if done[1] > 0 {
            let to = &mut to[lane..][..(done[1] - 1) * stride + ROWS];
            // SAFETY: the processor has the instructions.
            unsafe { turn(&from, done[1], stride, to) };
        }
    }
    done
}

/// The blocks of eight rows: `to[c * stride + r] = from[r][c]` for a number of columns that is a multiple of [`COLUMNS`].
#[target_feature(enable = "avx2")]
fn turn(from: &[&[f32]; ROWS], columns: usize, stride: usize, to: &mut [f32]) {
    for column in (0..columns).step_by(COLUMNS) {
        // Not a closure, which would not have the instructions.
        let rows = [
            pair([from[0], from[4]], column),
            pair([from[1], from[5]], column),
            pair([from[2], from[6]], column),
            pair([from[3], from[7]], column),
        ];
        let turned = turn_halves(rows);
        for (index, turned) in turned.into_iter().enumerate() {
            let to = &mut to[(column + index) * stride..][..ROWS];
            // SAFETY: eight values are there.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), turned) };
        }
    }
}

/// Four values of each of two rows.
#[inline]
#[target_feature(enable = "avx2")]
fn pair(rows: [&[f32]; 2], column: usize) -> __m256 {
    let [low, high] = [&rows[0][column..column + COLUMNS], &rows[1][column..column + COLUMNS]];
    // SAFETY: four values are in each.
    let [low, high] = unsafe { [_mm_loadu_ps(low.as_ptr()), _mm_loadu_ps(high.as_ptr())] };
    _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
}

/// Turns the two squares of four by four that are beside each other.
#[target_feature(enable = "avx2")]
fn turn_halves([a, b, c, d]: [__m256; 4]) -> [__m256; 4] {
    let ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
    let ab_high = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    let cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    let cd_high = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    [
        _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)),
        _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)),
        _mm256_castpd_ps(_mm256_unpacklo_pd(ab_high, cd_high)),
        _mm256_castpd_ps(_mm256_unpackhi_pd(ab_high, cd_high)),
    ]
}
