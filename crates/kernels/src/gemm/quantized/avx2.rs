//! Tiles with 256-bit vectors, 16 lanes in two of them.
//!
//! With AVX-VNNI, sums of four products of an unsigned and a signed byte. With AVX2 alone, sums of two
//! products of 16-bit numbers: the instruction for products of bytes saturates at 16 bits. Weights are
//! packed as 16-bit numbers (but for few rows), and inputs are widened once for all blocks of channels ([`widen`]), so that
//! a step only loads, multiplies and adds: six rows of 16 channels are 12 sums in registers, with two of
//! weights, one of inputs and one of products.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]

use super::tiles::{Arithmetic, Packing, Sums, Target, Work, kernel, tiles, widened};
use crate::requantize::avx2::{Constants, Limits};
use crate::requantize::{Form, LANES};
use std::arch::x86_64::*;

/// With AVX-VNNI.
#[derive(Clone, Copy)]
pub(super) struct Vnni {
    flip: __m256i,
}

impl Default for Vnni {
    #[inline(always)]
    fn default() -> Self {
        Self { flip: bytemuck::cast([i8::MIN; 32]) }
    }
}

impl Arithmetic for Vnni {
    type Sums = [__m256i; 2];
    type Inputs = __m256i;
    type Weights = [__m256i; 2];

    const ROWS: [usize; 5] = [0, 6, 0, 0, 0];

    const PACKING: Packing = Packing::Bytes;

    const FLIPS_INPUTS: bool = true;

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> __m256i {
        // SAFETY: the trait's promise.
        unsafe {
            let inputs = _mm256_set1_epi32(four.cast_signed());
            if SIGNED { _mm256_xor_si256(inputs, self.flip) } else { inputs }
        }
    }

    #[inline(always)]
    unsafe fn multiply(
        self,
        sums: [__m256i; 2],
        inputs: __m256i,
        weights: [__m256i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: the trait's promise.
        unsafe {
            [
                _mm256_dpbusd_avx_epi32(sums[0], inputs, weights[0]),
                _mm256_dpbusd_avx_epi32(sums[1], inputs, weights[1]),
            ]
        }
    }

    kernel!("avx2,avxvnni");
}

/// With AVX2 alone.
#[derive(Clone, Copy, Default)]
pub(super) struct Pairs;

impl Arithmetic for Pairs {
    type Sums = [__m256i; 2];
    /// Two of each channel, as 16-bit numbers.
    type Weights = [__m256i; 2];

    const ROWS: [usize; 5] = [0, 6, 0, 0, 0];

    const PACKING: Packing = Packing::Words;

    widened!(__m256i, _mm256_set1_epi32);

    #[inline(always)]
    unsafe fn multiply(
        self,
        [low, high]: [__m256i; 2],
        inputs: __m256i,
        [a, b]: [__m256i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: the trait's promise.
        unsafe {
            [
                _mm256_add_epi32(low, _mm256_madd_epi16(inputs, a)),
                _mm256_add_epi32(high, _mm256_madd_epi16(inputs, b)),
            ]
        }
    }

    kernel!("avx2");
}

/// With AVX2 alone, for few rows: weights stay bytes in memory, half of what is read otherwise, and are widened when they are
/// loaded, which costs little then.
#[derive(Clone, Copy, Default)]
pub(super) struct PairsOfBytes;

impl Arithmetic for PairsOfBytes {
    type Sums = [__m256i; 2];
    /// Two of each channel, as bytes.
    type Weights = [__m128i; 2];

    const ROWS: [usize; 5] = Pairs::ROWS;

    const PACKING: Packing = Packing::BytesByTwo;

    widened!(__m256i, _mm256_set1_epi32);

