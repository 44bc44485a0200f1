//! Squares of a matrix, turned in registers.
#![allow(unsafe_code)]

use super::matrix::Matrix;
use bytemuck::Pod;
use std::arch::x86_64::{
    __m512, _mm512_castpd_ps, _mm512_castps_pd, _mm512_loadu_ps, _mm512_setzero_ps,
    _mm512_shuffle_f32x4, _mm512_storeu_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps,
    _mm512_unpacklo_pd, _mm512_unpacklo_ps,
};
use std::ops::Range;

/// Rows and columns of a square.
pub(in crate::gemm) const SIDE: usize = 16;

/// Turns all whole squares, as [`super::pack::turned_until`] does; gives how many rows and columns these are.
/// To be called only where the processor has AVX-512.
pub(super) fn squares(
    matrix: &Matrix<'_>,
    rows: Range<usize>,
    depth: usize,
    stride: usize,
    to: &mut [f32],
) -> [usize; 2] {
    assert!(std::is_x86_feature_detected!("avx512f"), "no AVX-512");
    let done = [rows.len(), depth].map(|length| length - length % SIDE);
    for lane in (0..done[0]).step_by(SIDE) {
        let from: [&[f32]; SIDE] =
            std::array::from_fn(|row| matrix.row(rows.start + lane + row, 0..done[1]));
        for column in (0..done[1]).step_by(SIDE) {
            let to = &mut to[column * stride + lane..][..(SIDE - 1) * stride + SIDE];
            // SAFETY: the processor has the instructions.
            unsafe { turn(&from, column, stride, to) };
        }
    }
    done
}

/// One square, of whatever has four bytes: `to[c * stride + r] = from[r][column + c]`.
#[target_feature(enable = "avx512f")]
pub(in crate::gemm) fn turn<T: Pod>(
    from: &[&[T]; SIDE],
    column: usize,
    stride: usize,
    to: &mut [T],
) {
    const { assert!(size_of::<T>() == size_of::<f32>()) };
    let mut rows = [_mm512_setzero_ps(); SIDE];
    for (row, from) in rows.iter_mut().zip(from) {
        let from = &from[column..column + SIDE];
        // SAFETY: 16 values are there.
        *row = unsafe { _mm512_loadu_ps(from.as_ptr().cast()) };
    }
    // Of four rows each: in every quarter of vector c, column c of that quarter.
    let mut quarters = [[_mm512_setzero_ps(); 4]; 4];
    for (quarters, rows) in quarters.iter_mut().zip(rows.as_chunks::<4>().0) {
        *quarters = turn_quarters(*rows);
    }
    for c in 0..4 {
        let [a, b, p, q] = std::array::from_fn(|group: usize| quarters[group][c]);
        let [low, high] = [_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b)];
        let [low_2, high_2] =
            [_mm512_shuffle_f32x4::<0x44>(p, q), _mm512_shuffle_f32x4::<0xEE>(p, q)];
        let turned = [
            _mm512_shuffle_f32x4::<0x88>(low, low_2),
            _mm512_shuffle_f32x4::<0xDD>(low, low_2),
            _mm512_shuffle_f32x4::<0x88>(high, high_2),
            _mm512_shuffle_f32x4::<0xDD>(high, high_2),
        ];
        for (quarter, turned) in turned.into_iter().enumerate() {
            let to = &mut to[(4 * quarter + c) * stride..][..SIDE];
            // SAFETY: 16 values are there.
            unsafe { _mm512_storeu_ps(to.as_mut_ptr().cast(), turned) };
        }
    }
}

/// Turns the four squares of four by four that are beside each other.
#[target_feature(enable = "avx512f")]
fn turn_quarters([a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
    let ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
    let ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    let cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
    let cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    [
        _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
        _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
        _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high)),
        _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high)),
    ]
}
