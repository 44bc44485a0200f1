//! Depthwise convolution with AVX-512 VNNI.
//!
//! The instruction sums four products of neighbouring bytes, so the bytes of four taps are interleaved:
//! 64 channels of four taps take 8 shuffles and 4 multiplications. Four pixels are computed together, so
//! that constants are loaded once for them and, with 3x3 filters, so that they share interleaved columns.
//! If 32 channels or fewer are left, a pixel of each half of the row share the lanes.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::super::Signedness;
use super::super::requantize::Form;
use super::super::requantize::avx512::{Constants, Limits};
use super::packed::{Order, Packed, Run};
use std::arch::x86_64::*;

/// Computes the pixels of a run.
///
/// # Safety
/// The processor has AVX-512 VNNI. The table has the addresses of all taps of all pixels, and behind
/// each the block's channels can be read; the block's channels of all pixels' outputs can be written.
pub(super) unsafe fn compute(packed: &Packed, run: &Run<'_>) {
    let kernel = match (run.block.pixels, packed.signedness, run.block.has_two_parts) {
        (1, Signedness::Unsigned, false) => kernel::<false, false, false>,
        (1, Signedness::Unsigned, true) => kernel::<false, false, true>,
        (1, Signedness::Signed, false) => kernel::<false, true, false>,
        (1, Signedness::Signed, true) => kernel::<false, true, true>,
        (_, Signedness::Unsigned, false) => kernel::<true, false, false>,
        (_, Signedness::Unsigned, true) => kernel::<true, false, true>,
        (_, Signedness::Signed, false) => kernel::<true, true, false>,
        (_, Signedness::Signed, true) => kernel::<true, true, true>,
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(packed, run) }
}

/// With `PAIR` two pixels share the lanes, with `TWO` the weights are sums of two bytes.
///
/// # Safety
/// As of [`compute`], where the block is as the parameters say.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn kernel<const PAIR: bool, const SIGNED: bool, const TWO: bool>(
    packed: &Packed,
    run: &Run<'_>,
) {
    let mut run = *run;
    // SAFETY: the caller's promises; groups of pixels lie within the run.
    unsafe {
        while run.count >= 4 {
            match (packed.order, packed.stride) {
                (Order::ByRow, _) => by_row::<4, PAIR, SIGNED, TWO>(packed, &run),
                (Order::ByColumn, 1) => by_column::<4, 1, PAIR, SIGNED, TWO>(packed, &run),
                (Order::ByColumn, _) => by_column::<4, 2, PAIR, SIGNED, TWO>(packed, &run),
            }
            run = run.after(4, packed.stride);
        }
        while run.count > 0 {
            match packed.order {
                Order::ByRow => by_row::<1, PAIR, SIGNED, TWO>(packed, &run),
                Order::ByColumn => by_column::<1, 1, PAIR, SIGNED, TWO>(packed, &run),
            }
            run = run.after(1, packed.stride);
        }
    }
}

/// Loads the block's channels of the pixel of a table's entry, or of two into the halves.
///
/// # Safety
/// As of [`compute`], for the entry.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn load<const PAIR: bool, const SIGNED: bool>(
    packed: &Packed,
    run: &Run<'_>,
    entry: usize,
) -> __m512i {
    let mask = !0_u64 >> (64 - run.block.channels);
    // SAFETY: the caller's promise; what a mask leaves out is not accessed.
    let bytes = unsafe {
        let from = (*run.table.add(entry)).add(run.block.channel);
        let bytes = _mm512_maskz_loadu_epi8(mask, from.cast());
        if PAIR {
            let partner = *run.table.add(entry + run.partner * packed.stride);
            let from = partner.add(run.block.channel).wrapping_sub(32);
            _mm512_mask_loadu_epi8(bytes, mask << 32, from.cast())
        } else {
            bytes
        }
    };
    if SIGNED { _mm512_xor_si512(bytes, _mm512_set1_epi8(i8::MIN)) } else { bytes }
}

/// Bytes of four taps, for each lane one behind the other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn interleave([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
    let (cd, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
    [
        _mm512_unpacklo_epi16(ab, cd),
        _mm512_unpackhi_epi16(ab, cd),
        _mm512_unpacklo_epi16(ab_high, cd_high),
        _mm512_unpackhi_epi16(ab_high, cd_high),
    ]
}

