//! Depthwise convolution with AVX-512 VNNI.
//!
//! The instruction sums four products of neighbouring bytes, so the bytes of four taps are interleaved:
//! 64 channels of four taps take 8 shuffles and 4 multiplications. Four pixels are computed together, so
//! that constants are loaded once for them and, with 3x3 filters, so that they share interleaved columns.
//! If 32 channels or fewer are left, a pixel of each half of the row share the lanes.
#![allow(unsafe_code)]
// Helpers are inlined into the one function that has the instructions enabled.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::requantize::Form;
use super::super::requantize::avx512::{Constants, FloatConstants, Limits};
use super::super::{Requantization, Signedness};
use super::packed::{Order, Packed, Run};
use std::arch::x86_64::*;

/// A block has 64 channels.
const FULL: u8 = 0;
/// A block has fewer.
const PARTIAL: u8 = 1;
/// Two pixels of a block share the lanes.
const PAIR: u8 = 2;
/// Two pixels of a block of 32 channels share the lanes.
const FULL_PAIR: u8 = 3;

/// Computes the pixels of a run.
///
/// # Safety
/// The processor has AVX-512 VNNI. The table has the addresses of all taps of all pixels, and behind
/// each the block's channels can be read; the block's channels of all pixels' outputs can be written.
pub(super) unsafe fn compute(packed: &Packed, run: &Run<'_>) {
    let is_signed = packed.signedness == Signedness::Signed;
    let share = match (run.block.pixels, run.block.channels) {
        (1, 64) => FULL,
        (1, _) => PARTIAL,
        (_, 32) => FULL_PAIR,
        _ => PAIR,
    };
    let kernel = match (share, is_signed, run.block.has_two_parts) {
        (FULL, false, false) => kernel::<FULL, false, false>,
        (FULL, false, true) => kernel::<FULL, false, true>,
        (FULL, true, false) => kernel::<FULL, true, false>,
        (FULL, true, true) => kernel::<FULL, true, true>,
        (PARTIAL, false, false) => kernel::<PARTIAL, false, false>,
        (PARTIAL, false, true) => kernel::<PARTIAL, false, true>,
        (PARTIAL, true, false) => kernel::<PARTIAL, true, false>,
        (PARTIAL, true, true) => kernel::<PARTIAL, true, true>,
        (PAIR, false, false) => kernel::<PAIR, false, false>,
        (PAIR, false, true) => kernel::<PAIR, false, true>,
        (PAIR, true, false) => kernel::<PAIR, true, false>,
        (PAIR, true, true) => kernel::<PAIR, true, true>,
        (_, false, false) => kernel::<FULL_PAIR, false, false>,
        (_, false, true) => kernel::<FULL_PAIR, false, true>,
        (_, true, false) => kernel::<FULL_PAIR, true, false>,
        (_, true, true) => kernel::<FULL_PAIR, true, true>,
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(packed, run) }
}

/// `SHARE` says how the lanes are used; with `TWO` the weights are sums of two bytes.
///
/// # Safety
/// As of [`compute`], where the block is as the parameters say.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn kernel<const SHARE: u8, const SIGNED: bool, const TWO: bool>(
    packed: &Packed,
    run: &Run<'_>,
) {
    assert_eq!(run.lanes.len(), 4);
    // SAFETY: the caller's promises; groups of pixels lie within the run.
    unsafe {
        let mut first = 0;
        while first + 4 <= run.count {
            let group = run.after(first, packed.stride);
            match (packed.order, packed.stride) {
                (Order::Rows, _) => rows::<4, SHARE, SIGNED, TWO>(packed, &group),
                (Order::Columns3, 1) => columns3::<4, 1, SHARE, SIGNED, TWO>(packed, &group),
                (Order::Columns3, _) => columns3::<4, 2, SHARE, SIGNED, TWO>(packed, &group),
                (Order::Columns5, 1) => columns5::<4, 1, SHARE, SIGNED, TWO>(packed, &group),
                (Order::Columns5, _) => columns5::<4, 2, SHARE, SIGNED, TWO>(packed, &group),
            }
            first += 4;
            if first < run.count && first + 4 > run.count {
                // The last ones together with some that are computed again.
                first = run.count - 4;
            }
        }
        for first in first..run.count {
            let group = run.after(first, packed.stride);
            match packed.order {
                Order::Rows => rows::<1, SHARE, SIGNED, TWO>(packed, &group),
                Order::Columns3 => columns3::<1, 1, SHARE, SIGNED, TWO>(packed, &group),
                Order::Columns5 => columns5::<1, 1, SHARE, SIGNED, TWO>(packed, &group),
            }
        }
    }
}

