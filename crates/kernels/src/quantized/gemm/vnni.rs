//! Tiles with AVX-512 VNNI: sums of four products of an unsigned and a signed byte, in 16 lanes.
//!
//! A tile of 6 rows and 64 channels holds 24 sums in registers, with 4 of weights and one of inputs.
//! Each step of four inputs loads 4 vectors of weights and 6 times four inputs for 24 products, so that
//! products are the limit and not loads.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::requantize::avx512::{Constants, FloatConstants, Limits};
use super::{Ahead, Block, ChannelLanes, Form, Matrix, Tile};
use std::arch::x86_64::*;

/// What flips the sign of bytes. It is loaded in a way that hides its value: otherwise compilers flip
/// four inputs before they are repeated in all lanes, which takes an instruction more than flipping
/// while they are loaded and repeated.
#[repr(align(64))]
struct Signs([i8; 64]);

static SIGNS: Signs = Signs([i8::MIN; 64]);

/// Computes so many tiles, each behind the one before it.
///
/// # Safety
/// As of [`Matrix::compute_rows`], and the processor has AVX-512 VNNI.
pub(super) unsafe fn compute(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
    tiles: usize,
    ahead: &mut Ahead,
) {
    // SAFETY: the caller's promises.
    unsafe {
        if matrix.common.is_signed {
            with_rows::<true>(matrix, block, tile, tiles, ahead);
        } else {
            with_rows::<false>(matrix, block, tile, tiles, ahead);
        }
    }
}

/// # Safety
/// As of [`compute`].
unsafe fn with_rows<const SIGNED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
    tiles: usize,
    ahead: &mut Ahead,
) {
    let kernel = match (block.vectors, tile.rows) {
        (4, 1) => kernel::<1, 4, SIGNED>,
        (4, 2) => kernel::<2, 4, SIGNED>,
        (4, 3) => kernel::<3, 4, SIGNED>,
        (4, 4) => kernel::<4, 4, SIGNED>,
        (4, 5) => kernel::<5, 4, SIGNED>,
        (4, 6) => kernel::<6, 4, SIGNED>,
        (2, 1) => kernel::<1, 2, SIGNED>,
        (2, 2) => kernel::<2, 2, SIGNED>,
        (2, 3) => kernel::<3, 2, SIGNED>,
        (2, 4) => kernel::<4, 2, SIGNED>,
        (2, 5) => kernel::<5, 2, SIGNED>,
        (2, 6) => kernel::<6, 2, SIGNED>,
        (2, 7) => kernel::<7, 2, SIGNED>,
        (2, 8) => kernel::<8, 2, SIGNED>,
        (1, 1) => kernel::<1, 1, SIGNED>,
        (1, 2) => kernel::<2, 1, SIGNED>,
        (1, 3) => kernel::<3, 1, SIGNED>,
        (1, 4) => kernel::<4, 1, SIGNED>,
        (1, 5) => kernel::<5, 1, SIGNED>,
        (1, 6) => kernel::<6, 1, SIGNED>,
        (1, 7) => kernel::<7, 1, SIGNED>,
        (1, 8) => kernel::<8, 1, SIGNED>,
        (vectors, rows) => unreachable!("no kernel for {rows} rows and {vectors} vectors"),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(matrix, block, tile, tiles, ahead) }
}