    #[inline(always)]
    unsafe fn multiply(
        self,
        sums: [__m256i; 2],
        inputs: __m256i,
        [a, b]: [__m128i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: the trait's promise. All rows use what the first one widens.
        unsafe {
            let weights = [_mm256_cvtepi8_epi16(a), _mm256_cvtepi8_epi16(b)];
            Pairs.multiply(sums, inputs, weights)
        }
    }

    kernel!("avx2");
}

/// Widens rows of bytes, each with the bits of `flip` inverted, to 16-bit numbers, and enters where each
/// begins; rows have this many runs, of `padded` bytes each, a multiple of four.
///
/// # Safety
/// The processor has AVX2. The table has the addresses of all runs of as many rows as are to be
/// entered, and behind each this many bytes can be read.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn widen(
    table: (*const *const u8, usize),
    (runs, padded): (usize, usize),
    flip: u8,
    wide: &mut [u16],
    addresses: &mut [*const u8],
) {
    // Short runs, of small groups and of few channels, take a third of the time where their length is known here.
    // SAFETY: the caller's promises.
    unsafe {
        match padded {
            4 => widen_runs(table, (runs, 4), flip, wide, addresses),
            8 => widen_runs(table, (runs, 8), flip, wide, addresses),
            16 => widen_runs(table, (runs, 16), flip, wide, addresses),
            _ => widen_runs(table, (runs, padded), flip, wide, addresses),
        }
    }
}

/// [`widen`], compiled for the instructions of its caller.
///
/// # Safety
/// As of [`widen`].
#[inline(always)]
unsafe fn widen_runs(
    (table, table_step): (*const *const u8, usize),
    (runs, padded): (usize, usize),
    flip: u8,
    wide: &mut [u16],
    addresses: &mut [*const u8],
) {
    // SAFETY: the caller's promise.
    let flips = unsafe { _mm_set1_epi8(flip.cast_signed()) };
    let rows = wide.chunks_exact_mut((runs * padded).max(1)).zip(addresses);
    for (row, (wide, address)) in rows.enumerate() {
        *address = wide.as_ptr().cast();
        for (run, to) in wide.chunks_exact_mut(padded.max(1)).enumerate() {
            let (sixteens, rest) = to.as_chunks_mut::<16>();
            let (eights, rest) = rest.as_chunks_mut::<8>();
            // SAFETY: the caller's promises: as many bytes as there are numbers.
            unsafe {
                let mut from = *table.add(run.wrapping_mul(table_step).wrapping_add(row));
                for to in sixteens {
                    let bytes = _mm_xor_si128(_mm_loadu_si128(from.cast()), flips);
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_cvtepu8_epi16(bytes));
                    from = from.add(16);
                }
                for to in eights {
                    let bytes = _mm_xor_si128(_mm_loadl_epi64(from.cast()), flips);
                    _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_cvtepu8_epi16(bytes));
                    from = from.add(8);
                }
                for to in rest.as_chunks_mut::<4>().0 {
                    let four = _mm_cvtsi32_si128(from.cast::<i32>().read_unaligned());
                    let bytes = _mm_xor_si128(four, flips);
                    _mm_storel_epi64(to.as_mut_ptr().cast(), _mm_cvtepu8_epi16(bytes));
                    from = from.add(4);
                }
            }
        }
    }
}

