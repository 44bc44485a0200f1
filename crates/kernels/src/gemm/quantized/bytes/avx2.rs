//! [`ByteMatrix`](super::ByteMatrix) with AVX2.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::DEPTH;
use super::super::avx2::store_row;
use super::{BLOCK, Entry, Lane, PACKED_STEP, PANEL_ROWS, STEP_BYTES, VECTOR_ROWS};
use crate::requantize::LANES;
use crate::requantize::avx2::Limits;
use std::arch::x86_64::*;

/// Turns runs of 8 rows, of `bytes` bytes each, a multiple of four: four of each row side by side, those of the
/// next step [`STEP_BYTES`] farther on. Signed numbers become unsigned, 128 more.
///
/// # Safety
/// The processor has AVX2. Behind each address these bytes can be read; 32 bytes of each step can be written, on
/// a multiple of 32.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn turn(
    mut from: [*const u8; VECTOR_ROWS],
    bytes: usize,
    is_signed: bool,
    mut to: *mut u8,
) {
    let flips = _mm256_set1_epi8(if is_signed { i8::MIN } else { 0 });
    // SAFETY: the caller's promises: whole steps, as many as there are bytes.
    unsafe {
        for _ in 0..bytes / 16 {
            // Each row beside the fourth one behind it.
            let mut rows = [_mm256_setzero_si256(); 4];
            for (index, row) in rows.iter_mut().enumerate() {
                let low = _mm256_castsi128_si256(_mm_loadu_si128(from[index].cast()));
                let high = _mm_loadu_si128(from[index + 4].cast());
                *row = _mm256_xor_si256(_mm256_inserti128_si256::<1>(low, high), flips);
            }
            for (index, step) in transposed(rows).into_iter().enumerate() {
                _mm256_store_si256(to.add(index * STEP_BYTES).cast(), step);
            }
            from.iter_mut().for_each(|from| *from = from.add(16));
            to = to.add(4 * STEP_BYTES);
        }
        for step in 0..bytes % 16 / DEPTH {
            let four = |index: usize| from[index].add(DEPTH * step).cast::<i32>().read_unaligned();
            let fours = _mm256_setr_epi32(
                four(0),
                four(1),
                four(2),
                four(3),
                four(4),
                four(5),
                four(6),
                four(7),
            );
            _mm256_store_si256(to.add(step * STEP_BYTES).cast(), _mm256_xor_si256(fours, flips));
        }
    }
}

/// Numbers of 32 bits with rows and columns exchanged, in both halves.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (ab2, cd2) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab2, cd2),
        _mm256_unpackhi_epi64(ab2, cd2),
    ]
}

/// From a chunk to the packed weights that are fetched meanwhile, in bytes: about as many as are read in a thousand
/// cycles.
const AHEAD: usize = 1024;

/// Products of a piece of a panel with a block of channels.
pub(super) struct Work<'a> {
    /// The piece's first step, on a multiple of 32 bytes.
    pub panel: *const u8,
    pub packed: *const u8,
    pub entries: &'a [Entry],
    /// Of the first piece, whose sums begin with a bias.
    pub lanes: Option<&'a [Lane]>,
    /// [`PANEL_ROWS`] for each channel, on a multiple of 32 bytes.
    pub sums: *mut i32,
}

/// Adds products to sums, of this many vectors of rows, with chunks of this many steps.
///
/// # Safety
/// The processor has AVX2. The packed weights have the chunks that the entries tell; at each place that one of their
/// steps tells, [`STEP_BYTES`] of the panel can be read. The sums of all channels can be written, and no one else
/// accesses them.
pub(super) unsafe fn multiply(vectors: usize, size: usize, work: &Work<'_>) {
    /// For chunks of `L` steps.
    fn of_size<const L: usize>(vectors: usize) -> unsafe fn(&Work<'_>) {
        match vectors {
            1 => multiply_by::<1, L>,
            2 => multiply_by::<2, L>,
            3 => multiply_by::<3, L>,
            4 => multiply_by::<4, L>,
            5 => multiply_by::<5, L>,
            6 => multiply_by::<6, L>,
            7 => multiply_by::<7, L>,
            _ => unreachable!("{vectors} vectors"),
        }
    }
    let kernel = match size {
        1 => of_size::<1>(vectors),
        2 => of_size::<2>(vectors),
        3 => of_size::<3>(vectors),
        _ => unreachable!("chunks of {size} steps"),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(work) }
}

/// With constant numbers of vectors and steps.
///
/// # Safety
/// As of [`multiply`].
#[target_feature(enable = "avx2")]
unsafe fn multiply_by<const P: usize, const L: usize>(work: &Work<'_>) {
    let ones = _mm256_set1_epi16(1);
    for entry in work.entries {
        let channel = usize::from(entry.channel);
        let sums = work.sums.wrapping_add(channel * PANEL_ROWS);
        // SAFETY: the caller's promises.
        unsafe {
            let mut chunk = work.packed.add(entry.start as usize);
            let mut totals = match work.lanes {
                Some(lanes) => [_mm256_set1_epi32(lanes[channel].bias); P],
                None => {
                    let mut totals = [_mm256_setzero_si256(); P];
                    for p in 0..P {
                        totals[p] = _mm256_load_si256(sums.add(VECTOR_ROWS * p).cast());
                    }
                    totals
                }
            };
            for _ in 0..entry.chunks {
                _mm_prefetch::<_MM_HINT_T0>(chunk.wrapping_add(AHEAD).cast());
                let mut words = [_mm256_setzero_si256(); P];
                for step in 0..L {
                    let weights = chunk.add(DEPTH * step).cast::<i32>().read_unaligned();
                    let weights = _mm256_set1_epi32(weights);
                    let place = chunk.add(DEPTH * L + 2 * step).cast::<u16>().read_unaligned();
                    let inputs = work.panel.add(usize::from(place)).cast::<__m256i>();
                    for p in 0..P {
                        let inputs = _mm256_load_si256(inputs.add(p));
                        let products = _mm256_maddubs_epi16(inputs, weights);
                        words[p] =
                            if step == 0 { products } else { _mm256_add_epi16(words[p], products) };
                    }
                }
                for p in 0..P {
                    totals[p] = _mm256_add_epi32(totals[p], _mm256_madd_epi16(words[p], ones));
                }
                chunk = chunk.add(PACKED_STEP * L);
            }
            for p in 0..P {
                _mm256_store_si256(sums.add(VECTOR_ROWS * p).cast(), totals[p]);
            }
        }
    }
}