/// Tiles of `R` rows and `W` vectors of channels.
///
/// # Safety
/// As of [`compute`], where the tile has `R` rows and the block `W` vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn kernel<const R: usize, const W: usize, const SIGNED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
    tiles: usize,
    ahead: &mut Ahead,
) {
    let lanes: &[_; W] = tile.lanes.try_into().expect("as many vectors");
    // SAFETY: 64 bytes.
    let flip = unsafe { std::ptr::from_ref(&SIGNS.0).cast::<__m512i>().read_volatile() };
    let steps = matrix.common.run_bytes.div_ceil(4);
    for index in 0..tiles {
        let mut sums = [[_mm512_setzero_si512(); W]; R];
        for v in 0..W {
            // SAFETY: 16 numbers.
            let bias = unsafe { _mm512_loadu_si512(lanes[v].bias.as_ptr().cast()) };
            for row in &mut sums {
                row[v] = bias;
            }
        }
        if let Some(terms) = tile.row_terms {
            for (row, &term) in sums.iter_mut().zip(&terms[index * R..][..R]) {
                for sum in row {
                    *sum = _mm512_add_epi32(*sum, _mm512_set1_epi32(term));
                }
            }
        }
        let mut next = ahead.of_tile(tile.weights);
        let mut weights = tile.weights;
        for run in 0..matrix.common.runs {
            let mut rows = [std::ptr::null(); R];
            for (r, row) in rows.iter_mut().enumerate() {
                // SAFETY: the table has an address for each run of each row.
                *row = unsafe { *tile.table.add(run * tile.table_step + index * R + r) };
            }
            for step in 0..steps {
                let mut vectors = [_mm512_setzero_si512(); W];
                for (v, vector) in vectors.iter_mut().enumerate() {
                    // SAFETY: the block has as many steps of `W` vectors.
                    *vector = unsafe { _mm512_load_si512(weights.add(64 * v).cast()) };
                }
                for r in 0..R {
                    // SAFETY: four bytes can be read at each step of a run.
                    let four = unsafe { rows[r].add(4 * step).cast::<i32>().read_unaligned() };
                    let mut inputs = _mm512_set1_epi32(four);
                    if SIGNED {
                        inputs = _mm512_xor_si512(inputs, flip);
                    }
                    for v in 0..W {
                        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], inputs, vectors[v]);
                    }
                }
                weights = weights.wrapping_add(64 * W);
                _mm_prefetch::<_MM_HINT_T1>(next.cast());
                next = next.wrapping_add(64);
            }
        }
        let output = tile.output.wrapping_add(index * R * tile.output_step);
        // SAFETY: as promised.
        unsafe {
            let outputs = match block.form {
                Form::Floats => in_floats::<R, W, false>(lanes, sums),
                Form::SignedFloats => in_floats::<R, W, true>(lanes, sums),
                Form::Plain => in_integers::<R, W, false>(lanes, sums),
                Form::Nudged => in_integers::<R, W, true>(lanes, sums),
                Form::Scalar => {
                    store_scalar::<R, W>(matrix, block, output, tile.output_step, sums);
                    continue;
                }
            };
            store::<R, W, SIGNED>(matrix, block, output, tile.output_step, outputs);
        }
    }
}

/// Requantises in floats.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn in_floats<const R: usize, const W: usize, const SIGNED: bool>(
    lanes: &[ChannelLanes; W],
    mut sums: [[__m512i; W]; R],
) -> [[__m512i; W]; R] {
    for v in 0..W {
        let constants = FloatConstants::load(&lanes[v]);
        for r in 0..R {
            sums[r][v] = constants.apply::<SIGNED>(sums[r][v]);
        }
    }
    sums
}

/// Requantises in integers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn in_integers<const R: usize, const W: usize, const NUDGED: bool>(
    lanes: &[ChannelLanes; W],
    mut sums: [[__m512i; W]; R],
) -> [[__m512i; W]; R] {
    for v in 0..W {
        let constants = Constants::load(&lanes[v]);
        for r in 0..R {
            sums[r][v] = constants.apply::<NUDGED>(sums[r][v]);
        }
    }
    sums
}

