//! Tiles with AVX-512, in 16 lanes.
//!
//! With VNNI, sums of four products of an unsigned and a signed byte: a tile of 6 rows and 64 channels
//! holds 24 sums in registers, with 4 of weights and one of inputs. Without, sums of two products of
//! 16-bit numbers, to which inputs and weights are widened before, as with AVX2 alone.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::ChannelLanes;
use super::tiles::{Arithmetic, Packing, Sums, Target, Work, kernel, tiles, widened};
use crate::requantize::avx512::{Constants, FloatConstants, Limits};
use crate::requantize::{Form, LANES};
use crate::unrolled::unrolled;
use std::arch::x86_64::*;

/// What flips the sign of bytes. It is loaded in a way that hides its value: otherwise compilers flip
/// four inputs before they are repeated in all lanes, which takes an instruction more than flipping
/// while they are loaded and repeated.
#[repr(align(64))]
struct Signs([i8; 64]);

static SIGNS: Signs = Signs([i8::MIN; 64]);

/// With VNNI.
#[derive(Clone, Copy)]
pub(super) struct Vnni {
    flip: __m512i,
}

impl Default for Vnni {
    #[inline(always)]
    fn default() -> Self {
        // SAFETY: 64 bytes, aligned to 64.
        Self { flip: unsafe { std::ptr::from_ref(&SIGNS.0).cast::<__m512i>().read_volatile() } }
    }
}

impl Arithmetic for Vnni {
    type Sums = __m512i;
    type Inputs = __m512i;
    type Weights = __m512i;

    const ROWS: [usize; 5] = [0, 8, 8, 0, 6];

    const PACKING: Packing = Packing::Bytes;

    const FLIPS_INPUTS: bool = true;

    const FETCHES: bool = true;

    const SUM: unsafe fn(&[u8], u8) -> i32 = sum;

    #[inline(always)]
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> __m512i {
        // SAFETY: the trait's promise.
        unsafe {
            let inputs = _mm512_set1_epi32(four.cast_signed());
            if SIGNED { _mm512_xor_si512(inputs, self.flip) } else { inputs }
        }
    }

    #[inline(always)]
    unsafe fn multiply(self, sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: the trait's promise.
        unsafe { _mm512_dpbusd_epi32(sums, inputs, weights) }
    }

    kernel!("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");
}

/// Of rows of 16-bit numbers, without VNNI.
#[derive(Clone, Copy, Default)]
pub(super) struct Words;

impl Arithmetic for Words {
    type Sums = __m512i;
    /// Two of each channel.
    type Weights = __m512i;

    const ROWS: [usize; 5] = [0, 8, 8, 0, 6];

    const PACKING: Packing = Packing::Words;

    widened!(__m512i, _mm512_set1_epi32);

    #[inline(always)]
    unsafe fn multiply(self, sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: the trait's promise.
        unsafe { _mm512_add_epi32(sums, _mm512_madd_epi16(inputs, weights)) }
    }

    kernel!("avx512f,avx512bw,avx512dq,avx512vl");
}

/// Of rows of 16-bit numbers, with VNNI, where the sum of products takes one instruction.
#[derive(Clone, Copy, Default)]
pub(super) struct VnniWords;

impl Arithmetic for VnniWords {
    type Sums = __m512i;
    type Weights = __m512i;

    const ROWS: [usize; 5] = Words::ROWS;

    const PACKING: Packing = Words::PACKING;

    widened!(__m512i, _mm512_set1_epi32);

    #[inline(always)]
    unsafe fn multiply(self, sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: the trait's promise.
        unsafe { _mm512_dpwssd_epi32(sums, inputs, weights) }
    }

    kernel!("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");
}

/// Without VNNI, for few rows: weights stay bytes in memory, half of what is read otherwise, and are widened when they are loaded,
/// which costs little then.
#[derive(Clone, Copy, Default)]
pub(super) struct WordsOfBytes;

impl Arithmetic for WordsOfBytes {
    type Sums = __m512i;
    /// Two of each channel, as bytes.
    type Weights = __m256i;

    // As twos are packed by vector.
    const ROWS: [usize; 5] = [0, 8, 0, 0, 0];

    const PACKING: Packing = Packing::BytesByTwo;

    widened!(__m512i, _mm512_set1_epi32);

    #[inline(always)]
    unsafe fn multiply(self, sums: __m512i, inputs: __m512i, weights: __m256i) -> __m512i {
        // SAFETY: the trait's promise. All rows use what the first one widens.
        unsafe { Words.multiply(sums, inputs, _mm512_cvtepi8_epi16(weights)) }
    }

    kernel!("avx512f,avx512bw,avx512dq,avx512vl");
}

impl Sums for __m512i {
    const HAS_FLOATS: bool = true;

    #[inline(always)]
    unsafe fn add(self, term: i32) -> Self {
        // SAFETY: the trait's promise.
        unsafe { _mm512_add_epi32(self, _mm512_set1_epi32(term)) }
    }