/// Writes the sums of a block's channels, which are one behind the other for each channel, as rows of channels, and for rows up
/// to a whole vector anything.
///
/// # Safety
/// The processor has AVX2. There are sums for [`BLOCK`] channels, [`PANEL_ROWS`] of each, on a multiple of 32 bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn rows_of_sums(
    sums: *const i32,
    count: usize,
    rows: &mut [[i32; BLOCK]; PANEL_ROWS],
) {
    let (rows, _) = rows.as_chunks_mut::<VECTOR_ROWS>();
    for (vector, rows) in rows[..count.div_ceil(VECTOR_ROWS)].iter_mut().enumerate() {
        for first in (0..BLOCK).step_by(8) {
            let four = |first: usize| {
                let sums = |channel: usize| {
                    let at = (first + channel) * PANEL_ROWS + vector * VECTOR_ROWS;
                    // SAFETY: the caller's promise.
                    unsafe { _mm256_load_si256(sums.add(at).cast()) }
                };
                transposed([sums(0), sums(1), sums(2), sums(3)])
            };
            // Of four channels a row and the fourth one behind it.
            for (row, (low, high)) in four(first).into_iter().zip(four(first + 4)).enumerate() {
                let both = [
                    _mm256_permute2x128_si256::<0x20>(low, high),
                    _mm256_permute2x128_si256::<0x31>(low, high),
                ];
                for (row, sums) in [row, row + 4].into_iter().zip(both) {
                    let to = &mut rows[row][first..first + 8];
                    // SAFETY: eight numbers.
                    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), sums) };
                }
            }
        }
    }
}

/// Sums that become outputs.
pub(super) struct Outputs<'a> {
    /// [`PANEL_ROWS`] for each channel, on a multiple of 32 bytes.
    pub sums: *const i32,
    pub rows: usize,
    /// At most 16.
    pub channels: usize,
    pub lanes: &'a [Lane; LANES],
    pub limits: (i32, i32),
    /// Where the first row's output begins.
    pub output: *mut u8,
    /// From one row's output to the next, in bytes.
    pub step: usize,
}

/// Requantizes sums and stores the outputs.
///
/// # Safety
/// The processor has AVX2. There are sums for 16 channels, at most [`PANEL_ROWS`] rows; the outputs can be written, and no one
/// else accesses them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn finish<const NUDGED: bool>(work: &Outputs<'_>) {
    let limits = Limits::new(work.limits.0, work.limits.1);
    // Of each row the bytes of four channels; rows are exchanged as `requantized` says.
    let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15,
    ));
    let vectors = work.rows.div_ceil(VECTOR_ROWS);
    for vector in 0..vectors {
        let mut fours = [_mm256_setzero_si256(); 4];
        for index in 0..4 {
            let mut outputs = [_mm256_setzero_si256(); 4];
            for of_four in 0..4 {
                let channel = 4 * index + of_four;
                let at = channel * PANEL_ROWS + vector * VECTOR_ROWS;
                // SAFETY: the caller's promises.
                let sums = unsafe { _mm256_load_si256(work.sums.add(at).cast()) };
                outputs[of_four] = requantized::<NUDGED>(sums, &work.lanes[channel]);
            }
            fours[index] = _mm256_shuffle_epi8(limits.narrow4(outputs), order);
        }
        for (index, rows) in transposed(fours).into_iter().enumerate() {
            let row = vector * VECTOR_ROWS + index;
            let halves = [_mm256_castsi256_si128(rows), _mm256_extracti128_si256::<1>(rows)];
            for (row, outputs) in [row, row + 4].into_iter().zip(halves) {
                if row >= work.rows {
                    continue;
                }
                let to = work.output.wrapping_add(row * work.step);
                // SAFETY: the outputs of all channels of the row, which can be written.
                unsafe { store_row(work.channels, to, outputs) };
            }
        }
    }
}

/// The outputs of sums of one channel, before they are clamped: of rows 0, 2, 1 and 3, then 4, 6, 5 and 7.
#[inline]
#[target_feature(enable = "avx2")]
fn requantized<const NUDGED: bool>(sums: __m256i, lane: &Lane) -> __m256i {
    let doubled = _mm256_set1_epi32(lane.doubled.cast_signed());
    let rounding = _mm256_set1_epi64x(lane.rounding.cast_signed());
    let even = _mm256_add_epi64(_mm256_mul_epu32(sums, doubled), rounding);
    let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(sums), doubled);
    let odd = _mm256_add_epi64(odd, rounding);
    // The upper halves.
    let (even, odd) = (_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd));
    let mut upper = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(even, odd));
    if NUDGED {
        upper =
            _mm256_sub_epi32(upper, _mm256_cmpgt_epi32(upper, _mm256_set1_epi32(lane.negative)));
    }
    _mm256_srav_epi32(upper, _mm256_set1_epi32(lane.shift.cast_signed()))
}