/// As [`widen`], but that bytes stay bytes.
///
/// # Safety
/// As of [`widen`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy(
    (table, table_step): (*const *const u8, usize),
    (runs, padded): (usize, usize),
    flip: u8,
    copies: &mut [u8],
    addresses: &mut [*const u8],
) {
    let flips = _mm256_set1_epi8(flip.cast_signed());
    let four_flips = u32::from_ne_bytes([flip; 4]);
    let rows = copies.chunks_exact_mut((runs * padded).max(1)).zip(addresses);
    for (row, (copy, address)) in rows.enumerate() {
        *address = copy.as_ptr();
        for (run, to) in copy.chunks_exact_mut(padded.max(1)).enumerate() {
            let (vectors, rest) = to.as_chunks_mut::<32>();
            let (halves, rest) = rest.as_chunks_mut::<16>();
            // SAFETY: the caller's promises: as many bytes as there are to be written.
            unsafe {
                let mut from = *table.add(run.wrapping_mul(table_step).wrapping_add(row));
                for to in vectors {
                    let bytes = _mm256_xor_si256(_mm256_loadu_si256(from.cast()), flips);
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), bytes);
                    from = from.add(32);
                }
                for to in halves {
                    let flips = _mm256_castsi256_si128(flips);
                    let bytes = _mm_xor_si128(_mm_loadu_si128(from.cast()), flips);
                    _mm_storeu_si128(to.as_mut_ptr().cast(), bytes);
                    from = from.add(16);
                }
                for to in rest.as_chunks_mut::<4>().0 {
                    *to = (from.cast::<u32>().read_unaligned() ^ four_flips).to_ne_bytes();
                    from = from.add(4);
                }
            }
        }
    }
}

impl Sums for [__m256i; 2] {
    #[inline(always)]
    unsafe fn add(self, term: i32) -> Self {
        // SAFETY: the trait's promise.
        unsafe {
            let term = _mm256_set1_epi32(term);
            [_mm256_add_epi32(self[0], term), _mm256_add_epi32(self[1], term)]
        }
    }

    #[inline(always)]
    unsafe fn finish<const R: usize, const W: usize>(target: Target<'_, W>, sums: [[Self; W]; R]) {
        debug_assert_eq!(W, 1, "blocks of one vector");
        // In memory: the constants of what follows take all registers.
        let mut sums = sums.map(|row| row[0]);
        // SAFETY: the caller's promises.
        unsafe {
            match target.block.form {
                Form::Scalar => target.store_scalar(bytemuck::cast_slice(&sums)),
                Form::Sums => {
                    // By half: a whole row would be copied through memory.
                    for (row, [low, high]) in sums.into_iter().enumerate() {
                        let to = target.row(row).cast::<__m256i>();
                        _mm256_storeu_si256(to, low);
                        _mm256_storeu_si256(to.wrapping_add(1), high);
                    }
                }
                Form::Nudged => store::<W, true>(target, &mut sums),
                _ => store::<W, false>(target, &mut sums),
            }
        }
    }
}

/// Requantizes and stores, two rows at a time.
///
/// # Safety
/// As of [`Sums::finish`], for as many rows as there are; the processor has AVX2.
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn store<const W: usize, const NUDGED: bool>(
    target: Target<'_, W>,
    sums: &mut [[__m256i; 2]],
) {
    for half in 0..2 {
        let constants = Constants::load(&target.lanes[0], half);
        for row in &mut *sums {
            row[half] = constants.apply::<NUDGED>(row[half]);
        }
    }
    let (min, max) = target.problem.common.limits;
    let limits = Limits::new(min, max);
    for (pair, rows) in sums.chunks(2).enumerate() {
        let bytes = limits.narrow_rows([rows[0], rows[rows.len() - 1]]);
        let (row, channels) = (2 * pair, target.block.channels);
        // SAFETY: the caller's promises.
        unsafe {
            store_row(channels, target.row(row), _mm256_castsi256_si128(bytes));
            if rows.len() == 2 {
                store_row(channels, target.row(row + 1), _mm256_extracti128_si256::<1>(bytes));
            }
        }
    }
}

/// Stores the outputs of a row, at most 16 channels.
///
/// # Safety
/// The channels may be written; the caller has AVX2.
#[inline(always)]
pub(super) unsafe fn store_row(channels: usize, to: *mut u8, outputs: __m128i) {
    // SAFETY: the caller's promises; all parts are within the channels.
    unsafe {
        match channels {
            16 => _mm_storeu_si128(to.cast(), outputs),
            8 => _mm_storel_epi64(to.cast(), outputs),
            channels => {
                let bytes: [u8; LANES] = bytemuck::cast(outputs);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, channels);
            }
        }
    }
}