    #[inline(always)]
    unsafe fn finish<const R: usize, const W: usize>(target: Target<'_, W>, sums: [[Self; W]; R]) {
        // SAFETY: the caller's promises.
        unsafe {
            let outputs = match target.block.form {
                Form::Floats => in_floats::<R, W, false>(target.lanes, sums),
                Form::SignedFloats => in_floats::<R, W, true>(target.lanes, sums),
                Form::Plain => in_integers::<R, W, false>(target.lanes, sums),
                Form::Nudged => in_integers::<R, W, true>(target.lanes, sums),
                Form::Sums => return store_sums::<R, W>(target, sums),
                Form::Scalar => {
                    // A copy in memory: the sums themselves stay in registers.
                    let copy = sums;
                    return target.store_scalar(bytemuck::cast_slice(copy.as_flattened()));
                }
            };
            store::<R, W>(target, outputs);
        }
    }
}

/// Does the same for each of at most four vectors. Written out, for a loop would keep sums in memory.
macro_rules! for_vectors {
    ($body:block) => {
        unrolled! { V < W, 0 1 2 3 => $body }
    };
}

/// Requantizes in floats.
///
/// # Safety
/// The caller has AVX-512 BW, DQ and VL.
#[inline(always)]
unsafe fn in_floats<const R: usize, const W: usize, const SIGNED: bool>(
    lanes: &[ChannelLanes; W],
    mut sums: [[__m512i; W]; R],
) -> [[__m512i; W]; R] {
    for_vectors!({
        // SAFETY: the caller's promise.
        unsafe {
            let constants = FloatConstants::load(&lanes[V]);
            for r in 0..R {
                sums[r][V] = constants.apply::<SIGNED>(sums[r][V]);
            }
        }
    });
    sums
}

/// Requantizes in integers.
///
/// # Safety
/// The caller has AVX-512 BW, DQ and VL.
#[inline(always)]
unsafe fn in_integers<const R: usize, const W: usize, const NUDGED: bool>(
    lanes: &[ChannelLanes; W],
    mut sums: [[__m512i; W]; R],
) -> [[__m512i; W]; R] {
    for_vectors!({
        // SAFETY: the caller's promise.
        unsafe {
            let constants = Constants::load(&lanes[V]);
            for r in 0..R {
                sums[r][V] = constants.apply::<NUDGED>(sums[r][V]);
            }
        }
    });
    sums
}

/// Stores the sums of all lanes.
///
/// # Safety
/// The caller has AVX-512; the sums of all lanes of this many rows may be written.
#[inline(always)]
unsafe fn store_sums<const R: usize, const W: usize>(
    target: Target<'_, W>,
    sums: [[__m512i; W]; R],
) {
    for_vectors!({
        for r in 0..R {
            let to = target.row(r).wrapping_add(64 * V);
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_si512(to.cast(), sums[r][V]) };
        }
    });
}

/// Narrows to 8 bits, as many rows together as have four vectors, and stores.
///
/// # Safety
/// The caller has AVX-512 BW, DQ and VL; the block's channels of this many rows may be written.
#[inline(always)]
unsafe fn store<const R: usize, const W: usize>(target: Target<'_, W>, outputs: [[__m512i; W]; R]) {
    let (min, max) = target.problem.common.limits;
    let zero_point = match target.block.form {
        Form::Floats | Form::SignedFloats => target.problem.zero_point(),
        _ => 0,
    };
    // SAFETY: the caller's promises.
    unsafe {
        let limits = Limits::new(min, max, zero_point);
        // Written out, for a loop would keep the outputs in memory.
        unrolled! { GROUP < R.div_ceil(4 / W), 0 1 2 3 4 5 6 7 => {
            let first = GROUP * (4 / W);
            // Behind the last row the last again.
            let parts = [
                outputs[first],
                outputs[(first + 1 / W).min(R - 1)],
                outputs[(first + 2 / W).min(R - 1)],
                outputs[(first + 3 / W).min(R - 1)],
            ];
            let parts = [parts[0][0], parts[1][1 % W], parts[2][2 % W], parts[3][3 % W]];
            store_rows(&target, first, limits.narrow4(parts), R - first);
        } }
    }
}

/// Stores rows from the first one on, as many as have four vectors, of which there are this many.
///
/// # Safety
/// As of [`store`], for these rows.
#[inline(always)]
unsafe fn store_rows<const W: usize>(
    target: &Target<'_, W>,
    first: usize,
    mut bytes: __m512i,
    rows: usize,
) {
    // Of 1 to 16 * W channels, as `Variant::blocks` cuts them.
    let mask = !0_u64 >> (64 - target.block.channels);
    let is_full = target.block.channels == 16 * W;
    // SAFETY: the mask leaves the block's channels of the rows, which may be written.
    unsafe {
        // Four outputs of each vector in turn become a row behind the other.
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
        for index in 0..(4 / W).min(rows) {
            let to = target.row(first.wrapping_add(index));
            #[allow(clippy::cast_possible_truncation)] // Fewer vectors have fewer channels.
            match (W, is_full) {
                (4, true) => _mm512_storeu_si512(to.cast(), bytes),
                (4, false) => _mm512_mask_storeu_epi8(to.cast(), mask, bytes),
                (2, true) => _mm256_storeu_si256(to.cast(), halves[index % 2]),
                (2, false) => {
                    _mm256_mask_storeu_epi8(to.cast(), mask as __mmask32, halves[index % 2]);
                }
                (_, true) => _mm_storeu_si128(to.cast(), parts[index]),
                (_, false) => _mm_mask_storeu_epi8(to.cast(), mask as __mmask16, parts[index]),
            }
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