/// Narrows to 8 bits, as many rows together as have four vectors, and stores.
///
/// # Safety
/// The processor has AVX-512 BW, DQ and VL; the block's channels of so many rows may be written.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn store<const R: usize, const W: usize, const SIGNED: bool>(
    matrix: &Matrix,
    block: &Block,
    output: *mut u8,
    output_step: usize,
    outputs: [[__m512i; W]; R],
) {
    let (min, max) = matrix.common.limits;
    let zero_point = match block.form {
        Form::Floats | Form::SignedFloats => matrix.zero_point(),
        _ => 0,
    };
    let limits = Limits::new(min, max, zero_point);
    let mask = !0_u64 >> (64 - block.channels);
    let is_full = block.channels == 16 * W;
    let together = 4 / W;
    for first in (0..R).step_by(together) {
        // Four outputs of each vector in turn; behind the last row the last again.
        let of = |v: usize| outputs[(first + v / W).min(R - 1)][v % W];
        let mut bytes = limits.narrow4::<SIGNED>([of(0), of(1), of(2), of(3)]);
        // A row behind the other.
        if W == 2 {
            let order = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
            bytes = _mm512_permutexvar_epi32(order, bytes);
        } else if W == 1 {
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            bytes = _mm512_permutexvar_epi32(order, bytes);
        }
        let parts = [
            _mm512_castsi512_si128(bytes),
            _mm512_extracti32x4_epi32::<1>(bytes),
            _mm512_extracti32x4_epi32::<2>(bytes),
            _mm512_extracti32x4_epi32::<3>(bytes),
        ];
        let halves = [_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64::<1>(bytes)];
        for index in 0..together.min(R - first) {
            let to = output.wrapping_add((first + index) * output_step);
            #[allow(clippy::cast_possible_truncation)] // Fewer vectors have fewer channels.
            // SAFETY: the mask leaves the block's channels of the row, which may be written.
            unsafe {
                match (W, is_full) {
                    (4, true) => _mm512_storeu_si512(to.cast(), bytes),
                    (4, false) => _mm512_mask_storeu_epi8(to.cast(), mask, bytes),
                    (2, true) => _mm256_storeu_si256(to.cast(), halves[index % 2]),
                    (2, false) => {
                        _mm256_mask_storeu_epi8(to.cast(), mask as __mmask32, halves[index % 2]);
                    }
                    (_, true) => _mm_storeu_si128(to.cast(), parts[index]),
                    (_, false) => {
                        _mm_mask_storeu_epi8(to.cast(), mask as __mmask16, parts[index]);
                    }
                }
            }
        }
    }
}

/// Requantises one by one and stores.
///
/// # Safety
/// The processor has AVX-512 BW, DQ and VL; the block's channels of so many rows may be written.
#[cold]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn store_scalar<const R: usize, const W: usize>(
    matrix: &Matrix,
    block: &Block,
    output: *mut u8,
    output_step: usize,
    sums: [[__m512i; W]; R],
) {
    for (r, row) in sums.iter().enumerate() {
        let mut numbers = [[0_i32; 16]; W];
        for (sums, numbers) in row.iter().zip(&mut numbers) {
            // SAFETY: 16 numbers.
            unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), *sums) };
        }
        for index in 0..block.channels {
            let (vector, lane) = block.place(index);
            let byte = matrix.output(block, index, numbers[vector][lane]);
            // SAFETY: a channel of the row, which may be written.
            unsafe { output.add(r * output_step + index).write(byte) };
        }
    }
}

/// The sum of bytes, each with the bits of `flip` inverted.
///
/// # Safety
/// The processor has AVX-512 VNNI.
pub(super) unsafe fn sum(bytes: &[u8], flip: u8) -> i32 {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn inner(bytes: &[u8], flip: u8) -> i32 {
        let (ones, flip) = (_mm512_set1_epi8(1), _mm512_set1_epi8(flip.cast_signed()));
        let mut sums = _mm512_setzero_si512();
        for chunk in bytes.chunks(64) {
            let mask = !0_u64 >> (64 - chunk.len());
            // SAFETY: the mask leaves the bytes of the chunk.
            let part = unsafe { _mm512_maskz_loadu_epi8(mask, chunk.as_ptr().cast()) };
            let part = _mm512_xor_si512(part, _mm512_maskz_mov_epi8(mask, flip));
            sums = _mm512_dpbusd_epi32(sums, part, ones);
        }
        _mm512_reduce_add_epi32(sums)
    }
    // SAFETY: the caller's promise.
    unsafe { inner(bytes, flip) }
}
