//! Tiles with AVX-512 VNNI: sums of four products of an unsigned and a signed byte, in 16 lanes.
//!
//! A tile of 6 rows and 64 channels holds 24 sums in registers, with 4 of weights and one of inputs.
//! Each step of four inputs loads 4 vectors of weights and 6 times four inputs for 24 products, so that
//! products are the limit and not loads.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::requantize::avx512::{Constants, Limits};
use super::{Block, Form, Matrix, Tile};
use std::arch::x86_64::*;

/// Computes a tile.
///
/// # Safety
/// As of [`Matrix::compute`], and the processor has AVX-512 VNNI.
pub(super) unsafe fn compute(matrix: &Matrix, block: &Block, tile: &Tile<'_>) {
    // SAFETY: the caller's promises.
    unsafe {
        if matrix.common.is_signed {
            with_rows::<true>(matrix, block, tile);
        } else {
            with_rows::<false>(matrix, block, tile);
        }
    }
}

/// # Safety
/// As of [`compute`].
unsafe fn with_rows<const SIGNED: bool>(matrix: &Matrix, block: &Block, tile: &Tile<'_>) {
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
    unsafe { kernel(matrix, block, tile) }
}

/// `R` rows and `W` vectors of channels.
///
/// # Safety
/// As of [`compute`], where the tile has `R` rows and the block `W` vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn kernel<const R: usize, const W: usize, const SIGNED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
) {
    let lanes: &[_; W] = tile.lanes.try_into().expect("as many vectors");
    let mut sums = [[_mm512_setzero_si512(); W]; R];
    for v in 0..W {
        // SAFETY: 16 numbers.
        let bias = unsafe { _mm512_loadu_si512(lanes[v].bias.as_ptr().cast()) };
        for row in &mut sums {
            row[v] = bias;
        }
    }
    if let Some(terms) = tile.row_terms {
        for (row, &term) in sums.iter_mut().zip(&terms[..R]) {
            for sum in row {
                *sum = _mm512_add_epi32(*sum, _mm512_set1_epi32(term));
            }
        }
    }
    let flip = _mm512_set1_epi8(i8::MIN);
    let steps = matrix.common.run_bytes.div_ceil(4);
    let mut weights = tile.weights;
    for run in 0..matrix.common.runs {
        let mut rows = [std::ptr::null(); R];
        for (r, row) in rows.iter_mut().enumerate() {
            // SAFETY: the table has an address for each run of each row.
            *row = unsafe { *tile.table.add(run * tile.table_step + r) };
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
        }
    }
    // SAFETY: as promised.
    unsafe {
        match matrix.common.form {
            Form::Plain => store::<R, W, SIGNED, false>(matrix, block, tile, sums),
            Form::Nudged => store::<R, W, SIGNED, true>(matrix, block, tile, sums),
            Form::Scalar => store_scalar::<R, W>(matrix, block, tile, sums),
        }
    }
}

/// Requantises and stores.
///
/// # Safety
/// As of [`kernel`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn store<const R: usize, const W: usize, const SIGNED: bool, const NUDGED: bool>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
    sums: [[__m512i; W]; R],
) {
    let lanes: &[_; W] = tile.lanes.try_into().expect("as many vectors");
    let mut outputs = sums;
    for v in 0..W {
        let constants = Constants::load(&lanes[v]);
        for r in 0..R {
            outputs[r][v] = constants.apply::<NUDGED>(outputs[r][v]);
        }
    }
    let limits = Limits::new(matrix.common.limits.0, matrix.common.limits.1);
    let mask = !0_u64 >> (64 - block.channels);
    for r in 0..R {
        let row = outputs[r];
        let to = tile.output.wrapping_add(r * tile.output_step).cast();
        #[allow(clippy::cast_possible_truncation)] // Fewer vectors have fewer channels.
        // SAFETY: the mask leaves the block's channels of the row, which may be written.
        unsafe {
            match *row.as_slice() {
                [a] => _mm_mask_storeu_epi8(to, mask as __mmask16, limits.narrow1(a)),
                [a, b] => _mm256_mask_storeu_epi8(to, mask as __mmask32, limits.narrow2(a, b)),
                [a, b, c, d] => {
                    let bytes = limits.narrow4::<SIGNED>([a, b, c, d]);
                    if block.channels == 64 {
                        _mm512_storeu_si512(to.cast(), bytes);
                    } else {
                        _mm512_mask_storeu_epi8(to, mask, bytes);
                    }
                }
                _ => unreachable!("no block has {W} vectors"),
            }
        }
    }
}

/// Requantises one by one and stores.
///
/// # Safety
/// As of [`kernel`].
#[cold]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn store_scalar<const R: usize, const W: usize>(
    matrix: &Matrix,
    block: &Block,
    tile: &Tile<'_>,
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
            let output = matrix.output(block, index, numbers[vector][lane]);
            // SAFETY: a channel of the row, which may be written.
            unsafe { tile.output.add(r * tile.output_step + index).write(output) };
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