/// Adds products with the weights of a step, of which there are so many in each part.
///
/// # Safety
/// The block has the step.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
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
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn first_sums<const P: usize>(run: &Run<'_>) -> [[__m512i; 4]; P] {
    let lanes: &[_; 4] = run.lanes.try_into().expect("four vectors of channels");
    let mut sums = [_mm512_setzero_si512(); 4];
    for v in 0..4 {
        // SAFETY: 16 numbers.
        sums[v] = unsafe { _mm512_loadu_si512(lanes[v].bias.as_ptr().cast()) };
    }
    [sums; P]
}

/// The first `P` pixels of a run, four taps at a time.
///
/// # Safety
/// As of [`kernel`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn by_row<const P: usize, const PAIR: bool, const SIGNED: bool, const TWO: bool>(
    packed: &Packed,
    run: &Run<'_>,
) {
    let [height, width] = packed.filter;
    let taps = height * width;
    let steps = taps.div_ceil(4);
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
        for p in 0..P {
            let mut four = [_mm512_setzero_si512(); 4];
            for t in 0..4 {
                let entry = entries[t] + p * packed.stride;
                // SAFETY: an entry of a tap of a pixel.
                four[t] = unsafe { load::<PAIR, SIGNED>(packed, run, entry) };
            }
            // SAFETY: one of the block's steps.
            unsafe { multiply::<TWO>(run, (step, steps), interleave(four), &mut sums[p]) };
        }
    }
    // SAFETY: the caller's promises.
    unsafe { store::<P, PAIR, SIGNED>(packed, run, sums) }
}

/// The first `P` pixels of a run of a 3x3 filter, the three taps of a column at a time. Columns are
/// interleaved once for all pixels that see them, which are `S` columns from each other.
///
/// # Safety
/// As of [`kernel`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn by_column<
    const P: usize,
    const S: usize,
    const PAIR: bool,
    const SIGNED: bool,
    const TWO: bool,
>(
    packed: &Packed,
    run: &Run<'_>,
) {
    let mut sums = first_sums::<P>(run);
    for column in 0..(P - 1) * S + 3 {
        let mut rows = [_mm512_setzero_si512(); 3];
        for i in 0..3 {
            // SAFETY: an entry of a tap of one of the pixels.
            rows[i] = unsafe { load::<PAIR, SIGNED>(packed, run, i * run.columns + column) };
        }
        // The weight of the fourth is zero.
        let inputs = interleave([rows[0], rows[1], rows[2], rows[2]]);
        for p in 0..P {
            if column >= p * S && column < p * S + 3 {
                // SAFETY: there are three steps.
                unsafe { multiply::<TWO>(run, (column - p * S, 3), inputs, &mut sums[p]) };
            }
        }
    }
    // SAFETY: the caller's promises.
    unsafe { store::<P, PAIR, SIGNED>(packed, run, sums) }
}

/// Requantises and stores.
///
/// # Safety
/// As of [`kernel`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn store<const P: usize, const PAIR: bool, const SIGNED: bool>(
    packed: &Packed,
    run: &Run<'_>,
    sums: [[__m512i; 4]; P],
) {
    let limits = Limits::new(packed.requantization.min, packed.requantization.max);
    let lanes: &[_; 4] = run.lanes.try_into().expect("four vectors of channels");
    let mut outputs = sums;
    let mut bytes = [_mm512_setzero_si512(); P];
    match packed.form {
        Form::Plain => {
            for v in 0..4 {
                let constants = Constants::load(&lanes[v]);
                for p in 0..P {
                    outputs[p][v] = constants.apply::<false>(outputs[p][v]);
                }
            }
            for p in 0..P {
                bytes[p] = limits.narrow4::<SIGNED>(outputs[p]);
            }
        }
        Form::Nudged => {
            for v in 0..4 {
                let constants = Constants::load(&lanes[v]);
                for p in 0..P {
                    outputs[p][v] = constants.apply::<true>(outputs[p][v]);
                }
            }
            for p in 0..P {
                bytes[p] = limits.narrow4::<SIGNED>(outputs[p]);
            }
        }
        Form::Scalar => {
            for p in 0..P {
                bytes[p] = scalar(packed, run, sums[p]);
            }
        }
    }
    let mask = !0_u64 >> (64 - run.block.channels);
    for p in 0..P {
        let to = run.output.wrapping_add(p * run.output_step);
        // SAFETY: the masks leave the block's channels of the pixels, which may be written.
        unsafe {
            _mm512_mask_storeu_epi8(to.cast(), mask, bytes[p]);
            if PAIR {
                let to = to.wrapping_add(run.partner * run.output_step).wrapping_sub(32);
                _mm512_mask_storeu_epi8(to.cast(), mask << 32, bytes[p]);
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