/// Loads the block's channels of the pixel of a table's entry, or of two into the halves.
///
/// # Safety
/// As of [`compute`], for the entry.
#[inline(always)]
unsafe fn load<const SHARE: u8, const SIGNED: bool>(
    packed: &Packed,
    run: &Run<'_>,
    entry: usize,
) -> __m512i {
    let mask = !0_u64 >> (64 - run.block.channels);
    // SAFETY: the caller's promise; what a mask leaves out is not accessed.
    unsafe {
        let at = |entry: usize| (*run.table.add(entry)).add(run.block.channel);
        let (from, partner) = (at(entry), entry + run.partner * packed.stride);
        let bytes = match SHARE {
            FULL => _mm512_loadu_si512(from.cast()),
            PARTIAL => _mm512_maskz_loadu_epi8(mask, from.cast()),
            PAIR => {
                let bytes = _mm512_maskz_loadu_epi8(mask, from.cast());
                let from = at(partner).wrapping_sub(32);
                _mm512_mask_loadu_epi8(bytes, mask << 32, from.cast())
            }
            _ => {
                let bytes = _mm512_castsi256_si512(_mm256_loadu_si256(from.cast()));
                _mm512_inserti64x4::<1>(bytes, _mm256_loadu_si256(at(partner).cast()))
            }
        };
        if SIGNED { _mm512_xor_si512(bytes, _mm512_set1_epi8(i8::MIN)) } else { bytes }
    }
}

/// Bytes of four taps, for each lane one behind the other.
///
/// # Safety
/// The processor has AVX-512 VNNI.
#[inline(always)]
unsafe fn interleave([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let (ab, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
        let (cd, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
        [
            _mm512_unpacklo_epi16(ab, cd),
            _mm512_unpackhi_epi16(ab, cd),
            _mm512_unpacklo_epi16(ab_high, cd_high),
            _mm512_unpackhi_epi16(ab_high, cd_high),
        ]
    }
}

/// Adds products with the weights of a step, of which there are so many in each part.
///
/// # Safety
/// The block has the step.
#[inline(always)]
unsafe fn multiply<const TWO: bool>(
    run: &Run<'_>,
    (step, steps): (usize, usize),
    inputs: [__m512i; 4],
    sums: &mut [__m512i; 4],
) {
    let weights = run.weights.cast::<__m512i>();
    for v in 0..4 {
        // SAFETY: each step has four vectors.
        unsafe {
            let part = _mm512_load_si512(weights.add(step * 4 + v));
            sums[v] = _mm512_dpbusd_epi32(sums[v], inputs[v], part);
            if TWO {
                let part = _mm512_load_si512(weights.add((steps + step) * 4 + v));
                sums[v] = _mm512_dpbusd_epi32(sums[v], inputs[v], part);
            }
        }
    }
}

/// What sums of a block begin with.
///
/// # Safety
/// The processor has AVX-512 VNNI, and there are four vectors of channels.
#[inline(always)]
unsafe fn first_sums<const P: usize>(run: &Run<'_>) -> [[__m512i; 4]; P] {
    // SAFETY: arrays of 16 numbers.
    unsafe {
        let load = |v: usize| _mm512_loadu_si512(run.lanes.get_unchecked(v).bias.as_ptr().cast());
        [[load(0), load(1), load(2), load(3)]; P]
    }
}

/// Four taps of the pixel `p`.
///
/// # Safety
/// As of [`kernel`], for the entries and the step.
#[inline(always)]
unsafe fn pixel<const SHARE: u8, const SIGNED: bool, const TWO: bool>(
    packed: &Packed,
    run: &Run<'_>,
    place: (usize, usize),
    [a, b, c, d]: [usize; 4],
    p: usize,
    sums: &mut [__m512i; 4],
) {
    let at = p * packed.stride;
    // SAFETY: the caller's promises.
    unsafe {
        let inputs = interleave([
            load::<SHARE, SIGNED>(packed, run, a + at),
            load::<SHARE, SIGNED>(packed, run, b + at),
            load::<SHARE, SIGNED>(packed, run, c + at),
            load::<SHARE, SIGNED>(packed, run, d + at),
        ]);
        multiply::<TWO>(run, place, inputs, sums);
    }
}

/// The first `P` pixels of a run, four taps at a time; `P` is 1 or 4.
///
/// # Safety
/// As of [`kernel`].
#[inline(always)]
unsafe fn rows<const P: usize, const SHARE: u8, const SIGNED: bool, const TWO: bool>(
    packed: &Packed,
    run: &Run<'_>,
) {
    let [height, width] = packed.filter;
    let taps = height * width;
    let steps = taps.div_ceil(4);
    // SAFETY: entries of taps of pixels, the block's steps, and the caller's promises.
    unsafe {
        let mut sums = first_sums::<P>(run);
        let (mut i, mut j) = (0, 0);
        for step in 0..steps {
            // Taps that are not there are multiplied by zero, so any will do.
            let mut entries = [0; 4];
            for entry in &mut entries {
                *entry = i * run.columns + j * packed.dilation;
                if j + 1 < width {
                    j += 1;
                } else if i + 1 < height {
                    (i, j) = (i + 1, 0);
                }
            }
            // Written out, for a loop would keep the sums in memory.
            let place = (step, steps);
            pixel::<SHARE, SIGNED, TWO>(packed, run, place, entries, 0, &mut sums[0]);
            if P == 4 {
                pixel::<SHARE, SIGNED, TWO>(packed, run, place, entries, 1, &mut sums[1]);
                pixel::<SHARE, SIGNED, TWO>(packed, run, place, entries, 2, &mut sums[2]);
                pixel::<SHARE, SIGNED, TWO>(packed, run, place, entries, 3, &mut sums[3]);
            }
        }
        store::<P, SHARE, SIGNED>(packed, run, sums);
    }
}

/// Multiplies each list of inputs with steps of weights and adds the products to pixels' sums. Written
/// out, for a loop would keep the sums in memory.
macro_rules! multiply_all {
    ($run:expr, $steps:literal, $sums:ident: $($inputs:expr => $($p:literal $step:literal),+;)+) => {
        $(
            let inputs = $inputs;
            $(multiply::<TWO>($run, ($step, $steps), inputs, &mut $sums[$p]);)+
        )+
    };
}

/// Interleaves the entries of four rows in a column.
///
/// # Safety
/// As of [`kernel`], for the entries.
#[inline(always)]
unsafe fn column<const SHARE: u8, const SIGNED: bool>(
    packed: &Packed,
    run: &Run<'_>,
    column: usize,
    [a, b, c, d]: [usize; 4],
) -> [__m512i; 4] {
    // SAFETY: the caller's promises.
    unsafe {
        interleave([
            load::<SHARE, SIGNED>(packed, run, a * run.columns + column),
            load::<SHARE, SIGNED>(packed, run, b * run.columns + column),
            load::<SHARE, SIGNED>(packed, run, c * run.columns + column),
            load::<SHARE, SIGNED>(packed, run, d * run.columns + column),
        ])
    }
}

/// Interleaves the entries of the fifth row in four columns, the last one instead of those behind it.
///
/// # Safety
/// As of [`kernel`], for the entries.
#[inline(always)]
unsafe fn last_row<const SHARE: u8, const SIGNED: bool>(
    packed: &Packed,
    run: &Run<'_>,
    column: usize,
    last: usize,
) -> [__m512i; 4] {
    let first = 4 * run.columns;
    // SAFETY: the caller's promises.
    unsafe {
        interleave([
            load::<SHARE, SIGNED>(packed, run, first + column),
            load::<SHARE, SIGNED>(packed, run, first + (column + 1).min(last)),
            load::<SHARE, SIGNED>(packed, run, first + (column + 2).min(last)),
            load::<SHARE, SIGNED>(packed, run, first + (column + 3).min(last)),
        ])
    }
}

/// The first `P` pixels of a run of a 3x3 filter, the three taps of a column at a time. Columns are
/// interleaved once for all pixels that see them, which are `S` columns from each other.
///
/// # Safety
/// As of [`kernel`].
#[inline(always)]
unsafe fn columns3<
    const P: usize,
    const S: usize,
    const SHARE: u8,
    const SIGNED: bool,
    const TWO: bool,
>(
    packed: &Packed,
    run: &Run<'_>,
) {
    // SAFETY: entries of taps of pixels, one of three steps, and the caller's promises.
    unsafe {
        /// A column of which the fourth weight is zero.
        macro_rules! column {
            ($column:literal) => {
                column::<SHARE, SIGNED>(packed, run, $column, [0, 1, 2, 2])
            };
        }
        let mut sums = first_sums::<P>(run);
        if P == 1 {
            multiply_all!(run, 3, sums: column!(0) => 0 0; column!(1) => 0 1; column!(2) => 0 2;);
        } else if S == 1 {
            multiply_all!(run, 3, sums:
                column!(0) => 0 0;
                column!(1) => 0 1, 1 0;
                column!(2) => 0 2, 1 1, 2 0;
                column!(3) => 1 2, 2 1, 3 0;
                column!(4) => 2 2, 3 1;
                column!(5) => 3 2;
            );
        } else {
            multiply_all!(run, 3, sums:
                column!(0) => 0 0;
                column!(1) => 0 1;
                column!(2) => 0 2, 1 0;
                column!(3) => 1 1;
                column!(4) => 1 2, 2 0;
                column!(5) => 2 1;
                column!(6) => 2 2, 3 0;
                column!(7) => 3 1;
                column!(8) => 3 2;
            );
        }
        store::<P, SHARE, SIGNED>(packed, run, sums);
    }
}

/// The first `P` pixels of a run of a 5x5 filter: the upper four taps of a column at a time, for all
/// pixels that see them, then four taps of the last row, of which one pixel takes its first four and
/// the one before it its last.
///
/// # Safety
/// As of [`kernel`].
#[inline(always)]
unsafe fn columns5<
    const P: usize,
    const S: usize,
    const SHARE: u8,
    const SIGNED: bool,
    const TWO: bool,
>(
    packed: &Packed,
    run: &Run<'_>,
) {
    // SAFETY: entries of taps of pixels, one of seven steps, and the caller's promises.
    unsafe {
        macro_rules! column {
            ($column:literal) => {
                column::<SHARE, SIGNED>(packed, run, $column, [0, 1, 2, 3])
            };
        }
        /// Four columns of the last row. Columns behind the last one are not there; their weights are
        /// zero.
        macro_rules! row {
            ($column:literal) => {
                last_row::<SHARE, SIGNED>(packed, run, $column, (P - 1) * S + 4)
            };
        }
        let mut sums = first_sums::<P>(run);
        if P == 1 {
            // The place of the weight among those of the last tap does not matter.
            let tap = column::<SHARE, SIGNED>(packed, run, 4, [4; 4]);
            multiply_all!(run, 7, sums:
                column!(0) => 0 0; column!(1) => 0 1; column!(2) => 0 2; column!(3) => 0 3;
                column!(4) => 0 4; row!(0) => 0 5; tap => 0 6;
            );
        } else if S == 1 {
            multiply_all!(run, 7, sums:
                column!(0) => 0 0;
                column!(1) => 0 1, 1 0;
                column!(2) => 0 2, 1 1, 2 0;
                column!(3) => 0 3, 1 2, 2 1, 3 0;
                column!(4) => 0 4, 1 3, 2 2, 3 1;
                column!(5) => 1 4, 2 3, 3 2;
                column!(6) => 2 4, 3 3;
                column!(7) => 3 4;
                row!(0) => 0 5;
                row!(1) => 0 6, 1 5;
                row!(2) => 1 6, 2 5;
                row!(3) => 2 6, 3 5;
                row!(4) => 3 6;
            );
        } else {
            multiply_all!(run, 7, sums:
                column!(0) => 0 0;
                column!(1) => 0 1;
                column!(2) => 0 2, 1 0;
                column!(3) => 0 3, 1 1;
                column!(4) => 0 4, 1 2, 2 0;
                column!(5) => 1 3, 2 1;
                column!(6) => 1 4, 2 2, 3 0;
                column!(7) => 2 3, 3 1;
                column!(8) => 2 4, 3 2;
                column!(9) => 3 3;
                column!(10) => 3 4;
                row!(0) => 0 5;
                row!(2) => 1 5;
                row!(4) => 0 6, 2 5;
                row!(6) => 1 6, 3 5;
                row!(8) => 2 6;
                row!(10) => 3 6;
            );
        }
        store::<P, SHARE, SIGNED>(packed, run, sums);
    }
}

/// Requantises and stores.
///
/// # Safety
/// As of [`kernel`].
#[inline(always)]
unsafe fn store<const P: usize, const SHARE: u8, const SIGNED: bool>(
    packed: &Packed,
    run: &Run<'_>,
    sums: [[__m512i; 4]; P],
) {
    // SAFETY: the masks leave the block's channels of the pixels, which may be written.
    unsafe {
        let Requantization { min, max, zero_point, .. } = packed.requantization;
        let mut outputs = sums;
        /// Written out, for functions would keep the sums in memory.
        macro_rules! requantize {
            ($Constants:ident, $with:literal) => {
                for v in 0..4 {
                    let constants = $Constants::load(run.lanes.get_unchecked(v));
                    for p in 0..P {
                        outputs[p][v] = constants.apply::<$with>(outputs[p][v]);
                    }
                }
            };
        }
        let mut added = 0;
        match run.block.form {
            Form::Floats => requantize!(FloatConstants, false),
            Form::SignedFloats => requantize!(FloatConstants, true),
            Form::Plain => requantize!(Constants, false),
            Form::Nudged => requantize!(Constants, true),
            Form::Scalar => {}
        }
        if matches!(run.block.form, Form::Floats | Form::SignedFloats) {
            added = zero_point;
        }
        let limits = Limits::new(min, max, added);
        let mask = !0_u64 >> (64 - run.block.channels);
        for p in 0..P {
            let bytes = match run.block.form {
                Form::Scalar => scalar(packed, run, sums[p]),
                _ => limits.narrow4::<SIGNED>(outputs[p]),
            };
            let to = run.output.wrapping_add(p * run.output_step);
            let partner = to.wrapping_add(run.partner * run.output_step);
            match SHARE {
                FULL => _mm512_storeu_si512(to.cast(), bytes),
                PARTIAL => _mm512_mask_storeu_epi8(to.cast(), mask, bytes),
                PAIR => {
                    _mm512_mask_storeu_epi8(to.cast(), mask, bytes);
                    let to = partner.wrapping_sub(32);
                    _mm512_mask_storeu_epi8(to.cast(), mask << 32, bytes);
                }
                _ => {
                    _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes));
                    _mm256_storeu_si256(partner.cast(), _mm512_extracti64x4_epi64::<1>(bytes));
                }
            }
        }
    }
}

/// Requantises one by one.
#[cold]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn scalar(packed: &Packed, run: &Run<'_>, sums: [__m512i; 4]) -> __m512i {
    let mut numbers = [[0_i32; 16]; 4];
    for (sums, numbers) in sums.iter().zip(&mut numbers) {
        // SAFETY: 16 numbers.
        unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), *sums) };
    }
    let mut bytes = [0_u8; 64];
    for (lane, byte) in bytes.iter_mut().enumerate() {
        let index = lane % (64 / run.block.pixels);
        if index < run.block.channels {
            let sum = numbers[lane % 16 / 4][lane / 16 * 4 + lane % 4];
            *byte = packed.output(run.block.channel + index, sum);
        }
    }
    // SAFETY: 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
